"""The agent with injected faults: what it does wrong is recorded, and verification rejects or removes it."""

import json

import pytest
from playing import Stage

from trajsmith import run
from trajsmith.records import InputError
from trajsmith.records.journal import read_records
from trajsmith.records.trajectory import Trajectory
from trajsmith.usersim import Dialogue, FaultSettings, PlaySettings, ScriptedAgent, ScriptedUser, build_faulty_agent
from trajsmith.usersim.faulty_agent import FaultyAgent, invent_value, misstate_value
from trajsmith.usersim.tool_search import SEARCH_FAULTS

KINDS = [kind for kind in FaultSettings.model_fields if kind not in ("ignored_variant", *SEARCH_FAULTS)]


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    return Stage("bank", tmp_path_factory.mktemp("bank"))


async def play_faulty(stage, task, kind, candidate=1):
    rates = dict.fromkeys(FaultSettings.model_fields, 0.0) | {kind: 1.0}
    agent = build_faulty_agent(task, stage.wording, candidate, FaultSettings(**rates))
    user = ScriptedUser(task, stage.wording, candidate)
    dialogue = Dialogue(stage.spec, task, stage.state, stage.session(), agent, user, PlaySettings(), candidate)
    return await dialogue.play()


@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_of_fault_is_rejected_or_removed(stage, kind):
    tasks = await stage.tasks(30)
    injected = 0
    for task in tasks:
        trajectory = await play_faulty(stage, task, kind)
        if trajectory.injected is None:
            continue
        injected += 1
        assert [fault.kind for fault in trajectory.injected] == [kind]
        verdict = await stage.verdict(task, trajectory)
        removed = {trajectory.events[cut.event].message for cut in verdict.pruned}
        harmless = {fault.message for fault in trajectory.injected} <= removed
        assert not verdict.accepted or harmless, (kind, task.id, trajectory.injected)
    assert injected, f"no task of thirty gave an opportunity for {kind}"


@pytest.mark.parametrize(("fired", "clear"), [(False, True), (True, False)])
async def test_only_a_needless_question_is_vague(stage, fired, clear):
    """A call that needs a yes anyway is asked about in the words of an agent without faults."""
    compared = 0
    for task in (await stage.tasks(30))[:10]:
        if task.mode != "conversation":
            continue
        usual = ScriptedAgent(task, stage.wording, 1)
        agent = FaultyAgent(task, stage.wording, 1, kind="needless_confirmation", place=0)
        agent.fired = fired
        call = task.gold_calls[0].model_copy(update={"provenance": {}})
        usual.calls = agent.calls = (call,)
        assert (agent._confirmation(0) == usual._confirmation(0)) is clear
        compared += 1
    assert compared


async def test_without_rates_it_plays_as_it_should(stage):
    none = FaultSettings(**dict.fromkeys(FaultSettings.model_fields, 0.0))
    for task in (await stage.tasks(30))[:5]:
        agent = build_faulty_agent(task, stage.wording, 1, none)
        user = ScriptedUser(task, stage.wording, 1)
        dialogue = Dialogue(stage.spec, task, stage.state, stage.session(), agent, user, PlaySettings(), 1)
        trajectory = await dialogue.play()
        assert trajectory.injected is None
        assert (await stage.verdict(task, trajectory)).accepted


def test_an_invented_value_is_another_one():
    import random

    rng = random.Random(1)
    assert invent_value("lost", {"enum": ["lost", "stolen"]}, rng) == "stolen"
    assert invent_value(True, {}, rng) is False
    assert invent_value(3, {}, rng) > 3
    assert invent_value("2026-03-04", {}, rng) != "2026-03-04"


def test_a_value_is_told_wrongly_wherever_it_stands():
    import random

    wrong = misstate_value("It cost £40.00; the £40.00 are gone.", 40.0, [40.0], random.Random(2))
    assert "40.00" not in wrong and wrong.count("£40.0") == 2
    assert misstate_value("Nothing of it.", 40.0, [40.0], random.Random(2)) == "Nothing of it."


def test_a_run_counts_what_became_of_each_kind(tmp_path):
    config = {
        "name": "faults",
        "run": str(tmp_path / "run"),
        "environments": [{"library": "retail"}],
        "sample": {"count": 20},
        "play": {"candidates": 2, "faulty": 1},
    }
    run(config)
    summary = json.loads((tmp_path / "run" / "summary.json").read_bytes())
    played = list(read_records(tmp_path / "run" / "trajectories.jsonl", Trajectory))
    kinds = {one.injected[0].kind for one in played if one.injected}
    assert set(summary["faults"]) == {*kinds, "none"}
    assert sum(row["plays"] for row in summary["faults"].values()) == len(played) == 2 * summary["funnel"]["written"]
    assert summary["faults"]["none"]["rejected"] == 0


def test_one_candidate_at_least_is_played_as_it_should_be(tmp_path):
    with pytest.raises(InputError, match="set candidates to 2 or more"):
        run({"name": "x", "run": str(tmp_path), "environments": [{"library": "retail"}], "play": {"faulty": 1}})
