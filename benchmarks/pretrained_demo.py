"""Table and curves of `make train-demo`, from what its trainings and evaluations wrote.

python benchmarks/pretrained_demo.py runs/pretrained-demo                 # table; pictures beside the models
python benchmarks/pretrained_demo.py runs/pretrained-demo --curves docs   # pictures of docs/results.md
python benchmarks/pretrained_demo.py --calls RUN EVAL [EVAL ...]          # calls of evaluations beside the gold calls
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

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
    "-seen": "six environments, unseen tasks",
    "-held_out": "helpdesk and mobile_care, never trained on",
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
    parser.add_argument("--calls", type=Path, metavar="RUN", help="run of the tasks; then folders of evaluations")
    parser.add_argument("more", type=Path, nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.calls:
        print_calls(arguments.calls, [arguments.folder, *arguments.more])
        return
    print_table(arguments.folder)
    print_trainings(arguments.folder)
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
        print(format_bench_row(title, folder / f"eval-{model}-bfcl"))


def format_bench_row(title: str, folder: Path) -> str:
    """Return the line of the public benchmark, with the rows of the training that hold its tasks."""
    group, file = "BFCL v4, simple and multiple, by its own checker", folder / "results.json"
    if not file.is_file():
        return f"| {title} | {group} | not evaluated | | | | |"
    score = json.loads(file.read_bytes())["scores"][0]
    reports = json.loads((folder / "contamination.json").read_bytes())
    held, rows = (sum(sum(one["matched"].values()) for one in reports), sum(one["rows"] for one in reports))
    interval = f"{100 * score['low']:.1f} to {100 * score['high']:.1f}"
    errors = ", ".join(f"{error} {number}" for error, number in list(score["errors"].items())[:3])
    cells = (title, group, score["tasks"], f"{100 * score['pass1']:.1f} %", interval, "", errors)
    return f"| {' | '.join(map(str, cells))}; {held} of {rows} rows hold its tasks |"


def print_trainings(folder: Path) -> None:
    """Print what each training read and cost as Markdown: process time of all threads, its start included."""
    print("| training | steps | tokens | CPU time | wall time |")
    print("|---|---|---|---|---|")
    for name in CURVES:
        if not (file := folder / name / "metrics.jsonl").is_file():
            continue
        log = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        end = next(entry for entry in reversed(log) if "train_runtime" in entry)
        tokens = max((entry["num_tokens"] for entry in log if "num_tokens" in entry), default=0)
        spent = f"{end['train_cpu_seconds'] / 60:.0f} min" if "train_cpu_seconds" in end else "not measured"
        cost = f"{spent} | {end['train_runtime'] / 60:.0f} min"
        print(f"| {MODELS[name]} | {end['step']} | {tokens:,.0f} | {cost} |")


def print_calls(run: Path, evaluations: list[Path]) -> None:
    """Print how calls compare with the gold calls, over tasks that have any for the agent, one line an evaluation."""
    from trajsmith.records import Task, canonical_json
    from trajsmith.records.journal import read_records

    gold = {
        task.id: [
            (call.tool, canonical_json(call.arguments))
            for turn in task.turns
            for call in turn.gold_calls
            if call.actor == "assistant"
        ]
        for task in read_records(run / "tasks.jsonl", Task)
    }
    print("| evaluation | tasks | first call is gold | all gold calls | the gold calls and no other | repeats a call |")
    print("|---|---|---|---|---|---|")
    for folder in evaluations:
        counts = Counter[str]()
        for line in (folder / "transcripts.jsonl").read_text("utf-8").splitlines():
            episode = json.loads(line)
            wanted, called = gold[episode["task_id"]], read_calls(episode["messages"])
            if not wanted:
                continue
            counts["tasks"] += 1
            counts["first"] += called[:1] == wanted[:1]
            counts["all"] += set(wanted) <= set(called)
            counts["exact"] += called == wanted
            counts["repeat"] += len(set(called)) < len(called)
        cells = [f"{counts[name]}" for name in ("tasks", "first", "all", "exact", "repeat")]
        print(f"| {folder.name} | {' | '.join(cells)} |")


def read_calls(messages: list[dict[str, Any]]) -> list[tuple[str, bytes]]:
    """Return names and arguments, as canonical JSON, of all calls of a transcript."""
    from trajsmith.records import canonical_json

    calls = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    return [(call["name"], canonical_json(read_arguments(call["arguments"]))) for call in calls]


def read_arguments(arguments: Any) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


if __name__ == "__main__":
    main()
