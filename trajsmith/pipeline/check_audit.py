"""Test of a run's task checks against mutants and equivalent runs (`trajsmith tasks --audit`)."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import RunDirectory, find_written_tasks
from trajsmith.records import EnvironmentFault, InputError, Task, count_records, derive_seed, has_records, read_records
from trajsmith.verify import AuditSettings, audit_task
from trajsmith.verify.check_audit import CheckTestResult
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.gold_run import GoldRun, list_gold_calls


@dataclass
class AuditCounts:
    """Counts of how the checks of some tasks did against mutants and equivalent runs."""

    tasks: int = 0
    mutants: Counter[str] = field(default_factory=Counter)
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

    def __add__(self, other: "AuditCounts") -> "AuditCounts":
        return AuditCounts(
            self.tasks + other.tasks,
            self.mutants + other.mutants,
            self.caught + other.caught,
            self.equivalent + other.equivalent,
            self.accepted + other.accepted,
            self.weak + other.weak,
            self.escaped + other.escaped,
            self.undecided + other.undecided,
        )

    def add(self, task: Task, tested: CheckTestResult) -> None:
        audit = tested.audit
        self.tasks += 1
        self.mutants.update(audit.made)
        self.caught.update(audit.caught)
        self.equivalent += audit.equivalent
        self.accepted += audit.accepted
        self.escaped += [(task.id, mutant_id) for mutant_id in audit.escaped]
        weakness = tested.fault(task.twist)
        if weakness:
            self.weak.append((task.id, weakness))


async def audit_run(
    run: RunDirectory, mutants: int, limit: int | None, progress: RunProgress
) -> dict[str, AuditCounts]:
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
    path = find_written_tasks(run)
    if not has_records(path) or not count_records(path):
        raise InputError(f"{run.path} has no tasks yet: run `trajsmith tasks {run.path}`")
    context = await RunContext.reopen(load_config(run.config_path), run)
    audits = {name: AuditCounts() for name in sorted(context.places)}
    settings = AuditSettings(mutants=mutants, equivalents=4, masking=0)
    total = count_records(path)
    try:
        with progress.stage("audit checks", total if limit is None else min(limit, total), 0, 0) as bar:
            for task in islice(read_records(path, Task), limit):
                await _audit(context, task, settings, audits.setdefault(task.environments[0], AuditCounts()))
                bar.advance()
    finally:
        context.code_checks.close()
    return audits


async def _audit(context: RunContext, task: Task, settings: AuditSettings, audits: AuditCounts) -> None:
    place = context.place(task.environments[0])
    async with place.session() as session:
        gold = GoldRun(list_gold_calls(task.turns), session)
        try:
            await gold.play(context.state(task.initial_state))
            if len(gold.ran.states) < len(task.turns):
                audits.undecided.append((task.id, f"{gold.ran.calls[-1][0]} of the gold calls is refused now"))
                return
            checks, facts = [turn.checks for turn in task.turns], [turn.facts for turn in task.turns]
            asked = [turn.asked for turn in task.turns]
            jury = CheckPanel(gold, task.masks, checks, facts, context.code_checks, asked)
            audits.add(task, await audit_task(jury, place.spec, settings, derive_seed(task.seed, "audit")))
        except EnvironmentFault as fault:
            audits.undecided.append((task.id, str(fault)))
