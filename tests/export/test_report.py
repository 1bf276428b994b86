import json
import re
import shutil
import subprocess

import pytest
from samples import ENVIRONMENTS, make_items, make_spec, make_summary

from trajsmith.export import build_report
from trajsmith.export.gallery import TEXT_LIMIT, Gallery, build_gallery_entry
from trajsmith.export.report import _gallery_note
from trajsmith.records import Message

SPECS = [make_spec(name) for name in ENVIRONMENTS]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0", "--dump-dom",
)  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    build_report(make_summary(), SPECS, make_items(60), path)
    return path


def embedded(html: str) -> list[dict]:
    return json.loads(re.search(r'<script type="application/json" id="items">(.*?)</script>', html, re.S)[1])


def test_report_is_one_file(report):
    assert [path.name for path in report.parent.iterdir()] == ["report.html"]
    html = report.read_text()
    assert not re.search(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", html.split('id="items">')[0])
    assert not re.findall(r'(?:src|href)="(?!#|data:)', html)
    assert "quick&lt;start&gt;" in html and "quick<start>" not in html


def test_hostile_tool_output_cannot_leave_its_script(report):
    html = report.read_text()
    assert html.count("<script") == 2
    assert "throw Error(1)" in json.dumps(embedded(html))


def test_gallery_shows_the_hidden_side(report):
    item = next(item for item in embedded(report.read_text()) if item["accepted"])
    turn = item["turns"][0]
    assert turn["known"][1] == {"label": "reason", "said": "it is <b>late</b>", "at_once": False, "how": "value"}
    assert turn["gold"][0]["name"] == "cancel_order"
    assert [effect["tool"] for effect in turn["effects"]] == ["cancel_order", "tag_order"]
    assert turn["effects"][1] == {"tool": "tag_order", "actor": "assistant", "error": "refused", "changes": []}
    assert item["checks"][0]["passed"] is True


def test_never_called_tools_and_drop_reasons_stand_out(report):
    html = report.read_text()
    assert html.count("<code>never_used</code>") == 3
    assert "no arguments found <b>31</b>" in html


def test_gallery_is_bounded_even_and_independent_of_order():
    chosen = []
    for items in (list(make_items(300)), list(make_items(300))[::-1]):
        gallery = Gallery(24, len(SPECS))
        for item in items:
            gallery.add(*item)
        assert all(len(pool) <= 16 for pool in gallery._pools.values())
        chosen.append([json.loads(entry) for entry in gallery.chosen()])
    assert chosen[0] == chosen[1]
    shown = [entry["environment"] for entry in chosen[0]]
    assert (len(shown), {name: shown.count(name) for name in shown}) == (24, dict.fromkeys(ENVIRONMENTS, 8))
    assert sum(not entry["accepted"] for entry in chosen[0]) == 6


def test_long_output_is_cut_and_says_so():
    task, trajectory, verdict = next(make_items(1))
    long = Message(role="assistant", content="x" * (TEXT_LIMIT + 7))
    entry = build_gallery_entry(task, trajectory.model_copy(update={"messages": (*trajectory.messages, long)}), verdict)
    assert entry["messages"][-1]["content"].endswith("… (7 more characters)")


def test_empty_run_has_a_report(tmp_path):
    build_report(make_summary(funnel={}, stages=(), rejected={}), [], [], tmp_path / "report.html")
    assert "No conversation was played." in (tmp_path / "report.html").read_text()


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_report_opens_without_errors(report, tmp_path):
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", report.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in shown.stderr
    assert "60 shown" in shown.stdout
    assert len(re.findall(r'class="item"', shown.stdout)) == 60
    assert "Hidden from the agent" in shown.stdout
    assert "&lt;/script&gt;&lt;script&gt;throw Error(1)" in shown.stdout
    assert "<img" not in shown.stdout.split("</main>")[0]


@pytest.mark.parametrize(("with_rejected", "ending"), [(True, ", with some that were not accepted."), (False, ".")])
def test_the_gallery_speaks_of_rejected_conversations_only_where_there_are_some(with_rejected, ending):
    assert _gallery_note(2, 9, with_rejected) == f"2 of 9 conversations, spread over the environments{ending}"
