"""Solution programs: what they compute, what they refuse, and that their Python text does the same in the sandbox."""

from typing import Any

import pytest

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.sandbox.solutions import SolutionSandbox
from trajsmith.environments.session import ToolResult
from trajsmith.querygen.programs.execution import ProgramRunner, compute_answer, passes, take_rows
from trajsmith.querygen.programs.mutants import mutate_program
from trajsmith.querygen.programs.operations import (
    Aggregate,
    KeepRows,
    ListRows,
    LookUpRows,
    ProgramFailed,
    SolutionProgram,
    TakeRows,
    WriteRows,
)
from trajsmith.querygen.programs.python_source import render_python
from trajsmith.records import EnvironmentFault, FromOutput, JsonObject

CLS = ENVIRONMENTS.get("smart_home")
STATE: JsonObject = CLS.seed_state("small", 3).model_dump(mode="json")
ROOMS = ListRows(tool="list_rooms")
DEVICES = ListRows(tool="list_devices", parent=ROOMS, parent_key="room_id")
GROUND_FLOOR = KeepRows(field="floor", how="equals", value="ground_floor")
LIGHTS_ON = (
    KeepRows(field="kind", how="equals", value="light"),
    KeepRows(field="power", how="equals", value="on"),
    KeepRows(field="online", how="equals", value=True),
)


def program(rows: ListRows = ROOMS, *steps: Any, how: Any = "count", field: str = "", **more: Any) -> SolutionProgram:
    answer = Aggregate(how=how, field=field, label="room_name")
    return SolutionProgram(environment="smart_home", table=rows.tool, rows=rows, steps=steps, answer=answer, **more)


def runner() -> ProgramRunner:
    return ProgramRunner(NativeSession(CLS, CLS.describe()), STATE)


SWITCH = WriteRows(tool="switch_device", field="device_id", arguments={"power": "off"})
ENERGY = LookUpRows(tool="get_energy_use", field="room_id")


@pytest.mark.parametrize(
    ("made", "operations"),
    [
        pytest.param(program(), ("list", "count"), id="count"),
        pytest.param(program(ROOMS, ENERGY, how="sum", field="cost"), ("list", "loop", "join", "sum"), id="join"),
        pytest.param(
            program(DEVICES, *LIGHTS_ON, how="done", write=SWITCH),
            ("list", "loop", "keep", "keep", "keep", "loop", "write", "done"),
            id="nested-loop-with-writes",
        ),
        pytest.param(
            program(DEVICES.model_copy(update={"parents": (GROUND_FLOOR,)}), *LIGHTS_ON),
            ("list", "keep", "loop", "keep", "keep", "keep", "count"),
            id="nested-loop-over-some",
        ),
        pytest.param(
            program(ROOMS, TakeRows(field="temperature", descending=True, count=1), how="ordered"),
            ("list", "take", "ordered"),
            id="take",
        ),
    ],
)
async def test_the_python_text_makes_the_same_calls(made: SolutionProgram, operations: tuple[str, ...]) -> None:
    run = await runner().run(made, 60)
    assert made.operations == operations
    sandbox = SolutionSandbox(render_python(made))
    try:
        calls, answer = await sandbox.replay([call.result for call in run.calls])
    finally:
        sandbox.close()
    assert calls == [{"tool": call.tool, "arguments": call.arguments} for call in run.calls]
    assert answer == run.answer


async def test_a_loop_takes_its_argument_from_the_list_that_told_it() -> None:
    run = await runner().run(program(DEVICES, *LIGHTS_ON, how="done", write=SWITCH), 60)
    writes = [call for call in run.calls if call.effect == "write"]
    assert writes and {call.arguments["power"] for call in writes} == {"off"}
    for call in writes:
        source = call.provenance["device_id"]
        assert isinstance(source, FromOutput) and run.calls[source.call].tool == "list_devices"
        rows = run.calls[source.call].result["result"]  # type: ignore[call-overload,index]
        assert call.arguments["device_id"] in [row["device_id"] for row in rows]  # type: ignore[index,union-attr]


async def test_no_call_is_made_for_rows_that_the_list_above_rules_out() -> None:
    late = await runner().run(program(DEVICES, GROUND_FLOOR, how="count"), 60)
    early = await runner().run(program(DEVICES.model_copy(update={"parents": (GROUND_FLOOR,)})), 60)
    assert early.answer == late.answer > 0
    floors = {row["room_id"]: row["floor"] for row in late.calls[0].result["result"]}  # type: ignore[call-overload,index]
    looked_up = [floors[str(call.arguments["room_id"])] for call in early.calls[1:]]
    assert set(looked_up) == {"ground_floor"} and len(early.calls) < len(late.calls)
    assert ("program_filter", program(DEVICES), ()) in mutate_program(
        program(DEVICES.model_copy(update={"parents": (GROUND_FLOOR,)})), early
    )


