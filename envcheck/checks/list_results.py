"""Listed results match the request: only matching rows, all of them, and within the limit."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from trajsmith.envcheck.case_runner import ObservedCall
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.exploration import Observation
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.facts.state_columns import is_day, is_moment, is_number
from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Severity
from trajsmith.envcheck.row_links import values_agree
from trajsmith.envcheck.schema_probes import is_list_size
from trajsmith.envcheck.state_clock import read_current_time
from trajsmith.envcheck.state_shape import Key, Row
from trajsmith.envcheck.state_view import View
from trajsmith.envcheck.stated_numbers import find_list_limit
from trajsmith.grounding import split_name
from trajsmith.records import ToolSpec

EXACT = frozenset({"limit", "max_results", "page_size", "per_page", "top_k", "num_results", "max_items", "first"})
"""Parameters that say how many entries there may be."""
ENOUGH = 4
MOSTLY = 0.75
"""Share of the answers that must fit before one that does not is a fault and not another meaning."""
HALF = 0.5
"""The same where the argument is one of a few choices, whose meaning is clear."""
_BOUND = re.compile(r"^(max|min|maximum|minimum)_(.+)$|^(.+)_(max|min)$")


@dataclass(frozen=True)
class ResultListing:
    """The list in an answer, and the rows that its objects are."""

    items: list[dict[str, Any]]
    relation: str
    """Relation of the rows; empty if the objects do not say which they are."""
    rows: dict[Key, Row]


def find_listing(check_session: CheckSession, seen: ObservedCall) -> ResultListing | None:
    """The list of objects that is the answer, or the one list in it."""
    content = seen.outcome.content
    lists = [content] if isinstance(content, list) else []
    if isinstance(content, dict):
        lists = [value for value in content.values() if isinstance(value, list)]
    if len(lists) != 1 or not all(isinstance(item, dict) for item in lists[0]):
        return None
    items: list[dict[str, Any]] = lists[0]
    relation = _relation(check_session, seen.outcome.step.tool, items)
    rows: dict[Key, Row] = {}
    if relation:
        identity = check_session.data.identities[relation]
        known = {key[-1]: (key, row) for key, row in seen.before.rows(relation).items()}
        for item in items:
            matched_row = known.get(str(item.get(identity)))
            if matched_row is not None:
                rows[matched_row[0]] = matched_row[1]
    return ResultListing(items, relation, rows)


def _relation(check_session: CheckSession, tool: str, items: list[dict[str, Any]]) -> str:
    """The relation whose identifier the objects begin with; for an empty list, that of the tool's other answers."""
    if tool in check_session.listed and (check_session.listed[tool] or not items):
        return check_session.listed[tool]
    relation = ""
    for name in items[0] if items else ():
        matched_relation = next((one for one, column in check_session.data.identities.items() if column == name), "")
        if matched_relation:
            relation = matched_relation
            break
    if items:
        check_session.listed[tool] = relation
    return relation


class ListLengths(Check):
    """A list is never longer than is said, and no shorter where there is more."""

    name: ClassVar[str] = "list_length"
    about: ClassVar[str] = "a list is as long as its description or limit says, if there is enough to list"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(
            find_listing(check_session, seen) is not None for seen in check_session.explored.succeeded(tool.name)[:3]
        )

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            calls = check_session.explored.succeeded(tool.name)
            for seen in calls:
                if self._too_long(check_session, seen) is not None:
                    message = f"{tool.name} gives more than it says"
                    yield Suspicion(tool.name, "long", message, seen.case({"what": "long"}))
            stated = find_list_limit(tool.description)
            listings = [(seen, listed) for seen in calls if (listed := find_listing(check_session, seen)) is not None]
            if (
                stated is None
                or stated < 2
                or not listings
                or max(len(listed.items) for _, listed in listings) != stated - 1
            ):
                continue
            if not _predictable(check_session, [(s, one) for s, one in listings if len(one.items) < stated - 1]):
                continue
            for seen, listed in listings:
                if len(listed.items) == stated - 1 and len(_wanted(check_session, seen, listed)) >= stated:
                    message = f"{tool.name} gives one less than it says, although there is more"
                    yield Suspicion(
                        tool.name, "short", message, seen.case({"what": "short", "relation": listed.relation})
                    )

    def _too_long(self, check_session: CheckSession, seen: ObservedCall) -> CaseEvidence | None:
        tool = check_session.tools[seen.outcome.step.tool]
        listed = find_listing(check_session, seen) if seen.outcome.ok else None
        if listed is None:
            return None
        stated = find_list_limit(tool.description)
        if stated is not None and len(listed.items) > stated:
            return CaseEvidence(
                seen=f"{len(listed.items)} entries", expected=f"at most {stated}, as its description says"
            )
        for name, value in seen.outcome.step.arguments.items():
            if name in EXACT and isinstance(value, int) and 0 < value < len(listed.items):
                return CaseEvidence(seen=f"{len(listed.items)} entries", expected=f"at most {value}, as {name} says")
        return None

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or step_results[-1].outcome.step != case.steps[-1] or not step_results[-1].outcome.ok:
            return None
        if case.about["what"] == "long":
            return self._too_long(check_session, step_results[-1])
        listed = find_listing(check_session, step_results[-1])
        stated = find_list_limit(check_session.tools[step_results[-1].outcome.step.tool].description)
        if listed is None or stated is None or len(listed.items) != stated - 1:
            return None
        there = len(_wanted(check_session, step_results[-1], listed))
        return CaseEvidence(seen=f"{stated - 1} entries of {there}", expected=f"{stated}") if there >= stated else None


