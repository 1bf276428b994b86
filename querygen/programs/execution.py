"""Execution of solution programs on a session: the calls, the provenance of their arguments, and the answer."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pydantic import ConfigDict

from trajsmith.environments import Session
from trajsmith.querygen.programs.operations import (
    Aggregate,
    Branch,
    JoinRows,
    KeepRows,
    ListRows,
    LookUpRows,
    ProgramFailed,
    SolutionProgram,
    Step,
    TakeRows,
)
from trajsmith.records import (
    Constant,
    FromOutput,
    FromUser,
    FrozenModel,
    GoldCall,
    JsonObject,
    JsonValue,
    Provenance,
    Selector,
    canonical_json,
)

DECIMALS = 2
"""Decimals of sums, means and shares: cents, and tenths of tenths of other units."""
Row = dict[str, Any]


class ProgramRun(FrozenModel):
    """Result of a program on one state."""

    model_config = ConfigDict(frozen=False)

    calls: list[GoldCall] = []
    """All calls in order, with provenance."""
    groups: list[int] = []
    """Of each call, the operation that made it: calls of one operation commute; writes that do are given one later."""
    listed: list[Row] = []
    """Rows before the steps."""
    rows: list[Row] = []
    """Rows that the answer was computed from, with the fields that joins added."""
    answer: JsonValue = None
    """The answer; None for `done`."""
    taken: bool = True
    """False where a branch led past the writes."""

    @property
    def writes(self) -> int:
        """Calls that changed the state."""
        return sum(call.effect == "write" for call in self.calls)


ReadCache = dict[bytes, tuple[bool, JsonValue]]
"""Reads from the initial state to their results; programs on one state share it."""


class ProgramRunner:
    """Runs programs from one initial state. Reads before the first write are remembered and not repeated."""

    def __init__(self, session: Session, state: JsonObject) -> None:
        self.session = session
        self.state = state
        self.cache: ReadCache = {}
        self._clean = False

    async def run(self, program: SolutionProgram, limit: int, fixed: Sequence[str] = ()) -> ProgramRun:
        """Run a program.

        Args:
            program: The program.
            limit: Calls at most.
            fixed: Keys of the rows to write to, in place of those that the program finds: mutants of a loop.

        Raises:
            ProgramFailed: A call is refused, there are more calls than allowed, or no single answer comes of it.
            EnvironmentFault: The environment broke.
        """
        return await _Run(self, program, limit, fixed).run()

    async def read(self, tool: str, arguments: JsonObject) -> tuple[bool, JsonValue]:
        """Make a call that must not change the state, from the initial state."""
        key = canonical_json([tool, arguments])
        if key not in self.cache:
            await self.reset()
            result = await self.session.call(tool, arguments)
            self.cache[key] = result.ok, result.content
        return self.cache[key]

    async def reset(self) -> None:
        """Go back to the initial state, unless nothing was written since."""
        if not self._clean:
            await self.session.reset(self.state)
            self._clean = True

    async def replay_states(self, calls: Sequence[GoldCall]) -> list[str] | None:
        """Make calls again from the start; return the state hash after each, or None where one gives something else."""
        await self.reset()
        hashes = []
        for call in calls:
            if call.effect == "write":
                self._clean = False
            result = await self.session.call(call.tool, call.arguments)
            if not result.ok or result.content != call.result:
                return None
            hashes.append(await self.session.state_hash())
        return hashes

    def forget_position(self) -> None:
        """Note that somebody else used the session."""
        self._clean = False

    async def write(self, tool: str, arguments: JsonObject) -> tuple[bool, JsonValue]:
        self._clean = False
        result = await self.session.call(tool, arguments)
        return result.ok, result.content


class _Run:
    def __init__(self, runner: ProgramRunner, program: SolutionProgram, limit: int, fixed: Sequence[str]) -> None:
        self.runner = runner
        self.program = program
        self.limit = limit
        self.fixed = fixed
        self.ran = ProgramRun()
        self.group = 0

    async def run(self) -> ProgramRun:
        program, ran = self.program, self.ran
        for call in program.opening:
            await self._read(call.tool, call.arguments, call.provenance)
            self.group += 1
        rows = await self._list(program.rows)
        ran.listed = [dict(row) for row in rows]
        for step in program.steps:
            rows = await self._step(rows, step)
        if program.branch is not None:
            tested, bound = _measure(rows, program.branch), program.branch.value
            ran.taken = tested > bound if program.branch.above else tested < bound
        if program.write is not None and ran.taken:
            await self._write(rows)
        ran.rows = rows
        ran.answer = compute_answer(rows, program.answer, len(ran.listed))
        return ran

    async def _list(self, listing: ListRows) -> list[Row]:
        if listing.parent is not None:
            rows = []
            start = len(self.ran.calls)
            parents = await self._list(listing.parent)
            self.group += 1
            for parent in [row for row in parents if all(passes(row, step) for step in listing.parents)]:
                value = parent[listing.parent_key]
                source = self._find_source(start, listing.parent_key, value)
                arguments = {listing.parent_key: value, **listing.arguments}
                content = await self._read(listing.tool, arguments, {listing.parent_key: source})
                rows += [{**parent, **row} for row in get_rows(content)]
            self.group += 1
            return rows
        arguments, provenance = dict(listing.arguments), dict[str, Provenance]()
        if listing.owner:
            owner = self.ran.calls[-1].result
            if not isinstance(owner, dict) or listing.owner not in owner:
                raise ProgramFailed(f"the opening has no {listing.owner}")
            arguments[listing.owner] = owner[listing.owner]
            provenance[listing.owner] = FromOutput(call=len(self.ran.calls) - 1, path=f"$.{listing.owner}")
        rows, size, page = list[Row](), 0, 1
        while True:
            if listing.page:
                arguments = {**arguments, listing.page: page}
                provenance = {**provenance, listing.page: Constant()}
            page_rows = get_rows(await self._read(listing.tool, arguments, provenance))
            rows += page_rows
            size = size or len(page_rows)
            page += 1
            if not listing.page or not page_rows or len(page_rows) < size:
                break
        self.group += 1
        return rows

    async def _step(self, rows: list[Row], step: Step) -> list[Row]:
        if isinstance(step, KeepRows):
            return [row for row in rows if passes(row, step)]
        if isinstance(step, TakeRows):
            return take_rows(rows, step)
        if isinstance(step, LookUpRows):
            joined = []
            for row in rows:
                source = self._find_source(0, step.field, row[step.field])
                content = await self._read(step.tool, {step.field: row[step.field]}, {step.field: source})
                if not isinstance(content, dict):
                    raise ProgramFailed(f"{step.tool} shows no fields")
                joined.append({**content, **row})
            self.group += 1
            return joined
        return await self._join(rows, step)

    async def _join(self, rows: list[Row], step: JoinRows) -> list[Row]:
        number = len(self.program.opening) - 1
        owner = self.ran.calls[number].result
        if number < 0 or not isinstance(owner, dict):
            raise ProgramFailed("a join needs an opening")
        source = FromOutput(call=number, path=f"$.{step.owner}")
        others = get_rows(await self._read(step.tool, {step.owner: owner[step.owner]}, {step.owner: source}))
        keys = {other.get(step.on) for other in others}
        self.group += 1
        return [row for row in rows if (row.get(step.on) in keys) == step.present]

    async def _write(self, rows: list[Row]) -> None:
        write = self.program.write
        assert write is not None
        if self.fixed:
            by_key = {str(row[write.field]): row for row in self.ran.listed}
            rows[:] = [dict(row) for row in [by_key[key] for key in self.fixed]]
        await self.runner.reset()
        for row in rows:
            value = row[write.field]
            arguments = {write.field: value, **write.arguments}
            provenance: dict[str, Provenance] = {write.field: self._find_source(0, write.field, value)}
            provenance |= {name: FromUser(known=f"each.{name}") for name in write.arguments}
            ok, content = await self.runner.write(write.tool, arguments)
            self._record(write.tool, arguments, provenance, ok, content, "write")
            self.group += 1
            if write.adds:
                if not isinstance(content, dict) or not is_number(content.get(write.adds)):
                    raise ProgramFailed(f"{write.tool} gives no number {write.adds}")
                row[write.adds] = content[write.adds]

    async def _read(self, tool: str, arguments: JsonObject, provenance: dict[str, Any]) -> JsonValue:
        for name in arguments.keys() - provenance.keys():
            provenance = {**provenance, name: FromUser(known=f"list.{name}")}
        ok, content = await self.runner.read(tool, arguments)
        self._record(tool, arguments, provenance, ok, content, "read")
        return content

    def _record(
        self, tool: str, arguments: JsonObject, provenance: dict[str, Any], ok: bool, content: JsonValue, effect: Any
    ) -> None:
        if not ok:
            raise ProgramFailed(f"{tool} is refused: {str(content)[:120]}")
        if len(self.ran.calls) >= self.limit:
            raise ProgramFailed(f"more than {self.limit} calls")
        call = GoldCall(tool=tool, arguments=arguments, provenance=provenance, effect=effect, result=content)
        self.ran.calls.append(call)
        self.ran.groups.append(self.group)

    def _find_source(self, start: int, name: str, value: JsonValue) -> FromOutput:
        """Find the list that told an identifier: the row with it, looked for again at play time."""
        for number in range(start, len(self.ran.calls)):
            rows = get_rows(self.ran.calls[number].result)
            if sum(row.get(name) == value for row in rows) == 1:
                each = Selector(rows="$.result", how="each", field=name, value=value)
                return FromOutput(call=number, path=f"$.result[*].{name}", selectors=(each,))
        raise ProgramFailed(f"no list tells {name} {value!r}")


def get_rows(content: JsonValue) -> list[Row]:
    """Return the rows of a list result; none of anything else."""
    rows = content.get("result") if isinstance(content, dict) else content
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def is_number(value: Any) -> bool:
    """Return True for numbers that can be summed; flags are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def passes(row: Row, step: KeepRows) -> bool:
    """Return True if a row passes a filter; values that cannot be compared do not."""
    own = row.get(step.field)
    if step.how == "equals":
        return bool(own == step.value) and isinstance(own, bool) == isinstance(step.value, bool)
    if not is_number(own) or not is_number(step.value):
        return False
    return bool(own > step.value if step.how == "above" else own < step.value)


