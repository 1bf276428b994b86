"""How sharp the environment checker is: it looks for faults of twelve kinds seeded into the bundled environments.

    .venv/bin/python benchmarks/sharpness.py                       # a sample: 2 mutants of each kind per environment
    .venv/bin/python benchmarks/sharpness.py --each 1000           # all of them, about two hours on two cores
    .venv/bin/python benchmarks/sharpness.py --kinds wall_clock --environments bank retail --missed

A mutant is found if the checker has an error or a warning for it; the unmutated library must give none. A mutant that
was not found is compared with the original on a few thousand calls: where not one answer and not one state differs, it
counts as equivalent and is left out. Every mutant runs in a process of its own, loaded from memory.
"""

import argparse
import asyncio
import multiprocessing
import random
import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "envcheck")]

from mutants import KINDS, ModuleMutant, MutantSource, build_mutants, override_modules  # noqa: E402 - beside the tests

LIBRARY = ROOT / "environments" / "library"
SIZES = {"small": 2, "medium": 1}
SKIP = frozenset({"seeds"})
WALKS, BETWEEN = 12, 3
"""Long plays per initial state that mutants are compared on, and calls that are put between two of their calls."""
YEARS = 10
"""By which the clock is moved to see whether a clock is looked at."""


@dataclass
class Outcome:
    """Report of the environment checker on one mutant (None: on the original)."""

    environment: str
    mutant: ModuleMutant | None
    findings: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    """Severity, check, tool, message, id."""
    seconds: float = 0.0
    calls: int = 0
    broken: str = ""
    """The mutant does not even load; found, too."""
    equivalent: bool = False
    known: frozenset[str] = frozenset()
    """Findings on the original; they find no mutant."""

    @property
    def loud(self) -> list[tuple[str, str, str, str, str]]:
        """Errors and warnings that the original does not have."""
        return [finding for finding in self.findings if finding[0] != "note" and finding[-1] not in self.known]

    @property
    def detected(self) -> bool:
        return bool(self.broken or self.loud)


Log = list[tuple[Any, list[list[tuple[str, Any, str, str, str]]]]]
"""Initial state, and plays from it: calls with the digests of answer and state."""


def examine_one(environment: str, mutant: ModuleMutant | None, seed: int, log: Log, known: frozenset[str]) -> Outcome:
    """Load an environment with its fault and let the environment checker examine it; runs in a process of its own."""
    outcome = Outcome(environment, mutant, known=known)
    texts = {mutant.module: mutant.text} if mutant else {}
    override_modules(texts)
    started = time.process_time()
    try:
        from trajsmith.envcheck import CheckPlan, check_environment
        from trajsmith.environments.library import ENVIRONMENTS

        source = MutantSource(ENVIRONMENTS.get(environment), SIZES, texts)
        report = asyncio.run(check_environment(source, CheckPlan(seed=seed)))
        outcome.findings = [
            (finding.severity, finding.check, finding.tool or "", finding.message, finding.id)
            for finding in report.findings
        ]
        outcome.calls = report.calls
    except Exception as error:  # noqa: BLE001 - whatever a seeded fault does while loading is the outcome
        outcome.broken = f"{type(error).__name__}: {error}"
        return outcome
    finally:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        outcome.seconds = time.process_time() - started + children.ru_utime + children.ru_stime
    if mutant is not None and not outcome.detected:
        outcome.equivalent = all(_same_at(source, log, years) for years in (0, -YEARS, YEARS))
    return outcome


def _same_at(source: Any, log: Log, years: int) -> bool:
    import time_machine

    if not years:
        return asyncio.run(_same(source, log))
    with time_machine.travel(time.time() + years * 365 * 86400, tick=True):
        return asyncio.run(_same(source, log))


async def _same(source: Any, log: Log) -> bool:
    """Return True if every result and every state of the log comes out again."""
    from trajsmith.records import EnvironmentFault

    session = await source.open()
    for state, plays in log:
        for play in plays:
            await session.reset(state)
            for tool, arguments, actor, answer, digest in play:
                try:
                    result = await session.call(tool, arguments, actor)
                except EnvironmentFault:
                    return False
                if result.hash != answer or await session.state_hash() != digest:
                    return False
    return True