def _conditions(check_session: CheckSession, seen: ObservedCall, relation: str) -> list[tuple[str, str, Any]] | None:
    """Return the filters in the arguments as (column, comparison, value); None if an argument is no filter."""
    columns = {column.name for column in check_session.data.of(relation)}
    conditions: list[tuple[str, str, Any]] = []
    tool = check_session.tools[seen.outcome.step.tool]
    defaults = {name: schema["default"] for name, schema in tool.parameters.items() if "default" in schema}
    for name, value in {**defaults, **seen.outcome.step.arguments}.items():
        if value is None or value == "" or name in EXACT:
            continue
        bound = _BOUND.match(name)
        if name in columns:
            conditions.append((name, "is", value))
        elif value == defaults.get(name, ...):
            continue
        elif bound is not None and is_number(value):
            wanted = split_name(bound[2] or bound[3])
            column = next((c for c in sorted(columns) if split_name(c)[-len(wanted) :] == wanted), None)
            if column is None:
                return None
            conditions.append((column, "at most" if (bound[1] or bound[4]).startswith("max") else "at least", value))
        else:
            return None
    return conditions


def _meets(row: Row, conditions: list[tuple[str, str, Any]]) -> bool:
    for column, how, value in conditions:
        held = row.get(column)
        if how == "is":
            if not values_agree(held, value):
                return False
        elif not is_number(held) or (held > value if how == "at most" else held < value):
            return False
    return True


def _contains(held: Any, value: Any) -> bool:
    """Return True if a search text is part of the value."""
    return isinstance(held, str) and isinstance(value, str) and value.strip().casefold() in held.casefold()


def _wanted(check_session: CheckSession, seen: ObservedCall, listed: ResultListing) -> dict[Key, Row]:
    """Rows that the arguments ask for; what they are about is not among its own likes."""
    conditions = _conditions(check_session, seen, listed.relation) if listed.relation else None
    if conditions is None:
        return {}
    arguments = seen.outcome.step.arguments.items()
    named = {
        str(v) for name, v in arguments if isinstance(v, str) or check_session.places.entity(name) == listed.relation
    }
    rows = seen.before.rows(listed.relation).items()
    return {key: row for key, row in rows if key[-1] not in named and _meets(row, conditions)}


def _predictable(check_session: CheckSession, listings: list[tuple[Observation, ResultListing]]) -> bool:
    """Return True if the short lists are exactly the matching rows."""
    full = [(seen, listed) for seen, listed in listings if listed.relation and listed.items]
    return len(full) >= 2 and all(
        set(_wanted(check_session, seen, listed)) == set(listed.rows) for seen, listed in full
    )


class ListFilters(Check):
    """Everything in a list is what was asked for."""

    name: ClassVar[str] = "filters"
    about: ClassVar[str] = "everything in a list is what was asked for"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(
            find_listing(check_session, seen) is not None for seen in check_session.explored.succeeded(tool.name)[:3]
        )

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            match_counts: dict[str, int] = defaultdict(int)
            broken: dict[str, list[Observation]] = defaultdict(list)
            for seen in check_session.explored.succeeded(tool.name):
                for name, faults, fits in self._strangers(check_session, seen):
                    if faults:
                        broken[name].append(seen)
                    else:
                        match_counts[name] += fits
            for name, strangers in broken.items():
                total = match_counts[name] + len(strangers)
                mostly = HALF if "enum" in tool.parameters.get(name, {}) else MOSTLY
                never = not match_counts[name] and self._always(check_session, name)
                if total < ENOUGH or (match_counts[name] < mostly * total and not never):
                    continue
                for seen in strangers[:3]:
                    message = f"{tool.name} lists what was not asked for with {name}"
                    yield Suspicion(tool.name, name, message, seen.case({"argument": name}))

    def _always(self, check_session: CheckSession, name: str) -> bool:
        """Lists that never fit are wrong if the argument is an identifier; otherwise it may mean something else."""
        return bool(check_session.places.entity(name))

    def _strangers(self, check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, list[str], int]]:
        """For each argument that is named as a column: entries that differ there, and how many agree."""
        listed = find_listing(check_session, seen) if seen.outcome.ok else None
        if listed is None:
            return
        for name, value in seen.outcome.step.arguments.items():
            if (
                value is None
                or isinstance(value, list | dict)
                or name == check_session.data.identities.get(listed.relation)
            ):
                continue
            held = [item[name] for item in listed.items if name in item]
            if not held:
                held = [row[name] for row in listed.rows.values() if name in row]
            only = name.removesuffix("_only")
            if only != name and value is True:
                held = [item[only] for item in listed.items if only in item]
                held = held or [row[only] for row in listed.rows.values() if only in row]
                yield name, [f"{only} {shorten_value(one)}" for one in held if not one], sum(map(bool, held))
                continue
            single = [one for one in held if not isinstance(one, list | dict)]
            faults = [
                shorten_value(one) for one in single if not values_agree(one, value) and not _contains(one, value)
            ]
            if single:
                yield name, faults, len(single) - len(faults)

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or step_results[-1].outcome.step != case.steps[-1]:
            return None
        for name, faults, _ in self._strangers(check_session, step_results[-1]):
            if name == case.about["argument"] and faults:
                value = shorten_value(case.steps[-1].arguments[name])
                return CaseEvidence(seen=f"entries with {name} {', '.join(faults[:3])}", expected=f"only {value}")
        return None


