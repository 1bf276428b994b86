"""Difficulty by playing: is a planted order of difficulty found, and are planted ambiguous tasks?

    .venv/bin/python benchmarks/difficulty.py              # 150 tasks, three solvers, five runs; two minutes of CPU
    .venv/bin/python benchmarks/difficulty.py --count 60 --seed 3

Difficulty is planted as the number of steps in which a solver may go wrong, drawn for each task; the three solvers make
a mistake in 5, 10 and 20 % of the steps, of kinds that fail nearly every play. An ambiguous task has a second reading
that the environment carries out, too (the same call for another row of the list); a play of it draws the second
reading with a chance of 50 or of 30 %. Its solvers make a mistake in 2, 5 and 10 % of the calls. Scripted agents do not
read the request: what is tested is whether the plays show what was planted, not whether a model would find a request
ambiguous.
"""

import argparse
import asyncio
import random
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr

from trajsmith.evals import EvalContext, ScriptedSolver, attempt_task, find_ambiguous_tasks, measure_difficulty
from trajsmith.evals.readings import read_gold_actions
from trajsmith.pipeline.calibration import build_scripted_solver
from trajsmith.pipeline.config import resolve_config
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import SolverAttempt, Task, derive_seed
from trajsmith.usersim import AgentRole, FaultSettings
from trajsmith.usersim.faulty_agent import FaultyAgent, _iter_opportunities, build_faulty_agent

STRENGTHS = (0.05, 0.1, 0.2)
"""Mistakes a step of the solvers that measure difficulty."""
READERS = (0.02, 0.05, 0.1)
"""Mistakes a call of the solvers that look for ambiguous tasks."""
MOST_STEPS = 12
KINDS = ("premature_answer", "wrong_entity", "wrong_report", "missed_error")
FAULTS = FaultSettings(**{kind: 0.15 if kind in KINDS else 0.0 for kind in FaultSettings.model_fields})
"""Mistakes that fail nearly every play: with others the strength of a solver would not be known."""
AMBIGUOUS = 30
CHANCES = (0.5, 0.3)
"""Chances of the second reading."""


@dataclass(frozen=True)
class PlantedSolver(ScriptedSolver):
    """Solver whose chance of a mistake depends on a planted number of steps."""

    def build_agent(self, task: Task, context: EvalContext, sample: int) -> AgentRole:
        own = derive_seed("solver", self.name, sample) % 1_000_000
        chance = 1 - (1 - self.rate) ** plant_steps(task)
        return build_faulty_agent(task, context.wording, own, self.faults.scale(chance))


@dataclass(frozen=True)
class TwoReadings(ScriptedSolver):
    """Solver that understands a task in the second way with a given chance."""

    chance: float = 0.5

    def build_agent(self, task: Task, context: EvalContext, sample: int) -> AgentRole:
        rng = random.Random(derive_seed(self.name, task.id, sample))
        if rng.random() >= self.chance:
            return super().build_agent(task, context, sample)
        places = [index for kind, index in _iter_opportunities(task, context.wording) if kind == "wrong_entity"]
        if not places:
            return super().build_agent(task, context, sample)
        agent = FaultyAgent(task, context.wording, 0, False, "wrong_entity", places[-1])
        agent.faults = random.Random(task.seed)  # the same other row in every play
        return agent


def plant_steps(task: Task) -> int:
    """Return the planted difficulty of a task."""
    return random.Random(derive_seed("steps", task.id)).randint(0, MOST_STEPS)


async def make_tasks(folder: Path, count: int, seed: int) -> tuple[list[Task], Any]:
    """Make a run of all sources and return its tasks without variants, and their environments."""
    config = resolve_config(
        {
            "name": "difficulty", "seed": seed, "run": str(folder / "run"),
            "environments": [{"library": "*", "states": {"small": 1, "medium": 2}}],
            "sample": {"count": count}, "sources": {"chains": 0.6, "programs": 0.4},
        }
    )  # fmt: skip
    run = RunDirectory.create(config.run, dump_settings(config))
    await run_pipeline(run)
    return list(split_tasks(run, "all")), await open_eval_contexts(run)


