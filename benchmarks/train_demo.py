"""The table of `make train-demo`, from what its evaluations wrote."""

import json
import sys
from pathlib import Path

MODELS = {"base": "base (random weights)", "sft": "fine-tuned", "grpo": "fine-tuned, then GRPO"}


def main(folder: Path) -> None:
    """Print it as Markdown.

    Args:
        folder: `runs/train-demo`, with `eval-<model>/results.json` in it.
    """
    print("| model | tasks of | tasks | pass@1 | 95 % interval | checks passed | most common errors |")
    print("|---|---|---|---|---|---|---|")
    for name, title in MODELS.items():
        file = folder / f"eval-{name}" / "results.json"
        if not file.is_file():
            print(f"| {title} | not evaluated | | | | | |")
            continue
        for score in json.loads(file.read_text())["scores"][1:]:
            errors = ", ".join(f"{what} {number}" for what, number in list(score["errors"].items())[:3])
            interval = f"{100 * score['low']:.1f} to {100 * score['high']:.1f}"
            cells = (title, score["group"], score["tasks"], f"{100 * score['pass1']:.1f} %", interval)
            print("|", " | ".join(map(str, (*cells, f"{100 * score['checks']:.1f} %", errors))), "|")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/train-demo"))
