"""Table and curves of `make train-demo`, from what its trainings and evaluations wrote.

python benchmarks/pretrained_demo.py runs/pretrained-demo                 # table; pictures beside the models
python benchmarks/pretrained_demo.py runs/pretrained-demo --curves docs   # pictures of docs/results.md
"""

import argparse
import sys
from pathlib import Path

sys.path.sort(key=lambda entry: entry == str(Path(__file__).parent))  # benchmarks/grounding.py is not the package
sys.path.append(str(Path(__file__).parent))

from train_demo import WINDOW, draw, read_log, row_of

MODELS = {
    "base": "SmolLM2-135M-Instruct",
    "sft": "fine-tuned",
    "dpo": "fine-tuned, then DPO",
    "grpo": "fine-tuned, then GRPO",
}
GROUPS = {
    "": "six environments, unseen tasks",
    "-held-out": "helpdesk and mobile_care, never trained on",
    "-foreign": "a Python file from elsewhere, never trained on",
}
CURVES = {
    "sft": (("loss", "loss"), ("eval_loss", "loss on validation rows")),
    "dpo": (("loss", "loss"), ("rewards/accuracies", "pairs in the right order")),
    "grpo": (("reward", "reward"), ("completions/mean_length", "tokens of an episode")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs/pretrained-demo"))
    parser.add_argument("--curves", type=Path, help="folder of the pictures; the run's own by default")
    arguments = parser.parse_args()
    print_table(arguments.folder)
    for name, panels in CURVES.items():
        file = arguments.folder / name / "metrics.jsonl"
        if file.is_file():
            picture = (arguments.curves or arguments.folder) / f"pretrained-demo-{name}.png"
            draw(read_log(file), panels, MODELS[name], picture, WINDOW if name == "grpo" else 1)
            print(f"curves: {picture}")


def print_table(folder: Path) -> None:
    """Scores as Markdown, one line for each model and group of tasks."""
    from trajsmith.evals import score_episodes
    from trajsmith.evals.evaluate import read_episodes

    print("| model | tasks of | tasks | pass@1 | 95 % interval | checks passed | most common errors |")
    print("|---|---|---|---|---|---|---|")
    for model, title in MODELS.items():
        for suffix, group in GROUPS.items():
            episodes = read_episodes(folder / f"eval-{model}{suffix}" / "episodes.jsonl")
            empty = f"| {title} | {group} | not evaluated | | | | |"
            print(row_of(title, group, score_episodes(episodes)[0]) if episodes else empty)


if __name__ == "__main__":
    main()
