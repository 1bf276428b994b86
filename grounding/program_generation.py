"""Generation of solution programs from lists that tools return, proved by execution.

No model is asked: the rows that a tool really returned say what can be filtered, summed, compared or looked up one by
one. A program is kept if it gives the same answer and calls from a fresh start, if its filter keeps some rows and drops
some, and if the answer is another one once a row that it was computed from is taken out of the state.
"""

import copy
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import PositiveInt

from trajsmith.environments import Session
from trajsmith.grounding.fields import list_input_fields
from trajsmith.grounding.grounder import Grounder
from trajsmith.grounding.names import is_identifier, split_name
from trajsmith.grounding.paths import iterate_nodes, join_path, split_path
from trajsmith.grounding.programs import (
    ProgramAnswer,
    ProgramFailed,
    ProgramRun,
    RowFilter,
    RowStep,
    SolutionProgram,
    copy_rows_at,
    is_number,
    run_program,
)
from trajsmith.records import (
    EnvironmentFault,
    FrozenModel,
    GoldCall,
    JsonObject,
    derive_seed,
)

_NAMES = ("name", "title", "subject", "label")
_NO_SUMS = frozenset(
    {"rating", "star", "score", "percent", "percentage", "rate", "age", "year", "month", "day", "latitude", "longitude",
     "level", "rank", "position", "index", "version", "ratio", "temperature", "sleep", "floor", "port", "priority"}
)  # fmt: skip
"""Words of quantities whose sum means nothing."""
LONGEST = 60
"""Characters of a value that a filter may compare with."""


class ProgramSettings(FrozenModel):
    """Settings of program generation."""

    least_rows: PositiveInt = 3
    """A list with fewer rows is left alone."""
    most_calls: PositiveInt = 12
    """Calls of one program."""
    tries: PositiveInt = 40
    """Programs that are run, at most, until enough are found."""


async def make_programs(
    grounder: Grounder, session: Session, count: int, seed: int, settings: ProgramSettings | None = None
) -> list[SolutionProgram]:
    """Up to `count` programs that were proved on the grounder's state; the same seed makes the same.

    Raises:
        EnvironmentFault: The environment broke.
    """
    settings, rng = settings or ProgramSettings(), random.Random(derive_seed(seed, "programs"))
    proposals: list[SolutionProgram] = []
    for tool in grounder.tools:
        call = await _list_rows(grounder, session, tool, seed)
        if call is not None:
            proposals += _proposals(grounder, call, settings, rng)
    rng.shuffle(proposals)
    programs: list[SolutionProgram] = []
    used: Counter[str] = Counter()
    for program in proposals[: settings.tries]:
        if len(programs) == count:
            break
        often = used[program.tool] > min(used.values(), default=0) + 1
        if not often and await is_proved(program, session, grounder.state, settings):
            programs.append(program)
            used[program.tool] += 1
    return programs


async def _list_rows(grounder: Grounder, session: Session, tool: str, seed: int) -> GoldCall | None:
    """A call of this tool that only reads, or None."""
    spec = grounder.tools[tool]
    if spec.declares_write and spec.annotations.read_only_hint is not None:
        return None
    call = await grounder.find_call(tool, session, derive_seed(seed, "listing", tool))
    return call if call is not None and call.effect == "read" else None


def _proposals(
    grounder: Grounder, call: GoldCall, settings: ProgramSettings, rng: random.Random
) -> Iterator[SolutionProgram]:
    """Programs over the lists of one result."""
    for path in _list_row_paths(call.result):
        try:
            rows = copy_rows_at(call.result, path)
        except ProgramFailed:
            continue
        if len(rows) < settings.least_rows:
            continue
        filters: list[tuple[RowFilter, ...]] = [(), *((keep,) for keep in _filters(rows, rng))]
        for keeps in filters:
            for steps, answer in _propose_answers(grounder, call.tool, rows, settings):
                if keeps or answer.how != "count":
                    yield SolutionProgram(
                        environment=grounder.spec.name,
                        tool=call.tool,
                        arguments=call.arguments,
                        rows=path,
                        steps=(*keeps, *steps),
                        answer=answer,
                    )


def _list_row_paths(content: Any) -> Iterator[str]:
    """Paths of the lists of objects in a result that no other list is around."""
    for parts, node in iterate_nodes(content):
        if "*" not in parts and isinstance(node, list) and node and all(isinstance(row, dict) for row in node):
            yield join_path(parts)


