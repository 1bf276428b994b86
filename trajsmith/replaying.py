"""`trajsmith replay`: every trajectory of a run is executed again, and its state hashes are compared."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from environments.staged import staged
from trajectory import EnvironmentFault, InputError, Task, Trajectory
from trajsmith.config import load_config
from trajsmith.joined import Played
from trajsmith.progress import Progress
from trajsmith.rundir import RunDirectory
from trajsmith.world import Place, World
from verify import replay


@dataclass
class ReplayReport:
    """What replaying a run gave."""

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


async def replay_run(run: RunDirectory, ids: Sequence[str], progress: Progress) -> ReplayReport:
    """Replay all trajectories of a run, or those with the given ids; nothing is written.

    Raises:
        InputError: The run has no trajectories, or none with such an id.
    """
    pairs = Played(run) if run.file("trajectories.jsonl").is_file() else ()
    world = await World.reopen(load_config(run.config_path), run)
    report = ReplayReport(changed=[name for name, place in world.places.items() if _differs(run, name, place)])
    with progress.stage("replay", len(ids) or len(pairs), 0, 0) as bar:
        for name, (task, trajectory) in pairs:
            if not ids or name in ids:
                await _one(world, task, trajectory, report)
                bar.advance(dropped=False)
    if not report.total:
        raise InputError(f"{run.path}: there is nothing to replay" + (f" with the id {', '.join(ids)}" if ids else ""))
    return report


def _differs(run: RunDirectory, name: str, place: Place) -> bool:
    file = f"environments/{name}.json"
    return run.file(file).is_file() and run.read_json(file)["version"] != place.spec.version


async def _one(world: World, task: Task, trajectory: Trajectory, report: ReplayReport) -> None:
    async with world.place(trajectory.environment).session() as session:
        try:
            found = await replay(trajectory, world.state(task.initial_state), staged(session, task))
        except EnvironmentFault as fault:
            report.undecided.append((trajectory.id, str(fault)))
            return
    if found.final != trajectory.final_state:
        found.mismatches.append("the final state hash differs")
    if found.mismatches:
        report.different.append((trajectory.id, "; ".join(found.mismatches[:3])))
    else:
        report.equal += 1
