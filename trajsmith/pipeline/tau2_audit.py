"""Audit of a checkout of τ²-bench: its tasks' gold actions and mutants of them, judged by its own evaluators."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trajsmith.environments.adapters.tau2.evaluator import Tau2Evaluator, Tau2Judgement, list_domains
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.suite_counts import (
    EMPTY_PASSES,
    GOLD_FAILS,
    SuiteAudit,
    SuiteCall,
    build_mutants,
    collect_values,
)
from trajsmith.records import EnvironmentFault, InputError, JsonObject, RecordDropped, derive_seed

OTHER_CALLS = 4
"""Calls of other tasks that are tried as the one that nobody asked for."""


@dataclass(frozen=True)
class GoldTask:
    """A task with its gold play."""

    id: str
    raw: JsonObject
    calls: tuple[SuiteCall, ...]
    texts: tuple[str, ...]


async def audit_tau2(
    checkout: Path,
    domains: Sequence[str],
    mutants: int,
    limit: int | None,
    seed: int,
    progress: RunProgress | None = None,
) -> list[SuiteAudit]:
    """Audit the tasks of domains.

    Args:
        checkout: A checkout of tau2-bench.
        domains: Names, each with ":FILE" where the tasks are not in `tasks.json`; all if empty.
        mutants: Wrong plays of each task at most.
        limit: Tasks of each domain at most.
        seed: Of the choice of mutants.
        progress: Told about each task.

    Raises:
        InputError: This is no checkout, or a domain that was named cannot be read.
    """
    audits = []
    for name in domains or list_domains(checkout):
        domain, _, file = name.partition(":")
        audit = SuiteAudit(f"tau2 {name}")
        audits.append(audit)
        try:
            evaluator = Tau2Evaluator(checkout, domain, file)
            tasks = [_read_task(raw, number) for number, raw in enumerate(evaluator.tasks)]
        except InputError as error:
            if domains:
                raise
            audit.report("domain cannot be read", str(error))
            continue
        try:
            await _DomainAudit(audit, evaluator, tasks, mutants, seed).examine(limit, progress or NullProgress())
        except InputError as error:  # its code does not run in the sandbox
            if domains:
                raise
            audit.report("domain does not load", str(error))
        finally:
            evaluator.close()
    return audits


def _read_task(raw: JsonObject, number: int) -> GoldTask:
    """Return a task with its gold play; the data model of the checkout refuses what is malformed."""
    criteria = raw.get("evaluation_criteria")
    criteria = criteria if isinstance(criteria, dict) else {}
    actions = criteria.get("actions")
    calls = [
        SuiteCall(str(action.get("name")), action["arguments"], action.get("requestor") or "assistant")
        for action in (actions if isinstance(actions, list) else ())
        if isinstance(action, dict) and isinstance(action.get("arguments"), dict)
    ]
    texts = criteria.get("communicate_info")
    wanted = tuple(str(text) for text in texts) if isinstance(texts, list) else ()
    return GoldTask(str(raw.get("id", number)), raw, tuple(calls), wanted)


class _DomainAudit:
    """The audit of one domain."""

    def __init__(
        self, audit: SuiteAudit, evaluator: Tau2Evaluator, tasks: Sequence[GoldTask], mutants: int, seed: int
    ) -> None:
        self._audit = audit
        self._evaluator = evaluator
        self._tasks = tasks
        self._mutants = mutants
        self._seed = seed
        self._values = collect_values(call for task in tasks for call in task.calls)

    async def examine(self, limit: int | None, progress: RunProgress) -> None:
        """Examine the tasks, each with all its plays."""
        chosen = self._tasks[:limit]
        self._audit.tasks = len(chosen)
        with progress.stage(f"audit {self._audit.suite}", len(chosen), 0, 0) as bar:
            for task in chosen:
                try:
                    await self._examine_task(task)
                except RecordDropped as dropped:
                    self._audit.report("malformed task", f"{task.id}: {dropped.detail}")
                except EnvironmentFault as fault:
                    self._audit.report(f"gold play cannot be judged: {fault.kind}", f"{task.id}: {fault.message}")
                bar.advance()

    async def _judge(self, task: GoldTask, calls: Sequence[SuiteCall], texts: Sequence[str]) -> Tau2Judgement:
        asked = [{"tool": call.tool, "arguments": call.arguments, "actor": call.actor} for call in calls]
        return await self._evaluator.judge(task.raw, asked, texts)

    async def _examine_task(self, task: GoldTask) -> None:
        audit = self._audit
        gold = await self._judge(task, task.calls, task.texts)
        audit.played += 1
        if gold.left_out:
            audit.report("a part is judged by a model and was left out", f"{task.id}: {', '.join(gold.left_out)}")
        for text in gold.refused:
            audit.report("a gold call is refused", f"{task.id}: {text}")
        if gold.passed:
            audit.gold_passes += 1
        elif task.calls:
            audit.report(f"{GOLD_FAILS}: {gold.failed_parts}", task.id)
        else:
            audit.report(f"the task names no gold calls, and doing nothing fails: {gold.failed_parts}", task.id)
        await self._examine_empty(task, gold)
        if gold.passed:
            await self._examine_mutants(task, gold)

    async def _examine_empty(self, task: GoldTask, gold: Tau2Judgement) -> None:
        audit = self._audit
        try:
            empty = await self._judge(task, (), ())
        except EnvironmentFault as fault:
            audit.report(f"empty play cannot be judged: {fault.kind}", f"{task.id}: {fault.message}")
            return
        if not empty.passed:
            audit.empty_fails += 1
        elif empty.left_out:
            audit.report("empty play is undecided: a model judges the rest", task.id)
        elif gold.states == empty.states and not task.texts:
            audit.report(f"{EMPTY_PASSES}: gold changes nothing, and nothing must be said", task.id)
        else:
            audit.report(f"{EMPTY_PASSES}: what gold does or says is not checked", task.id)

    async def _examine_mutants(self, task: GoldTask, gold: Tau2Judgement) -> None:
        rng = random.Random(derive_seed(self._seed, task.id))
        others = [
            call for other in self._tasks if other is not task for call in other.calls if call.actor == "assistant"
        ]
        some = rng.sample(others, min(OTHER_CALLS, len(others)))
        wrong = 0
        for mutant in build_mutants(task.calls, task.texts, some, self._values, self._mutants, rng):
            if wrong >= self._mutants:
                break
            try:
                judged = await self._judge(task, mutant.calls, mutant.texts)
            except EnvironmentFault as fault:
                self._audit.report(f"mutant cannot be judged: {fault.kind}", f"{task.id}: {fault.message}")
                continue
            if judged.states == gold.states and not mutant.is_by_text:
                self._audit.equivalent += 1
            elif judged.passed and judged.left_out:
                self._audit.report(f"mutant is undecided: a model judges the rest: {mutant.kind}", task.id)
            else:
                wrong += 1
                self._audit.count_mutant(task.id, mutant, judged.passed)
