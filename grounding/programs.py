"""Solution programs: calls in loops, and an answer computed from what they return (Agent-World 3.1.1, programmatic
tasks).

A program is data, not source text: one call that lists rows, steps that keep some of them or call a tool for each, and
an aggregate. Nothing in it can run code, so only the tools themselves need the sandbox, and it can be read, compared
and stored like any record. It is run on a session, and gives the calls that an agent would have to make and the answer.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trajsmith.environments import Session
from trajsmith.grounding.paths import find_values, get_value
from trajsmith.records import FrozenModel, JsonObject, JsonValue, Record

Number = int | float
ROUND = 6
"""Decimals of sums, so that the order of the rows never shows."""


class RowFilter(FrozenModel):
    """Filter of rows by a comparison of one field."""

    kind: Literal["keep"] = "keep"
    field: str
    how: Literal["equals", "at_least", "at_most"]
    value: JsonValue


class RowStep(FrozenModel):
    """Tool call for every row, whose result is added to the row."""

    kind: Literal["each"] = "each"
    tool: str
    parameter: str
    """Parameter that takes a field of the row."""
    field: str
    path: str
    """Path of the value in the result, for example "$.total"."""
    name: str
    """Field of the row that the value becomes."""


class ProgramAnswer(FrozenModel):
    """Aggregate that a program answers with."""

    how: Literal["count", "sum", "largest", "smallest", "most_common"]
    field: str = ""
    """Field that is summed, compared or counted; nothing for `count`."""
    tells: str = ""
    """For an extreme: the field of its row that is the answer."""


class SolutionProgram(Record):
    """Solution program: rows of one call, steps over them, and an answer."""

    PREFIX: ClassVar[str] = "program"

    environment: str
    tool: str
    """Tool that lists the rows."""
    arguments: JsonObject
    rows: str
    """Path of the list in its result, for example "$.orders"."""
    steps: tuple[Annotated[RowFilter | RowStep, Field(discriminator="kind")], ...]
    answer: ProgramAnswer


class ProgramCall(FrozenModel):
    """A call that a program made."""

    tool: str
    arguments: JsonObject
    result: JsonValue
    row: int | None = None
    """Number of the row that it was made for, among those that were left."""


class ProgramRun(FrozenModel):
    """Calls and answer of a program on one state."""

    answer: JsonValue
    calls: tuple[ProgramCall, ...]
    listed: int
    """Rows before the steps."""
    left: int
    """Rows that the answer was computed from."""


class ProgramFailed(Exception):
    """A call of a program was refused, or its rows do not have what the program needs."""


async def run_program(program: SolutionProgram, session: Session, state: JsonObject) -> ProgramRun:
    """Run a program from a state on.

    Raises:
        ProgramFailed: A call was refused, the list is not there, or no single answer comes of it.
        EnvironmentFault: The environment broke.
    """
    await session.reset(state)
    calls: list[ProgramCall] = []

    async def call(tool: str, arguments: JsonObject, row: int | None = None) -> JsonValue:
        actor = session.spec.tool(tool).actor
        result = await session.call(tool, arguments, actor)
        if not result.ok:
            raise ProgramFailed(f"{tool} was refused: {result.text[:200]}")
        calls.append(ProgramCall(tool=tool, arguments=arguments, result=result.content, row=row))
        return result.content

    rows = copy_rows_at(await call(program.tool, program.arguments), program.rows)
    listed = len(rows)
    for step in program.steps:
        if isinstance(step, RowFilter):
            rows = [row for row in rows if passes_filter(row, step)]
            continue
        for number, row in enumerate(rows):
            value = get_value(row, step.field)
            if value is None:
                raise ProgramFailed(f"a row has no {step.field}")
            values = [
                match.value for match in find_values(await call(step.tool, {step.parameter: value}, number), step.path)
            ]
            if len(values) != 1:
                raise ProgramFailed(f"{len(values)} values at {step.path} of {step.tool}")
            row[step.name] = values[0]
    return ProgramRun(answer=compute_answer(rows, program.answer), calls=tuple(calls), listed=listed, left=len(rows))


def copy_rows_at(content: Any, path: str) -> list[dict[str, Any]]:
    """Copies of the rows of a list in a result.

    Raises:
        ProgramFailed: There is no such list of objects.
    """
    lists = [match.value for match in find_values(content, path)]
    if len(lists) != 1 or not isinstance(lists[0], list) or not all(isinstance(row, dict) for row in lists[0]):
        raise ProgramFailed(f"there is no list of objects at {path}")
    return [dict(row) for row in lists[0]]


def passes_filter(row: dict[str, Any], step: RowFilter) -> bool:
    """Return whether a row passes a filter; values that cannot be compared do not."""
    own = get_value(row, step.field)
    if step.how == "equals":
        return bool(own == step.value)
    if not is_number(own) or not is_number(step.value):
        return False
    return bool(own >= step.value if step.how == "at_least" else own <= step.value)


def compute_answer(rows: Sequence[dict[str, Any]], answer: ProgramAnswer) -> JsonValue:
    """Compute the aggregate of rows.

    Raises:
        ProgramFailed: There are no rows to take it from, a field is no number, or two rows would be the answer.
    """
    if answer.how == "count":
        return len(rows)
    values = [get_value(row, answer.field) for row in rows]
    if not values:
        raise ProgramFailed("no rows are left")
    if answer.how == "most_common":
        ranked = Counter(str(value) for value in values).most_common(2)
        if len(ranked) > 1 and ranked[0][1] == ranked[1][1]:
            raise ProgramFailed(f"two values of {answer.field} are equally common")
        return ranked[0][0]
    if not all(is_number(value) for value in values):
        raise ProgramFailed(f"{answer.field} is not a number in every row")
    if answer.how == "sum":
        return round(sum(values), ROUND)
    extreme = max(values) if answer.how == "largest" else min(values)
    if values.count(extreme) > 1:
        raise ProgramFailed(f"two rows have the {answer.how} {answer.field}")
    label: JsonValue = get_value(rows[values.index(extreme)], answer.tells)
    return label


def is_number(value: Any) -> bool:
    """True for numbers that one can sum; flags are none."""
    return isinstance(value, Number) and not isinstance(value, bool)
