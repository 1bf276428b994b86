"""Rounds of growth (the iterated complexification of Agent-World 3.1): names, what is worse, what was tried."""

import re
import shutil
from pathlib import Path

from trajsmith.envgen.generate import GenerationResult
from trajsmith.envgen.growth.model_growth import GrowthResult
from trajsmith.envgen.growth.model_parent import ModelParent
from trajsmith.envgen.synthesis.records import Design
from trajsmith.records import FrozenModel, StepJournal, read_stored, storage_boundary

MOST_TOOLS = 60
"""Tools of an environment that grows in rounds, if the configuration does not say."""
WORSE = 0.02
"""Loss of score of the environment checker from which a child is worse than its parent."""
_NAME = re.compile(r"(_r\d+)?(_g\d+)?$")


class GrowthRound(FrozenModel):
    """Outcome of one round."""

    number: int
    parent: str
    name: str
    accepted: bool
    reason: str = ""
    """Why it was undone."""
    entities: int = 0
    tools: int = 0
    rules: int = 0
    score: float | None = None
    tokens: int
    cost: float


def name_child(parent: ModelParent, attempt: int) -> str:
    """Return the name of a child; a further attempt on the same parent has a name, and records, of its own."""
    base = _NAME.sub("", parent.name)
    return f"{base}{f'_r{attempt}' if attempt > 1 else ''}_g{parent.generation + 1}"


def find_worse(parent: ModelParent, grown: GrowthResult) -> str:
    """Return why a child is worse than its parent; empty if it is not.

    Earlier tests, earlier calls and size are conditions of the examination; what it does not compare is the score.
    """
    before = read_stored(parent.directory / "made.json", GenerationResult).score
    if before is None or grown.score is None or grown.score >= before - WORSE:
        return ""
    return f"the environment checker gives {grown.score:.2f}, and {before:.2f} for {parent.name}"


def undo_round(grown: GrowthResult) -> None:
    """Take the folder of a child away; its records stay in the run that made it."""
    with storage_boundary(grown.directory):
        shutil.rmtree(grown.directory)


def describe_attempt(folder: Path, parent: ModelParent) -> str:
    """Return what a round wanted to add, in few words; empty if it had no design."""
    designs = StepJournal(folder).all("designs", Design) if folder.is_dir() else []
    if not designs:
        return ""
    tables = [name for name in designs[-1].proposal.entities if name not in parent.design.proposal.entities]
    known = {tool.name for tool in parent.plan}
    tools = [tool.name for tool in designs[-1].plan.tools if tool.name not in known]
    return ", ".join([*tables, *tools][:12])
