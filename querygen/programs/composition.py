"""Composition of solution programs over what the tools of an environment really list (Agent-World, section 3.1.1).

No model is asked. The rows that calls returned say what can be filtered, looked up, summed, compared and written; the
phrasebook's `tables` say how people speak of it. A program is kept if its calls succeed and its answer is one answer.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt

from trajsmith.environments import Session
from trajsmith.grounding import Grounder, is_end_out_of_reach
from trajsmith.phrasing import format_value, pick_text
from trajsmith.phrasing.table_phrases import (
    BoundPhrases,
    MeasurePhrases,
    TablePhrases,
    WritePhrases,
    allows_shape,
    select_tables,
)
from trajsmith.querygen.programs.execution import (
    ProgramRun,
    ProgramRunner,
    Row,
    get_rows,
    is_number,
    passes,
    round_bound,
)
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
    WriteRows,
)
from trajsmith.querygen.programs.sentences import ProgramWords, find_predicate, format_bound, join_clauses
from trajsmith.records import FrozenModel, GoldCall, RecordDropped, TaskSource, check_order, derive_seed

T = TypeVar("T")
SHAPES = {"answer": 2.0, "look_up": 2.0, "join": 1.0, "write": 4.5, "branch": 2.0}
"""Kinds of programs and how often each is tried first."""
TRIES_OF_SHAPE = 6
"""Tables that are tried for one kind before another kind is drawn."""
LOOPS_FROM = 10
"""Calls from which on only loops are tried."""
ACCOUNTS = 6
"""Accounts that are looked at until one has enough rows."""


class ProgramSettings(FrozenModel):
    """Settings of program generation."""

    least_rows: PositiveInt = 3
    """A list with fewer rows is left alone."""
    calls: Annotated[tuple[int, int], AfterValidator(check_order)] = (2, 14)
    """Fewest and most calls of one program."""
    long_calls: Annotated[
        tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(le=100)]], AfterValidator(check_order)
    ] = (15, 50)
    """The same of long requests."""
    tries: PositiveInt = 36
    """Programs that are tried until one is proved."""
    repairs: NonNegativeInt = 3
    """Times that a model may mend its program; only with a model as `proposer`."""

    def for_source(self, source: TaskSource | None) -> "ProgramSettings":
        """Return the settings for a source: long requests have more calls, and are tried more often."""
        if source != "long":
            return self
        return self.model_copy(update={"calls": self.long_calls, "tries": max(self.tries, 60)})


class ComposedProgram(FrozenModel):
    """A program with its words and what its gold run came to; stored with the grounded calls."""

    program: SolutionProgram
    words: ProgramWords
    write: WritePhrases | None = None
    run: ProgramRun
    labels: tuple[str, ...] = ()
    """Labels of all rows, those included that no call was made for."""

    @property
    def groups(self) -> tuple[int, ...]:
        """Of each call: the operation that made it."""
        return tuple(self.run.groups)


@dataclass(frozen=True)
class _Table:
    name: str
    phrases: TablePhrases
    opening: tuple[GoldCall, ...]
    listing: ListRows
    rows: list[Row]
    whole: str
    how_many: str
    inherited: frozenset[str]
    """Fields that rows have of the parent's row, and not of their own."""


@dataclass(frozen=True)
class _Filter:
    steps: tuple[Step, ...]
    clause: str


