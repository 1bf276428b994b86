"""Generate many environments: in worker processes, each outcome kept as soon as it is known."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread

from trajsmith.envgen.generate import Blueprint, GenerationResult, generate_environment
from trajsmith.envgen.scale.catalogue import (
    CatalogueEntry,
    count_rules,
    group_services,
    measure_coverage,
    write_catalogue,
)
from trajsmith.envgen.scale.selection import Selection
from trajsmith.envgen.scale.services import Service
from trajsmith.records import InputError, RunError, StepJournal, TrajsmithError, canonical_json, hash_bytes

CHECK_SECONDS = 600.0
"""Wall-clock limit of the examination of one environment: generous, as many processes may share a machine."""


@dataclass(frozen=True)
class MassPlan:
    """Settings of a generation of many environments."""

    out: Path
    count: int
    """Accepted environments that are wanted."""
    seed: int = 0
    workers: int = 1


@dataclass
class MassResult:
    """Outcome of a generation of many environments."""

    entries: list[CatalogueEntry] = field(default_factory=list)
    undecided: dict[str, str] = field(default_factory=dict)
    """Environments about which nothing could be decided, with the reason; the next start tries them again."""

    @property
    def accepted(self) -> list[CatalogueEntry]:
        return [entry for entry in self.entries if entry.accepted]


def generate_environments(
    selection: Selection, plan: MassPlan, report: Callable[[str], None] = lambda line: None
) -> MassResult:
    """Generate environments until enough are accepted, and write their catalogue.

    What is decided stays decided: the same call after a kill continues where it was. Services come in the order of
    the selection, which puts those first that add most to what is covered.

    Raises:
        InputError: The selection is empty.
    """
    if not selection.services:
        raise InputError("no server of the tool lists is a service that can be made")
    journal, result, started = StepJournal(plan.out), MassResult(), time.perf_counter()
    groups = group_services(selection.services)
    waiting, finished = list[Service](), 0
    for service in selection.services:
        known = journal.get("outcomes", CatalogueEntry, _name_step(service, plan))
        if known is None:
            waiting.append(service)
        else:
            result.entries.append(known.model_copy(update={"group": groups[service.blueprint.name]}))
    with _WorkerPool(plan) as pool:
        while waiting and len(result.accepted) < plan.count:
            size = max(plan.workers, min(4 * plan.workers, plan.count - len(result.accepted)))
            batch, waiting = waiting[:size], waiting[size:]
            for service, outcome in pool.generate(batch):
                finished += 1
                if isinstance(outcome, str):
                    result.undecided[service.blueprint.name] = outcome
                    report(f"{service.blueprint.name}: undecided: {outcome}")
                    continue
                entry = _build_entry(service, groups[service.blueprint.name], outcome)
                journal.put("outcomes", _name_step(service, plan), entry)
                result.entries.append(entry)
                report(_render_progress(result, plan, entry, finished, time.perf_counter() - started))
            _write(selection, result, plan)
    _write(selection, result, plan)
    return result


class _WorkerPool:
    """Processes that generate environments; this process alone if one worker is wanted."""

    def __init__(self, plan: MassPlan) -> None:
        self._plan = plan
        self._pool: ProcessPoolExecutor | None = None
        if plan.workers > 1:
            self._pool = ProcessPoolExecutor(plan.workers, get_context("spawn"), initializer=end_with_parent)

    def __enter__(self) -> "_WorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def generate(self, batch: Sequence[Service]) -> Iterator[tuple[Service, GenerationResult | str]]:
        """Yield services with their outcome, or the reason why nothing is decided, as they are done."""
        texts = [one.blueprint.model_dump_json() for one in batch]
        if self._pool is None:
            for service, text in zip(batch, texts, strict=True):
                yield service, _generate(text, self._plan.out, self._plan.seed)
            return
        pool, plan = self._pool, self._plan
        jobs = {pool.submit(_generate, t, plan.out, plan.seed): one for one, t in zip(batch, texts, strict=True)}
        for job in as_completed(jobs):
            yield jobs[job], job.result()


def end_with_parent() -> None:
    """End this process as soon as the one that started it has ended, also if that one was killed.

    A worker of a pool holds both ends of its own queue, so it would wait there for ever.
    """
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def _write(selection: Selection, result: MassResult, plan: MassPlan) -> None:
    names = {entry.name for entry in result.accepted}
    coverage = measure_coverage([one for one in selection.services if one.blueprint.name in names])
    write_catalogue(plan.out, result.entries, selection.count_reasons(), coverage)


def _name_step(service: Service, plan: MassPlan) -> str:
    content = hash_bytes(canonical_json([service.blueprint.model_dump(mode="json"), plan.seed]))
    return f"{service.blueprint.name}:{content}"


def _generate(blueprint: str, out: Path, seed: int) -> GenerationResult | str:
    """Return the outcome of one environment, or why nothing is decided."""
    try:
        return generate_environment(
            lambda: Blueprint.model_validate_json(blueprint), out, seed=seed, check_seconds=CHECK_SECONDS
        )
    except RunError as error:
        return str(error)
    except TrajsmithError as error:
        return f"{type(error).__name__}: {error}"


def _build_entry(service: Service, group: str, outcome: GenerationResult) -> CatalogueEntry:
    blueprint = service.blueprint
    return CatalogueEntry(
        name=blueprint.name, group=group, family=service.family,
        records=tuple(entity.noun for entity in blueprint.entities), tools=outcome.tools,
        added_tools=sum(" is added: " in note for note in blueprint.notes), rules=count_rules(blueprint),
        source=blueprint.source.name, licence=blueprint.source.licence, accepted=outcome.accepted, score=outcome.score,
        tests=outcome.tests, seconds=outcome.seconds, reasons=outcome.reasons,
    )  # fmt: skip


def _render_progress(result: MassResult, plan: MassPlan, entry: CatalogueEntry, finished: int, seconds: float) -> str:
    verdict = "accepted" if entry.accepted else f"rejected: {entry.reasons[0] if entry.reasons else 'no reason'}"
    left = max(0, plan.count - len(result.accepted)) * seconds / finished
    score = "no score" if entry.score is None else f"{entry.score:.2f}"
    done = f"{len(result.accepted)}/{plan.count} {entry.name}: {verdict} ({score}, {entry.tools} tools)"
    return f"{done}, {left / 60:.0f} min left"
