"""Lists hold what was asked for: only that, all of it, and as much as is said."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from envgen.doctor.case import Case, Evidence, Severity
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.watching import Seen
from envgen.doctor.clock import now_of
from envgen.doctor.explore import Observation
from envgen.doctor.facts.data import is_day, is_moment, is_number
from envgen.doctor.facts.fact import short
from envgen.doctor.links import agree
from envgen.doctor.numbers import stated_limit
from envgen.doctor.probes import sizes_list
from envgen.doctor.shape import Key, Row
from envgen.doctor.view import View
from grounding.names import words
from trajectory import ToolSpec

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

EXACT = frozenset({"limit", "max_results", "page_size", "per_page", "top_k", "num_results", "max_items", "first"})
"""Parameters that say how many entries there may be."""
ENOUGH = 4
MOSTLY = 0.75
"""Share of the answers that must fit before one that does not is a fault and not another meaning."""
HALF = 0.5
"""The same where the argument is one of a few choices, whose meaning is clear."""
_BOUND = re.compile(r"^(max|min|maximum|minimum)_(.+)$|^(.+)_(max|min)$")


@dataclass(frozen=True)
class Listing:
    """The list in an answer, and the rows that its objects are."""

    items: list[dict[str, Any]]
    relation: str
    """Relation of the rows; empty if the objects do not say which they are."""
    rows: dict[Key, Row]


def listing(exam: "Exam", seen: Seen) -> Listing | None:
    """The list of objects that is the answer, or the one list in it."""
    content = seen.outcome.content
    lists = [content] if isinstance(content, list) else []
    if isinstance(content, dict):
        lists = [value for value in content.values() if isinstance(value, list)]
    if len(lists) != 1 or not all(isinstance(item, dict) for item in lists[0]):
        return None
    items: list[dict[str, Any]] = lists[0]
    relation = _relation(exam, seen.outcome.step.tool, items)
    rows: dict[Key, Row] = {}
    if relation:
        identity = exam.data.identities[relation]
        known = {key[-1]: (key, row) for key, row in seen.before.rows(relation).items()}
        for item in items:
            found = known.get(str(item.get(identity)))
            if found is not None:
                rows[found[0]] = found[1]
    return Listing(items, relation, rows)


def _relation(exam: "Exam", tool: str, items: list[dict[str, Any]]) -> str:
    """The relation whose identifier the objects begin with; for an empty list, that of the tool's other answers."""
    if tool in exam.listed and (exam.listed[tool] or not items):
        return exam.listed[tool]
    relation = ""
    for name in items[0] if items else ():
        found = next((one for one, column in exam.data.identities.items() if column == name), "")
        if found:
            relation = found
            break
    if items:
        exam.listed[tool] = relation
    return relation


class Lengths(Check):
    """A list is never longer than is said, and no shorter where there is more."""

    name: ClassVar[str] = "list_length"
    about: ClassVar[str] = "a list is as long as its description or limit says, if there is enough to list"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(listing(exam, seen) is not None for seen in exam.explored.succeeded(tool.name)[:3])

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            made = exam.explored.succeeded(tool.name)
            for seen in made:
                if self._too_long(exam, seen) is not None:
                    message = f"{tool.name} gives more than it says"
                    yield Suspicion(tool.name, "long", message, seen.case({"what": "long"}))
            stated = stated_limit(tool.description)
            found = [(seen, listed) for seen in made if (listed := listing(exam, seen)) is not None]
            if stated is None or stated < 2 or not found or max(len(listed.items) for _, listed in found) != stated - 1:
                continue
            if not _predictable(exam, [(s, one) for s, one in found if len(one.items) < stated - 1]):
                continue
            for seen, listed in found:
                if len(listed.items) == stated - 1 and len(_wanted(exam, seen, listed)) >= stated:
                    message = f"{tool.name} gives one less than it says, although there is more"
                    yield Suspicion(
                        tool.name, "short", message, seen.case({"what": "short", "relation": listed.relation})
                    )

    def _too_long(self, exam: "Exam", seen: Seen) -> Evidence | None:
        tool = exam.tools[seen.outcome.step.tool]
        listed = listing(exam, seen) if seen.outcome.ok else None
        if listed is None:
            return None
        stated = stated_limit(tool.description)
        if stated is not None and len(listed.items) > stated:
            return Evidence(seen=f"{len(listed.items)} entries", expected=f"at most {stated}, as its description says")
        for name, value in seen.outcome.step.arguments.items():
            if name in EXACT and isinstance(value, int) and 0 < value < len(listed.items):
                return Evidence(seen=f"{len(listed.items)} entries", expected=f"at most {value}, as {name} says")
        return None

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or shots[-1].outcome.step != case.steps[-1] or not shots[-1].outcome.ok:
            return None
        if case.about["what"] == "long":
            return self._too_long(exam, shots[-1])
        listed = listing(exam, shots[-1])
        stated = stated_limit(exam.tools[shots[-1].outcome.step.tool].description)
        if listed is None or stated is None or len(listed.items) != stated - 1:
            return None
        there = len(_wanted(exam, shots[-1], listed))
        return Evidence(seen=f"{stated - 1} entries of {there}", expected=f"{stated}") if there >= stated else None


