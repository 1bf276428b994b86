"""What a child owes its parent: earlier tests pass, earlier calls are still understood, and there really is more.

Earlier tests are played twice: from the child's own states, and from the parent's, so that tasks which were written on
the parent can be played on the child.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from envgen.growth.growing import Size
from envgen.growth.model_parent import ModelParent
from envgen.synthesis.examining import Bench, close, is_closed
from envgen.synthesis.playing import SIZES, Verdict, run_tests
from envgen.synthesis.records import Complaint, Design, Draft, Examination
from environments import EnvironmentSource, Session
from trajectory import EnvironmentFault, EnvironmentSpec, JsonObject


class Look(NamedTuple):
    """What an environment shows of itself."""

    spec: EnvironmentSpec
    state: JsonObject
    """A medium one."""

    def size(self, rules: int) -> Size:
        """How much there is of it.

        Args:
            rules: That bind.
        """
        tables = tables_of(self.state)
        return Size(entities=len(tables), references=references(tables), tools=len(self.spec.tools), rules=rules)


async def look(source: EnvironmentSource) -> Look:
    return Look(await source.spec(), (await source.states(1))[SIZES["medium"]])


def tables_of(state: JsonObject) -> dict[str, JsonObject]:
    """The tables of a state."""
    return {name: value for name, value in state.items() if isinstance(value, dict) and name != "counters"}


def references(tables: dict[str, JsonObject]) -> int:
    """Fields that hold the key of another table's records."""
    keys = {name: _key(rows) for name, rows in tables.items()}
    found = 0
    for name, rows in tables.items():
        row: Any = next(iter(rows.values()), {})
        found += sum(key in row for other, key in keys.items() if other != name and key)
    return found


def _key(rows: JsonObject) -> str:
    """The field of a table's records that is their key; empty if there is none."""
    first: Any = next(iter(rows.values()), {})
    fields = first if isinstance(first, dict) else {}
    return next((name for name in fields if all(row.get(name) == key for key, row in rows.items())), "")


class FromParent:
    """Sessions of a child, from the initial states of its parent."""

    def __init__(self, child: EnvironmentSource, parent: EnvironmentSource) -> None:
        self._child = child
        self._parent = parent

    async def open(self) -> Session:
        return await self._child.open()

    async def states(self, seed: int) -> list[JsonObject]:
        return await self._parent.states(seed)


class GrowthBench(Bench):
    """Where drafts of a child are run: as others are, and against what its parent could.

    Args:
        bench: Of other drafts.
    """

    def __init__(self, bench: Bench, parent: ModelParent) -> None:
        super().__init__(bench.folder, bench.settings, bench.sandbox)
        self.parent = parent

    def open_parent(self) -> EnvironmentSource:
        """The parent, from a copy of its file."""
        return self.open(self.parent.design, self.parent.draft)

    async def proven(self) -> list[Verdict]:
        """What the parent's tests come to on the parent."""
        source = self.open_parent()
        try:
            return await run_tests(source, self.parent.tests)
        finally:
            close(source)

    async def examine(self, design: Design, draft: Draft) -> Examination:
        """As for any draft; what an earlier test finds stands before everything else, and costs score."""
        exam = await super().examine(design, draft)
        if not exam.loads or exam.hostile or any(one.kind == "seeds" for one in exam.complaints):
            return exam
        kept = await self._kept(design, draft, exam)
        if not kept:
            return exam
        names = {test.name for test in design.earlier}
        rest = [one for one in exam.complaints if not (one.kind == "test" and one.test in names)]
        lost = len({one.test or one.what for one in kept})
        score = round(exam.score * max(0.0, 1 - lost / (len(names) + 1)), 4)
        return Examination(**{**dict(exam), "id": "", "score": score, "complaints": (*kept, *rest)})

    async def _kept(self, design: Design, draft: Draft, exam: Examination) -> list[Complaint]:
        parent, child = self.open_parent(), self.open(design, draft)
        try:
            before, after = await look(parent), await look(child)
            own = await run_tests(child, design.earlier)
            strange = await _unreadable(child, parent)
            old = [] if strange else await run_tests(FromParent(child, parent), design.earlier)
        finally:
            close(parent)
            close(child)
        failed = {one.test.name for one in own if not one.passed}
        again = [one for one in old if one.test.name not in failed]
        found = of_earlier(own, "") + of_earlier(again, f", from a state of {self.parent.name} as it was")
        if strange:
            what = f"a state of {self.parent.name} is none of this any more: {strange}; give what is new a default"
            found.insert(0, Complaint(id="", kind="earlier", what=what))
        told = broken(before.spec, after.spec) + self._smaller(before, after, design, exam.rules_bound)
        found += [Complaint(id="", kind="task", tool=tool, what=what) for tool, what in told]
        return [_numbered(one, number) for number, one in enumerate(found, 1)]

    def _smaller(self, before: Look, after: Look, design: Design, bound: int) -> list[tuple[str, str]]:
        """Why a child is not larger than its parent; nothing if it is."""
        mine, theirs = after.size(bound), before.size(len(self.parent.design.requirements.rules))
        missing = sorted(set(design.proposal.entities) - tables_of(after.state).keys())
        found = [("", f"there is no table {name}") for name in missing]
        if not (mine.tools > theirs.tools or mine.entities > theirs.entities or mine.rules > theirs.rules):
            said = f"{mine.entities} tables, {mine.tools} tools, {mine.rules} rules that bind"
            found.append(("", f"it is not larger than {self.parent.name}: {said}"))
        return found


