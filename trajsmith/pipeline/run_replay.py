"""`trajsmith replay`: every trajectory of a run is executed again, and its state hashes are compared."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trajsmith.environments.injected_faults import inject_faults
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.record_joins import PlayedPairs
from trajsmith.pipeline.run_context import EnvironmentHandle, RunContext
from trajsmith.pipeline.run_directory import TRAJECTORIES, RunDirectory
from trajsmith.records import EnvironmentFault, InputError, Task, Trajectory, has_records
from trajsmith.verify import replay_trajectory


@dataclass
class ReplayReport:
    """Counts of replayed trajectories."""

    equal: int = 0
    different: list[tuple[str, str]] = field(default_factory=list)
    """(trajectory id, what differs)."""
    undecided: list[tuple[str, str]] = field(default_factory=list)
    """(trajectory id, why it could not be told): the environment broke."""

    changed: list[str] = field(default_factory=list)
    """Environments whose code or schemas are not those that the run was made with."""

    @property
    def total(self) -> int:
        return self.equal + len(self.different) + len(self.undecided)


async def replay_run(run: RunDirectory, ids: Sequence[str], progress: RunProgress) -> ReplayReport:
    """Replay all trajectories of a run, or those with the given ids; nothing is written.

    Raises:
        InputError: The run has no trajectories, or none with such an id.
    """
    played = PlayedPairs(run) if has_records(run.file(TRAJECTORIES)) else None
    context = await RunContext.reopen(load_config(run.config_path), run)
    report = ReplayReport(changed=[name for name, place in context.places.items() if _differs(run, name, place)])
    pairs = () if played is None else played.find(ids) if ids else played
    with progress.stage("replay", len(pairs), 0, 0) as bar:
        for _, (task, trajectory) in pairs:
            await _one(context, task, trajectory, report)
            bar.advance(dropped=False)
    if not report.total:
        if not played and not run.file("summary.json").is_file():
            raise InputError(f"{run.path}: there is nothing to replay yet: trajsmith resume {run.path}")
        raise InputError(f"{run.path}: there is nothing to replay" + (f" with the id {', '.join(ids)}" if ids else ""))
    return report


def _differs(run: RunDirectory, name: str, place: EnvironmentHandle) -> bool:
    file = f"environments/{name}.json"
    return run.file(file).is_file() and run.read_json(file)["version"] != place.spec.version


async def _one(context: RunContext, task: Task, trajectory: Trajectory, report: ReplayReport) -> None:
    async with context.place(trajectory.environment).session() as session:
        try:
            replayed = await replay_trajectory(
                trajectory, context.state(task.initial_state), inject_faults(session, task)
            )
        except EnvironmentFault as fault:
            report.undecided.append((trajectory.id, str(fault)))
            return
    if replayed.final != trajectory.final_state:
        replayed.mismatches.append("the final state hash differs")
    if replayed.mismatches:
        report.different.append((trajectory.id, "; ".join(replayed.mismatches[:3])))
    else:
        report.equal += 1
