"""What a caller gives arrives: values reach the state, and amounts exactly."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from envgen.doctor.case import Case, Evidence, Severity
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.calls import MANY_STATES
from envgen.doctor.checks.watching import Seen
from envgen.doctor.explore import Observation
from envgen.doctor.facts.data import is_number
from envgen.doctor.facts.fact import row_name, short
from envgen.doctor.links import agree
from envgen.doctor.shape import Row
from envgen.doctor.view import Change
from grounding.fields import unwrap
from grounding.names import words
from trajectory import JsonObject, ToolSpec

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

ENOUGH = 3
COUNTING = frozenset(
    {"version", "revision", "count", "time", "attempt", "restart", "reconnect", "use", "view", "visit"}
)
"""Words in the names of numbers that count how often something happened."""
_AWAY = frozenset({"remove", "delete", "unassign", "revoke", "clear", "detach", "unsubscribe", "unlink", "untag"})
DIFFERENT = 3
"""Different numbers that a relation between amounts needs."""


@dataclass
class Tally:
    """Where a value arrived, and where not."""

    arrived: int = 0
    lost: list[Observation] = field(default_factory=list)
    values: set[str] = field(default_factory=set)


class Arrives(Check):
    """A value that is given for a field of what is written stands there afterwards."""

    name: ClassVar[str] = "arguments"
    about: ClassVar[str] = "a value that is given for a field of what is written stands there afterwards"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(seen.changed for seen in exam.explored.succeeded(tool.name))

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            if _AWAY & set(words(tool.name)):
                continue  # what it is given is gone afterwards
            tallies: dict[tuple[str, str, str], Tally] = defaultdict(Tally)
            for seen in exam.explored.succeeded(tool.name):
                for name, relation, column, value, _, stored in _arrivals(exam, seen):
                    tally = tallies[name, relation, column]
                    tally.values.add(repr(value))
                    if agree(value, stored):
                        tally.arrived += 1
                    else:
                        tally.lost.append(seen)
            for (name, relation, column), tally in tallies.items():
                if tally.arrived or len(tally.lost) < ENOUGH or len(tally.values) < 2:
                    continue
                message = f"{tool.name} takes {name} and does not put it into {column} of {relation}"
                about = {"argument": name, "relation": relation, "column": column}
                for seen in tally.lost[:3]:
                    yield Suspicion(tool.name, f"{name}:{relation}.{column}", message, seen.case(about))

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not shots[-1].outcome.ok or shots[-1].outcome.step != case.steps[-1]:
            return None
        for name, relation, column, value, where, stored in _arrivals(exam, shots[-1]):
            wanted = (case.about["argument"], case.about["relation"], case.about["column"])
            if (name, relation, column) == wanted and not agree(value, stored):
                return Evidence(seen=f"{column} of {where} is {short(stored)}", expected=short(value))
        return None


def _arrivals(exam: "Exam", seen: Seen) -> Iterator[tuple[str, str, str, Any, str, Any]]:
    """Arguments beside the columns of written rows that are named as they are, or that take the same choices."""
    if not seen.changed:
        return
    step = seen.outcome.step
    tool = exam.tools[step.tool]
    rows = [change for change in _written(seen) if _is_meant(exam, change, step.arguments)]
    for name, value in step.arguments.items():
        if value is None or isinstance(value, dict) or exam.places.entity(name):
            continue
        for change in rows:
            column = _column(exam, tool, name, change)
            if column is not None:
                where = row_name(change.relation, change.key)
                yield name, change.relation, column, value, where, (change.after or {})[column]


def _written(seen: Seen) -> list[Change]:
    """Rows that are new or changed, where only one of their relation is."""
    kept: dict[str, list[Change]] = defaultdict(list)
    touched = {change.relation for change in seen.changes}
    for change in seen.changes:
        if change.after is not None and change.relation.rpartition(".")[0] not in touched - {""}:
            kept[change.relation].append(change)
    return [changes[0] for changes in kept.values() if len(changes) == 1]


def _is_meant(exam: "Exam", change: Change, arguments: JsonObject) -> bool:
    """True if a row is new, or one that the arguments name."""
    if change.before is None:
        return True
    return any(
        exam.places.entity(name) == change.relation and str(value) == change.key[-1]
        for name, value in arguments.items()
    )


def _column(exam: "Exam", tool: ToolSpec, name: str, change: Change) -> str | None:
    """The column of a row that an argument must reach."""
    row = change.after or {}
    if name in row:
        return name
    choices = _choices(unwrap(tool.parameters.get(name, {}), tool.input_schema))
    if choices:
        alike = [column for column in row if exam.choices(change.relation, column) == choices]
        return alike[0] if len(alike) == 1 else None
    if change.before is None and len(exam.data.views) >= MANY_STATES:
        ends = [column for column in row if len(words(name)) > len(words(column)) and _ends(name, column)]
        return ends[0] if len(ends) == 1 and not isinstance(row[ends[0]], list) else None
    return None


def _ends(name: str, column: str) -> bool:
    own, other = words(name), words(column)
    return bool(other) and own[-len(other) :] == other


def _choices(schema: JsonObject) -> frozenset[str]:
    found = schema.get("enum")
    return frozenset(map(str, (one for one in found if one is not None))) if isinstance(found, list) else frozenset()


def column_choices(schema: JsonObject, relation: str, column: str) -> frozenset[str]:
    """The choices that the state schema gives a column."""
    node: JsonObject = schema
    for part in [*relation.split("."), "*", *column.split(".")]:
        node = unwrap(node, schema)
        if part == "*":
            inner = node.get("additionalProperties", node.get("items"))
        else:
            inner = (node.get("properties") or {}).get(part)
            if inner is None and isinstance(node.get("items", node.get("additionalProperties")), dict):
                node = unwrap(node.get("items", node.get("additionalProperties")), schema)
                inner = (node.get("properties") or {}).get(part)
        if not isinstance(inner, dict):
            return frozenset()
        node = inner
    return _choices(unwrap(node, schema))


class Amounts(Check):
    """A number that moves, moves by exactly what was given or what is kept for it."""

    name: ClassVar[str] = "amounts"
    about: ClassVar[str] = "a number that moves with an amount moves by exactly that amount"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(seen.changed for seen in exam.explored.succeeded(tool.name))

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            moves: dict[tuple[str, str], list[tuple[Observation, Change, float]]] = defaultdict(list)
            for seen in exam.explored.succeeded(tool.name):
                for change, column, by in _moves(seen):
                    moves[change.relation, column].append((seen, change, by))
            for (relation, column), found in moves.items():
                for suspicion in self._suspicions(exam, tool, relation, column, found):
                    yield suspicion

    def _suspicions(
        self, exam: "Exam", tool: ToolSpec, relation: str, column: str, found: list[tuple[Observation, Change, float]]
    ) -> Iterator[Suspicion]:
        if len({by for _, _, by in found}) < DIFFERENT:
            yield from self._double(tool, relation, column, found)
            return
        sources = [_amounts(exam, seen, change) for seen, change, _ in found]
        moved = [by for _, _, by in found]
        for name in dict.fromkeys(name for amounts in sources for name in amounts):
            pairs = [(amounts[name], by) for amounts, by in zip(sources, moved, strict=True) if name in amounts]
            if any(_explains(source, by) for source, by in pairs) or len(pairs) < max(ENOUGH, 0.9 * len(found)):
                continue
            if len({source for source, _ in pairs}) < DIFFERENT:
                continue
            for sign in (1, -1):
                for off in (1, -1):
                    if all(abs(by - sign * (source + off)) < 0.0051 for source, by in pairs):
                        what = "one more" if off > 0 else "one less"
                        message = f"{tool.name} moves {column} of {relation} by {what} than {name}"
                        about = {"relation": relation, "column": column, "amount": name}
                        yield Suspicion(tool.name, f"{relation}.{column}", message, found[0][0].case(about))
                        return

    def _double(
        self, tool: ToolSpec, relation: str, column: str, found: list[tuple[Observation, Change, float]]
    ) -> Iterator[Suspicion]:
        """A number that counts, and goes up by two every time."""
        counts = bool(COUNTING & set(words(column)))
        if counts and len(found) >= ENOUGH and {by for _, _, by in found} == {2.0}:
            message = f"{tool.name} counts {column} of {relation} up by two every time"
            about = {"relation": relation, "column": column, "amount": ""}
            yield Suspicion(tool.name, f"{relation}.{column}", message, found[0][0].case(about))

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not shots[-1].outcome.ok or shots[-1].outcome.step != case.steps[-1]:
            return None
        about, shot = case.about, shots[-1]
        if not about["amount"]:
            moved = [
                by
                for change, column, by in _moves(shot)
                if [change.relation, column] == [about["relation"], about["column"]]
            ]
            return Evidence(seen=f"{about['column']} goes up by 2", expected="by 1") if 2.0 in moved else None
        for change, column, by in _moves(shot):
            amount = _amounts(exam, shot, change).get(about["amount"])
            if (change.relation, column) != (about["relation"], about["column"]) or amount is None:
                continue
            if abs(abs(abs(by) - abs(amount)) - 1) < 0.0051:
                where = row_name(change.relation, change.key)
                return Evidence(seen=f"{column} of {where} moves by {short(by)}", expected=f"by {short(amount)}")
        return None


def _explains(source: float, by: float) -> bool:
    return abs(abs(source) - abs(by)) < 0.0051


def _moves(seen: Seen) -> Iterator[tuple[Change, str, float]]:
    """Numbers of rows that were there before, with how far they moved."""
    for change in seen.changes if seen.changed else ():
        if change.before is None or change.after is None:
            continue
        for column, (old, new) in change.fields.items():
            if is_number(old) and is_number(new):
                yield change, column, round(new - old, 4)


def _amounts(exam: "Exam", seen: Seen, change: Change) -> dict[str, float]:
    """Numbers that a move may go by: arguments, and numbers of the rows between the arguments and the moved row."""
    found: dict[str, float] = {}
    arguments = seen.outcome.step.arguments
    for name, value in arguments.items():
        if is_number(value):
            found[name] = float(value)
    named = {str(value) for value in arguments.values() if isinstance(value, str)}
    for reference in exam.data.references:
        if reference.target != change.relation or reference.listed:
            continue
        rows = [
            row
            for key, row in seen.before.rows(reference.relation).items()
            if str(row.get(reference.column)) == change.key[-1] and not named.isdisjoint(key)
        ]
        if len(rows) == 1:
            found.update(_numbers(rows[0], reference.relation))
    return found


def _numbers(row: Row, relation: str) -> dict[str, float]:
    return {f"{column} of {relation}": float(value) for column, value in row.items() if is_number(value)}


__all__ = ["Amounts", "Arrives", "column_choices"]
