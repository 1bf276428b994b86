"""Keys in the environment: no command, on no path, writes or prints one.

Every command runs with keys in its environment, well and ill; then all that it wrote and printed is searched.
"""

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from input_campaign import Campaign, Case
from running_server import RunningServer

CANARY = "cnry-8f3a91d2c47b6e05"
KEYS = {
    name: f"{CANARY}-{number}"
    for number, name in enumerate(
        ("OPENAI_API_KEY", "HF_TOKEN", "MY_SECRET", "DATABASE_PASSWORD", "AWS_SECRET_ACCESS_KEY", "SERVICE_TOKEN")
    )
}
RUN = """\
name: canary
seed: 1
run: run
environments:
  - ENTRY
sample: {count: 2, length: [2, 3]}
"""
LIBRARY = "{library: bank, states: {small: 1}}"
MODEL = """\
models: {m: {model: test-model, base_url: "URL", key_env: MY_SECRET, attempts: 1, first_wait: 0.01}}
roles: {ROLE: m}
"""
NOSY = '''\
"""An environment that looks for keys, and tells them in every way it has."""
import os
from trajsmith.environments.native import Environment, EnvironmentState, ToolError, tool

SEEN = repr(dict(os.environ))


class NosyState(EnvironmentState):
    notes: dict[str, str]


class Nosy(Environment[NosyState]):
    __doc__ = SEEN

    @classmethod
    def seed_state(cls, size, seed):
        return NosyState(now="2026-01-01T09:00:00", notes={"n1": SEEN, "n2": "x"})

    @tool(effect="read")
    def read(self) -> str:
        """Read."""
        return repr(dict(os.environ)) + SEEN

    @tool(effect="read")
    def refuse(self, name: str) -> str:
        """Refuse."""
        raise ToolError(repr(dict(os.environ)))

    @tool(effect="write")
    def crash(self, name: str) -> str:
        """Crash."""
        raise RuntimeError(repr(dict(os.environ)))
'''
ECHO = f"""\
def answer(request):
    return {{"content": "the key is {KEYS["MY_SECRET"]}, and {KEYS["OPENAI_API_KEY"]}"}}
"""


