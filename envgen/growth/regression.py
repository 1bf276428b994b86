"""Check a child against its parent: earlier tests pass, earlier calls stay compatible, there is more.

Earlier tests are played twice: from the child's own states, and from the parent's, so that tasks which were written on
the parent can be played on the child.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from trajsmith.envgen.growth.model_parent import ModelParent
from trajsmith.envgen.synthesis.examination import DraftRunner, close_source, names_closed_access
from trajsmith.envgen.synthesis.execution import STATE_SIZES, UnitTestResult, run_unit_tests
from trajsmith.envgen.synthesis.records import Complaint, Design, EnvironmentDraft, Examination
from trajsmith.environments import EnvironmentSource, Session
from trajsmith.records import EnvironmentFault, EnvironmentSpec, FrozenModel, JsonObject


class EnvironmentSize(FrozenModel):
    """Counts of an environment's entities, references, tools and rules."""

    entities: int
    references: int
    tools: int
    rules: int


class EnvironmentSnapshot(NamedTuple):
    """Spec and one state of an environment."""

    spec: EnvironmentSpec
    state: JsonObject
    """A medium one."""

    def size(self, rules: int) -> EnvironmentSize:
        """Return the counts of its entities, references, tools and rules.

        Args:
            rules: That bind.
        """
        tables = find_tables(self.state)
        return EnvironmentSize(
            entities=len(tables), references=count_references(tables), tools=len(self.spec.tools), rules=rules
        )


async def take_snapshot(source: EnvironmentSource) -> EnvironmentSnapshot:
    return EnvironmentSnapshot(await source.spec(), (await source.states(1))[STATE_SIZES["medium"]])


def find_tables(state: JsonObject) -> dict[str, JsonObject]:
    """Return the tables of a state."""
    return {name: value for name, value in state.items() if isinstance(value, dict) and name != "counters"}


def count_references(tables: dict[str, JsonObject]) -> int:
    """Count the fields that hold the key of another table's records."""
    keys = {name: _find_key(rows) for name, rows in tables.items()}
    count = 0
    for name, rows in tables.items():
        row: Any = next(iter(rows.values()), {})
        count += sum(key in row for other, key in keys.items() if other != name and key)
    return count


def _find_key(rows: JsonObject) -> str:
    """The field of a table's records that is their key; empty if there is none."""
    first: Any = next(iter(rows.values()), {})
    fields = first if isinstance(first, dict) else {}
    return next((name for name in fields if all(row.get(name) == key for key, row in rows.items())), "")


class ParentStateSource:
    """Sessions of a child, from the initial states of its parent."""

    def __init__(self, child: EnvironmentSource, parent: EnvironmentSource) -> None:
        self._child = child
        self._parent = parent

    async def open(self) -> Session:
        return await self._child.open()

    async def states(self, seed: int) -> list[JsonObject]:
        return await self._parent.states(seed)