def _numbered(complaint: Complaint, number: int) -> Complaint:
    """A complaint under its id; one of its own kind, if its calls reached for what the sandbox closes."""
    kind = "reach" if is_closed(" ".join((complaint.what, *complaint.calls))) else complaint.kind
    return complaint.model_copy(update={"id": f"E{number}", "kind": kind})


async def _unreadable(child: EnvironmentSource, parent: EnvironmentSource) -> str:
    """Why a child cannot start from a state of its parent; empty if it can."""
    session = await child.open()
    try:
        for state in await parent.states(1):
            await session.reset(state)
    except EnvironmentFault as fault:
        return str(fault)
    finally:
        await session.close()
    return ""


def of_earlier(verdicts: Sequence[Verdict], where: str) -> list[Complaint]:
    """Earlier tests that fail, those of rules included: the parent passed them."""
    return [
        Complaint(
            id="", kind="earlier", tool=one.test.tool, test=one.test.name, calls=one.lines,
            what=f"the earlier test {one.test.name} fails{where}: {one.fault}",
            expected=f"{one.test.about} This test holds as it stands.",
        )
        for one in verdicts
        if not one.passed
    ]  # fmt: skip


def broken(before: EnvironmentSpec, after: EnvironmentSpec) -> list[tuple[str, str]]:
    """What keeps earlier calls from being understood, or their results from being read: tool and reason."""
    found = []
    there = {tool.name: tool for tool in after.tools}
    for old in before.tools:
        new = there.get(old.name)
        if new is None:
            found.append((old.name, f"{old.name} is gone, which earlier tasks call"))
            continue
        demanded = sorted(set(new.required) - set(old.required))
        gone = sorted(old.parameters.keys() - new.parameters.keys())
        fields = sorted(_fields(old.output_schema) - _fields(new.output_schema))
        if demanded or gone or fields:
            parts = [("demands", demanded), ("does not take", gone), ("does not give", fields)]
            said = "; ".join(f"{verb} {', '.join(names)}" for verb, names in parts if names)
            found.append((old.name, f"{old.name} is not called as before: it {said}; make what is new optional"))
    return found


def _fields(schema: Any) -> set[str]:
    """Names of the fields of a result; of its rows, where it is a list."""
    fields: dict[str, Any] = (schema or {}).get("properties", {})
    rows = fields["result"].get("items", {}) if set(fields) == {"result"} else {}
    named = rows.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = (schema or {}).get("$defs", {}).get(named, {}) if named else rows
    return set(fields) | set(found.get("properties", {}))