def take_rows(rows: Sequence[Row], step: TakeRows) -> list[Row]:
    """Return the first rows in the order of a field.

    Raises:
        ProgramFailed: A row has no number there, or a tie leaves open which rows are meant, or in which order.
    """
    values = _numbers(rows, step.field)
    ranked = sorted(range(len(rows)), key=lambda number: values[number], reverse=step.descending)
    cut = [values[number] for number in ranked[: step.count + 1]]
    if len(set(cut)) < len(cut) or len(rows) <= step.count:
        raise ProgramFailed(f"{step.field} leaves open which {step.count} rows are meant")
    return [rows[number] for number in ranked[: step.count]]


def _numbers(rows: Sequence[Row], name: str) -> list[float]:
    values: list[Any] = [row.get(name) for row in rows]
    if not values or not all(is_number(value) for value in values):
        raise ProgramFailed(f"{name} is not a number in every row")
    return values


def _measure(rows: Sequence[Row], branch: Branch) -> float:
    return len(rows) if branch.how == "count" else round(sum(_numbers(rows, branch.field)), DECIMALS)


def compute_answer(rows: Sequence[Row], answer: Aggregate, listed: int) -> JsonValue:
    """Compute the answer from rows.

    Raises:
        ProgramFailed: There are no rows to take it from, a field is no number, or several answers would be right.
    """
    how = answer.how
    if how == "done":
        return None
    if how == "count":
        return len(rows)
    if how == "share":
        return _round_clearly(Fraction(100 * len(rows), listed), 1)
    if not rows:
        raise ProgramFailed("no rows are left")
    if how in ("labels", "ordered"):
        labels = [row.get(answer.label) for row in rows]
        if len({str(label) for label in labels}) < len(labels) or None in labels:
            raise ProgramFailed(f"{answer.label} does not tell the rows apart")
        return labels
    values = _numbers(rows, answer.field)
    if how in ("sum", "mean"):
        total = sum((Fraction(str(value)) for value in values), Fraction())
        return _round_clearly(total / (len(values) if how == "mean" else 1))
    if how == "difference":
        return round(max(values) - min(values), DECIMALS)
    extreme = max(values) if how == "largest" else min(values)
    if values.count(extreme) > 1:
        raise ProgramFailed(f"two rows have the {how} {answer.field}")
    label: JsonValue = rows[values.index(extreme)].get(answer.label)
    return label


def _round_clearly(value: Fraction, digits: int = DECIMALS) -> float:
    """Round, but not what lies in the middle: people say 11.3 for 11.25, and Python 11.2."""
    halves = 2 * value * 10**digits
    if halves.denominator == 1 and halves.numerator % 2:
        raise ProgramFailed(f"{float(value)} lies between two answers")
    return round(float(value), digits)


def round_bound(value: float) -> int:
    """Round to one or two leading digits, as people give bounds."""
    unit = 1 if value < 20 else 5 if value < 100 else 10 if value < 500 else 50 if value < 2000 else 100
    return max(1, round(value / unit) * unit)
