"""Constraints of a scenario's steps: what a call must share with earlier calls is bound before anything is drawn."""

import random
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any

from trajsmith.grounding.argument_paths import get_argument_name
from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.paths import find_values, get_value, iterate_nodes, join_path
from trajsmith.grounding.plan import ArgumentPlan, Option
from trajsmith.grounding.references import ReferenceNotResolved, RowWords, pick_values, resolve_reference, take_part
from trajsmith.grounding.row_condition import AtLeast, AtMost, DaysBefore, DaysBetween, RowCondition
from trajsmith.grounding.user_facts import iterate_leaves
from trajsmith.phrasing import ScenarioStep, parse_datetime, shift_within_calendar
from trajsmith.records import Constant, FromDefault, FromOutput, GoldCall, Selector

SayValue = Callable[[SchemaField, Any], Option]
"""Makes the option that the user says a value for a parameter."""
ListRowWords = Callable[[str, int], RowWords]
"""Lists what decides which words pick a row out, for a parameter and the number of an earlier call."""


@dataclass(frozen=True)
class StepCall:
    """An earlier step of the scenario: its call, and the call's number."""

    index: int
    call: GoldCall


PARTS = {"date": r"^(\d{4}-\d\d-\d\d)(?:[T ]|$)", "time": r"^\d{4}-\d\d-\d\d[T ](\d\d:\d\d)"}
"""Part of a moment that a reference may ask for ("book_trip.departs_at|time") to the pattern that takes it."""


def split_reference(reference: str) -> tuple[str, str, str | None]:
    """Split "step.field" or "step.field|part" into step, field, and the pattern of the part.

    Raises:
        KeyError: There is no such part.
    """
    name, _, rest = reference.partition(".")
    field, bar, part = rest.partition("|")
    return name, field, PARTS[part] if bar else None


