"""Tasks that start from a change of the state: edits learnt elsewhere, calls found by a solver, minimal gold calls."""

import asyncio
import random
from typing import Any

import pytest

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.pipeline.config import resolve_config
from trajsmith.pipeline.run_directory import GROUNDED, TASKS, VERDICTS, RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.querygen.state_first import StateEdit, StateGoal, draw_goal
from trajsmith.querygen.state_first.edits import find_references
from trajsmith.querygen.state_first.solver import _list_arguments
from trajsmith.records import GroundedChain, Task, ToolSpec, Verdict
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
    assert draw_goal([switch], STATE, random.Random(1)) == StateGoal(table="lamps", key="L2", fields={"on": True})
    fields = {"owner_id": "O7", "on": False}
    new = StateEdit(kind="added", table="lamps", fields=fields, references={"owner_id": "owners"})
    goal = draw_goal([new], STATE, random.Random(1))
    assert goal is not None and goal.key == "" and goal.fields["owner_id"] in STATE["owners"]
    met = StateEdit(kind="changed", table="owners", fields={"name": "Ann"})
    assert draw_goal([met], {**STATE, "owners": {"O1": {"name": "Ann"}}}, random.Random(1)) is None
    assert draw_goal([StateEdit(kind="changed", table="rooms", fields={"x": 1})], STATE, random.Random(1)) is None
    assert find_references(fields | {"owner_id": "O2"}, STATE) == {"owner_id": "owners"}


@pytest.mark.parametrize(
    ("learnt_on", "value", "until"),
    [("2026-02-27", "2026-03-10", "2026-03-13"), ("2025-03-02", "9999-12-31", "9999-12-31")],
    ids=["as-many-days-later", "no-such-day"],
)
def test_dates_of_a_goal_go_with_the_clock(learnt_on: str, value: str, until: str) -> None:
    edit = StateEdit(kind="added", table="lamps", fields={"until": value}, learnt_on=learnt_on)
    goal = draw_goal([edit], STATE, random.Random(1))
    assert goal is not None and goal.fields == {"until": until}


def test_the_solver_takes_values_from_the_goal_and_the_row_that_is_meant() -> None:
    schema = {
        "type": "object",
        "properties": {
            "lamp_id": {"type": "string"}, "on": {"type": "boolean"}, "level": {"type": "integer"},
            "mode": {"enum": ["dim", "full"]},
        },
        "required": ["lamp_id", "mode"],
    }  # fmt: skip
    tool = ToolSpec(server="home", name="switch", input_schema=schema)
    goal = StateGoal(table="lamps", key="L2", fields={"on": True})
    tried = list(_list_arguments(goal, tool, STATE))
    assert {"lamp_id": "L2", "on": True, "mode": "dim"} in tried and all("level" not in one for one in tried)
    assert {one["mode"] for one in tried} == {"dim", "full"}


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