def _conditions(exam: "Exam", seen: Seen, relation: str) -> list[tuple[str, str, Any]] | None:
    """What the arguments ask of the rows: column, comparison, value. None if an argument asks something else."""
    columns = {column.name for column in exam.data.of(relation)}
    found: list[tuple[str, str, Any]] = []
    tool = exam.tools[seen.outcome.step.tool]
    defaults = {name: schema["default"] for name, schema in tool.parameters.items() if "default" in schema}
    for name, value in {**defaults, **seen.outcome.step.arguments}.items():
        if value is None or value == "" or name in EXACT:
            continue
        bound = _BOUND.match(name)
        if name in columns:
            found.append((name, "is", value))
        elif value == defaults.get(name, ...):
            continue
        elif bound is not None and is_number(value):
            wanted = words(bound[2] or bound[3])
            column = next((c for c in sorted(columns) if words(c)[-len(wanted) :] == wanted), None)
            if column is None:
                return None
            found.append((column, "at most" if (bound[1] or bound[4]).startswith("max") else "at least", value))
        else:
            return None
    return found


def _meets(row: Row, conditions: list[tuple[str, str, Any]]) -> bool:
    for column, how, value in conditions:
        held = row.get(column)
        if how == "is":
            if not agree(held, value):
                return False
        elif not is_number(held) or (held > value if how == "at most" else held < value):
            return False
    return True


def _contains(held: Any, value: Any) -> bool:
    """True if a search text is part of what was found."""
    return isinstance(held, str) and isinstance(value, str) and value.strip().casefold() in held.casefold()


def _wanted(exam: "Exam", seen: Seen, listed: Listing) -> dict[Key, Row]:
    """Rows that the arguments ask for; what they are about is not among its own likes."""
    conditions = _conditions(exam, seen, listed.relation) if listed.relation else None
    if conditions is None:
        return {}
    given = seen.outcome.step.arguments.items()
    named = {str(v) for name, v in given if isinstance(v, str) or exam.places.entity(name) == listed.relation}
    rows = seen.before.rows(listed.relation).items()
    return {key: row for key, row in rows if key[-1] not in named and _meets(row, conditions)}


def _predictable(exam: "Exam", found: list[tuple[Observation, Listing]]) -> bool:
    """True if the short answers are exactly the rows that were asked for."""
    full = [(seen, listed) for seen, listed in found if listed.relation and listed.items]
    return len(full) >= 2 and all(set(_wanted(exam, seen, listed)) == set(listed.rows) for seen, listed in full)


class Filters(Check):
    """Everything in a list is what was asked for."""

    name: ClassVar[str] = "filters"
    about: ClassVar[str] = "everything in a list is what was asked for"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(listing(exam, seen) is not None for seen in exam.explored.succeeded(tool.name)[:3])

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            kept: dict[str, int] = defaultdict(int)
            broken: dict[str, list[Observation]] = defaultdict(list)
            for seen in exam.explored.succeeded(tool.name):
                for name, faults, fits in self._strangers(exam, seen):
                    if faults:
                        broken[name].append(seen)
                    else:
                        kept[name] += fits
            for name, found in broken.items():
                total = kept[name] + len(found)
                mostly = HALF if "enum" in tool.parameters.get(name, {}) else MOSTLY
                never = not kept[name] and self._always(exam, name)
                if total < ENOUGH or (kept[name] < mostly * total and not never):
                    continue
                for seen in found[:3]:
                    message = f"{tool.name} lists what was not asked for with {name}"
                    yield Suspicion(tool.name, name, message, seen.case({"argument": name}))

    def _always(self, exam: "Exam", name: str) -> bool:
        """Lists that never fit are wrong if the argument is an identifier; otherwise it may mean something else."""
        return bool(exam.places.entity(name))

    def _strangers(self, exam: "Exam", seen: Seen) -> Iterator[tuple[str, list[str], int]]:
        """For each argument that is named as a column: entries that differ there, and how many agree."""
        listed = listing(exam, seen) if seen.outcome.ok else None
        if listed is None:
            return
        for name, value in seen.outcome.step.arguments.items():
            if value is None or isinstance(value, list | dict) or name == exam.data.identities.get(listed.relation):
                continue
            held = [item[name] for item in listed.items if name in item]
            if not held:
                held = [row[name] for row in listed.rows.values() if name in row]
            only = name.removesuffix("_only")
            if only != name and value is True:
                held = [item[only] for item in listed.items if only in item]
                held = held or [row[only] for row in listed.rows.values() if only in row]
                yield name, [f"{only} {short(one)}" for one in held if not one], sum(map(bool, held))
                continue
            single = [one for one in held if not isinstance(one, list | dict)]
            faults = [short(one) for one in single if not agree(one, value) and not _contains(one, value)]
            if single:
                yield name, faults, len(single) - len(faults)

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or shots[-1].outcome.step != case.steps[-1]:
            return None
        for name, faults, _ in self._strangers(exam, shots[-1]):
            if name == case.about["argument"] and faults:
                value = short(case.steps[-1].arguments[name])
                return Evidence(seen=f"entries with {name} {', '.join(faults[:3])}", expected=f"only {value}")
        return None


