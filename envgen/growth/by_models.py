"""Growth of an environment that models made: the loop of synthesis from a parent, whose tests are a condition."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import orjson

from envgen.generate import Made
from envgen.generate.blueprint import LeftOut
from envgen.growth.enlarging import enlarge, extension
from envgen.growth.growing import Grown
from envgen.growth.keeping import GrowthBench, look
from envgen.growth.model_parent import ModelParent
from envgen.synthesis.acceptance import FOLDER, PROVENANCE
from envgen.synthesis.desk import Desk
from envgen.synthesis.examining import Bench, close
from envgen.synthesis.loop import Loop, Progress, Proposed, Rejected
from envgen.synthesis.records import Design, Draft, Outcome, Theme
from envgen.synthesis.store import Store
from trajectory import InputError

GROWN = "grown.json"


@dataclass(kw_only=True)
class GrowthLoop(Loop):
    """From a parent to a child, or to the reasons against it."""

    growth: GrowthBench
    """The bench, which knows the parent."""

    @property
    def parent(self) -> ModelParent:
        return self.growth.parent

    async def propose(self, theme: Theme) -> Proposed | tuple[str, ...] | None:
        """Its parent's proposal under the child's name: nobody is asked."""
        old = self.parent.design
        proposal = old.proposal.model_copy(update={"name": theme.source.name})
        return Proposed(source=theme.source, proposal=proposal, provenance=old.provenance["propose"])

    async def _design(self, theme: Theme, proposed: Proposed, progress: Progress) -> Design:
        progress.stage, most = "design", self.bench.settings.most_tools

        async def work() -> Design:
            earlier = [one.test for one in await self.growth.proven() if one.passed]
            if not earlier:
                raise Rejected("design", f"none of the tests of {self.parent.name} passes on it as it is")
            growth, made = await enlarge(self.desk, theme, self.parent, earlier, most)
            if growth.impossible.strip():
                raise Rejected("design", f"nothing can be added: {growth.impossible.strip()}")
            return made

        return await self.store.step("designs", Design, [theme.id, proposed.id, self.makers, most], work)

    async def _first(self, made: Design) -> Draft:
        return await extension(self.desk, made, self.parent)


def growth_loop(parent: ModelParent, desk: Desk, bench: Bench, store: Store, makers: str, fingerprint: str) -> Loop:
    """The loop that grows a parent, made of what any loop is made of."""
    growth = GrowthBench(bench, parent)
    return GrowthLoop(desk, growth, store, makers, fingerprint, growth=growth)


async def settle(store: Store, bench: GrowthBench, outcome: Outcome, out: Path) -> Grown:
    """Put an accepted child beside its parent, with where it comes from. A killed run does it again, the same.

    Args:
        out: The child gets a folder in it.
    """
    parent = bench.parent
    made = next(one for one in store.all("designs", Design) if one.theme == outcome.theme)
    draft = next(one for one in store.all("drafts", Draft) if one.id == outcome.best)
    before, after = bench.open_parent(), bench.open(made, draft)
    try:
        old, new = await look(before), await look(after)
    finally:
        close(before)
        close(after)
    grown = Grown(
        name=outcome.name, parent=parent.name, parent_digest=parent.digest, generation=parent.generation + 1,
        added=_added(made, parent, {tool.name for tool in new.spec.tools}), refused=_refused(made, parent, draft),
        before=old.size(len(parent.design.requirements.rules)), after=new.size(len(made.requirements.rules)),
        earlier_tests=f"{len(made.earlier)} passed, from its own states and from those of {parent.name}",
        score=outcome.doctor, directory=out / outcome.name,
    )  # fmt: skip
    _place(store.folder / FOLDER / outcome.name, grown)
    return grown


def _refused(made: Design, parent: ModelParent, draft: Draft) -> tuple[LeftOut, ...]:
    """Tools that were taken out again, and tests that the child did not have to pass."""
    held = {test.name for test in made.earlier}
    tests = [test.name for test in parent.tests if test.name not in held]
    dropped = [one.partition(": ") for one in draft.dropped]
    return (
        *(LeftOut(what=name, reason="this test fails on the parent, so the child need not pass it") for name in tests),
        *(LeftOut(what=tool, reason=why) for tool, _, why in dropped),
    )


def must_be_free(out: Path, child: str, parent: ModelParent, theme: Theme) -> None:
    """Refuse to replace a folder that something else than this growth made.

    Raises:
        InputError: There is one.
    """
    folder = out / child
    if child == parent.name:
        raise InputError(f"--name {child!r}: give a name that is not the parent's")
    if not folder.exists():
        return
    told = folder / PROVENANCE
    if not told.is_file() or orjson.loads(told.read_bytes()).get("theme") != theme.id:
        raise InputError(f"{folder} exists and is not what this would make: choose another --out or --name")


def _place(kept: Path, grown: Grown) -> None:
    """The whole folder, or nothing of it."""
    scrap = grown.directory.with_name(f".{grown.name}.new")
    for old in (scrap, grown.directory):
        if old.exists():
            shutil.rmtree(old)
    shutil.copytree(kept, scrap)
    (scrap / GROWN).write_bytes(grown.model_dump_json(indent=1).encode())
    made = Made.model_validate_json((scrap / "made.json").read_bytes())
    moved = made.model_copy(update={"directory": grown.directory})
    (scrap / "made.json").write_bytes(moved.model_dump_json(indent=1).encode())
    scrap.rename(grown.directory)


def _added(made: Design, parent: ModelParent, there: set[str]) -> tuple[str, ...]:
    """Everything that the child has and its parent has not, a line each."""
    old = parent.design
    tables = set(old.proposal.entities)
    tools = {tool.name for tool in parent.plan}
    rules = {rule.id for rule in old.requirements.rules}
    tasks = {task.id for task in old.requirements.tasks}
    return (
        *(f"table {name}" for name in made.proposal.entities if name not in tables),
        *(f"tool {one.name}: {one.does}" for one in made.plan.tools if one.name in there - tools),
        *(f"rule {one.id}: {one.text}" for one in made.requirements.rules if one.id not in rules),
        *(f"task {one.id}: {one.request}" for one in made.requirements.tasks if one.id not in tasks),
    )
