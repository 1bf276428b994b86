"""Checks tested on a live server, which can only be started anew and be given the same calls."""

import sys
from pathlib import Path

import pytest

from trajsmith.environments.adapters.mcp import McpSettings, McpSource
from trajsmith.environments.replaying import ReplayingSession
from trajsmith.querygen.gold_proof import GoldProof, run_gold
from trajsmith.records import AnswerFact, GoldCall, NondeterminismMask, RequestedInfo
from trajsmith.verify.check_audit import AuditSettings
from trajsmith.verify.equivalents import EquivalentRunBuilder
from trajsmith.verify.gold_run import GoldRun

SERVER = Path(__file__).parents[1] / "environments" / "mcp" / "servers" / "notes.py"
STATE = {"files": {"old.txt": "old"}, "calls": [{"tool": "add_note", "arguments": {"title": "a", "text": "b"}}]}
ASKED = [[RequestedInfo(call=0, question="Save it.", facts=(AnswerFact(value="SAVED"),))]]


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
        runs = await EquivalentRunBuilder(gold, await source.spec(), NondeterminismMask(), 1).build(4)
        assert [run.says for run in runs] == ["1 swaps"]
        assert all(run.ran.states == gold.ran.states for run in runs)
        assert all(run.ran.calls != gold.ran.calls for run in runs)
    finally:
        await session.close()


@pytest.mark.parametrize("live", [False, True], ids=["default", "live"])
async def test_mutants_and_equivalent_runs_only_where_asked_for(live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []
    monkeypatch.setattr(ReplayingSession, "rollback", _counting(ReplayingSession.rollback, starts))
    source = notes()
    session = await source.open()
    try:
        settings = AuditSettings(live=live)
        gold = await run_gold([CALLS], (await source.states(0))[0], session, settings.live)
        tested = await (await GoldProof.of(gold, session)).test(ASKED, await source.spec(), settings, 1)
    finally:
        await session.close()
    assert tested.weakness is None
    assert [check.kind for check in tested.checks[0]].count("state") == 2
    assert bool(starts) == live
    assert (sum(tested.audit.made.values()), tested.audit.equivalent) == ((4, 1) if live else (0, 0))
    assert tested.audit.caught == tested.audit.made
    assert tested.audit.accepted == tested.audit.equivalent


def _counting(rollback, starts: list[object]):  # type: ignore[no-untyped-def]
    async def counted(self: ReplayingSession, point: object) -> None:
        starts.append(point)
        await rollback(self, point)

    return counted