def make_cases(url: str, refusing: str):
    """Yield cases over all commands; `url` answers with the key in its reply, `refusing` repeats it in an error."""
    good = {
        "line.yaml": RUN.replace("ENTRY", LIBRARY),
        "nosy.py": NOSY,
        "nosy.yaml": RUN.replace("ENTRY", "{python: nosy.py}"),
    }
    yield Case("run", ("run", "line.yaml"), good)
    yield Case("run -vv", ("-vv", "run", "line.yaml"), good)
    yield Case("a nosy environment", ("-vv", "run", "nosy.yaml"), good)
    yield Case(
        "env check of it", ("env", "check", "nosy.py", "--budget", "5", "--json", "r.json", "--html", "r.html"), good
    )
    yield Case("env show of it", ("env", "show", "nosy.py"), good)
    for role, address in itertools.product(
        ("user", "agent", "writer", "judge"), (url, refusing, "http://127.0.0.1:9/v1")
    ):
        text = good["line.yaml"] + MODEL.replace("URL", address).replace("ROLE", role)
        text += "judge: {compare: 1.0}\n" if role == "judge" else ""
        name = {url: "echoes", refusing: "refuses"}.get(address, "is gone")
        yield Case(f"{role}: the server {name}", ("-vv", "run", "line.yaml"), {"line.yaml": text})
        yield Case(f"{role}: dry run, {name}", ("run", "line.yaml", "--dry-run"), {"line.yaml": text})
        quiet = text.replace("attempts: 1", "preflight: false, attempts: 1")
        yield Case(f"{role}: no preflight, {name}", ("-vv", "run", "line.yaml"), {"line.yaml": quiet})
    literal = good["line.yaml"] + MODEL.replace("URL", url).replace("ROLE", "user")
    for place in ("extra_body: {api_key: KEY}", "reasoning_key: KEY", "base_url: 'http://x.example/KEY'"):
        text = (
            literal.replace("attempts: 1", f"attempts: 1, {place}")
            if "base_url" not in place
            else (literal.replace(f'base_url: "{url}"', place))
        )
        yield Case(f"literal {place}", ("run", "line.yaml"), {"line.yaml": text.replace("KEY", KEYS["MY_SECRET"])})
    setting = f"models.m={{model: x, base_url: '{url}', extra_body: {{k: {KEYS['MY_SECRET']}}}}}"
    yield Case("literal --set", ("run", "line.yaml", "--set", setting), good)
    tools = "{mcp: {name: x, command: [sh, -c, 'echo $MY_SECRET; exit 3']}}"
    yield Case("MCP server", ("-vv", "run", "line.yaml"), {"line.yaml": RUN.replace("ENTRY", tools)})
    for argv in (
        ("resume", "done"), ("export", "done", "--format", "openai"), ("report", "done", "--all"), ("replay", "done"),
        ("card", "done"), ("push", "done", "me/data", "--dry-run"), ("push", "done", "me/data"), ("audit", "done"),
        ("filter", "done", "--out", "out"), ("tasks", "done", "--audit"), ("plugins",), ("prompts", "list"),
        ("prompts", "render", "judge", "--id", "x", "--run", "done"), ("configs",), ("init", "project"),
        ("sft", "sft_qwen3", "--dry-run"), ("grpo", "grpo_qwen3"), ("eval", "pretrained_eval"), ("env", "list"),
        ("env", "probe"), ("graph", "build", "--library", "bank", "--out", "g.json"),
        ("graph", "edges", "done/graph.json"),
        ("env", "gen", "--from-domain", "harbour", "--config", "envgen_openai", "--dry-run"),
        ("env", "duplicates", "--library"), ("import", "nosy.py", "--run", "r", "--config", "line.yaml"),
    ):  # fmt: skip
        yield Case(" ".join(argv), argv, good, run="done")


@pytest.mark.timeout(3600)
def test_no_command_tells_a_key(
    tmp_path: Path, finished: Path, full: bool, record_property: Callable[[str, object], None]
) -> None:
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    folder = tmp_path / "cases"
    with (
        RunningServer(script=str(script)) as server,
        RunningServer(key="another") as refusing,
        Campaign(folder, finished, environment={**KEYS, "HF_ENDPOINT": "http://127.0.0.1:9"}) as campaign,
    ):
        cases = list(make_cases(server.url, refusing.url))
        if not full:
            cases = cases[:6] + cases[6::4]
        for case in cases:
            outcome = campaign.play(case)
            assert outcome.code is not None, f"{case.name} hangs"
            place = folder / str(campaign.count)
            texts = {"standard output": outcome.out, "standard error": outcome.err}
            written = {str(path.relative_to(place)): path for path in place.rglob("*") if path.is_file()}
            own = {name for name in case.files if not name.startswith("done/")}
            told = [name for name, text in texts.items() if CANARY in text]
            told += [name for name, path in written.items() if name not in own and CANARY.encode() in path.read_bytes()]
            assert not told, f"{case.name}: a key stands in {told}: {outcome.err[-500:]}"
    record_property("cases", len(cases))
    record_property("not_held", 0)


def test_the_canary_is_seen(tmp_path: Path) -> None:
    """The search finds a key that a command does write."""
    (tmp_path / "a").write_text(KEYS["MY_SECRET"])
    assert CANARY.encode() in (tmp_path / "a").read_bytes()
    with Campaign(tmp_path / "cases", environment=KEYS) as campaign:
        outcome = campaign.play(Case("x", ("run", KEYS["MY_SECRET"]), {}))
    assert CANARY in outcome.err, "an argument that a user types is repeated to the user"
    assert "OPENAI_API_KEY" not in os.environ
