"""Solution programs: what they compute, and that only those are made whose answer comes from the state."""

from collections.abc import Sequence
from typing import Any, Literal

import pytest

from trajsmith.environments import Environment, EnvironmentState, NativeSession, StateModel, ToolError, tool
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.grounding.program_generation import ProgramSettings, is_proved, make_programs
from trajsmith.grounding.programs import (
    ProgramAnswer,
    ProgramFailed,
    RowFilter,
    RowStep,
    SolutionProgram,
    compute_answer,
    copy_rows_at,
    passes_filter,
    run_program,
)
from trajsmith.phrasing import Phrasebook
from trajsmith.records import JsonObject


class Crate(StateModel):
    crate_id: str
    hall: Literal["north", "south"]
    weight: float
    label: str


class HallState(EnvironmentState):
    crates: dict[str, Crate] = {}


class Row(StateModel):
    crate_id: str
    hall: str
    label: str
    slots: int


class Content(StateModel):
    crate_id: str
    weight: float


class Hall(Environment[HallState]):
    """Halls."""

    @tool(effect="read")
    def list_crates(self) -> list[Row]:
        """All crates."""
        return [
            Row(crate_id=one.crate_id, hall=one.hall, label=one.label, slots=len(one.label))
            for one in self.state.crates.values()
        ]

    @tool(effect="read")
    def weigh_crate(self, crate_id: str) -> Content:
        """What a crate weighs.

        Args:
            crate_id: Which crate.
        """
        crate = self.lookup(self.state.crates, crate_id, "crate")
        if crate.weight < 0:
            raise ToolError("the scales are broken")
        return Content(crate_id=crate_id, weight=crate.weight)

    @tool(effect="read")
    def list_rules(self) -> list[dict[str, Any]]:
        """The same on every day."""
        return [{"name": f"rule {number}", "minutes": number} for number in range(1, 5)]


STATE: JsonObject = HallState.model_validate(
    {
        "now": "2026-03-02T09:00:00",
        "crates": {
            f"C{number}": {"crate_id": f"C{number}", "hall": hall, "weight": number * 1.5, "label": "x" * number}
            for number, hall in enumerate(("north", "south", "north", "north"), 1)
        },
    }
).model_dump(mode="json")


def program(
    *steps: RowFilter | RowStep, how: Any = "count", field: str = "", tells: str = "", of: str = "list_crates"
) -> SolutionProgram:
    return SolutionProgram(
        environment="hall",
        tool=of,
        arguments={},
        rows="$.result",
        steps=steps,
        answer=ProgramAnswer(how=how, field=field, tells=tells),
    )


NORTH = RowFilter(field="hall", how="equals", value="north")
WEIGH = RowStep(tool="weigh_crate", parameter="crate_id", field="crate_id", path="$.weight", name="weight")


def session() -> NativeSession:
    return NativeSession(Hall, Hall.describe())


@pytest.mark.parametrize(
    ("made", "answer", "calls", "left"),
    [
        pytest.param(program(NORTH), 3, 1, 3, id="filter-and-count"),
        pytest.param(program(how="sum", field="slots"), 10, 1, 4, id="sum"),
        pytest.param(program(NORTH, WEIGH, how="sum", field="weight"), 12.0, 4, 3, id="loop-over-what-was-kept"),
        pytest.param(
            program(WEIGH, how="largest", field="weight", tells="crate_id"), "C4", 5, 4, id="loop-and-extreme"
        ),
        pytest.param(program(how="smallest", field="slots", tells="label"), "x", 1, 4, id="smallest"),
        pytest.param(program(how="most_common", field="hall"), "north", 1, 4, id="most-common"),
        pytest.param(program(RowFilter(field="slots", how="at_least", value=3)), 2, 1, 2, id="bound"),
    ],
)
async def test_what_a_program_computes(made: SolutionProgram, answer: Any, calls: int, left: int) -> None:
    run = await run_program(made, session(), STATE)
    assert (run.answer, len(run.calls), run.left, run.listed) == (answer, calls, left, 4)
    assert run == await run_program(made, session(), STATE)
    assert SolutionProgram.model_validate_json(made.to_line()) == made


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        pytest.param(program(how="sum", field="hall"), "not a number in every row", id="sum-of-texts"),
        pytest.param(
            program(RowFilter(field="hall", how="equals", value="east"), how="sum", field="slots"), "no rows", id="none"
        ),
        pytest.param(program(how="largest", field="of", tells="label"), "not a number", id="no-such-field"),
        pytest.param(program(WEIGH.model_copy(update={"field": "sku"})), "a row has no sku", id="nothing-to-look-up"),
        pytest.param(program(WEIGH.model_copy(update={"field": "label"})), "weigh_crate was refused", id="refused"),
        pytest.param(program(WEIGH.model_copy(update={"path": "$.lid"})), "0 values at", id="nothing-in-the-result"),
        pytest.param(program().model_copy(update={"rows": "$.crates"}), "no list of objects", id="no-list"),
    ],
)
async def test_a_program_that_leads_nowhere_says_so(made: SolutionProgram, reason: str) -> None:
    with pytest.raises(ProgramFailed, match=reason):
        await run_program(made, session(), STATE)


