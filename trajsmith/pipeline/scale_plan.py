"""CPU and wall time, money and storage of a large run, from what a finished pilot of the same configuration took.

Every stage costs what it cost the pilot for each accepted trajectory. Wall times of stages that compute follow from
the CPU time of the pilot, whatever else its machine did; stages that wait for models or live MCP servers take the wall
time that they took there. Stages that compute share the cores of all nodes;
stages in which models speak, one driver on each node with the pilot's concurrency; drawing chains is one process, and
the export shares the cores of one node. What the endpoints of models can bear is not known here: a pilot at the wanted
load measures it.
"""

import orjson

from trajsmith.models import SCRIPTED
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.run_context import GRAPH
from trajsmith.pipeline.run_directory import CHAINS, CONFIG, SUMMARY, RunDirectory, find_written_tasks
from trajsmith.pipeline.runner import find_roles
from trajsmith.records import FrozenModel, InputError, Summary, read_lines

ONE_PROCESS = ("sample", "select")
"""Stages that no worker shares."""
ONE_NODE = ("export",)
"""Stages whose workers are on the machine of the driver."""
START_SECONDS = 5.0
"""What no stage is: imports, environments and the graph at the start of a driver and of its workers."""
NOT_STORED = ("gallery", "report.html", "cache")
"""Parts of a run directory that need not be kept."""
SAME_SIZE = ("environments", GRAPH, CONFIG, SUMMARY)
"""Parts that do not grow with a run; initial states of environments do not, either."""


class StagePlan(FrozenModel):
    """One stage of the planned run."""

    name: str
    core_seconds: float
    """CPU seconds; of a pilot that did not measure them, wall seconds."""
    wall_seconds: float
    parallel: int
    """Processes that share it."""


class ScalePlan(FrozenModel):
    """Prediction for a run."""

    count: int
    """Accepted trajectories."""
    chains: int
    """Chains to draw, at the pilot's yield."""
    records: dict[str, int]
    """Records of each kind."""
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
    accepted = summary.funnel.get("accepted", 0)
    if "sampled" not in summary.funnel:
        raise InputError(f"{pilot.path} drew no chains (it repairs or imports plays): a plan needs a pilot that did")
    if not accepted:
        raise InputError(f"{pilot.path} accepted no trajectory: a plan needs a pilot that did")
    factor = count / accepted
    live = any(entry.kind == "mcp" for entry in config.environments)
    stages = []
    for stage in summary.stages:
        spoken = any(config.roles.of(role).model != SCRIPTED for role in find_roles((stage.name,)))
        parallel = nodes if spoken else nodes * cores
        if stage.name in (*ONE_PROCESS, *ONE_NODE):
            parallel = cores if stage.name in ONE_NODE else 1
        cpu = stage.cpu_seconds if config.engine.kind == "local" else None
        core = (stage.seconds if cpu is None else cpu) * factor
        waits = spoken or (live and stage.name not in (*ONE_PROCESS, *ONE_NODE))
        wall = (stage.seconds * factor if waits else core) / parallel
        stages.append(StagePlan(name=stage.name, core_seconds=core, wall_seconds=wall, parallel=parallel))
    return ScalePlan(
        count=count,
        chains=round(summary.funnel["sampled"] * factor),
        records={name: round(number * factor) for name, number in summary.funnel.items()},
        stages=tuple(stages),
        start_seconds=START_SECONDS,
        cost=summary.usage.cost * factor,
        stored_bytes=_predict_bytes(pilot, factor),
    )


def _predict_bytes(pilot: RunDirectory, factor: float) -> int:
    """Bytes of what a run keeps that has so many times the records of the pilot."""
    begun = {f"{orjson.loads(line)['initial_state']}.json" for _, line, _ in read_lines(find_written_tasks(pilot))}
    drawn = {f"{orjson.loads(line)['state']}.json" for _, line, _ in read_lines(pilot.file(CHAINS))}
    growing = same = 0
    for file in (file for file in pilot.path.rglob("*") if file.is_file()):
        part = file.relative_to(pilot.path).parts[0]
        if part in SAME_SIZE or (part == "states" and file.name not in begun - drawn):
            same += file.stat().st_size
        elif part not in NOT_STORED:
            growing += file.stat().st_size
    return same + round(growing * factor)
