"""Table and curves of `make train-scratch`, from what its trainings and evaluations wrote.

python benchmarks/train_demo.py runs/train-demo                  # table; pictures beside the models
python benchmarks/train_demo.py runs/train-demo --curves docs    # pictures of docs/results.md
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.sort(key=lambda entry: entry == str(Path(__file__).parent))  # benchmarks/grounding.py is not the package

from trajsmith.records import Task, canonical_json

if TYPE_CHECKING:
    from trajsmith.evals import Score

MODELS = {
    "base": "base (random weights)",
    "sft": "fine-tuned, 700 steps",
    "more": "fine-tuned, 500 steps more",
    "grpo": "fine-tuned, 700 steps, then GRPO",
}
CURVES = {
    "sft": (("loss", "loss"), ("mean_token_accuracy", "accuracy of the next token")),
    "grpo": (("reward", "reward"), ("completions/mean_length", "tokens of an episode")),
}
"""Training to its panels: key of the trainer's log, and what the axis says."""
WINDOW = 5
"""Steps of the running mean in GRPO's curves."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs/train-demo"))
    parser.add_argument("--curves", type=Path, help="folder of the pictures; the run's own by default")
    parser.add_argument("--base", action="store_true", help="make the model with random weights, and nothing else")
    arguments = parser.parse_args()
    if arguments.base:
        make_base(arguments.folder / "base")
        return
    print_table(arguments.folder)
    for name, panels in CURVES.items():
        file = arguments.folder / name / "metrics.jsonl"
        if file.is_file():
            picture = (arguments.curves or arguments.folder) / f"train-demo-{name}.png"
            draw(read_log(file), panels, MODELS[name], picture, WINDOW if name == "grpo" else 1)
            print(f"curves: {picture}")


def make_base(out: Path) -> None:
    """The model as fine-tuning finds it, with its tokenizer."""
    from trajsmith.pipeline.yaml_settings import load_settings
    from trajsmith.train_sft import SftConfig
    from trajsmith.train_sft.checkpoint import save_atomically, set_templates
    from trajsmith.train_sft.scratch import create_model, train_tokenizer
    from trajsmith.train_sft.training import read_rows

    config = load_settings(Path("configs/train_demo_sft.yaml"), SftConfig)
    if config.scratch is None:
        raise SystemExit("configs/train_demo_sft.yaml: the demonstration starts from scratch")
    tokenizer = set_templates(train_tokenizer(read_rows(config.dataset), config.scratch.vocabulary), "scratch")
    save_atomically(create_model(tokenizer, config.scratch), tokenizer, out)


def print_table(folder: Path) -> None:
    """Scores as Markdown, one line for each model and environment, and one for tasks that training has nothing like."""
    from trajsmith.evals import score_episodes
    from trajsmith.evals.evaluate import read_episodes

    new = unlike_training(folder / "data")
    print("| model | tasks of | tasks | pass@1 | 95 % interval | checks passed | most common errors |")
    print("|---|---|---|---|---|---|---|")
    for name, title in MODELS.items():
        unseen = read_episodes(folder / f"eval-{name}" / "episodes.jsonl")
        other = read_episodes(folder / f"eval-{name}-other" / "episodes.jsonl")
        groups = {
            "A, unseen": unseen,
            "of these, state and calls in no training task": [one for one in unseen if one.task_id in new],
            "B, never trained on": other,
        }
        drawn = folder / f"eval-{name}-drawn" / "episodes.jsonl"
        if drawn.is_file():
            groups["A, unseen, drawn at temperature 1"] = read_episodes(drawn)
        for group, episodes in groups.items():
            print(
                row_of(title, group, score_episodes(episodes)[0])
                if episodes
                else f"| {title} | {group} | not evaluated | | | | |"
            )


def unlike_training(path: Path) -> set[str]:
    """Test tasks of a run of which no training task begins in the same state and makes the same calls."""
    from trajsmith.pipeline.eval_contexts import split_tasks
    from trajsmith.pipeline.run_directory import RunDirectory

    def key(task: Task) -> tuple[str, ...]:
        calls = (f"{call.tool} {canonical_json(call.arguments).decode()}" for call in task.gold_calls)
        return (task.initial_state, *calls)

    run = RunDirectory.open(path)
    known = {key(task) for task in split_tasks(run, "train")}
    return {task.id for task in split_tasks(run, "test") if key(task) not in known}


def row_of(title: str, group: str, score: "Score") -> str:
    """One line of the table."""
    errors = ", ".join(f"{error} {number}" for error, number in list(score.errors.items())[:3])
    interval = f"{100 * score.low:.1f} to {100 * score.high:.1f}"
    cells = (title, group, score.tasks, f"{100 * score.pass1:.1f} %", interval, f"{100 * score.checks:.1f} %", errors)
    return f"| {' | '.join(map(str, cells))} |"


def read_log(file: Path) -> list[dict[str, Any]]:
    """Entries of the trainer that belong to a step."""
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    return [entry for entry in entries if "train_runtime" not in entry]


def running_mean(values: Sequence[float], window: int) -> list[float]:
    """Mean of each value and those before it, at most `window` of them."""
    parts = [values[max(0, index - window + 1) : index + 1] for index in range(len(values))]
    return [sum(part) / len(part) for part in parts]


def draw(
    log: Sequence[dict[str, Any]], panels: Sequence[tuple[str, str]], title: str, picture: Path, window: int
) -> None:
    """One panel for each key, over the optimiser's steps; thin as logged, thick the running mean."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), dpi=90, layout="constrained")
    for axes, (key, label) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        points = [(entry["step"], entry[key]) for entry in log if key in entry]
        steps, values = [step for step, _ in points], [value for _, value in points]
        axes.plot(steps, values, color="#9bb8d3", linewidth=0.8)
        axes.plot(steps, running_mean(values, window), color="#1f4e79", linewidth=1.8)
        axes.set(xlabel="step", ylabel=label)
        axes.grid(alpha=0.3)
    figure.suptitle(title, fontsize=10)
    figure.savefig(picture)


if __name__ == "__main__":
    main()
