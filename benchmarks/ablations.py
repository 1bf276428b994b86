"""Small ablations of the papers on the models of `make train-scratch`, which must have run before.

python benchmarks/ablations.py filter     # rows with mistakes in them, taken as they are or filtered by the checks
python benchmarks/ablations.py rewards    # GRPO with the state, the trajectory, or both (EnvFactory, Figure 4)
python benchmarks/ablations.py history    # all turns seen, or few of them (AWM, Table 7)

The last one needs `trajsmith run configs/train_demo_turns.yaml` before it.
"""

import argparse
import asyncio
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.sort(key=lambda entry: entry == str(Path(__file__).parent))  # benchmarks/grounding.py is not the package

from _noise import with_mistake, writes

from trajsmith.evals import Score
from trajsmith.export import DatasetWriter, build_row
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.evaluation import EvalConfig, run_eval
from trajsmith.pipeline.run_directory import TRAJECTORIES, VERDICTS, RunDirectory
from trajsmith.pipeline.yaml_settings import load_settings
from trajsmith.records import Trajectory, Verdict, derive_seed
from trajsmith.records.journal import read_records
from trajsmith.train_grpo import GrpoConfig
from trajsmith.train_sft import SftConfig
from trajsmith.train_sft.settings import HistorySettings

DEMO = Path("runs/train-demo")
TURNS = Path("runs/train-demo/turns")
"""Run of `configs/train_demo_turns.yaml`."""
NOISE = 0.3
"""Share of the rows that get a mistake."""
FILTER = {"noisy": "all rows", "filtered": "rows that the checks accept"}
ALL_TURNS = 1000
"""A window that no conversation fills."""
REWARDS = {"state": "state only", "trajectory": "trajectory only", "composite": "balanced"}


async def write_rows(run: RunDirectory, out: Path, rows: int) -> Counter[str]:
    """Two datasets of the same tasks: `noisy` with all rows, `filtered` without those that the checks reject."""
    grounds, counts = await open_eval_contexts(run), Counter[str]()
    played = {one.task_id: one for one in read_records(run.file(TRAJECTORIES), Trajectory)}
    verdicts = {one.trajectory_id: one for one in read_records(run.file(VERDICTS), Verdict)}
    with DatasetWriter(out / "noisy") as noisy, DatasetWriter(out / "filtered") as filtered:
        tasks = list(split_tasks(run, "train", rows))
        changing = sorted((task for task in tasks if writes(task)), key=lambda task: derive_seed(task.seed, "noise"))
        wrong = {task.id for task in changing[: round(NOISE * len(tasks))]}
        for task in tasks:
            ground, trajectory = grounds[task.environments[0]], played[task.id]
            mistaken = await with_mistake(task, trajectory, ground) if task.id in wrong else None
            changed, verdict = mistaken or (trajectory, verdicts[trajectory.id])
            row, kind = build_row(task, changed, verdict, ground.spec), "with a mistake" if mistaken else "as played"
            noisy.write(row)
            if verdict.accepted:
                filtered.write(row)
            counts[f"{kind}, {'accepted' if verdict.accepted else 'rejected'}"] += 1
    return counts


def fine_tune(start: Path, dataset: Path, out: Path, steps: int, history: HistorySettings | None = None) -> None:
    """Go on from a model; the same steps, order and rate whatever the rows are."""
    from trajsmith.train_sft.training import train

    demo = load_settings(Path("configs/train_demo_sft.yaml"), SftConfig)
    trainer = demo.trainer | {"max_steps": steps, "learning_rate": 1e-3, "save_strategy": "no"}
    train(demo.model_copy(update={
        "model": str(start), "scratch": None, "dataset": dataset, "out": out, "trainer": trainer,
        "history": history or demo.history,
    }))  # fmt: skip


def practise(start: Path, reward: str, out: Path, steps: int) -> None:
    """GRPO from a model with another reward than the demonstration's."""
    from trajsmith.train_grpo.training import train

    demo = load_settings(Path("configs/train_demo_grpo.yaml"), GrpoConfig)
    trainer = demo.trainer | {"max_steps": steps, "save_strategy": "no"}
    config = demo.model_copy(update={"model": str(start), "reward": reward, "out": out, "trainer": trainer})
    run = RunDirectory.open(config.run)
    train(config, list(split_tasks(run, "train", config.limit)), asyncio.run(open_eval_contexts(run)))