class Complete(Check):
    """A list holds everything that was asked for."""

    name: ClassVar[str] = "completeness"
    about: ClassVar[str] = "a list holds everything that was asked for"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(listing(exam, seen) is not None for seen in exam.explored.succeeded(tool.name)[:3])

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            limit = stated_limit(tool.description)
            compared = [
                (seen, listed, missing)
                for seen in exam.explored.succeeded(tool.name)
                if (listed := listing(exam, seen)) is not None
                and (missing := self._missing(exam, seen, listed, limit)) is not None
            ]
            full = [one for one in compared if not one[2] and one[1].items]
            short_of = [one for one in compared if one[2]]
            if not short_of or len(compared) < ENOUGH or _excused(exam, compared):
                continue
            asked = [one for one in compared if one[2] or one[1].items]
            always_one = len(short_of) == len(asked) and all(len(missing) == 1 for _, _, missing in short_of)
            if len(full) >= MOSTLY * len(compared) or (always_one and len(short_of) >= ENOUGH):
                for seen, listed, _ in short_of[:3]:
                    message = f"{tool.name} leaves out what was asked for"
                    yield Suspicion(tool.name, "", message, seen.case({"relation": listed.relation}))

    def _missing(self, exam: "Exam", seen: Seen, listed: Listing, limit: int | None) -> dict[Key, Row] | None:
        """Rows that were asked for and are not listed; None if it cannot be told."""
        if not listed.relation or _conditions(exam, seen, listed.relation) is None:
            return None
        if any(sizes_list(name) for name in exam.tools[seen.outcome.step.tool].parameters):
            return None
        wanted = _wanted(exam, seen, listed)
        if (limit is not None and len(wanted) > limit) or len(listed.rows) != len(listed.items):
            return None
        return {key: row for key, row in wanted.items() if key not in listed.rows}

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or shots[-1].outcome.step != case.steps[-1] or not shots[-1].outcome.ok:
            return None
        shot = shots[-1]
        listed = listing(exam, shot)
        if listed is None:
            return None
        listed = Listing(listed.items, case.about["relation"], listed.rows)
        missing = self._missing(exam, shot, listed, stated_limit(exam.tools[shot.outcome.step.tool].description))
        if not missing:
            return None
        names = ", ".join(key[-1] for key in list(missing)[:3])
        return Evidence(seen=f"{len(listed.items)} entries without {names}", expected=f"{names} as well")


def _excused(exam: "Exam", compared: list[tuple[Observation, Listing, dict[Key, Row]]]) -> bool:
    """True if what is missing differs in kind from what is listed: a rule that the arguments do not tell of."""
    listed = [(row, seen.before) for seen, one, _ in compared for row in one.rows.values()]
    missing = [(row, seen.before) for seen, _, rows in compared for row in rows.values()]
    columns = dict.fromkeys(name for row, _ in [*listed, *missing] for name in row)
    return any(
        {_class(row.get(name), view) for row, view in missing}.isdisjoint(
            _class(row.get(name), view) for row, view in listed
        )
        for name in columns
        if _has_classes(exam, compared[0][1].relation, name)
    )


def _has_classes(exam: "Exam", relation: str, name: str) -> bool:
    """True if the values of a column fall into a few kinds."""
    column = exam.data.columns.get((relation, name))
    return column is not None and (column.kinds != {"text"} or column.is_category or None in column.values)


def _class(value: Any, view: View) -> Any:
    """The kind of a value: choices as they are, numbers by their sign, days by where they lie."""
    if is_number(value):
        return (value > 0) - (value < 0)
    if is_day(value) or is_moment(value):
        today = now_of(view).date().isoformat()
        return (value[:10] > today) - (value[:10] < today)
    return bool(value) if isinstance(value, list) else repr(value)
