"""`trajsmith tasks --audit`: the checks of every task of a run are tested against wrong and equivalent runs."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

from trajectory import EnvironmentFault, InputError, Task, derive_seed
from trajsmith.config import load_config
from trajsmith.journal import count, read_records
from trajsmith.progress import Progress
from trajsmith.rundir import RunDirectory
from trajsmith.varying import written_tasks
from trajsmith.world import World
from verify import AuditSettings, audit_task
from verify.auditing import Tested
from verify.jury import Jury
from verify.rerun import GoldRun, gold_calls_of


@dataclass
class Audited:
    """What testing the checks of some tasks gave."""

    tasks: int = 0
    made: Counter[str] = field(default_factory=Counter)
    """Kind of mutant to how many were executed."""
    caught: Counter[str] = field(default_factory=Counter)
    equivalent: int = 0
    accepted: int = 0
    weak: list[tuple[str, str]] = field(default_factory=list)
    """(task id, why it is weak)."""
    escaped: list[tuple[str, str]] = field(default_factory=list)
    """(task id, what was done in a mutant that no check noticed), the first few of each task."""
    undecided: list[tuple[str, str]] = field(default_factory=list)
    """(task id, why it could not be tested): the environment broke, or gold does not succeed any more."""

    def __add__(self, other: "Audited") -> "Audited":
        return Audited(
            self.tasks + other.tasks,
            self.made + other.made,
            self.caught + other.caught,
            self.equivalent + other.equivalent,
            self.accepted + other.accepted,
            self.weak + other.weak,
            self.escaped + other.escaped,
            self.undecided + other.undecided,
        )

    def add(self, task: Task, tested: Tested) -> None:
        audit = tested.audit
        self.tasks += 1
        self.made.update(audit.made)
        self.caught.update(audit.caught)
        self.equivalent += audit.equivalent
        self.accepted += audit.accepted
        self.escaped += [(task.id, what) for what in audit.escaped]
        weakness = tested.fault(task.twist)
        if weakness:
            self.weak.append((task.id, weakness))


async def audit_run(run: RunDirectory, mutants: int, limit: int | None, progress: Progress) -> dict[str, Audited]:
    """Test the checks of the tasks of a run; nothing is written.

    Args:
        run: The run.
        mutants: Wrong runs per task.
        limit: The first tasks only.
        progress: Where to say how far it is.

    Returns:
        Environment to what was found.

    Raises:
        InputError: The run has no tasks.
    """
    path = written_tasks(run)
    if not path.is_file() or not count(path):
        raise InputError(f"{run.path} has no tasks yet: run `trajsmith tasks {run.path}`")
    world = await World.reopen(load_config(run.config_path), run)
    found = {name: Audited() for name in sorted(world.places)}
    settings = AuditSettings(mutants=mutants, equivalents=4, masking=0)
    total = count(path)
    try:
        with progress.stage("audit checks", total if limit is None else min(limit, total), 0, 0) as bar:
            for task in islice(read_records(path, Task), limit):
                await _audit(world, task, settings, found.setdefault(task.environments[0], Audited()))
                bar.advance()
    finally:
        world.code_checks.close()
    return found


async def _audit(world: World, task: Task, settings: AuditSettings, found: Audited) -> None:
    place = world.place(task.environments[0])
    async with place.session() as session:
        gold = GoldRun(gold_calls_of(task.turns), session)
        try:
            await gold.play(world.state(task.initial_state))
            if len(gold.ran.states) < len(task.turns):
                found.undecided.append((task.id, f"{gold.ran.made[-1][0]} of the gold calls is refused now"))
                return
            checks, facts = [turn.checks for turn in task.turns], [turn.answer_facts for turn in task.turns]
            jury = Jury(gold, task.masks, checks, facts, world.code_checks)
            found.add(task, await audit_task(jury, place.spec, settings, derive_seed(task.seed, "audit")))
        except EnvironmentFault as fault:
            found.undecided.append((task.id, str(fault)))