async def play(tasks: list[Task], contexts: Any, solvers: list[ScriptedSolver], runs: int) -> list[SolverAttempt]:
    """Let each solver play each task."""
    return [
        await attempt_task(task, contexts[task.environments[0]], solver, sample)
        for task in tasks
        for solver in solvers
        for sample in range(runs)
    ]


async def measure_order(tasks: list[Task], contexts: Any, runs: int) -> list[tuple[str, str]]:
    """Return the rank correlation of planted and measured difficulty, for all solvers and each alone."""
    solvers = [PlantedSolver(f"steps:{rate}", "1", rate, FAULTS) for rate in STRENGTHS]
    attempts = await play(tasks, contexts, list(solvers), runs)
    difficulties = measure_difficulty(attempts)
    planted = [plant_steps(task) for task in tasks]
    rows = [("tasks, plays", f"{len(tasks)}, {len(attempts)}")]
    for solver in solvers:
        rates = [difficulties[task.id].rates[solver.name] for task in tasks]
        rows += [
            (f"pass rate of {solver.name}", f"{100 * sum(rates) / len(rates):.1f} %"),
            (f"rank correlation, {solver.name} alone", f"{-spearmanr(planted, rates).statistic:.3f}"),
        ]
    rates = [difficulties[task.id].rate for task in tasks]
    labels = Counter(one.label for one in difficulties.values())
    return [
        *rows,
        ("rank correlation, three solvers", f"{-spearmanr(planted, rates).statistic:.3f}"),
        ("labels", ", ".join(f"{name} {number}" for name, number in labels.most_common())),
    ]


def _name_apart(plays: list[SolverAttempt]) -> list[SolverAttempt]:
    """Return the plays under names that do not count as one solver."""
    return [one.model_copy(update={"solver": one.solver.replace("scripted", "reader")}) for one in plays]


async def measure_ambiguity(tasks: list[Task], contexts: Any, runs: int) -> list[tuple[str, str]]:
    """Return how many planted ambiguous tasks are found, and how many others are taken for ambiguous."""
    other = TwoReadings("other", "1", chance=1.0)
    planted = []
    for task in tasks:
        if len(planted) < AMBIGUOUS and task.twist is None:
            attempt = await attempt_task(task, contexts[task.environments[0]], other, 0)
            if not attempt.passed and Counter(attempt.actions) - Counter(read_gold_actions(task)):
                planted.append(task.id)
    solvers = [build_scripted_solver(f"scripted:{rate}", rate) for rate in READERS]
    ambiguous = [task for task in tasks if task.id in planted]
    clear = [task for task in tasks if task.id not in planted]
    plays = _name_apart(await play(clear, contexts, solvers, runs))
    alarms = len(find_ambiguous_tasks({task.id: task for task in clear}, plays))
    rows = [("clear tasks, taken for ambiguous", f"{len(clear)}, {alarms} ({100 * alarms / max(1, len(clear)):.1f} %)")]
    for chance in CHANCES:
        readers = [TwoReadings(one.name, one.version, one.rate, chance=chance) for one in solvers]
        plays = _name_apart(await play(ambiguous, contexts, list(readers), runs))
        detected = find_ambiguous_tasks({task.id: task for task in ambiguous}, plays)
        title = f"ambiguous tasks, found (second reading {100 * chance:.0f} %)"
        rows.append((title, f"{len(planted)}, {len(detected)}"))
    return rows


async def measure(count: int, seed: int, runs: int, folder: Path) -> list[tuple[str, str]]:
    """Return rows of name and figure."""
    tasks, contexts = await make_tasks(folder, count, seed)
    try:
        rows = await measure_order(tasks, contexts, runs)
        rows += await measure_ambiguity(tasks, contexts, runs)
    finally:
        contexts.context.code_checks.close()
    return rows


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=150, help="tasks that are asked for")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--runs", type=int, default=5, help="plays per task and solver")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(measure(arguments.count, arguments.seed, arguments.runs, Path(folder)))
    table = Table("figure", "value", title=f"difficulty by playing, seed {arguments.seed}, {arguments.runs} runs")
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