def record(environment: str, seed: int) -> Log:
    """Plays of the original, with what came of every call: each initial state's calls one after another, going on."""
    from trajsmith.envcheck.check_session import CheckPlan, CheckSession
    from trajsmith.envcheck.exploration import ExplorationEffort
    from trajsmith.environments.library import ENVIRONMENTS
    from trajsmith.environments.native_source import NativeSource

    async def recorded() -> Log:
        source = NativeSource(ENVIRONMENTS.get(environment), SIZES)
        effort = ExplorationEffort(first=40, enough=12, hard=80, walks=25, length=16)
        check_session = await CheckSession.prepare(source, CheckPlan(seed=seed, effort=effort))
        await check_session.explore()
        session = await source.open()
        log: Log = []
        for start in check_session.starts:
            state = await check_session.runner.state(start)
            observations = [
                one for one in check_session.explored.observations if one.start == start and one.outcome.fault is None
            ]
            plays = [
                await _played(session, state, [(one.tool, one.step.arguments, one.step.actor)])
                for one in observations[::4]
            ]
            for steps in _walks(observations, random.Random(seed)):
                plays.append(await _played(session, state, steps))
            log.append((state, plays))
        return log

    return asyncio.run(recorded())


Call = tuple[str, Any, str]


def _walks(observations: list[Any], rng: random.Random) -> list[list[Call]]:
    """The walks of the exploration with other calls in between: reads before and after writes, refusals too."""
    ways = {
        tuple(map(str, one.prefix)): (*one.prefix, one.step) for one in observations if one.ok and len(one.prefix) >= 4
    }
    longest = sorted(ways.values(), key=len)[-WALKS:]
    others = [one.step for one in observations]
    walks = []
    for way in longest:
        steps: list[Call] = []
        for step in way:
            steps += [(one.tool, one.arguments, one.actor) for one in rng.sample(others, min(BETWEEN, len(others)))]
            steps.append((step.tool, step.arguments, step.actor))
        walks.append(steps)
    return walks


async def _played(session: Any, state: Any, steps: list[Call]) -> list[tuple[str, Any, str, str, str]]:
    from trajsmith.records import EnvironmentFault

    await session.reset(state)
    calls = []
    for tool, arguments, actor in steps:
        try:
            result = await session.call(tool, arguments, actor)
        except EnvironmentFault:
            break
        calls.append((tool, arguments, actor, result.hash, await session.state_hash()))
    return calls


def sites(environment: str, kinds: Iterable[str]) -> list[ModuleMutant]:
    mutants: list[ModuleMutant] = []
    for path in sorted((LIBRARY / environment).glob("*.py")):
        if path.stem not in SKIP:
            module = f"trajsmith.environments.library.{environment}" + (
                "" if path.stem == "__init__" else f".{path.stem}"
            )
            mutants += build_mutants(module, path, tuple(kinds))
    return mutants


def chosen(mutants: list[ModuleMutant], each: int, seed: int) -> list[ModuleMutant]:
    """At most `each` of a kind, drawn at random."""
    picked: list[ModuleMutant] = []
    for kind in KINDS:
        own = [mutant for mutant in mutants if mutant.kind == kind]
        picked += random.Random(f"{seed}:{kind}").sample(own, min(each, len(own)))
    return picked


Task = tuple[str, ModuleMutant | None, int, Log, frozenset[str]]


def _task(task: Task) -> Outcome:
    return examine_one(*task)


def _record(task: tuple[str, int]) -> Log:
    return record(*task)


