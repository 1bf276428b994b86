"""Arguments take effect: values reach the state, and amounts exactly."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trajsmith.envcheck.case_runner import ObservedCall
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.checks.call_contract import MANY_STATES
from trajsmith.envcheck.exploration import Observation
from trajsmith.envcheck.facts.base import format_row_name, shorten_value
from trajsmith.envcheck.facts.state_columns import is_number
from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Severity
from trajsmith.envcheck.row_links import values_agree
from trajsmith.envcheck.state_shape import Row, read_choices
from trajsmith.envcheck.state_view import StateRowChange
from trajsmith.grounding import split_name, unwrap
from trajsmith.records import JsonObject, ToolSpec

ENOUGH = 3
COUNTING = frozenset(
    {"version", "revision", "count", "time", "attempt", "restart", "reconnect", "use", "view", "visit"}
)
"""Words in the names of numbers that count how often something happened."""
_AWAY = frozenset({"remove", "delete", "unassign", "revoke", "clear", "detach", "unsubscribe", "unlink", "untag"})
DIFFERENT = 3
"""Different numbers that a relation between amounts needs."""


@dataclass
class ArrivalTally:
    """Counts of argument values that reached a column or were lost."""

    arrived: int = 0
    lost: list[Observation] = field(default_factory=list)
    values: set[str] = field(default_factory=set)


class ArgumentsArrive(Check):
    """A value that is given for a field of what is written stands there afterwards."""

    name: ClassVar[str] = "arguments"
    about: ClassVar[str] = "a value that is given for a field of what is written stands there afterwards"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(seen.changed for seen in check_session.explored.succeeded(tool.name))

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            if _AWAY & set(split_name(tool.name)):
                continue  # what it is given is gone afterwards
            tallies: dict[tuple[str, str, str], ArrivalTally] = defaultdict(ArrivalTally)
            for seen in check_session.explored.succeeded(tool.name):
                for name, relation, column, value, _, stored in _arrivals(check_session, seen):
                    tally = tallies[name, relation, column]
                    tally.values.add(repr(value))
                    if values_agree(value, stored):
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

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not step_results[-1].outcome.ok or step_results[-1].outcome.step != case.steps[-1]:
            return None
        for name, relation, column, value, where, stored in _arrivals(check_session, step_results[-1]):
            wanted = (case.about["argument"], case.about["relation"], case.about["column"])
            if (name, relation, column) == wanted and not values_agree(value, stored):
                return CaseEvidence(
                    seen=f"{column} of {where} is {shorten_value(stored)}", expected=shorten_value(value)
                )
        return None


def _arrivals(check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, str, Any, str, Any]]:
    """Arguments beside the columns of written rows that are named as they are, or that take the same choices."""
    if not seen.changed:
        return
    step = seen.outcome.step
    tool = check_session.tools[step.tool]
    rows = [change for change in _written(seen) if _is_target_row(check_session, change, step.arguments)]
    for name, value in step.arguments.items():
        if value is None or isinstance(value, dict) or check_session.places.entity(name):
            continue
        for change in rows:
            column = _column(check_session, tool, name, change)
            if column is not None:
                where = format_row_name(change.relation, change.key)
                yield name, change.relation, column, value, where, (change.after or {})[column]


def _written(seen: ObservedCall) -> list[StateRowChange]:
    """Rows that are new or changed, where only one of their relation is."""
    by_relation: dict[str, list[StateRowChange]] = defaultdict(list)
    touched = {change.relation for change in seen.changes}
    for change in seen.changes:
        if change.after is not None and change.relation.rpartition(".")[0] not in touched - {""}:
            by_relation[change.relation].append(change)
    return [changes[0] for changes in by_relation.values() if len(changes) == 1]


def _is_target_row(check_session: CheckSession, change: StateRowChange, arguments: JsonObject) -> bool:
    """Return True if a row is new, or identified by the arguments."""
    if change.before is None:
        return True
    return any(
        check_session.places.entity(name) == change.relation and str(value) == change.key[-1]
        for name, value in arguments.items()
    )


def _column(check_session: CheckSession, tool: ToolSpec, name: str, change: StateRowChange) -> str | None:
    """The column of a row that an argument must reach."""
    row = change.after or {}
    if name in row:
        return name
    choices = read_choices(unwrap(tool.parameters.get(name, {}), tool.input_schema))
    if choices:
        alike = [column for column in row if check_session.choices(change.relation, column) == choices]
        return alike[0] if len(alike) == 1 else None
    if change.before is None and len(check_session.data.views) >= MANY_STATES:
        ends = [column for column in row if len(split_name(name)) > len(split_name(column)) and _ends(name, column)]
        return ends[0] if len(ends) == 1 and not isinstance(row[ends[0]], list) else None
    return None


def _ends(name: str, column: str) -> bool:
    own, other = split_name(name), split_name(column)
    return bool(other) and own[-len(other) :] == other


class ExactAmounts(Check):
    """A number that moves, moves by exactly what was given or what is kept for it."""

    name: ClassVar[str] = "amounts"
    about: ClassVar[str] = "a number that moves with an amount moves by exactly that amount"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(seen.changed for seen in check_session.explored.succeeded(tool.name))

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            moves: dict[tuple[str, str], list[tuple[Observation, StateRowChange, float]]] = defaultdict(list)
            for seen in check_session.explored.succeeded(tool.name):
                for change, column, by in _moves(seen):
                    moves[change.relation, column].append((seen, change, by))
            for (relation, column), column_moves in moves.items():
                for suspicion in self._suspicions(check_session, tool, relation, column, column_moves):
                    yield suspicion

    def _suspicions(
        self,
        check_session: CheckSession,
        tool: ToolSpec,
        relation: str,
        column: str,
        column_moves: list[tuple[Observation, StateRowChange, float]],
    ) -> Iterator[Suspicion]:
        if len({by for _, _, by in column_moves}) < DIFFERENT:
            yield from self._double(tool, relation, column, column_moves)
            return
        sources = [_amounts(check_session, seen, change) for seen, change, _ in column_moves]
        moved = [by for _, _, by in column_moves]
        for name in dict.fromkeys(name for amounts in sources for name in amounts):
            pairs = [(amounts[name], by) for amounts, by in zip(sources, moved, strict=True) if name in amounts]
            if any(_explains(source, by) for source, by in pairs) or len(pairs) < max(ENOUGH, 0.9 * len(column_moves)):
                continue
            if len({source for source, _ in pairs}) < DIFFERENT:
                continue
            for sign in (1, -1):
                for off in (1, -1):
                    if all(abs(by - sign * (source + off)) < 0.0051 for source, by in pairs):
                        difference = "one more" if off > 0 else "one less"
                        message = f"{tool.name} moves {column} of {relation} by {difference} than {name}"
                        about = {"relation": relation, "column": column, "amount": name}
                        yield Suspicion(tool.name, f"{relation}.{column}", message, column_moves[0][0].case(about))
                        return

    def _double(
        self, tool: ToolSpec, relation: str, column: str, column_moves: list[tuple[Observation, StateRowChange, float]]
    ) -> Iterator[Suspicion]:
        """A number that counts, and goes up by two every time."""
        counts = bool(COUNTING & set(split_name(column)))
        if counts and len(column_moves) >= ENOUGH and {by for _, _, by in column_moves} == {2.0}:
            message = f"{tool.name} counts {column} of {relation} up by two every time"
            about = {"relation": relation, "column": column, "amount": ""}
            yield Suspicion(tool.name, f"{relation}.{column}", message, column_moves[0][0].case(about))

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not step_results[-1].outcome.ok or step_results[-1].outcome.step != case.steps[-1]:
            return None
        about, step_result = case.about, step_results[-1]
        if not about["amount"]:
            moved = [
                by
                for change, column, by in _moves(step_result)
                if [change.relation, column] == [about["relation"], about["column"]]
            ]
            return CaseEvidence(seen=f"{about['column']} goes up by 2", expected="by 1") if 2.0 in moved else None
        for change, column, by in _moves(step_result):
            amount = _amounts(check_session, step_result, change).get(about["amount"])
            if (change.relation, column) != (about["relation"], about["column"]) or amount is None:
                continue
            if abs(abs(abs(by) - abs(amount)) - 1) < 0.0051:
                where = format_row_name(change.relation, change.key)
                return CaseEvidence(
                    seen=f"{column} of {where} moves by {shorten_value(by)}", expected=f"by {shorten_value(amount)}"
                )
        return None


def _explains(source: float, by: float) -> bool:
    return abs(abs(source) - abs(by)) < 0.0051


def _moves(seen: ObservedCall) -> Iterator[tuple[StateRowChange, str, float]]:
    """Numbers of rows that were there before, with how far they moved."""
    for change in seen.changes if seen.changed else ():
        if change.before is None or change.after is None:
            continue
        for column, (old, new) in change.fields.items():
            if is_number(old) and is_number(new):
                yield change, column, round(new - old, 4)


def _amounts(check_session: CheckSession, seen: ObservedCall, change: StateRowChange) -> dict[str, float]:
    """Numbers that a move may go by: arguments, and numbers of the rows between the arguments and the moved row."""
    amounts: dict[str, float] = {}
    arguments = seen.outcome.step.arguments
    for name, value in arguments.items():
        if is_number(value):
            amounts[name] = float(value)
    named = {str(value) for value in arguments.values() if isinstance(value, str)}
    for reference in check_session.data.references:
        if reference.target != change.relation or reference.listed:
            continue
        rows = [
            row
            for key, row in seen.before.rows(reference.relation).items()
            if str(row.get(reference.column)) == change.key[-1] and not named.isdisjoint(key)
        ]
        if len(rows) == 1:
            amounts.update(_numbers(rows[0], reference.relation))
    return amounts


def _numbers(row: Row, relation: str) -> dict[str, float]:
    return {f"{column} of {relation}": float(value) for column, value in row.items() if is_number(value)}
