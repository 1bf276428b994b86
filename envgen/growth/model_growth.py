"""Growth of an environment that models made: the loop of synthesis from a parent, whose tests are a condition."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import orjson

from trajsmith.envgen.generate import GenerationResult
from trajsmith.envgen.generate.blueprint import SkippedItem
from trajsmith.envgen.growth.model_extension import plan_growth, write_extension
from trajsmith.envgen.growth.model_parent import ModelParent
from trajsmith.envgen.growth.regression import EnvironmentSize, GrowthDraftRunner, take_snapshot
from trajsmith.envgen.synthesis.acceptance import ENVIRONMENTS_FOLDER, PROVENANCE_FILE
from trajsmith.envgen.synthesis.examination import DraftRunner, close_source
from trajsmith.envgen.synthesis.loop import ProposalRecord, SynthesisLoop, ThemeProgress, ThemeRejected
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import Design, EnvironmentDraft, SynthesisOutcome, Theme
from trajsmith.records import FrozenModel, InputError, StepJournal

GROWN_FILE = "grown.json"


class GrowthResult(FrozenModel):
    """Result of growing a parent; written as `grown.json` beside the child."""

    name: str
    parent: str
    parent_digest: str
    """Hash of the parent's code."""
    generation: int
    """1 for an environment that was made from a source, 2 for its child."""
    added: tuple[str, ...]
    refused: tuple[SkippedItem, ...]
    """Tools that were removed again and tests that the child need not pass, with the reason."""
    before: EnvironmentSize
    after: EnvironmentSize
    earlier_tests: str
    """How many of the parent's tests pass on the child."""
    score: float | None
    directory: Path


@dataclass(kw_only=True)
class GrowthLoop(SynthesisLoop):
    """Synthesis loop that starts from a parent environment and ends in a child or in rejection reasons."""

    growth: GrowthDraftRunner
    """The bench, which knows the parent."""

    @property
    def parent(self) -> ModelParent:
        return self.growth.parent

    async def propose(self, theme: Theme) -> ProposalRecord | tuple[str, ...] | None:
        """Return the parent's proposal under the child's name, without a request to a model."""
        old = self.parent.design
        proposal = old.proposal.model_copy(update={"name": theme.source.name})
        return ProposalRecord(source=theme.source, proposal=proposal, provenance=old.provenance["propose"])

    async def _design(self, theme: Theme, proposed: ProposalRecord, progress: ThemeProgress) -> Design:
        progress.stage, most = "design", self.bench.settings.most_tools

        async def work() -> Design:
            earlier = [one.test for one in await self.growth.run_parent_tests() if one.passed]
            if not earlier:
                raise ThemeRejected("design", f"none of the tests of {self.parent.name} passes on it as it is")
            growth, design = await plan_growth(self.generator, theme, self.parent, earlier, most)
            if growth.impossible.strip():
                raise ThemeRejected("design", f"nothing can be added: {growth.impossible.strip()}")
            return design

        return await self.store.step("designs", Design, [theme.id, proposed.id, self.makers, most], work)

    async def _write_first_draft(self, design: Design) -> EnvironmentDraft:
        return await write_extension(self.generator, design, self.parent)


def build_growth_loop(
    parent: ModelParent,
    generator: PromptedGenerator,
    bench: DraftRunner,
    store: StepJournal,
    makers: str,
    fingerprint: str,
) -> SynthesisLoop:
    """Return the loop that grows a parent, built from the parts of an ordinary loop."""
    growth = GrowthDraftRunner(bench, parent)
    return GrowthLoop(generator, growth, store, makers, fingerprint, growth=growth)


async def place_child(
    store: StepJournal, bench: GrowthDraftRunner, outcome: SynthesisOutcome, out: Path
) -> GrowthResult:
    """Put an accepted child beside its parent, with its provenance. A killed run does it again, the same.

    Args:
        out: The child gets a folder in it.
    """
    parent = bench.parent
    design = next(one for one in store.all("designs", Design) if one.theme == outcome.theme)
    draft = next(one for one in store.all("drafts", EnvironmentDraft) if one.id == outcome.best)
    before, after = bench.open_parent(), bench.open(design, draft)
    try:
        old, new = await take_snapshot(before), await take_snapshot(after)
    finally:
        close_source(before)
        close_source(after)
    grown = GrowthResult(
        name=outcome.name,
        parent=parent.name,
        parent_digest=parent.digest,
        generation=parent.generation + 1,
        added=_list_additions(design, parent, {tool.name for tool in new.spec.tools}),
        refused=_find_refused(design, parent, draft),
        before=old.size(len(parent.design.requirements.rules)),
        after=new.size(len(design.requirements.rules)),
        earlier_tests=f"{len(design.earlier)} passed, from its own states and from those of {parent.name}",
        score=outcome.check_score,
        directory=out / outcome.name,
    )
    _place_folder(store.folder / ENVIRONMENTS_FOLDER / outcome.name, grown)
    return grown


def _find_refused(design: Design, parent: ModelParent, draft: EnvironmentDraft) -> tuple[SkippedItem, ...]:
    """Return the tools that were removed again and the tests that the child did not have to pass."""
    held = {test.name for test in design.earlier}
    tests = [test.name for test in parent.tests if test.name not in held]
    dropped = [one.partition(": ") for one in draft.dropped]
    return (
        *(
            SkippedItem(what=name, reason="this test fails on the parent, so the child need not pass it")
            for name in tests
        ),
        *(SkippedItem(what=tool, reason=why) for tool, _, why in dropped),
    )


def require_free_folder(out: Path, child: str, parent: ModelParent, theme: Theme) -> None:
    """Refuse to replace a folder that this growth did not create.

    Raises:
        InputError: There is one.
    """
    folder = out / child
    if child == parent.name:
        raise InputError(f"--name {child!r}: give a name that is not the parent's")
    if not folder.exists():
        return
    provenance_file = folder / PROVENANCE_FILE
    if not provenance_file.is_file() or orjson.loads(provenance_file.read_bytes()).get("theme") != theme.id:
        raise InputError(f"{folder} exists and is not what this would make: choose another --out or --name")


def _place_folder(folder: Path, grown: GrowthResult) -> None:
    """Move the whole folder into place, or nothing of it."""
    scrap = grown.directory.with_name(f".{grown.name}.new")
    for old in (scrap, grown.directory):
        if old.exists():
            shutil.rmtree(old)
    shutil.copytree(folder, scrap)
    (scrap / GROWN_FILE).write_bytes(grown.model_dump_json(indent=1).encode())
    result = GenerationResult.model_validate_json((scrap / "made.json").read_bytes())
    moved = result.model_copy(update={"directory": grown.directory})
    (scrap / "made.json").write_bytes(moved.model_dump_json(indent=1).encode())
    scrap.rename(grown.directory)


def _list_additions(design: Design, parent: ModelParent, there: set[str]) -> tuple[str, ...]:
    """Return everything that the child has and its parent has not, a line each."""
    old = parent.design
    tables = set(old.proposal.entities)
    tools = {tool.name for tool in parent.plan}
    rules = {rule.id for rule in old.requirements.rules}
    tasks = {task.id for task in old.requirements.tasks}
    return (
        *(f"table {name}" for name in design.proposal.entities if name not in tables),
        *(f"tool {one.name}: {one.does}" for one in design.plan.tools if one.name in there - tools),
        *(f"rule {one.id}: {one.text}" for one in design.requirements.rules if one.id not in rules),
        *(f"task {one.id}: {one.request}" for one in design.requirements.tasks if one.id not in tasks),
    )
