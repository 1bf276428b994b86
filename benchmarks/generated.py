"""Environments made without a model, examined by the environment checker and run: one line a source.

    .venv/bin/python benchmarks/generated.py OUT [--openapi FILE...] [--mcp FILE:SERVER...] [--tables PATH...]

`accepted` counts the trajectories that `trajsmith run` accepts of the chains that it draws from the environment.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from trajsmith.envgen.generate import Blueprint, GenerationResult, generate_environment
from trajsmith.envgen.generate.from_mcp import read_mcp
from trajsmith.envgen.generate.from_openapi import read_openapi
from trajsmith.envgen.generate.from_tables import read_tables
from trajsmith.envgen.generate.tool_lists import read_tool_list
from trajsmith.records import TrajsmithError


@dataclass
class SourceRow:
    """Result of one source."""

    source: str
    kind: str
    generation: GenerationResult | None = None
    trajectories: int | None = None
    seconds: float = 0.0
    reason: str = ""


def run(kind: str, reference: str, read: Callable[[], Blueprint], out: Path, chains: int) -> SourceRow:
    row, started = SourceRow(Path(reference).name, kind), time.perf_counter()
    try:
        row.generation = generate_environment(read, out)
        if row.generation.accepted:
            row.trajectories = trajectories(row.generation, out, chains)
        else:
            row.reason = row.generation.reasons[0]
    except TrajsmithError as error:
        row.reason = str(error)
    row.seconds = time.perf_counter() - started
    return row


def trajectories(generation: GenerationResult, out: Path, chains: int) -> int:
    """Accepted trajectories of a run on one environment."""
    directory = out / "runs" / generation.name
    config = {
        "name": generation.name, "seed": 7, "run": str(directory.resolve()),
        "environments": [{"python": str((generation.directory / f"{generation.name}.py").resolve())}],
        "sample": {"count": chains, "length": [3, 6]},
    }  # fmt: skip
    file = out / f"{generation.name}.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [sys.executable, "-m", "trajsmith", "run", str(file)]
    subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    return sum(len(shard.read_bytes().splitlines()) for shard in directory.glob("trajectories*.jsonl"))


def _read_mcp(reference: str) -> Blueprint:
    return read_mcp(read_tool_list(reference))


def show(rows: list[SourceRow], chains: int) -> None:
    table = Table(title=f"generated environments, {len(rows)} sources")
    for head in ("source", "kind", "entities", "tools", "left out", "checker", f"accepted of {chains}", "s", "reason"):
        table.add_column(head, justify="left" if head in ("source", "kind", "reason") else "right", overflow="fold")
    for row in rows:
        generation = row.generation
        cells = ["-"] * 4
        if generation:
            cells = [
                str(generation.entities),
                str(generation.tools),
                str(generation.left_out),
                f"{generation.score or 0:.2f}",
            ]
        count = "-" if row.trajectories is None else str(row.trajectories)
        table.add_row(row.source, row.kind, *cells, count, f"{row.seconds:.0f}", row.reason[:160])
    good = sum(bool(row.trajectories) for row in rows)
    console = Console(width=200)
    console.print(table)
    console.print(f"{good} of {len(rows)} are accepted by the environment checker and give accepted trajectories")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--openapi", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--mcp", nargs="*", default=[], metavar="FILE:SERVER")
    parser.add_argument("--tables", nargs="*", default=[], metavar="PATH")
    parser.add_argument("--chains", type=int, default=20)
    arguments = parser.parse_args()
    jobs: list[tuple[str, str, Callable[[], Blueprint]]] = []
    jobs += [("openapi", one, partial(read_openapi, Path(one))) for one in arguments.openapi]
    jobs += [("mcp", one, partial(_read_mcp, one)) for one in arguments.mcp]
    jobs += [("tables", one, partial(read_tables, Path(one))) for one in arguments.tables]
    rows = []
    for kind, reference, read in jobs:
        rows.append(run(kind, reference, read, arguments.out, arguments.chains))
        print(rows[-1].source, rows[-1].trajectories, rows[-1].reason[:300], file=sys.stderr, flush=True)
    show(rows, arguments.chains)


if __name__ == "__main__":
    main()