class StepConstraints:
    """Constraints of one step on its arguments.

    Args:
        step: The step.
        calls: Earlier steps by name, as far as they could be called.
        words: What decides which words pick a row of their results out.
        earlier: All calls before it, by their numbers.
        today: Day of the environment's clock.
    """

    def __init__(
        self,
        step: ScenarioStep,
        calls: Mapping[str, StepCall],
        words: ListRowWords = lambda parameter, call: RowWords(),
        earlier: Sequence[GoldCall] = (),
        today: date = date.max,
    ) -> None:
        self.step = step
        self.words = words
        self.calls = calls
        self.earlier = earlier
        self.today = today
        where: dict[str, Container[Any]] = {**step.where}
        where |= {field: DaysBefore(today, days) for field, days in step.days_old.items()}
        where |= {field: DaysBetween(today, -days, days) for field, days in step.days_near.items()}
        where |= {field: DaysBetween(today, 1, days) for field, days in step.days_coming.items()}
        where |= {field: AtMost(limit) for field, limit in step.up_to.items()}
        where |= {field: AtLeast(limit) for field, limit in step.at_least.items()}
        if not self.missing:
            where |= {field: self._list_shared(reference) for field, reference in step.where_same.items()}
        self.rows = RowCondition(where) if where else None

    @property
    def missing(self) -> str:
        """Constraint that refers to a step which could not be called: "same_as account_id"; empty if there is none."""
        return next(
            (f"{kind} {name}" for kind, name, step in list_step_references(self.step) if step not in self.calls), ""
        )

    def apply(
        self, plan: ArgumentPlan, fields: list[SchemaField], says: SayValue, rng: random.Random
    ) -> tuple[str, frozenset[int]]:
        """Bind and restrict the leaves of a plan.

        Returns:
            The constraint that leaves a leaf without any value ("where status"), or "", and the calls that the
            constraints look at.
        """
        used: set[int] = set()
        failed = ""
        for kind, parameter, leaf in self._leaves(fields):
            if kind == "same_as":
                options = self._values(self.step.same_as[parameter], rng, used, self.rows)
                if parameter in self.step.unsaid:
                    options = self._list_unsaid(self.step.same_as[parameter], options)
                plan.bind(leaf.path, options)
            elif kind == "other_than":
                others = [option.value for option in self._values(self.step.other_than[parameter], rng, used)]
                plan.restrict(leaf.path, lambda value, others=others: value not in others)  # type: ignore[misc]
            elif kind == "days_ahead":
                before = shift_within_calendar(self.today, self.step.days_ahead[parameter] - 1)
                self._bind_later(plan, leaf, [before.isoformat()], says, rng)
            elif kind == "days_within":
                last = shift_within_calendar(self.today, self.step.days_within[parameter])
                self._bind_within(plan, leaf, last, says, rng)
            elif kind == "later_than":
                moments = [option.value for option in self._values(self.step.later_than[parameter], rng, used)]
                self._bind_later(plan, leaf, moments, says, rng)
            else:
                self._bind_arguments(plan, leaf, self.step.arguments[parameter], says)
            if leaf.path in plan.required and not plan.required[leaf.path]:
                failed = failed or f"{kind} {parameter}"
        return failed, frozenset(used)

    def find_unmet(self, result: Any) -> str:
        """Return the constraint that a result does not meet ("every door_open"), or "".

        Of `where` these are the fields that no row had which an argument was chosen from.
        """
        if self.rows is not None and self.rows.unseen and not self.rows.matches_result(result):
            return f"where {self.rows.unseen[0]}"
        shown = result.get("result") if isinstance(result, Mapping) else result
        rows = [row for row in shown if isinstance(row, Mapping)] if isinstance(shown, list) else []
        if len(rows) < self.step.least_rows:
            return "least_rows"
        for name, values in self.step.every.items():
            if any(row.get(name) not in values for row in rows):
                return f"every {name}"
        return ""

    def _leaves(self, fields: list[SchemaField]) -> Iterator[tuple[str, str, SchemaField]]:
        for kind in ("arguments", "same_as", "other_than", "later_than", "days_ahead", "days_within"):
            for parameter in getattr(self.step, kind):
                yield from ((kind, parameter, leaf) for leaf in match_leaves(fields, parameter))

    def _values(
        self, reference: str, rng: random.Random, used: set[int], rows: RowCondition | None = None
    ) -> list[Option]:
        """The values that "step.name" stands for, each with its provenance: an argument, else fields of the result, of
        the rows that a condition keeps."""
        name, field, pattern = split_reference(reference)
        earlier = self.calls[name]
        used.add(earlier.index)
        for path, source, value in iterate_leaves(earlier.call) if pattern is None else ():
            if path == field or get_argument_name(path) == field:
                return [Option(value, Constant() if isinstance(source, FromDefault) else source)]
        options: list[Option] = []
        words, result = self.words(field.split(".")[-1], earlier.index), earlier.call.result
        for path in list_result_paths(result, field):
            tested = rows is not None and rows.applies(result, path)
            keep = partial(rows.keeps, result) if rows is not None and tested else None
            for value, selectors in pick_values(result, path, rng, keep=keep, words=words):
                value = value if pattern is None else take_part(pattern, value)
                if value is not None and value not in [option.value for option in options]:
                    source = FromOutput(call=earlier.index, path=path, selectors=selectors, pattern=pattern)
                    options.append(Option(value, source))
        return options

    def _list_unsaid(self, reference: str, options: list[Option]) -> list[Option]:
        """Return the options that need no words: of the only row, else of the row that another step has taken.

        Arguments of the earlier step stay as they are.
        """
        earlier = self.calls[split_reference(reference)[0]]
        taken = [
            source.selectors
            for step in self.calls.values()
            for _, source, _ in iterate_leaves(step.call)
            if isinstance(source, FromOutput) and source.call == earlier.index
        ]
        unsaid: dict[str, Option] = {}
        for option in options:
            source = option.source
            if not isinstance(source, FromOutput) or source.call != earlier.index:
                return options
            lists = {selector.rows for selector in source.selectors}
            alone = tuple(Selector(rows=rows, how="only") for rows in sorted(lists, key=len))
            for selectors in (alone, *(each for each in taken if lists <= {selector.rows for selector in each})):
                fitting = source.model_copy(
                    update={"selectors": tuple(each for each in selectors if each.rows in lists)}
                )
                with suppress(ReferenceNotResolved):
                    value = resolve_reference(fitting, earlier.call.result)
                    unsaid.setdefault(repr(value), Option(value, fitting))
        return list(unsaid.values())

    def _list_shared(self, reference: str) -> list[Any]:
        """The values that "step.name" stands for, also a field of the row that the step's thing was chosen from; of
        moments their days, too."""
        name, field, _ = split_reference(reference)
        values = list_known_values(self.calls[name].call, field, self.earlier)
        return [*values, *(value[:10] for value in values if isinstance(parse_datetime(value), datetime))]

    def _bind_arguments(self, plan: ArgumentPlan, leaf: SchemaField, values: tuple[Any, ...], says: SayValue) -> None:
        fitting = [option for option in plan.list_likely(leaf.path) if option.value in values]
        from_calls = any(isinstance(option.source, FromOutput) for option in plan.list_likely(leaf.path))
        plan.bind(leaf.path, fitting if from_calls else [says(leaf, value) for value in values])

    def _bind_later(
        self, plan: ArgumentPlan, leaf: SchemaField, moments: list[Any], says: SayValue, rng: random.Random
    ) -> None:
        def later(value: Any) -> bool:
            return all(is_later(value, moment) for moment in moments)

        options = [option for option in plan.list_likely(leaf.path) if later(option.value)]
        if (
            not options
            and moments
            and not any(isinstance(one.source, FromOutput) for one in plan.list_likely(leaf.path))
        ):
            options = [says(leaf, value) for value in list_later_values(leaf, max(moments, key=_as_moment), rng)]
        plan.bind(leaf.path, options)

    def _bind_within(
        self, plan: ArgumentPlan, leaf: SchemaField, last: date, says: SayValue, rng: random.Random
    ) -> None:
        """Bind a leaf to the days from tomorrow to a last one."""
        span = (last - self.today).days
        days = [shift_within_calendar(self.today, number).isoformat() for number in range(1, span + 1)]
        options = [option for option in plan.list_likely(leaf.path) if option.value in days]
        plan.bind(leaf.path, options or [says(leaf, day) for day in rng.sample(days, len(days))])