@pytest.mark.parametrize(
    ("rows", "answer", "reason"),
    [
        pytest.param(
            [{"a": 1}, {"a": 1}], ProgramAnswer(how="largest", field="a", tells="a"), "two rows", id="two-extremes"
        ),
        pytest.param([{"a": "x"}, {"a": "y"}], ProgramAnswer(how="most_common", field="a"), "equally common", id="tie"),
        pytest.param([{"a": True}], ProgramAnswer(how="sum", field="a"), "not a number", id="flags"),
    ],
)
def test_an_answer_is_one_answer(rows: Sequence[dict[str, Any]], answer: ProgramAnswer, reason: str) -> None:
    with pytest.raises(ProgramFailed, match=reason):
        compute_answer(rows, answer)


def test_sums_do_not_depend_on_the_order_of_rows() -> None:
    rows = [{"a": value} for value in (0.1, 0.2, 0.3, 1e9)]
    answer = ProgramAnswer(how="sum", field="a")
    assert compute_answer(rows, answer) == compute_answer(rows[::-1], answer)


def test_values_that_cannot_be_compared_do_not_pass() -> None:
    assert not passes_filter({"a": "9"}, RowFilter(field="a", how="at_least", value=3))
    assert not passes_filter({}, RowFilter(field="a", how="at_most", value=3))


def test_rows_are_copies() -> None:
    content = {"result": [{"a": 1}]}
    copy_rows_at(content, "$.result")[0]["a"] = 2
    assert content == {"result": [{"a": 1}]}


@pytest.mark.parametrize(
    ("made", "good"),
    [
        pytest.param(program(NORTH), True, id="due-to-the-state"),
        pytest.param(program(NORTH, WEIGH, how="sum", field="weight"), True, id="a-loop"),
        pytest.param(program(how="sum", field="minutes", of="list_rules"), False, id="the-same-in-every-state"),
        pytest.param(
            program(RowFilter(field="slots", how="at_least", value=1)), False, id="a-filter-that-drops-nothing"
        ),
        pytest.param(program(RowFilter(field="slots", how="at_least", value=4)), False, id="one-row-is-left"),
        pytest.param(program(RowFilter(field="hall", how="equals", value="east")), False, id="nothing-is-left"),
    ],
)
async def test_only_answers_that_come_from_the_state_are_proved(made: SolutionProgram, good: bool) -> None:
    assert await is_proved(made, session(), STATE, ProgramSettings()) is good


async def test_programs_of_too_many_calls_are_not_made() -> None:
    long = program(WEIGH, how="sum", field="weight")
    assert await is_proved(long, session(), STATE, ProgramSettings(most_calls=5))
    assert not await is_proved(long, session(), STATE, ProgramSettings(most_calls=4))


async def test_programs_are_made_of_what_tools_list() -> None:
    grounder = Grounder(Hall.describe(), STATE, Phrasebook(), GroundSettings())
    made = await make_programs(grounder, session(), 50, 0, ProgramSettings(tries=200))
    assert {one.tool for one in made} == {"list_crates"}
    assert {one.answer.how for one in made} >= {"count", "sum", "largest"}
    assert any(isinstance(step, RowStep) and step.tool == "weigh_crate" for one in made for step in one.steps)
    assert len({one.id for one in made}) == len(made)
    again = await make_programs(grounder, session(), 50, 0, ProgramSettings(tries=200))
    assert [one.id for one in made] == [one.id for one in again]


@pytest.mark.parametrize("name", ["retail", "mobile_care"])
async def test_programs_of_bundled_environments_run_again(name: str) -> None:
    cls = ENVIRONMENTS.get(name)
    spec, state = cls.describe(), cls.seed_state("small", 4).model_dump(mode="json")
    grounder = Grounder(spec, state, Phrasebook(), GroundSettings())
    made = await make_programs(grounder, NativeSession(cls, spec), 4, 1)
    assert len(made) == 4
    for one in made:
        run = await run_program(one, NativeSession(cls, spec), state)
        assert run.answer not in (None, "", 0)
        assert run.left >= 2
