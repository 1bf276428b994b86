"""Environments that a plan wants: themes for the models that make them, and their files in the plan."""

from collections.abc import Sequence
from pathlib import Path

from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.sources.domains import build_domain_source
from trajsmith.envgen.synthesis.acceptance import ENVIRONMENTS_FOLDER
from trajsmith.envgen.synthesis.records import SynthesisOutcome
from trajsmith.pipeline.environment_generation import GenConfig, open_run
from trajsmith.pipeline.yaml_settings import dump_yaml, load_settings
from trajsmith.records import InputError, write_whole_file
from trajsmith.toolgraph import SamplingPlan

PLAN = "plan.yaml"


def read_plan(file: Path) -> SamplingPlan:
    """Read a plan that wants environments.

    Raises:
        InputError: It cannot be read, or no environment is left to make.
    """
    plan = load_settings(file, SamplingPlan, must_exist=True)
    if not plan.list_unmade():
        made = "has all that it wants" if plan.environments else "wants none: no environment is weak as a whole"
        raise InputError(f"{file}: environments: the plan {made}; trajsmith run CONFIG --plan {file} takes it as it is")
    return plan


def build_wish_sources(plan: SamplingPlan) -> list[ThemeSource]:
    """Return a theme for each environment of a plan that nothing was made for."""
    wishes = [wish for wish in plan.environments if not wish.files]
    return [build_domain_source(wish.like.replace("_", " "), wish.wish, PLAN) for wish in wishes]


def store_plan(config: GenConfig, plan: SamplingPlan) -> None:
    """Keep a plan in the run that makes its environments, so that the directory is enough to go on."""
    write_whole_file(open_run(config).file(PLAN), _dump(plan))


def add_made_files(run: Path, outcomes: Sequence[SynthesisOutcome]) -> Path | None:
    """Write the files of accepted environments into the plan of a run; return it, or None if none was made for it."""
    file = run / PLAN
    if not file.is_file():
        return None
    plan = load_settings(file, SamplingPlan)
    made = {one.source: one.name for one in outcomes if one.accepted}
    wishes = []
    for wish in plan.environments:
        name = made.get(wish.like.replace("_", " "))
        if name is not None and not wish.files:
            path = (run / ENVIRONMENTS_FOLDER / name / f"{name}.py").resolve()
            wish = wish.model_copy(update={"files": (path,)})
        wishes.append(wish)
    if tuple(wishes) == plan.environments:
        return None
    write_whole_file(file, _dump(plan.model_copy(update={"environments": tuple(wishes)})))
    return file


def _dump(plan: SamplingPlan) -> bytes:
    return dump_yaml(plan.model_dump(mode="json")).encode()