class ProgramComposer:
    """Composes programs on one initial state."""

    def __init__(self, grounder: Grounder, session: Session, settings: ProgramSettings, seed: int) -> None:
        self.grounder = grounder
        self.settings = settings
        self.seed = seed
        self.rng = random.Random(derive_seed(seed, "programs"))
        self.runner = ProgramRunner(session, grounder.state)
        self.tables = select_tables(grounder.phrasebook.tables, grounder.tools)

    async def compose(self) -> ComposedProgram:
        """Compose a program and prove it by running it.

        Raises:
            RecordDropped: The environment has no tables, or nothing that was tried could be proved.
            EnvironmentFault: The environment broke.
        """
        if not self.tables:
            raise RecordDropped("no_tables", f"{self.grounder.spec.name} has no tables in its phrasebook")
        reasons: list[str] = []
        shape = ""
        for number in range(self.settings.tries):
            if number % TRIES_OF_SHAPE == 0:
                shape = self.rng.choices(list(SHAPES), list(SHAPES.values()))[0]
            fitting = [name for name, phrases in self.tables.items() if allows_shape(phrases, shape)]
            if self.settings.calls[0] >= LOOPS_FROM:
                fitting = [name for name in fitting if self.tables[name].parent or shape in ("look_up", "write")]
            if not fitting:
                continue
            name = self.rng.choice(sorted(fitting))
            try:
                table = await self._open(name)
                program, words, write = await self._draw(table, shape)
                run = await self.runner.run(program, self.settings.calls[1])
                await self._prove(program, run, table)
            except ProgramFailed as failed:
                reasons.append(str(failed))
                continue
            labels = tuple(str(row.get(table.phrases.label)) for row in table.rows)
            return ComposedProgram(program=program, words=words, run=run, write=write, labels=labels)
        raise RecordDropped("no_program", reasons[-1] if reasons else "nothing was tried")

    async def _open(self, name: str) -> _Table:
        """Find an account with enough rows, and list them."""
        phrases = self.tables[name]
        for number in range(ACCOUNTS):
            opening: tuple[GoldCall, ...] = ()
            if phrases.opening:
                seed = derive_seed(self.seed, "account", number, name)
                call = await self.grounder.find_call(phrases.opening, self.runner.session, seed)
                self.runner.forget_position()
                if call is None:
                    continue
                opening = (call.model_copy(update={"effect": "read"}),)
            listing = self._list(name)
            plain = SolutionProgram(
                environment=self.grounder.spec.name,
                table=name,
                opening=opening,
                rows=listing,
                answer=Aggregate(how="count"),
            )
            try:
                run = await self.runner.run(plain, self.settings.calls[1])
            except ProgramFailed:
                continue
            for call in run.calls:
                tool = self.grounder.tools[call.tool]
                if not listing.page and is_end_out_of_reach(tool, call.arguments, call.result):
                    break
            else:
                keys = [str(row.get(phrases.key)) for row in run.listed]
                if len(set(keys)) == len(keys) >= self.settings.least_rows:
                    known = [item for call in opening for item in call.arguments.items()]
                    spoken_values = {key: format_value(value) for key, value in known}
                    whole = pick_text([phrases.whole], spoken_values, self.rng)
                    how_many = pick_text([phrases.how_many], spoken_values, self.rng)
                    if whole and how_many:
                        shown = [row for call in run.calls if call.tool == name for row in get_rows(call.result)]
                        inherited = frozenset(run.listed[0]).difference(*shown)
                        return _Table(name, phrases, opening, listing, run.listed, whole, how_many, inherited)
            if not phrases.opening:
                break
        raise ProgramFailed(f"{name} lists too few rows, or more than it shows")

    def _list(self, name: str) -> ListRows:
        phrases = self.tables[name]
        parent = self._list(phrases.parent) if phrases.parent else None
        return ListRows(
            tool=name, arguments=phrases.arguments, owner=phrases.owner, page=phrases.page, parent=parent,
            parent_key=phrases.parent_key,
        )  # fmt: skip

    async def _draw(self, table: _Table, shape: str) -> tuple[SolutionProgram, ProgramWords, WritePhrases | None]:
        if shape in ("write", "branch"):
            return self._draw_write(table, shape == "branch")
        filters: list[_Filter] = []
        measures = dict(table.phrases.measures)
        rows = table.rows
        if shape == "join":
            filters.append(self._pick(self._list_joins(table), "joins"))
        elif self.rng.random() < 0.75:
            options = self._list_filters(table.phrases, rows)
            if options:
                filters.append(self.rng.choice(options))
                rows = self._keep(rows, filters[0].steps)
                more = [
                    each for each in self._list_filters(table.phrases, rows) if _fields(each) != _fields(filters[0])
                ]
                if more and self.rng.random() < 0.3:
                    filters.append(self.rng.choice(more))
        steps = tuple(step for each in filters for step in each.steps)
        if shape == "look_up":
            look_up = self._pick(table.phrases.lookups, "look-ups")
            shown = LookUpRows(tool=look_up.tool, field=look_up.parameter)
            wanted = self._program(table, (*steps, shown), Aggregate(how="count"))
            run = await self.runner.run(wanted, self.settings.calls[1])
            clauses = self._list_clauses(look_up.where, run.rows)
            steps = (*steps, shown)
            if look_up.measures and (not clauses or self.rng.random() < 0.6):
                measures = dict(look_up.measures)
            else:
                filters.append(self._pick(clauses, "look-up clauses"))
                steps = (*steps, *filters[-1].steps)
                measures = {}
        clause = join_clauses([each.clause for each in filters])
        answer, taken, measure = self._draw_answer(table, measures, filters, shape)
        if answer.how == "share" and not find_predicate(clause):
            raise ProgramFailed("no words for a share")
        words = ProgramWords(
            whole=table.whole, how_many=table.how_many, rows=f"{table.whole}{clause}", clauses=clause, measure=measure
        )
        return self._program(table, (*steps, *taken), answer), words, None

    def _draw_answer(
        self, table: _Table, measures: dict[str, MeasurePhrases], filters: Sequence[_Filter], shape: str
    ) -> tuple[Aggregate, tuple[Step, ...], MeasurePhrases | None]:
        label, bounded = table.phrases.label, {name for each in filters for name in _fields(each)}
        options: list[tuple[Aggregate, tuple[Step, ...], MeasurePhrases | None]] = []
        if filters and not (shape == "look_up" and measures):  # these filters need nothing that was looked up
            options += [(Aggregate(how="count"), (), None), (Aggregate(how="labels", label=label), (), None)]
            options += [(Aggregate(how="share"), (), None)] if shape == "answer" and len(table.rows) > 4 else []
        for name, measure in measures.items():
            if measure.sums:
                options.append((Aggregate(how="sum", field=name), (), measure))
            options.append((Aggregate(how="mean", field=name), (), measure))
            if name in bounded:
                continue  # nobody asks for the largest of those that are larger than something
            options.append((Aggregate(how="difference", field=name), (), measure))
            for how in ("largest", "smallest"):
                options.append((Aggregate(how=how, field=name, label=label), (), measure))
            take = TakeRows(field=name, descending=self.rng.random() < 0.6, count=self.rng.choice((2, 3)))
            options.append((Aggregate(how="ordered", field=name, label=label), (take,), measure))
        return self._pick(options, "answers")

    def _draw_write(self, table: _Table, branch: bool) -> tuple[SolutionProgram, ProgramWords, WritePhrases]:
        write = self._pick(table.phrases.writes, "writes")
        fitting = [row for row in table.rows if all(row.get(name) in values for name, values in write.where.items())]
        needed = [name for name, each in write.where.items() if any(row.get(name) not in each for row in table.rows)]
        filters: list[_Filter] = []
        for name in needed:
            clauses = table.phrases.where.get(name, {})
            values = sorted({_key(row[name]) for row in fitting} & clauses.keys())
            value = self._pick(values, f"clauses for {name}")
            own = next(row[name] for row in fitting if _key(row[name]) == value)
            filters.append(_Filter((KeepRows(field=name, how="equals", value=own),), clauses[value]))
            fitting = [row for row in fitting if row[name] == own]
        conditions = [write.clause] if write.whole else [each.clause for each in filters]
        extra = [each for each in self._list_filters(table.phrases, fitting) if not set(needed) & _fields(each)]
        if extra and (not filters or self.rng.random() < 0.4):
            filters.append(self.rng.choice(extra))
            conditions.append(filters[-1].clause)
        steps = tuple(step for each in filters for step in each.steps)
        if len(rows := self._keep(table.rows, steps)) < 2:
            raise ProgramFailed("fewer than two rows to write to")
        arguments = {name: self.rng.choice(values) for name, values in write.arguments.items()}
        spoken = self.grounder.phrasebook.parameters
        spoken_values = {name: self._say(spoken.get(name), value) for name, value in arguments.items()}
        whole, clause = write.whole or table.whole, join_clauses(conditions)
        measures = {name: each for name, each in write.measures.items() if each.sums}
        answer, measure, tested, adds = Aggregate(how="done"), None, None, ""
        if branch:
            own = {name: each for name, each in table.phrases.measures.items() if each.sums}
            name = self._pick(sorted(own), "measures")
            measure, answer = own[name], Aggregate(how="sum", field=name)
            tested = self._draw_branch(rows, name)
        elif measures and self.rng.random() < 0.6:
            adds = self.rng.choice(sorted(measures))
            measure, answer = measures[adds], Aggregate(how="sum", field=adds)
        program = self._program(table, steps, answer).model_copy(
            update={
                "write": WriteRows(tool=write.tool, field=write.parameter, arguments=arguments, adds=adds),
                "branch": tested,
            }
        )
        words = ProgramWords(
            whole=whole, how_many=table.how_many, rows=f"{whole}{clause}", clauses=clause, measure=measure,
            spoken_values=spoken_values,
        )  # fmt: skip
        return program, words, write

    def _say(self, phrases: object, value: object) -> str:
        values = getattr(phrases, "values", {})
        return str(self.rng.choice(values[str(value)])) if str(value) in values else format_value(value)

    def _draw_branch(self, rows: Sequence[Row], name: str) -> Branch:
        """Draw a bound well above or below the sum, a round number."""
        total = sum(row[name] for row in rows if is_number(row.get(name)))
        if total <= 0:
            raise ProgramFailed(f"nothing to compare in {name}")
        factor = self.rng.choice((0.5, 0.6, 0.75, 1.3, 1.5))
        bound = round_bound(total * factor)
        if bound == round(total, 2):
            raise ProgramFailed("the bound is the sum")
        return Branch(how="sum", field=name, above=self.rng.random() < 0.7, value=bound)

    def _program(self, table: _Table, steps: Sequence[Step], answer: Aggregate) -> SolutionProgram:
        """Build a program; what the parent's rows tell is compared before the loop, but in a share of all rows."""
        fields = table.inherited if answer.how != "share" else ()
        early = [step for step in steps if isinstance(step, KeepRows) and step.field in fields]
        return SolutionProgram(
            environment=self.grounder.spec.name, table=table.name, opening=table.opening,
            rows=table.listing.model_copy(update={"parents": tuple(early)}),
            steps=tuple(step for step in steps if step not in early), answer=answer,
        )  # fmt: skip

    def _pick(self, options: Sequence[T], of: str) -> T:
        if options:
            return self.rng.choice(list(options))
        raise ProgramFailed(f"no {of}")

    def _list_filters(self, phrases: TablePhrases, rows: Sequence[Row]) -> list[_Filter]:
        return [*self._list_clauses(phrases.where, rows), *self._list_bounds(phrases, rows)]

    def _list_clauses(self, where: dict[str, dict[str, str]], rows: Sequence[Row]) -> list[_Filter]:
        """Filters by a value that at least two rows have, and not all."""
        filters = []
        for name, clauses in where.items():
            values = [row.get(name) for row in rows]
            for value in dict.fromkeys(values):
                clause = clauses.get(_key(value)) or clauses.get("*")
                if clause and value not in (None, "") and 1 < values.count(value) < len(values):
                    text = pick_text([clause], {"value": format_value(value)}, self.rng)
                    if text:
                        filters.append(_Filter((KeepRows(field=name, how="equals", value=value),), text))
        return filters

    def _list_bounds(self, phrases: TablePhrases, rows: Sequence[Row]) -> list[_Filter]:
        """Filters by a round bound that at least two rows pass, and not all."""
        filters = []
        for name, words in phrases.bounds.items():
            values: list[Any] = [row.get(name) for row in rows]
            if len(values) < 4 or not all(is_number(value) for value in values):
                continue
            ranked = sorted(values)
            bound = round_bound(ranked[self.rng.randrange(1, len(ranked) - 1)] * 1.02)
            filters += self._bound(name, words, bound, values, phrases.measures.get(name))
        return filters

    def _bound(
        self, name: str, words: BoundPhrases, bound: float, values: Sequence[float], measure: MeasurePhrases | None
    ) -> list[_Filter]:
        filters = []
        for how, clause, number in (
            ("above", words.above, sum(value > bound for value in values)),
            ("below", words.below, sum(value < bound for value in values)),
        ):
            if 1 < number < len(values) and bound not in values:
                text = pick_text([clause], {"value": format_bound(bound, measure)}, self.rng)
                filters += [_Filter((KeepRows(field=name, how=how, value=bound),), text)] if text else []
        return filters

    def _list_joins(self, table: _Table) -> list[_Filter]:
        return [
            _Filter((JoinRows(tool=each.tool, owner=each.parameter, on=each.shared, present=present),), clause)
            for each in table.phrases.joins
            for present, clause in ((True, each.present), (False, each.absent))
        ]

    def _keep(self, rows: Sequence[Row], steps: Sequence[Step]) -> list[Row]:
        for step in steps:
            if isinstance(step, KeepRows):
                rows = [row for row in rows if passes(row, step)]
        return list(rows)

    async def _prove(self, program: SolutionProgram, run: ProgramRun, table: _Table) -> None:
        """Refuse a program whose answer is trivial, whose rows cannot be told apart, or whose writes change nothing.

        Raises:
            ProgramFailed: It is one of these.
        """
        how, least = program.answer.how, self.settings.calls[0]
        if len(run.calls) < least:
            raise ProgramFailed(f"fewer than {least} calls")
        if len(run.rows) < (1 if how in ("count", "labels", "share", "ordered") else 3 if how == "difference" else 2):
            raise ProgramFailed("too few rows are left")
        looks_up = any(step.kind == "look_up" for step in program.steps)
        if program.steps and len(run.rows) == len(run.listed) and not looks_up:
            raise ProgramFailed("the steps leave all rows")
        if run.answer in (0, 0.0, "", [], 100.0):
            raise ProgramFailed("the answer is trivial")
        if how == "share" and run.rows == run.listed:
            raise ProgramFailed("the share is trivial")
        labels = [str(row.get(table.phrases.label)) for row in table.rows]
        if (program.write is not None or how in ("labels", "ordered", "largest", "smallest")) and (
            len(set(labels)) < len(labels) or _hold_each_other(labels)
        ):
            raise ProgramFailed("rows cannot be told apart")
        for call in run.calls:
            tool = self.grounder.tools[call.tool]
            cut = call.effect == "read" and is_end_out_of_reach(tool, call.arguments, call.result)
            if cut and get_rows(call.result):
                raise ProgramFailed(f"{call.tool} may hold more than it shows")
        if program.write is not None and run.taken:
            hashes = await self.runner.replay_states(run.calls)
            if hashes is None or len(set(hashes)) <= run.writes:
                raise ProgramFailed("a write changes nothing")


def _hold_each_other(labels: Sequence[str]) -> bool:
    """Return True if one label is part of another: a text that tells the longer tells the shorter, too."""
    lowered = [label.lower() for label in labels]
    return any(a != b and a in b for a in lowered for b in lowered)


def _fields(each: _Filter) -> set[str]:
    return {step.field for step in each.steps if isinstance(step, KeepRows)}


def _key(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
