"""States and goals that a model proposes: bad ones are counted reasons, a good one becomes a task with proof."""

import asyncio
from typing import Any

import orjson
import pytest

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.models import CallableModel, ChatReply
from trajsmith.phrasing import Phrasebook
from trajsmith.pipeline.config import resolve_config
from trajsmith.pipeline.engine import summarize_stage
from trajsmith.pipeline.run_directory import GROUNDED, TASKS, VERDICTS, RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.stages import RoleFactory
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.querygen.state_first.goals import StateGoal
from trajsmith.querygen.state_first.proposals import StateProposal, find_reference_fields, validate_proposal
from trajsmith.records import GroundedChain, Message, RecordDropped, Task, Verdict
from trajsmith.records.journal import read_records

BANK = ENVIRONMENTS.get("bank")
STATE: dict[str, Any] = orjson.loads(BANK.seed_state("small", 1).model_dump_json())
CARD_KEY, CARD = next(iter(STATE["cards"].items()))
NEW = {"table": "cards", "key": "K9001", "fields": {**CARD, "card_id": "K9001", "status": "active"}}
FREEZE = {"table": "cards", "key": "K9001", "fields": {"status": "frozen"}}


def record(**fields: Any) -> dict[str, Any]:
    return {**NEW, "fields": {**NEW["fields"], **fields}}  # type: ignore[dict-item]


async def check(proposal: dict[str, Any]) -> tuple[dict[str, Any], StateGoal]:
    session = NativeSession(BANK, BANK.describe())
    grounder = Grounder(BANK.describe(), STATE, Phrasebook(), GroundSettings())
    try:
        return await validate_proposal(StateProposal.model_validate(proposal), grounder, session)
    finally:
        await session.close()


def test_a_proposal_that_fits_gives_a_state_with_its_records_and_a_goal() -> None:
    state, goal = asyncio.run(check({"records": [NEW], "change": FREEZE}))
    assert state["cards"]["K9001"] == NEW["fields"] and "K9001" not in STATE["cards"]
    assert goal == StateGoal(table="cards", key="K9001", fields={"status": "frozen"})
    assert {**STATE, "cards": state["cards"]} == state, "nothing else is changed"
    assert find_reference_fields("cards", STATE)["account_id"] == "accounts"


@pytest.mark.parametrize(
    ("records", "change", "reason"),
    [
        ([{**NEW, "table": "wishes"}], FREEZE, "proposal_unknown_table"),
        ([{**NEW, "key": CARD_KEY}], FREEZE, "proposal_taken_key"),
        ([NEW, NEW], FREEZE, "proposal_taken_key"),
        ([{**NEW, "fields": {"card_id": "K9001"}}], FREEZE, "proposal_wrong_fields"),
        ([record(colour="red")], FREEZE, "proposal_wrong_fields"),
        ([record(card_id="K1")], FREEZE, "proposal_wrong_fields"),
        ([record(account_id="A0")], FREEZE, "proposal_broken_reference"),
        ([record(status="melted")], FREEZE, "proposal_invalid_state"),
        ([record(status=7)], FREEZE, "proposal_invalid_state"),
        ([NEW], {**FREEZE, "table": "now"}, "proposal_unknown_table"),
        ([NEW], {**FREEZE, "key": "K0"}, "proposal_unknown_row"),
        ([NEW], {**FREEZE, "fields": {"colour": "red"}}, "proposal_wrong_fields"),
        ([NEW], {**FREEZE, "fields": {"status": "active"}}, "proposal_met_already"),
    ],
    ids=[
        "table", "taken", "twice", "missing-fields", "unknown-field", "key-not-its-own", "reference", "choice", "type",
        "change-of-no-table", "change-of-no-row", "change-of-no-field", "met-already",
    ],
)  # fmt: skip
def test_a_proposal_that_does_not_fit_is_a_counted_reason(
    records: list[dict[str, Any]], change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(RecordDropped) as dropped:
        asyncio.run(check({"records": records, "change": change}))
    assert dropped.value.reason == reason


class ScriptedProposer:
    """Model that answers with a taken key first; told so, with a new customer who has a card."""

    def __init__(self, learns: bool) -> None:
        self.learns = learns
        self.asked: list[str] = []

    async def answer(self, request: Any) -> ChatReply:
        text = request.messages[-1].content
        self.asked.append(text)
        shown = orjson.loads(text.partition("Examples:\n")[2].splitlines()[0])
        customer, account, card = (next(iter(shown[name].items())) for name in ("customers", "accounts", "cards"))
        person = {**customer[1], "customer_id": "C9001", "name": "Yara Lindholm", "phone": "+44 7700 900321",
                  "email": "yara.lindholm@example.com"}  # fmt: skip
        holds = {**account[1], "account_id": "A9001", "customer_id": "C9001"}
        plastic = {**card[1], "card_id": "K9001", "account_id": "A9001", "status": "active", "freeze_reason": None}
        if "customer_id" in plastic:
            plastic["customer_id"] = "C9001"
        fits = self.learns and "What was wrong: " in text
        records = [
            {"table": "customers", "key": "C9001" if fits else customer[0], "fields": person},
            {"table": "accounts", "key": "A9001", "fields": holds},
            {"table": "cards", "key": "K9001", "fields": plastic},
        ]
        reply = {"records": records, "change": FREEZE}
        return ChatReply(message=Message(role="assistant", content=orjson.dumps(reply).decode()))


def make_run(folder: Any, proposer: ScriptedProposer, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.setattr(RoleFactory, "proposer", CallableModel("proposer", proposer.answer))
    config = resolve_config(
        {
            "name": "proposed", "seed": 5, "run": str(folder / "run"), "sample": {"count": 3},
            "environments": [{"library": "bank", "states": {"small": 2}}],
            "sources": {"chains": 0.0, "state_first": 1.0}, "engine": {"workers": 1},
            "state_first": {"proposals": 2},
        }
    )  # fmt: skip
    run = RunDirectory.create(config.run, dump_settings(config))
    asyncio.run(run_pipeline(run))
    return run


def test_a_proposal_is_mended_after_what_was_wrong_and_becomes_a_task(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposer = ScriptedProposer(learns=True)
    run = make_run(tmp_path, proposer, monkeypatch)
    tasks = list(read_records(run.file(TASKS), Task))
    grounded = {one.id: one for one in read_records(run.file(GROUNDED), GroundedChain)}
    assert len(tasks) == 3 and len(proposer.asked) == 6
    assert all("has a row" in text for text in proposer.asked[1::2])
    for task in tasks:
        assert task.source == "state" and task.gold_calls[-1].tool == "freeze_card"
        assert "+44 7700 900321" in str(task.gold_calls[0].arguments), "the new customer calls"
        assert run.get_state(task.initial_state)["cards"]["K9001"]["status"] == "active"
        assert grounded[task.grounded_id].goal == {"table": "cards", "key": "K9001", "fields": {"status": "frozen"}}
        assert task.audit is not None and task.audit.discrimination == 1.0
    assert all(one.accepted and one.replay_match for one in read_records(run.file(VERDICTS), Verdict))


def test_proposals_that_never_fit_are_counted(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    proposer = ScriptedProposer(learns=False)
    with pytest.raises(Exception, match="proposal_taken_key"):
        make_run(tmp_path, proposer, monkeypatch)
    run = RunDirectory.open(tmp_path / "run")
    assert summarize_stage(run, "ground").dropped == {"proposal_taken_key": 3}
    assert len(proposer.asked) == 6