def list_known_values(call: GoldCall, field: str, calls: Sequence[GoldCall]) -> list[Any]:
    """Return the values of a field in a call's arguments, its result, and the rows that its arguments were chosen from.

    Args:
        call: The call, with its result.
        field: Path of the field: "city" or "address.city".
        calls: All calls of the chain, as far as they are known, by their numbers.
    """
    rows: list[Any] = [call.arguments, call.result]
    for _, source, value in iterate_leaves(call):
        if isinstance(source, FromOutput) and source.call < len(calls):
            matches = find_values(calls[source.call].result, source.path)
            rows += [match.levels[-1].row for match in matches if match.levels and match.value == value]
    return [value for row in rows if isinstance(row, dict) and (value := get_value(row, field)) is not None]


def list_step_references(step: ScenarioStep) -> list[tuple[str, str, str]]:
    """Return (constraint, parameter, earlier step) of everything in a step that refers to an earlier one."""
    tables = (
        ("same_as", step.same_as),
        ("other_than", step.other_than),
        ("later_than", step.later_than),
        ("where_same", step.where_same),
    )
    return [(kind, name, value.split(".")[0]) for kind, table in tables for name, value in table.items()]


def match_leaves(fields: list[SchemaField], parameter: str) -> list[SchemaField]:
    """Return the leaves that a scenario means by a parameter: by its path, else by its last name."""
    exact = [leaf for leaf in fields if leaf.path == parameter]
    return exact or [leaf for leaf in fields if leaf.name == parameter]


def list_result_paths(result: Any, field: str) -> list[str]:
    """Return the paths of a result that end with a field's name, the shortest first."""
    wanted = tuple(field.split("."))
    paths: dict[str, int] = {}
    for parts, _ in iterate_nodes(result, rows=50, deepest=6):
        names = tuple(part for part in parts if part != "*")
        if names[-len(wanted) :] == wanted:
            paths.setdefault(join_path(parts), len(parts))
    return sorted(paths, key=lambda path: (paths[path], path))


def is_later(value: Any, moment: Any) -> bool:
    """Return whether a date or datetime in ISO form is later than another; of a date and a datetime the days count."""
    one, other = parse_datetime(value), parse_datetime(moment)
    if one is None or other is None:
        return False
    if isinstance(one, datetime) and isinstance(other, datetime):
        return one.replace(tzinfo=None) > other.replace(tzinfo=None)
    return _as_day(one) > _as_day(other)


def list_later_values(leaf: SchemaField, moment: Any, rng: random.Random) -> list[str]:
    """Return dates or datetimes, in the form that the leaf has, of the days after a moment."""
    start = parse_datetime(moment)
    if start is None:
        return []
    if leaf.schema.get("format") == "date-time" or "T" in str(moment):
        clock = start if isinstance(start, datetime) else datetime(start.year, start.month, start.day, 10)
        return [shift_within_calendar(clock, days).isoformat() for days in rng.sample(range(1, 8), 4)]
    return [shift_within_calendar(_as_day(start), days).isoformat() for days in rng.sample(range(1, 8), 4)]


def _as_day(moment: date) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _as_moment(value: Any) -> tuple[str, str]:
    moment = parse_datetime(value)
    return (_as_day(moment).isoformat() if moment else "", str(value))