async def test_more_calls_than_allowed_are_refused() -> None:
    with pytest.raises(ProgramFailed, match="more than 2 calls"):
        await runner().run(program(DEVICES), 2)


@pytest.mark.parametrize(
    ("rows", "answer", "expected"),
    [
        pytest.param([{"a": 1}, {"a": 2}], Aggregate(how="mean", field="a"), 1.5, id="mean"),
        pytest.param([{"a": 0.1}, {"a": 0.2}], Aggregate(how="sum", field="a"), 0.3, id="sum-in-cents"),
        pytest.param([{"a": 5}, {"a": 2}], Aggregate(how="difference", field="a"), 3, id="difference"),
        pytest.param(
            [{"a": 5, "n": "x"}, {"a": 2, "n": "y"}], Aggregate(how="smallest", field="a", label="n"), "y", id="least"
        ),
        pytest.param([{"a": 5}], Aggregate(how="share"), 33.3, id="share"),
    ],
)
def test_answers(rows: list[dict[str, Any]], answer: Aggregate, expected: Any) -> None:
    assert compute_answer(rows, answer, 3) == expected


@pytest.mark.parametrize(
    ("rows", "answer", "reason"),
    [
        pytest.param([], Aggregate(how="sum", field="a"), "no rows", id="nothing"),
        pytest.param([{"a": "x"}], Aggregate(how="sum", field="a"), "not a number", id="text"),
        pytest.param([{"a": True}], Aggregate(how="mean", field="a"), "not a number", id="flag"),
        pytest.param([{"a": 1}, {"a": 1}], Aggregate(how="largest", field="a", label="a"), "two rows", id="tie"),
        pytest.param([{"n": "x"}, {"n": "x"}], Aggregate(how="labels", label="n"), "apart", id="same-label"),
        pytest.param(
            [{"a": 1}] * 9, Aggregate(how="share"), "11.25 lies between two answers", id="share-in-the-middle"
        ),
        pytest.param([{"a": 1.01}, {"a": 1.0}], Aggregate(how="mean", field="a"), "1.005 lies between", id="mean"),
    ],
)
def test_answers_that_are_none(rows: list[dict[str, Any]], answer: Aggregate, reason: str) -> None:
    with pytest.raises(ProgramFailed, match=reason):
        compute_answer(rows, answer, 80)


def test_a_tie_at_the_cut_is_refused() -> None:
    rows = [{"a": 3}, {"a": 2}, {"a": 2}]
    with pytest.raises(ProgramFailed, match="leaves open"):
        take_rows(rows, TakeRows(field="a", descending=True, count=2))
    assert take_rows(rows, TakeRows(field="a", descending=True, count=1)) == [{"a": 3}]


def test_a_flag_is_no_number() -> None:
    assert not passes({"a": 1}, KeepRows(field="a", how="equals", value=True))
    assert not passes({"a": "9"}, KeepRows(field="a", how="above", value=3))


class TestForeignPrograms:
    """Programs that somebody else wrote, run call by call."""

    async def run(self, source: str, limit: int = 5) -> Any:
        async def make_call(tool: str, arguments: JsonObject) -> ToolResult:
            ok = tool == "double"
            return ToolResult(
                arguments["number"] * 2 if ok else {"error": "no such tool"}, *(() if ok else ("refused",))
            )  # type: ignore[operator]

        sandbox = SolutionSandbox(source)
        try:
            return await sandbox.run(make_call, limit)
        finally:
            sandbox.close()

    async def test_each_call_is_made_when_the_program_asks(self) -> None:
        calls, answer = await self.run("def solve(call):\n    return call('double', number=call('double', number=3))\n")
        assert answer == 12
        assert [each["arguments"] for each in calls] == [{"number": 3}, {"number": 6}]

    @pytest.mark.parametrize(
        ("source", "reason"),
        [
            pytest.param(
                "def solve(call):\n    while True:\n        call('double', number=1)\n", "more than 5 calls", id="calls"
            ),
            pytest.param(
                "def solve(call):\n    while True:\n        pass\n", "too long|timeout|time|CPU|limit", id="endless"
            ),
            pytest.param("def solve(call):\n    return call('erase')\n", "erase", id="unknown-tool"),
            pytest.param("def solve(call):\n    open('/tmp/x', 'w')\n", "sandbox", id="writes-a-file"),
            pytest.param(
                "def solve(call):\n    return call('double', number=1)['total']\n", "TypeError", id="no-such-value"
            ),
        ],
    )
    async def test_bad_programs(self, source: str, reason: str) -> None:
        with pytest.raises(EnvironmentFault, match=reason):
            await self.run(source)