class GrowthDraftRunner(DraftRunner):
    """Runner of a child's drafts that also runs the parent's tests against them.

    Args:
        bench: Of other drafts.
    """

    def __init__(self, bench: DraftRunner, parent: ModelParent) -> None:
        super().__init__(bench.folder, bench.settings, bench.sandbox)
        self.parent = parent

    def open_parent(self) -> EnvironmentSource:
        """Open the parent from a copy of its file."""
        return self.open(self.parent.design, self.parent.draft)

    async def run_parent_tests(self) -> list[UnitTestResult]:
        """Run the parent's tests on the parent."""
        source = self.open_parent()
        try:
            return await run_unit_tests(source, self.parent.tests)
        finally:
            close_source(source)

    async def examine(self, design: Design, draft: EnvironmentDraft) -> Examination:
        """Examine a draft; failures of earlier tests come first and cost score."""
        examination = await super().examine(design, draft)
        if not examination.loads or examination.hostile or any(one.kind == "seeds" for one in examination.complaints):
            return examination
        regressions = await self._find_regressions(design, draft, examination)
        if not regressions:
            return examination
        names = {test.name for test in design.earlier}
        rest = [one for one in examination.complaints if not (one.kind == "test" and one.test in names)]
        lost = len({one.test or one.what for one in regressions})
        score = round(examination.score * max(0.0, 1 - lost / (len(names) + 1)), 4)
        return Examination(**{**dict(examination), "id": "", "score": score, "complaints": (*regressions, *rest)})

    async def _find_regressions(
        self, design: Design, draft: EnvironmentDraft, examination: Examination
    ) -> list[Complaint]:
        parent, child = self.open_parent(), self.open(design, draft)
        try:
            before, after = await take_snapshot(parent), await take_snapshot(child)
            own = await run_unit_tests(child, design.earlier)
            strange = await _find_unreadable_state(child, parent)
            old = [] if strange else await run_unit_tests(ParentStateSource(child, parent), design.earlier)
        finally:
            close_source(parent)
            close_source(child)
        failed = {one.test.name for one in own if not one.passed}
        again = [one for one in old if one.test.name not in failed]
        complaints = build_regression_complaints(own, "") + build_regression_complaints(
            again, f", from a state of {self.parent.name} as it was"
        )
        if strange:
            problem = f"a state of {self.parent.name} is not valid any more: {strange}; give new fields a default"
            complaints.insert(0, Complaint(id="", kind="earlier", what=problem))
        incompatible = find_incompatible_tools(before.spec, after.spec) + self._find_missing_growth(
            before, after, design, examination.rules_bound
        )
        complaints += [Complaint(id="", kind="task", tool=tool, what=problem) for tool, problem in incompatible]
        return [_number_complaint(one, number) for number, one in enumerate(complaints, 1)]

    def _find_missing_growth(
        self, before: EnvironmentSnapshot, after: EnvironmentSnapshot, design: Design, bound: int
    ) -> list[tuple[str, str]]:
        """Return the reasons why a child is not larger than its parent; none if it is."""
        mine, theirs = after.size(bound), before.size(len(self.parent.design.requirements.rules))
        missing = sorted(set(design.proposal.entities) - find_tables(after.state).keys())
        problems = [("", f"there is no table {name}") for name in missing]
        if not (mine.tools > theirs.tools or mine.entities > theirs.entities or mine.rules > theirs.rules):
            sizes = f"{mine.entities} tables, {mine.tools} tools, {mine.rules} rules that bind"
            problems.append(("", f"it is not larger than {self.parent.name}: {sizes}"))
        return problems


def _number_complaint(complaint: Complaint, number: int) -> Complaint:
    """A complaint under its id; one of its own kind, if its calls reached for what the sandbox closes."""
    kind = "reach" if names_closed_access(" ".join((complaint.what, *complaint.calls))) else complaint.kind
    return complaint.model_copy(update={"id": f"E{number}", "kind": kind})


async def _find_unreadable_state(child: EnvironmentSource, parent: EnvironmentSource) -> str:
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


def build_regression_complaints(verdicts: Sequence[UnitTestResult], where: str) -> list[Complaint]:
    """Return complaints about earlier tests that fail, those of rules included: the parent passed them."""
    return [
        Complaint(
            id="", kind="earlier", tool=one.test.tool, test=one.test.name, calls=one.lines,
            what=f"the earlier test {one.test.name} fails{where}: {one.fault}",
            expected=f"{one.test.about} This test holds as it stands.",
        )
        for one in verdicts
        if not one.passed
    ]  # fmt: skip


def find_incompatible_tools(before: EnvironmentSpec, after: EnvironmentSpec) -> list[tuple[str, str]]:
    """Return tools with which earlier calls or results are no longer compatible, with the reason."""
    problems = []
    there = {tool.name: tool for tool in after.tools}
    for old in before.tools:
        new = there.get(old.name)
        if new is None:
            problems.append((old.name, f"{old.name} is gone, which earlier tasks call"))
            continue
        demanded = sorted(set(new.required) - set(old.required))
        gone = sorted(old.parameters.keys() - new.parameters.keys())
        fields = sorted(_find_result_fields(old.output_schema) - _find_result_fields(new.output_schema))
        if demanded or gone or fields:
            parts = [("demands", demanded), ("does not take", gone), ("does not give", fields)]
            difference = "; ".join(f"{verb} {', '.join(names)}" for verb, names in parts if names)
            problems.append(
                (old.name, f"{old.name} is not called as before: it {difference}; make new parameters optional")
            )
    return problems


def _find_result_fields(schema: Any) -> set[str]:
    """Names of the fields of a result; of its rows, where it is a list."""
    fields: dict[str, Any] = (schema or {}).get("properties", {})
    rows = fields["result"].get("items", {}) if set(fields) == {"result"} else {}
    named = rows.get("$ref", "").rpartition("/")[2]
    row_schema: dict[str, Any] = (schema or {}).get("$defs", {}).get(named, {}) if named else rows
    return set(fields) | set(row_schema.get("properties", {}))
