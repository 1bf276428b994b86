"""Pages over hostile texts, in Chromium: nothing of a text runs or loads, even where escaping it had been forgotten."""

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples import ENVIRONMENTS, make_items, make_spec, make_summary

from trajsmith.envcheck import EnvironmentReport, render_reports_html
from trajsmith.evals.diagnosis import diagnose
from trajsmith.evals.observations import EpisodeObservation
from trajsmith.export import INDEX, ConversationBrowser, build_report, render_page
from trajsmith.pipeline.arena_report import ArenaReport, RoundReport
from trajsmith.records import ToolSpec
from trajsmith.toolgraph import ToolGraph
from trajsmith.toolgraph.html_page import write_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0",
    "--virtual-time-budget=2000", "--dump-dom", "--window-size=1300,900",
)  # fmt: skip
RUN = "document.documentElement.dataset['ra'+'n']=1;console.error('RA'+'N')"
"""Leaves `data-ran` on the page, which stands nowhere in its text."""


def list_attacks(port: int) -> list[str]:
    """Texts that run or load something where they are taken for HTML; the last are hard to show."""
    away = f"http://127.0.0.1:{port}"
    return [
        f"<script>{RUN}</script>",
        f"</script><script>{RUN}</script><!--",
        f"\"><img src=x onerror=\"{RUN}\">",
        f"'><svg onload=\"{RUN}\"><animate onbegin=\"{RUN}\" attributeName=x dur=1s></svg>",
        f"<svg><script>{RUN}</script><a xlink:href=\"javascript:{RUN}\"><text y=20>x</text></a></svg>",
        f"<iframe src=\"javascript:parent.{RUN}\"></iframe><iframe srcdoc=\"<script>parent.{RUN}</script>\"></iframe>",
        f"<meta http-equiv=refresh content=\"0;url=javascript:{RUN}\"><base href=\"javascript:{RUN}//\">",
        f"<object data=\"data:text/html,<script>{RUN}</script>\"></object><embed src=\"{away}/embed\">",
        f"<link rel=stylesheet href={away}/sheet><style>@import '{away}/import'; body {{ display: none }}</style>",
        f"<div style=\"background:url({away}/style);position:fixed;inset:0\">cover</div><img src={away}/image>",
        f"<video src={away}/video></video><form action={away}/form><input autofocus onfocus=\"{RUN}\"></form>",
        f"[link](javascript:{RUN}) javascript:{RUN} {{{{ 7 * 7 }}}} {{% raw %}} ${{7*7}}",
        "\u202eright to left\u2066 and \u2067isolated\u202d", "\u0000\ufeff\ufffe zero\u200bwidth \u0007 bell",
        "z\u0351\u0352\u0353" * 400, "long" * 60_000,
    ]  # fmt: skip


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A server that counts who asks it for anything."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                try:
                    client, _ = server.accept()
                except TimeoutError:
                    continue
                with client:
                    asked.append(client.recv(200))

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1], asked
        over.set()
        thread.join()


def make_pages(folder: Path, attacks: list[str]) -> dict[str, Path]:
    """Write every kind of page over these texts."""
    texts = [text.replace("\u0000", "") for text in attacks]
    first = " ".join(texts[:12])
    items = []
    for number, (task, trajectory, verdict) in enumerate(make_items(len(texts))):
        said = texts[number]
        messages = tuple(
            message.model_copy(update={"content": said}) if message.role in ("user", "assistant", "tool") else message
            for message in trajectory.messages
        )
        persona = task.persona.model_copy(update={"name": said[:2000], "style": said[:2000]})
        task = task.model_copy(update={"persona": persona, "scenario": said[:2000], "policy": said[:2000]})
        verdict = verdict.model_copy(update={"reasons": (said[:300],) if verdict.reasons else ()})
        items.append((task, trajectory.model_copy(update={"messages": messages}), verdict))
    specs = [make_spec(name).model_copy(update={"description": first}) for name in ENVIRONMENTS]
    build_report(make_summary(name=first, rejected={first: 3}), specs, items, folder / "report.html")
    with ConversationBrowser(folder / "gallery", first) as browser:
        for item in items:
            browser.add(*item)
    tools = tuple(
        ToolSpec.model_validate({"server": "shop", "name": f"tool_{number}", "description": text, "inputSchema": {}})
        for number, text in enumerate(texts)
    )
    write_page(ToolGraph(tools=tools, parameters=(), edges=()), folder / "graph.html", first)
    checked = EnvironmentReport(
        environment=first, version="1", source=first, seed=1, score=0.5, tools=(), checks=(), findings=(), states=1,
        facts=1, calls=1, cpu_seconds=1.0, stopped=first, unconfirmed={first: 1},
    )  # fmt: skip
    (folder / "environment.html").write_text(render_reports_html([checked]))
    rounds = (RoundReport(number=1, model=first, says=first, unserved=(first,), groups=(), gained=False),)
    arena = ArenaReport(name=first, model=first, rows=1, rounds=rounds, stopped=first)
    (folder / "arena.html").write_text(render_page("arena.html.j2", arena=arena))
    observed = [
        EpisodeObservation(
            episode=f"traj_{number}", task=f"task_{number}", environment=texts[number % 3], passed=number % 3 > 0,
            error=first, groups={"environment": (texts[number % 3],), "tool": (first,)}, step=None,
        )
        for number in range(90)
    ]  # fmt: skip
    (folder / "diagnosis.html").write_text(render_page("diagnosis.html.j2", diagnosis=diagnose(observed, first)))
    page = next(path for path in sorted((folder / "gallery").glob("*.html")) if path.name != INDEX)
    names = ("report", "graph", "environment", "arena", "diagnosis")
    return {name: folder / f"{name}.html" for name in names} | {"gallery": folder / "gallery" / INDEX, "page": page}


def open_page(path: Path, profile: Path) -> tuple[str, str]:
    """Return the page after its scripts, and what the browser logged."""
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return shown.stdout, shown.stderr


SHOWN = {
    "report": "16 shown", "page": 'class="item"', "graph": "tool_3", "environment": "</table>", "arena": "Round 1",
    "diagnosis": "</main>", "gallery": "16 conversations",
}  # fmt: skip
"""Part of each page that only stands there if it works."""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_nothing_of_a_text_runs_or_loads_on_any_page(tmp_path: Path, listener: tuple[int, list[bytes]]) -> None:
    port, asked = listener
    for name, path in make_pages(tmp_path, list_attacks(port)).items():
        dom, log = open_page(path, tmp_path / "profile")
        assert "data-ran" not in dom and "CONSOLE" not in log, (name, log[-400:])
        assert SHOWN[name] in dom, f"{name} cannot be read"
    assert asked == []


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_a_text_that_is_not_escaped_is_stopped_by_the_policy(tmp_path: Path, listener: tuple[int, list[bytes]]) -> None:
    port, asked = listener
    attacks = list_attacks(port)
    bare = tmp_path / "bare.html"
    bare.write_text(f"<!doctype html><title>x</title><body>{attacks[0]}</body>")
    assert "data-ran" in open_page(bare, tmp_path / "profile")[0], "the attack would show nothing anywhere"
    for name, path in make_pages(tmp_path, ["word"] * 16).items():
        text = path.read_text()
        raw = "\n".join(attacks[:1] + attacks[2:11])
        path.write_text(text.replace("<main>", f"<main>{raw}", 1))
        assert path.read_text() != text, name
        dom, log = open_page(path, tmp_path / "profile")
        assert "data-ran" not in dom and "RAN" not in log, name
        assert "Content Security Policy" in log, name
    assert [line for line in asked if b"embed" not in line] == []