class ListCompleteness(Check):
    """A list holds everything that was asked for."""

    name: ClassVar[str] = "completeness"
    about: ClassVar[str] = "a list holds everything that was asked for"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(
            find_listing(check_session, seen) is not None for seen in check_session.explored.succeeded(tool.name)[:3]
        )

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            limit = find_list_limit(tool.description)
            compared = [
                (seen, listed, missing)
                for seen in check_session.explored.succeeded(tool.name)
                if (listed := find_listing(check_session, seen)) is not None
                and (missing := self._missing(check_session, seen, listed, limit)) is not None
            ]
            full = [one for one in compared if not one[2] and one[1].items]
            short_of = [one for one in compared if one[2]]
            if not short_of or len(compared) < ENOUGH or _excused(check_session, compared):
                continue
            asked = [one for one in compared if one[2] or one[1].items]
            always_one = len(short_of) == len(asked) and all(len(missing) == 1 for _, _, missing in short_of)
            if len(full) >= MOSTLY * len(compared) or (always_one and len(short_of) >= ENOUGH):
                for seen, listed, _ in short_of[:3]:
                    message = f"{tool.name} leaves out what was asked for"
                    yield Suspicion(tool.name, "", message, seen.case({"relation": listed.relation}))

    def _missing(
        self, check_session: CheckSession, seen: ObservedCall, listed: ResultListing, limit: int | None
    ) -> dict[Key, Row] | None:
        """Rows that were asked for and are not listed; None if it cannot be told."""
        if not listed.relation or _conditions(check_session, seen, listed.relation) is None:
            return None
        if any(is_list_size(name) for name in check_session.tools[seen.outcome.step.tool].parameters):
            return None
        wanted = _wanted(check_session, seen, listed)
        if (limit is not None and len(wanted) > limit) or len(listed.rows) != len(listed.items):
            return None
        return {key: row for key, row in wanted.items() if key not in listed.rows}

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or step_results[-1].outcome.step != case.steps[-1] or not step_results[-1].outcome.ok:
            return None
        step_result = step_results[-1]
        listed = find_listing(check_session, step_result)
        if listed is None:
            return None
        listed = ResultListing(listed.items, case.about["relation"], listed.rows)
        missing = self._missing(
            check_session,
            step_result,
            listed,
            find_list_limit(check_session.tools[step_result.outcome.step.tool].description),
        )
        if not missing:
            return None
        names = ", ".join(key[-1] for key in list(missing)[:3])
        return CaseEvidence(seen=f"{len(listed.items)} entries without {names}", expected=f"{names} as well")


def _excused(check_session: CheckSession, compared: list[tuple[Observation, ResultListing, dict[Key, Row]]]) -> bool:
    """Return True if each missing row differs in kind from all listed ones, which indicates unstated rules."""
    listed = [(row, seen.before) for seen, one, _ in compared for row in one.rows.values()]
    missing = [(row, seen.before) for seen, _, rows in compared for row in rows.values()]
    columns = dict.fromkeys(name for row, _ in [*listed, *missing] for name in row)
    classes = {
        name: {_value_class(row.get(name), view) for row, view in listed}
        for name in columns
        if _has_classes(check_session, compared[0][1].relation, name)
    }
    return all(
        any(_value_class(row.get(name), view) not in usual for name, usual in classes.items()) for row, view in missing
    )


def _has_classes(check_session: CheckSession, relation: str, name: str) -> bool:
    """Return True if the values of a column fall into a few classes."""
    column = check_session.data.columns.get((relation, name))
    return column is not None and (column.kinds != {"text"} or column.is_category or None in column.values)


def _value_class(value: Any, view: View) -> Any:
    """The kind of a value: choices as they are, numbers by their sign, days by where they lie."""
    if is_number(value):
        return (value > 0) - (value < 0)
    if is_day(value) or is_moment(value):
        today = read_current_time(view).date().isoformat()
        return (value[:10] > today) - (value[:10] < today)
    return bool(value) if isinstance(value, list) else repr(value)
