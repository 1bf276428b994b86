"""Variety of language in runs and in recorded dialogues, measured alike: values masked, 50 dialogues, 4,000 tokens.

python benchmarks/variety.py runs/quickstart --recorded ../shared/data/trajectories/*airline.json
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from trajsmith.phrasing import DialogueVariety
from trajsmith.phrasing.variety import collect_values, compute_distinct, compute_shared_skeletons, mask_texts
from trajsmith.records.journal import read_records
from trajsmith.records.trajectory import Trajectory
from trajsmith.records.verdict import Verdict

SAMPLE = 50
SPEAKERS = ("user", "assistant")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, help="run directories")
    parser.add_argument("--recorded", nargs="*", type=Path, default=[], help="tau-bench or tau2-bench result files")
    options = parser.parse_args()
    print("| source | users distinct-3 | agents distinct-3 | users shared skeletons | agents shared skeletons |")
    print("|---|---|---|---|---|")
    for path in options.runs:
        for name, speakers in measure_run(path).items():
            if "distinct_3" in speakers["user"]:
                print_row(f"{path.name}: {name}", [speakers[speaker] for speaker in SPEAKERS])
    for path in options.recorded:
        print_row(path.stem, measure_recorded(path))


def print_row(name: str, figures: Sequence[dict[str, float]]) -> None:
    cells = [f"{each['distinct_3']:.3f}" for each in figures] + [f"{each['shared_skeletons']:.1%}" for each in figures]
    print(f"| {name} | {' | '.join(cells)} |")


def measure_run(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Measure the accepted dialogues of a run."""
    verdicts = read_records(path / "verdicts.jsonl", Verdict)
    accepted = {verdict.trajectory_id for verdict in verdicts if verdict.accepted}
    variety = DialogueVariety()
    for trajectory in read_records(path / "trajectories.jsonl", Trajectory):
        if trajectory.id in accepted:
            variety.add(trajectory)
    return variety.measure()


def measure_recorded(path: Path) -> list[dict[str, float]]:
    """Measure the first dialogues of a file of recorded ones, users first."""
    spoken: dict[str, list[list[str]]] = {speaker: [] for speaker in SPEAKERS}
    for messages in list(iterate_recorded(path))[:SAMPLE]:
        values = collect_values([read_content(message) for message in messages if message["role"] == "tool"])
        spoken_messages = [message for message in messages if message["role"] in SPEAKERS and message.get("content")]
        masked = mask_texts([message["content"] for message in spoken_messages], values)
        for speaker, texts in spoken.items():
            texts.append(
                [text for message, text in zip(spoken_messages, masked, strict=True) if message["role"] == speaker]
            )
    return [
        {
            "distinct_3": compute_distinct(text for texts in dialogues for text in texts),
            "shared_skeletons": compute_shared_skeletons(text for texts in dialogues for text in texts),
        }
        for dialogues in spoken.values()
    ]


def iterate_recorded(path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of each recorded dialogue."""
    content = orjson.loads(path.read_bytes())
    for row in content["simulations"] if isinstance(content, dict) else content:
        yield row.get("messages") or row["traj"]


def read_content(message: dict[str, Any]) -> Any:
    try:
        return orjson.loads(message.get("content") or "")
    except orjson.JSONDecodeError:
        return message.get("content")


if __name__ == "__main__":
    main()