def score(
    model: Path, out: Path, limit: int, temperature: float, run: Path = DEMO / "data", history: int | None = None
) -> Score:
    """pass@1 on the unseen tasks of a run; `history` is the window through which the model sees a conversation."""
    demo = load_settings(Path("configs/train_demo_eval.yaml"), EvalConfig)
    settings = demo.settings.model_copy(update={"history": history})
    asked = demo.model_copy(update={
        "model": str(model), "out": out, "limit": limit, "temperature": temperature, "run": run, "settings": settings,
    })  # fmt: skip
    return asyncio.run(run_eval(asked))[0]


def print_scores(title: str, scores: dict[str, Sequence[Score]], columns: Sequence[str]) -> None:
    """Markdown: a line for each model, a column for each way of evaluating."""
    print(f"| {title} | {' | '.join(columns)} | most common errors |\n|{'---|' * (len(columns) + 2)}")
    for name, group_scores in scores.items():
        cells = [f"{100 * one.pass1:.1f} % ({100 * one.low:.1f} to {100 * one.high:.1f})" for one in group_scores]
        errors = ", ".join(f"{error} {number}" for error, number in list(group_scores[0].errors.items())[:3])
        print(f"| {name} | {' | '.join(cells)} | {errors} |", flush=True)


def run_filter(arguments: argparse.Namespace) -> None:
    """With and without the verification filter."""
    out = arguments.out / "filter"
    shutil.rmtree(out, ignore_errors=True)
    counts = asyncio.run(write_rows(RunDirectory.open(DEMO / "data"), out, arguments.rows))
    print(", ".join(f"{kind}: {number}" for kind, number in sorted(counts.items())), flush=True)
    scores = {"where both start": both_ways(arguments.start, out / "start", arguments.tasks)}
    for name in ("noisy", "filtered"):
        fine_tune(arguments.start, out / name, out / f"model-{name}", arguments.steps)
        scores[FILTER[name]] = both_ways(out / f"model-{name}", out / f"eval-{name}", arguments.tasks)
    print_scores("rows", scores, ("likeliest token", "temperature 1"))


def both_ways(model: Path, out: Path, tasks: int) -> list[Score]:
    return [score(model, out / str(temperature), tasks, temperature) for temperature in (0.0, 1.0)]


def run_rewards(arguments: argparse.Namespace) -> None:
    """State, trajectory, or both (EnvFactory, Figure 4)."""
    out = arguments.out / "rewards"
    shutil.rmtree(out, ignore_errors=True)
    scores = {"where all start": [score(arguments.start, out / "start", arguments.tasks, 1.0)]}
    for reward, title in REWARDS.items():
        practise(arguments.start, reward, out / reward, arguments.steps)
        scores[title] = [score(out / reward, out / f"eval-{reward}", arguments.tasks, 1.0)]
    print_scores("reward", scores, ("temperature 1",))


def run_history(arguments: argparse.Namespace) -> None:
    """All turns or few of them, in training and in evaluation, aligned and not (AWM, Table 7)."""
    out, windows = arguments.out / "history", (ALL_TURNS, arguments.window)
    shutil.rmtree(out, ignore_errors=True)
    scores = dict[str, list[Score]]()
    for trained in windows:
        model = out / f"model-{trained}"
        history = HistorySettings(unit="per_step", window=trained)
        fine_tune(arguments.start, TURNS, model, arguments.steps, history)
        scores[window_title(trained)] = [
            score(model, out / f"eval-{trained}-{seen}", arguments.tasks, 0.0, TURNS, seen) for seen in windows
        ]
    print_scores("trained with", scores, tuple(f"evaluated with {window_title(seen)}" for seen in windows))


def window_title(window: int) -> str:
    return "the whole history" if window == ALL_TURNS else f"a window of {window}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=RUNS)
    parser.add_argument("--start", type=Path, default=DEMO / "sft", help="model that every training goes on from")
    parser.add_argument("--out", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--rows", type=int, default=1500, help="rows of the filter's datasets")
    parser.add_argument("--steps", type=int, default=150, help="steps of each training")
    parser.add_argument("--tasks", type=int, default=300, help="tasks of each evaluation")
    parser.add_argument("--window", type=int, default=1, help="assistant turns that the short history keeps")
    arguments = parser.parse_args()
    RUNS[arguments.what](arguments)


RUNS = {"filter": run_filter, "rewards": run_rewards, "history": run_history}


if __name__ == "__main__":
    main()
