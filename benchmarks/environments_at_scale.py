"""What many generated environments give: tools, rules, scores, accepted trajectories, and look-ups that requests need.

    trajsmith env gen --from-mcp LIST --count 300 --workers 2 --out OUT
    .venv/bin/python benchmarks/environments_at_scale.py OUT [--chains 36] [--parallel 2] [--page docs/FILE.md]

Each accepted environment of OUT gets a run of short chains (one to three tools); what is measured of it is kept in
OUT/measured, so that the same command continues after a kill. CPU seconds are those of the runs' processes.
"""

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

ENOUGH = 20
"""Accepted trajectories that an environment should give."""
TOOLS, RULES = 12, 4
console = Console(width=150, highlight=False)


def measure(name: str, out: Path, chains: int) -> dict[str, Any]:
    """Run one environment and count what comes out; what is known already is read."""
    file_of_result = out / "measured" / f"{name}.json"
    if file_of_result.is_file():
        return json.loads(file_of_result.read_bytes())
    directory = out / "measured" / "runs" / name
    config = {
        "name": name, "seed": 7, "run": str(directory.resolve()),
        "environments": [{"python": str((out / name / f"{name}.py").resolve())}],
        "sample": {"count": chains, "length": [1, 3]}, "ground": {"min_calls": 1},
        "export": {"gallery": 1},
    }  # fmt: skip
    file = out / "measured" / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    started = time.perf_counter()
    command = [sys.executable, "-m", "trajsmith", "run", str(file), "--fresh"]
    pid = os.posix_spawn(
        sys.executable, command, os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(file.with_suffix(".log")), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
        ],
    )  # fmt: skip
    _, status, usage = os.wait4(pid, 0)
    result = {
        "name": name, "chains": chains, "exit": os.waitstatus_to_exitcode(status),
        "accepted": sum(map(_is_accepted, _rows(directory, "verdicts"))),
        "written": sum(1 for _ in _rows(directory, "tasks")), "grounded": sum(1 for _ in _rows(directory, "grounded")),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1), "s": round(time.perf_counter() - started, 1),
        **count_look_ups(_rows(directory, "tasks")),
    }  # fmt: skip
    file_of_result.write_text(json.dumps(result), encoding="utf-8")
    return result


def _rows(directory: Path, name: str) -> Iterator[dict[str, Any]]:
    for shard in sorted(directory.glob(f"{name}*.jsonl")):
        for line in shard.read_bytes().splitlines():
            yield json.loads(line)


def _is_accepted(row: dict[str, Any]) -> bool:
    return bool(row["accepted"])


def count_look_ups(tasks: Iterator[dict[str, Any]]) -> dict[str, int]:
    """Count gold chains that need a look-up, as no message has an identifier that a call takes from a read result, and
    those in which the user says an identifier."""
    counts = Counter[str](tasks=0, look_up=0, says_identifier=0)
    for task in tasks:
        text = " ".join(turn["query"] for turn in task["turns"])
        calls = [call for turn in task["turns"] for call in turn["gold_calls"]]
        sources = [
            (str(call["arguments"].get(name)), origin["kind"] == "output" and calls[origin["call"]]["effect"] == "read")
            for call in calls
            for name, origin in call["provenance"].items()
            if name.endswith(("_id", "_key", "_ref"))
        ]
        counts["tasks"] += 1
        counts["look_up"] += any(is_read and not _is_in(value, text) for value, is_read in sources)
        counts["says_identifier"] += any(_is_in(value, text) for value, _ in sources)
    return dict(counts)


def _is_in(value: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def report(entries: list[dict[str, Any]], measured: dict[str, dict[str, Any]]) -> None:
    """Print the figures of the accepted environments."""
    accepted = [entry for entry in entries if entry["accepted"]]
    decided = [entry for entry in entries if entry["accepted"] is not None]
    large = [entry for entry in accepted if entry["tools"] >= TOOLS and entry["rules"] >= RULES]
    console.print(
        f"{len(accepted)} of {len(decided)} accepted, {len(large)} with {TOOLS} tools and {RULES} rules or more"
    )
    rows = [measured[entry["name"]] for entry in accepted if entry["name"] in measured]
    if not rows:
        return
    scores = [entry["score"] for entry in accepted]
    console.print(f"checker: lowest {min(scores):.2f}, mean {sum(scores) / len(scores):.3f}")
    enough = sum(row["accepted"] >= ENOUGH for row in rows)
    console.print(f"{enough} of {len(rows)} give {ENOUGH} or more accepted trajectories: {enough / len(rows):.1%}")
    names = ("accepted", "chains", "cpu_s", "tasks", "look_up", "says_identifier")
    total = {name: sum(row[name] for row in rows) for name in names}
    console.print(f"{total['accepted']} trajectories of {total['chains']} chains; {total['cpu_s']:.0f} s CPU")
    console.print(f"{total['look_up'] / total['tasks']:.1%} of the gold chains need a look-up; ", end="")
    console.print(f"in {total['says_identifier'] / total['tasks']:.1%} the user says an identifier")
    for row in sorted(rows, key=lambda one: one["accepted"]):
        if row["accepted"] < ENOUGH:
            console.print(f"  {row['name']}: {row['accepted']} of {row['chains']}, {row['grounded']} grounded")


def render_page(entries: list[dict[str, Any]], measured: dict[str, dict[str, Any]]) -> str:
    """Return the page with one line for each accepted environment."""
    accepted = [entry for entry in entries if entry["accepted"]]
    lines = [
        "# Catalogue of generated environments", "",
        f"The {len(accepted)} environments of [environments at scale](environments-at-scale.md), as",
        "`benchmarks/environments_at_scale.py` measured them. *Accepted*: accepted trajectories of a run,",
        "in brackets its chains.", "",
        "| environment | domain | tools | rules | checker | accepted |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for entry in sorted(accepted, key=lambda one: (one["group"], one["name"])):
        row = measured.get(entry["name"])
        count = f"{row['accepted']} ({row['chains']})" if row else "-"
        cells = (entry["name"], entry["group"], entry["tools"], entry["rules"], f"{entry['score']:.2f}", count)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the --out of trajsmith env gen --count")
    parser.add_argument("--chains", type=int, default=36)
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--page", type=Path, help="write the page with one line for each environment")
    arguments = parser.parse_args()
    entries = json.loads((arguments.out / "catalogue.json").read_bytes())["entries"]
    names = [entry["name"] for entry in entries if entry["accepted"]]
    names = [name for name in names if not arguments.only or name in arguments.only]
    measured = dict[str, dict[str, Any]]()
    with ThreadPoolExecutor(arguments.parallel) as pool:
        jobs = [pool.submit(measure, name, arguments.out, arguments.chains) for name in names]
        for job in as_completed(jobs):
            row = job.result()
            measured[row["name"]] = row
            print(f"{len(measured)}/{len(names)} {row['name']}: {row['accepted']}", file=sys.stderr, flush=True)
    report(entries, measured)
    if arguments.page is not None:
        arguments.page.write_text(render_page(entries, measured), encoding="utf-8")


if __name__ == "__main__":
    main()
