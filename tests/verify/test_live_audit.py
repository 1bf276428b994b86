"""Checks tested on a live server, which can only be started anew and be given the same calls."""

import sys
from pathlib import Path

from environments.mcp import McpSettings, McpSource
from trajectory import GoldCall, Masks
from verify.equivalents import Equivalents
from verify.rerun import GoldRun

SERVER = Path(__file__).parents[1] / "environments" / "mcp" / "servers" / "notes.py"
STATE = {"files": {"old.txt": "old"}, "calls": [{"tool": "add_note", "arguments": {"title": "a", "text": "b"}}]}


def notes() -> McpSource:
    observed = [{"tool": "list_notes", "label": "notes"}]
    settings = {"command": [sys.executable, str(SERVER)], "states": {"one": STATE}, "observe": observed}
    return McpSource(McpSettings.model_validate({"name": "notes", **settings}))


def call(tool: str, result: object = None, **arguments: str) -> GoldCall:
    return GoldCall(tool=tool, arguments=arguments, provenance={}, effect="write", result=result)


CALLS = [
    call("save", path="first.txt", text="one"),
    call("save", path="second.txt", text="two"),
    call("shout", "SAVED", text="saved"),
]


async def test_equivalent_runs_begin_where_the_gold_run_began() -> None:
    """A snapshot of a live server is what is observed of it; only its initial state starts one."""
    source = notes()
    session = await source.open()
    try:
        gold = GoldRun([CALLS], session)
        await gold.play((await source.states(0))[0])
        assert gold.initial.keys() == {"files", "observed"}
        runs = await Equivalents(gold, await source.spec(), Masks(), 1).made(4)
        assert [run.says for run in runs] == ["1 swaps"]
        assert all(run.ran.states == gold.ran.states for run in runs)
        assert all(run.ran.made != gold.ran.made for run in runs)
    finally:
        await session.close()
