"""Tasks that start from a change of the state: edits learnt elsewhere, calls found by a solver, minimal gold calls."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.grounding import Grounder, GroundSettings, SchemaField, ValueSource
from trajsmith.phrasing import Phrasebook
from trajsmith.pipeline.config import resolve_config
from trajsmith.pipeline.run_directory import GROUNDED, TASKS, VERDICTS, RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.querygen.state_first import StateEdit, StateGoal, draw_goal
from trajsmith.querygen.state_first.edits import _keep_common_states, find_references
from trajsmith.querygen.state_first.goals import list_linked_rows, list_open_keys
from trajsmith.querygen.state_first.row_links import RowLinks
from trajsmith.querygen.state_first.solver import LikelyValues, _list_arguments
from trajsmith.records import EnvironmentSpec, GroundedChain, Task, ToolSpec, Verdict
from trajsmith.records.journal import read_records

STATE: dict[str, Any] = {
    "owners": {"O1": {"name": "Ann"}, "O2": {"name": "Bob"}},
    "lamps": {"L1": {"on": True, "owner_id": "O1"}, "L2": {"on": False, "owner_id": "O2"}},
    "now": "2026-03-02T09:00",
}


@pytest.mark.parametrize(
    ("goal", "changed", "holds"),
    [
        (StateGoal(table="lamps", key="L2", fields={"on": True}), {"L2": {"on": True}}, True),
        (StateGoal(table="lamps", key="L2", fields={"on": True}), {"L1": {"on": False}}, False),
        (StateGoal(table="lamps", fields={"owner_id": "O2"}), {"L3": {"owner_id": "O2", "on": True}}, True),
        (StateGoal(table="lamps", fields={"owner_id": "O2"}), {}, False),  # the old lamp of O2 does not count
        (StateGoal(table="rooms", fields={"name": "x"}), {}, False),
    ],
    ids=["row", "another-row", "new-row", "old-row", "no-table"],
)
def test_a_goal_is_a_condition_on_the_final_state(goal: StateGoal, changed: dict[str, Any], holds: bool) -> None:
    assert goal.holds(STATE, {**STATE, "lamps": {**STATE["lamps"], **changed}}) is holds


def test_a_goal_is_open_on_its_state_and_refers_to_rows_of_it() -> None:
    switch = StateEdit(kind="changed", table="lamps", fields={"on": True})
    goal = draw_goal([switch], RowLinks(STATE), random.Random(1))
    assert goal == StateGoal(table="lamps", key="L2", fields={"on": True})
    fields = {"owner_id": "O7", "on": False}
    new = StateEdit(kind="added", table="lamps", fields=fields, references={"owner_id": "owners"})
    goal = draw_goal([new], RowLinks(STATE), random.Random(1))
    assert goal is not None and goal.key == "" and goal.fields["owner_id"] in STATE["owners"]
    met = StateEdit(kind="changed", table="owners", fields={"name": "Ann"})
    assert draw_goal([met], RowLinks({**STATE, "owners": {"O1": {"name": "Ann"}}}), random.Random(1)) is None
    no_table = StateEdit(kind="changed", table="rooms", fields={"x": 1})
    assert draw_goal([no_table], RowLinks(STATE), random.Random(1)) is None
    assert find_references(fields | {"owner_id": "O2"}, STATE) == {"owner_id": "owners"}


@pytest.mark.parametrize(
    ("learnt_on", "value", "until"),
    [("2026-02-27", "2026-03-10", "2026-03-13"), ("2025-03-02", "9999-12-31", "9999-12-31")],
    ids=["as-many-days-later", "no-such-day"],
)
def test_dates_of_a_goal_go_with_the_clock(learnt_on: str, value: str, until: str) -> None:
    edit = StateEdit(kind="added", table="lamps", fields={"until": value}, learnt_on=learnt_on)
    goal = draw_goal([edit], RowLinks(STATE), random.Random(1))
    assert goal is not None and goal.fields == {"until": until}


def test_the_solver_takes_values_from_the_goal_and_the_row_that_is_meant() -> None:
    schema = {
        "type": "object",
        "properties": {
            "lamp_id": {"type": "string"}, "on": {"type": "boolean"}, "level": {"type": "integer"},
            "mode": {"enum": ["dim", "full"]}, "name": {"type": "string"},
        },
        "required": ["lamp_id", "mode", "name"],
    }  # fmt: skip
    tool = ToolSpec(server="home", name="switch", input_schema=schema)
    spec = EnvironmentSpec(name="home", version="1", description="Lamps.", tools=(tool,), source="test")
    goal = StateGoal(table="lamps", key="L2", fields={"on": True})
    likely = LikelyValues(
        Grounder(spec, STATE, Phrasebook(), GroundSettings()), RowLinks(STATE), goal, random.Random(1)
    )
    tried = list(_list_arguments(goal, tool, STATE, likely))
    assert any(one == {"lamp_id": "L2", "on": True, "mode": "dim", "name": "Bob"} for one in tried)
    assert all("level" not in one for one in tried)
    assert {one["mode"] for one in tried} == {"dim", "full"}
    assert "Ann" not in {one["name"] for one in tried}  # the lamp that is meant is Bob's


HOMES: dict[str, Any] = {
    "user_id": "O2",
    "owners": {"O1": {"name": "Ann"}, "O2": {"name": "Bob"}},
    "lamps": {
        "L1": {"on": False, "broken": False, "owner_id": "O1"},
        "L2": {"on": False, "broken": True, "owner_id": "O2"},
        "L3": {"on": False, "broken": False, "owner_id": "O2"},
        "L4": {"on": False, "broken": False, "owner_id": "O2"},
    },
    "repairs": {"R1": {"lamp_id": "L2", "notes": [{"note_id": "N1"}]}, "R2": {"lamp_id": "L1", "notes": []}},
}


def test_links_of_a_state_tell_what_belongs_to_whom() -> None:
    links = RowLinks(HOMES)
    assert links.list_linked(["R1"]) == {("repairs", "R1"), ("lamps", "L2"), ("owners", "O2")}
    assert links.list_linked(["N1"]) == links.list_linked(["R1"])
    assert links.list_owned([("owners", "O1")]) == {("owners", "O1"), ("lamps", "L1"), ("repairs", "R2")}
    assert links.own == links.list_owned([("owners", "O2")])
    assert links.list_people(["owners.*.name", "caller.name"]) == [("owners", "O1"), ("owners", "O2")]


def test_a_goal_is_about_a_row_of_the_user_that_is_as_the_edited_one_was() -> None:
    fields = {"on": True}
    edits = [
        StateEdit(kind="changed", table="lamps", fields=fields, before={"on": False, "broken": False, "dim": dim})
        for dim in (True, False)
    ]
    common = _keep_common_states(edits)
    assert [edit.before for edit in common] == [{"broken": False, "on": False}]
    assert list_open_keys(common[0], fields, RowLinks(HOMES)) == ["L3", "L4"]
    assert list_open_keys(common[0], fields, RowLinks({**HOMES, "user_id": ""})) == ["L1", "L3", "L4"]
    assert list_linked_rows(RowLinks(HOMES), "lamps", [("owners", "O1")]) == [("lamps", "L1")]


def test_values_of_the_rows_that_are_meant_come_first() -> None:
    field = SchemaField("name", "name", (), frozenset({"string"}), True, {"type": "string"})
    source = ValueSource(HOMES)
    assert {value for _, _, value in source.entries(field)} == {"Ann", "Bob"}
    assert source.focus([("owners", "O2")]).propose(field, random.Random(1)) == ["Bob"]
    assert {value for _, _, value in source.focus([("lamps", "L1")]).entries(field)} == {"Ann", "Bob"}
    owner = replace(field, name="owner_id", path="owner_id")
    assert {key for _, key, _ in source.focus([("lamps", "L1")]).entries(owner)} == {"L1", "L2", "L3", "L4"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("state") / "run"
    config = resolve_config(
        {
            "name": "state", "seed": 3, "run": str(folder), "sample": {"count": 8},
            "environments": [{"library": name, "states": {"small": 2}} for name in ("bank", "calendar")],
            "sources": {"chains": 0.0, "state_first": 1.0}, "engine": {"workers": 1},
        }
    )  # fmt: skip
    opened = RunDirectory.create(config.run, dump_settings(config))
    asyncio.run(run_pipeline(opened))
    return opened


def test_every_task_meets_its_goal_with_gold_calls_of_which_none_can_go(run: RunDirectory) -> None:
    grounded = {one.id: one for one in read_records(run.file(GROUNDED), GroundedChain)}
    tasks = list(read_records(run.file(TASKS), Task))
    assert len(tasks) >= 4 and all(task.source == "state" for task in tasks)
    for task in tasks:
        chain = grounded[task.grounded_id]
        goal = StateGoal.model_validate(chain.goal)
        environment = task.environments[0]
        state = run.get_state(task.initial_state)
        assert asyncio.run(play(environment, state, chain.calls, goal)) is True
        writes = [number for number, call in enumerate(chain.calls) if call.effect == "write"]
        for number in writes:
            rest = [call for index, call in enumerate(chain.calls) if index != number]
            assert asyncio.run(play(environment, state, rest, goal)) is False
        assert task.audit is not None and task.audit.discrimination == 1.0
    verdicts = list(read_records(run.file(VERDICTS), Verdict))
    assert all(verdict.accepted and verdict.replay_match for verdict in verdicts)


async def play(environment: str, state: dict[str, Any], calls: Any, goal: StateGoal) -> bool:
    cls = ENVIRONMENTS.get(environment)
    session = NativeSession(cls, cls.describe())
    try:
        await session.reset(state)
        initial = await session.snapshot()
        for call in calls:
            await session.call(call.tool, call.arguments, call.actor)
        return goal.holds(initial, await session.snapshot())
    finally:
        await session.close()


def test_the_same_seed_gives_the_same_goals_whatever_else_runs(run: RunDirectory, tmp_path: Any) -> None:
    config = resolve_config(run.config_path)
    data = config.model_dump(mode="json") | {"run": str(tmp_path / "again")}
    data["engine"] = {**data["engine"], "concurrency": 1}
    again = RunDirectory.create(data["run"], dump_settings(resolve_config(data)))
    asyncio.run(run_pipeline(again))
    assert again.file(GROUNDED).read_bytes() == run.file(GROUNDED).read_bytes()