def _filters(rows: Sequence[Mapping[str, Any]], rng: random.Random) -> Iterator[RowFilter]:
    """Filters that keep some rows and drop some: a value that several rows share, or a bound in the middle."""
    for field in _shared(rows):
        values = [row[field] for row in rows]
        if is_number(values[0]) and all(is_number(value) for value in values) and len(set(values)) > 2:
            yield RowFilter(
                field=field, how=rng.choice(("at_least", "at_most")), value=sorted(values)[len(values) // 2]
            )
        elif all(isinstance(value, str) and 0 < len(value) <= LONGEST for value in values):
            common = [value for value, number in Counter(values).items() if 1 < number < len(values)]
            if common:
                yield RowFilter(field=field, how="equals", value=rng.choice(sorted(common)))


def _shared(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Fields that all rows have and that are no identifiers."""
    names = [name for name in rows[0] if all(name in row for row in rows) and split_path(name) == (name,)]
    return [name for name in names if not is_identifier(name)]


def _propose_answers(
    grounder: Grounder, tool: str, rows: Sequence[Mapping[str, Any]], settings: ProgramSettings
) -> Iterator[tuple[tuple[RowStep, ...], ProgramAnswer]]:
    """Propose answers about rows: counts, sums, extremes, most common values; and sums over look-ups."""
    yield (), ProgramAnswer(how="count")
    label = next((field for field in _shared(rows) if set(split_name(field)) & set(_NAMES)), None)
    for field in _shared(rows):
        values = [row[field] for row in rows]
        if all(is_number(value) for value in values):
            if _NO_SUMS.isdisjoint(split_name(field)):
                yield (), ProgramAnswer(how="sum", field=field)
            if label is not None:
                yield (), ProgramAnswer(how="largest", field=field, tells=label)
                yield (), ProgramAnswer(how="smallest", field=field, tells=label)
        elif all(isinstance(value, str) for value in values) and 1 < len(set(values)) < len(rows):
            yield (), ProgramAnswer(how="most_common", field=field)
    if len(rows) < settings.most_calls:
        yield from _look_ups(grounder, tool, rows)


def _look_ups(
    grounder: Grounder, tool: str, rows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[tuple[RowStep, ...], ProgramAnswer]]:
    """Loops: a read that needs only what every row has, and a number of its result that is summed."""
    for name, spec in grounder.tools.items():
        needs = [leaf for leaf in list_input_fields(spec) if leaf.required]
        if name == tool or spec.declares_write or len(needs) != 1 or needs[0].path not in rows[0]:
            continue
        field = needs[0].path
        if not is_identifier(field) or not all(row.get(field) for row in rows):
            continue
        for number in _numbers(spec.output_schema or {}):
            column = number if number not in rows[0] else f"{number}_of_{name}"
            step = RowStep(tool=name, parameter=field, field=field, path=f"$.{number}", name=column)
            yield (step,), ProgramAnswer(how="sum", field=column)


def _numbers(schema: JsonObject) -> list[str]:
    """Top-level fields of a result that are numbers and can be summed."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    kinds = {name: child.get("type") for name, child in properties.items() if isinstance(child, dict)}
    numbers = [name for name, kind in kinds.items() if kind in ("integer", "number") and split_path(name) == (name,)]
    return [name for name in numbers if _NO_SUMS.isdisjoint(split_name(name)) and not is_identifier(name)]


async def is_proved(program: SolutionProgram, session: Session, state: JsonObject, settings: ProgramSettings) -> bool:
    """Return whether a program's answer is worth asking for: the same each time, and dependent on the state."""
    try:
        first = await run_program(program, session, state)
        again = await run_program(program, session, state)
    except ProgramFailed:
        return False
    if first != again or first.answer in (None, "", 0, []) or len(first.calls) > settings.most_calls:
        return False
    filtered = any(isinstance(step, RowFilter) for step in program.steps)
    if first.left < 2 or (filtered and first.left == first.listed):
        return False
    return await _depends_on_state(program, first, session, state)


async def _depends_on_state(program: SolutionProgram, run: ProgramRun, session: Session, state: JsonObject) -> bool:
    """Return whether the answer changes when a row is removed from the state, or has another value there."""
    for row in copy_rows_at(run.calls[0].result, program.rows):
        for changed in _without(state, row):
            try:
                other = await run_program(program, session, changed)
            except (ProgramFailed, EnvironmentFault):
                continue  # a state that cannot be; another row may do
            if other.answer != run.answer:
                return True
    return False


def _without(state: JsonObject, row: Mapping[str, Any]) -> Iterator[JsonObject]:
    """States that lack what a row was made from: an object with the row's identifiers and some of its values."""
    own = {name: value for name, value in row.items() if isinstance(value, str | int | float) and value != ""}
    ids = {name: value for name, value in own.items() if is_identifier(name)}
    for table, content in state.items():
        rows = content if isinstance(content, list) else ()
        for key, entry in content.items() if isinstance(content, dict) else enumerate(rows):
            if not isinstance(entry, dict):
                continue
            same = sum(entry.get(name) == value for name, value in own.items())
            known = all(entry.get(name) == value or key == value for name, value in ids.items() if name in entry)
            if known and same >= min(2, len(own)):
                changed = copy.deepcopy(state)
                del changed[table][key]
                yield changed


__all__ = ["ProgramSettings", "is_proved", "make_programs"]