def main() -> int:
    options = _options()
    names = options.environments or sorted(path.parent.name for path in LIBRARY.glob("*/state.py"))
    console = Console(highlight=False, width=160)
    context = multiprocessing.get_context("fork")
    outcomes: list[Outcome] = []
    with context.Pool(options.processes, maxtasksperchild=1) as pool:
        logs = dict(zip(names, pool.map(_record, [(name, options.seed + 1000) for name in names], 1), strict=True))
        originals: list[Task] = [(name, None, options.seed, [], frozenset()) for name in names]
        outcomes += pool.map(_task, originals, 1)
        tasks: list[Task] = []
        for outcome in outcomes:
            _tell(console, outcome, options.missed, options.verbose)
            name, known = outcome.environment, frozenset(finding[-1] for finding in outcome.findings)
            picked = chosen(sites(name, options.kinds or KINDS), options.each, options.sample)
            tasks += [(name, mutant, options.seed, logs[name], known) for mutant in picked]
        for outcome in pool.imap_unordered(_task, tasks, 1):
            outcomes.append(outcome)
            _tell(console, outcome, options.missed, options.verbose)
    return _summary(console, outcomes)


def _tell(console: Console, outcome: Outcome, missed: bool, verbose: bool) -> None:
    if outcome.mutant is None:
        line = (
            f"original {outcome.environment}: {len(outcome.loud)} findings, {outcome.seconds:.1f} s CPU{outcome.broken}"
        )
        console.print(line, markup=False)
        for severity, check, _tool, message, _ in outcome.loud:
            console.print(f"    {severity} {check}: {message}", markup=False)
    elif missed and not outcome.detected and not outcome.equivalent:
        console.print(f"missed {outcome.environment} {outcome.mutant.name}", markup=False)
    elif verbose:
        outcome_label = "equivalent" if outcome.equivalent else "found"
        by = sorted({check for _, check, *_ in outcome.loud})
        console.print(
            f"{outcome_label} {outcome.environment} {outcome.mutant.name} by {', '.join(by)}{outcome.broken}",
            markup=False,
        )


def _summary(console: Console, outcomes: list[Outcome]) -> int:
    table = Table("kind", "mutants", "equivalent", "found", "share", "checks that found them")
    totals = [0, 0, 0]
    for kind in KINDS:
        own = [outcome for outcome in outcomes if outcome.mutant and outcome.mutant.kind == kind]
        real = [outcome for outcome in own if not outcome.equivalent]
        detected = [outcome for outcome in real if outcome.detected]
        checks: dict[str, int] = {}
        for outcome in detected:
            for check in {check for _, check, *_ in outcome.loud} or {"loading"}:
                checks[check] = checks.get(check, 0) + 1
        top_checks = ", ".join(
            f"{check} {count}" for check, count in sorted(checks.items(), key=lambda item: -item[1])[:5]
        )
        if own:
            share = f"{100 * len(detected) / len(real):.0f} %" if real else "-"
            table.add_row(kind, str(len(own)), str(len(own) - len(real)), str(len(detected)), share, top_checks)
        totals = [totals[0] + len(own), totals[1] + len(real), totals[2] + len(detected)]
    console.print(table)
    loud = sum(len(outcome.loud) for outcome in outcomes if outcome.mutant is None)
    cpu = [outcome.seconds for outcome in outcomes if outcome.mutant is None]
    whole = totals[2] / totals[1] if totals[1] else 0.0
    console.print(f"{totals[2]} of {totals[1]} found ({100 * whole:.1f} %), {totals[0] - totals[1]} equivalent")
    console.print(f"unmutated: {loud} errors and warnings; CPU {min(cpu):.1f} to {max(cpu):.1f} s an environment")
    return 0 if whole >= 0.85 and loud == 0 else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--each", type=int, default=2, help="mutants of each kind per environment")
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), help="only these kinds")
    parser.add_argument("--environments", nargs="*", help="only these environments")
    parser.add_argument("--seed", type=int, default=0, help="seed of the examinations")
    parser.add_argument("--sample", type=int, default=0, help="seed of the choice of mutants")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--missed", action="store_true", help="name every mutant that was not found")
    parser.add_argument("--verbose", action="store_true", help="name every mutant")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
