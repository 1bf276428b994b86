"""Wall time, money and storage of a large run, from what a finished pilot of the same configuration took.

Every stage costs what it cost the pilot for each accepted trajectory. Stages that compute share the cores of all nodes;
stages in which models speak, one driver on each node with the pilot's concurrency; drawing chains is one process, and
the export shares the cores of one node. What the endpoints of models can bear is not known here: a pilot at the wanted
load measures it.
"""

from pathlib import Path

from trajsmith.models import SCRIPTED
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import find_roles
from trajsmith.records import FrozenModel, InputError, Summary

SUMMARY = "summary.json"
ONE_PROCESS = ("sample", "select")
"""Stages that no worker shares."""
ONE_NODE = ("export",)
"""Stages whose workers are on the machine of the driver."""
START_SECONDS = 4.0
"""Start of a driver and of its workers: imports, environments, the graph."""
NOT_STORED = ("gallery", "report.html", "cache")
"""Parts of a run directory that do not grow with it, or need not be kept."""


class StagePlan(FrozenModel):
    """One stage of the planned run."""

    name: str
    core_seconds: float
    wall_seconds: float
    parallel: int
    """Processes that share it."""


class ScalePlan(FrozenModel):
    """Prediction for a run."""

    count: int
    """Accepted trajectories."""
    chains: int
    """Chains to draw, at the pilot's yield."""
    stages: tuple[StagePlan, ...]
    start_seconds: float
    cost: float
    """Money for models."""
    stored_bytes: int

    @property
    def wall_seconds(self) -> float:
        """Seconds from the start to the dataset."""
        return self.start_seconds + sum(stage.wall_seconds for stage in self.stages)

    @property
    def bottleneck(self) -> StagePlan:
        """Return the stage that takes the longest."""
        return max(self.stages, key=lambda stage: stage.wall_seconds)


def plan_scale(pilot: RunDirectory, count: int, nodes: int, cores: int) -> ScalePlan:
    """Predict a run from a pilot.

    Args:
        pilot: A finished run in one process.
        count: Accepted trajectories that are wanted.
        nodes: Machines; each runs its share of the shards.
        cores: Cores of each machine.

    Raises:
        InputError: The pilot is not finished, was not run in one process, or accepted nothing.
    """
    config = load_config(pilot.config_path)
    if not pilot.file(SUMMARY).is_file():
        raise InputError(f"{pilot.path} is not finished: run `trajsmith resume {pilot.path}`")
    if config.engine.workers != 1:
        raise InputError(
            f"{pilot.path} ran with engine.workers={config.engine.workers}, so its times are not those of one core: "
            "make a pilot with trajsmith run CONFIG --run PILOT --set engine.workers=1 --set sample.count=400"
        )
    summary = Summary.model_validate(pilot.read_json(SUMMARY))
    accepted = summary.funnel["accepted"]
    if not accepted:
        raise InputError(f"{pilot.path} accepted no trajectory: a plan needs a pilot that did")
    factor = count / accepted
    stages = []
    for stage in summary.stages:
        spoken = any(config.roles.of(role).model != SCRIPTED for role in find_roles((stage.name,)))
        parallel = nodes if spoken else nodes * cores
        if stage.name in (*ONE_PROCESS, *ONE_NODE):
            parallel = cores if stage.name in ONE_NODE else 1
        seconds = stage.seconds * factor
        stages.append(
            StagePlan(name=stage.name, core_seconds=seconds, wall_seconds=seconds / parallel, parallel=parallel)
        )
    return ScalePlan(
        count=count,
        chains=round(summary.funnel["sampled"] * factor),
        stages=tuple(stages),
        start_seconds=START_SECONDS,
        cost=summary.usage.cost * factor,
        stored_bytes=round(_count_bytes(pilot.path) * factor),
    )


def _count_bytes(path: Path) -> int:
    """Bytes of what a run keeps."""
    files = (file for file in path.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files if file.relative_to(path).parts[0] not in NOT_STORED)
