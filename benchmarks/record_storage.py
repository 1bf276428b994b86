"""What the records of a large run take on the disk, and to read and look up, plain and compressed.

    .venv/bin/python benchmarks/record_storage.py                         # 200,000 trajectories: 8 GB of disk
    .venv/bin/python benchmarks/record_storage.py --trajectories 20000
    .venv/bin/python benchmarks/record_storage.py --run runs/quickstart   # records of a run that is there

The records are those of a small run, written again and again under new seeds and ids, so that a look-up has as many ids
to choose from as a large run. Files are in the cache of the system where they fit; the first look-up in a plain file
builds its index. Bytes are compared in the end.
"""

import argparse
import asyncio
import hashlib
import os
import random
import re
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.record_forms import MIB, FileForm, compress_run, list_forms, restore_run
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import (
    Chain,
    GroundedChain,
    Record,
    Task,
    Trajectory,
    Verdict,
    add_checksum,
    has_records,
    open_records,
)

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "quickstart.yaml"
CHAINS = 800
KINDS: dict[str, type[Record]] = {
    "chains.jsonl": Chain,
    "grounded.jsonl": GroundedChain,
    "tasks.jsonl": Task,
    "varied.jsonl": Task,
    "trajectories.jsonl": Trajectory,
    "verdicts.jsonl": Verdict,
}
ID = re.compile(rb'"((?:chain|ground|task|traj|verdict)_[0-9a-f]{16})"')


def make_run(directory: Path) -> None:
    """Make a run whose records are repeated."""
    settings = load_config(CONFIG, [f"run={directory}", f"sample.count={CHAINS}"])
    asyncio.run(run_pipeline(RunDirectory.create(directory, dump_settings(settings))))


def repeat_run(source: Path, target: Path, trajectories: int) -> None:
    """Write a run with at least so many trajectories, no record of which has the id of another of its file."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("dataset", "gallery", "exports", "*.jsonl*"))
    lines = {name: (source / name).read_bytes().splitlines() for name in KINDS if has_records(source / name)}
    rounds = -(-trajectories // len(lines["trajectories.jsonl"]))
    files = {name: (target / name).open("wb") for name in lines}
    try:
        for number in range(rounds):
            names: dict[bytes, bytes] = {}
            for name, file in files.items():
                file.writelines(_rename(KINDS[name], line, number, names) for line in lines[name])
    finally:
        for file in files.values():
            file.close()


def _rename(kind: type[Record], line: bytes, number: int, names: dict[bytes, bytes]) -> bytes:
    """Return a line under another id; the ids of its parents are those that they have in this round."""
    old = line[7 : line.index(b'"', 7)]
    content = orjson.loads(ID.sub(lambda match: b'"%b"' % names.get(match[1], match[1]), line))
    if "seed" in content:
        content["seed"] += number
    content.pop("checksum", None)
    content["id"] = kind.compute_id(content)
    names[old] = content["id"].encode()
    return add_checksum(orjson.dumps(content))


def measure(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return a result, with wall and CPU seconds."""
    wall, cpu = time.monotonic(), time.process_time()
    result = work()
    return result, time.monotonic() - wall, time.process_time() - cpu


def read_all(run: RunDirectory) -> tuple[int, str]:
    """Read all lines, and return their number with a hash of their bytes."""
    digest, count = hashlib.blake2b(), 0
    for form in list_forms(run):
        with open_records(run.file(form.name.removesuffix(".zst"))) as source:
            for line in source.iter_lines():
                digest.update(line)
                count += 1
    return count, digest.hexdigest()


def choose_ids(run: RunDirectory, name: str, count: int) -> list[str]:
    """Return ids of records from all over a file."""
    rng, ids = random.Random(1), list[str]()
    with open_records(run.file(name)) as source:
        while len(ids) < count:
            start = source.read(rng.randrange(source.size), MIB)
            place = start.find(b'\n{"id":"')
            if place >= 0:
                ids.append(start[place + 8 : start.index(b'"', place + 8)].decode())
    return ids


def look_up(run: RunDirectory, name: str, ids: list[str], once: bool) -> None:
    """Look records up and compare their hashes, with one opened file or with one for each."""
    for names in [ids] if once else [[one] for one in ids]:
        with run.open_lookup(name) as lookup:
            for one in names:
                record = lookup.find(one, KINDS[name])
                if record is None or record.id != one:
                    raise SystemExit(f"{name}: {one} was not found")


def measure_form(run: RunDirectory, looked: int) -> Iterator[tuple[str, str]]:
    """Measure reading and look-ups in the form that the records have."""
    size = sum(form.plain for form in list_forms(run))
    (count, _), wall, cpu = measure(lambda: read_all(run))
    yield f"read all {count:,} lines", f"{wall:.1f} s, {cpu:.1f} CPU s, {size / cpu / 1e6:,.0f} MB/CPU s"
    for name in ("trajectories.jsonl", "varied.jsonl"):
        ids = choose_ids(run, name, looked)
        for label, names, once in (
            ("first look-up", ids[:1], True),
            (f"each of {looked}, opened for each", ids, False),
            (f"each of {looked}, opened once", ids, True),
        ):
            _, wall, cpu = measure(lambda name=name, names=names, once=once: look_up(run, name, names, once))
            wall, cpu = 1000 * wall / len(names), 1000 * cpu / len(names)
            yield f"{name}: {label}", f"{wall:,.2f} ms, {cpu:,.2f} CPU ms"


def print_sizes(console: Console, forms: list[FileForm]) -> None:
    """Print the sizes of compressed files."""
    table = Table("file", "plain, MiB", "stored, MiB", "ratio")
    total = FileForm("all", sum(form.plain for form in forms), sum(form.stored for form in forms))
    for form in [*forms, total]:
        ratio = f"{form.plain / form.stored:.1f}"
        table.add_row(form.name, f"{form.plain / MIB:,.1f}", f"{form.stored / MIB:,.1f}", ratio)
    console.print(table)


def main() -> None:
    """Measure both forms, and what it takes to change them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trajectories", type=int, default=200_000)
    parser.add_argument("--look-ups", type=int, default=1000)
    parser.add_argument("--run", type=Path, help="A finished run with plain records; a new one without.")
    parser.add_argument("--scratch", type=Path, help="Folder for the large run, which is removed.")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scrap:
        source = options.run or Path(scrap) / "small"
        if options.run is None:
            make_run(source)
        repeat_run(source, Path(scrap) / "large", options.trajectories)
        run = RunDirectory(Path(scrap) / "large")
        size = sum(form.plain for form in list_forms(run))
        before = read_all(run)
        table = Table("form", "work", "cost", title=f"load {os.getloadavg()[0]:.1f}")
        for row in measure_form(run, options.look_ups):
            table.add_row("plain", *row)
        forms, wall, cpu = measure(lambda: compress_run(run, NullProgress()))
        table.add_row("", "compress", f"{wall:.1f} s, {cpu:.1f} CPU s, {size / cpu / 1e6:,.0f} MB/CPU s")
        print_sizes(console, forms)
        for row in measure_form(run, options.look_ups):
            table.add_row("compressed", *row)
        _, wall, cpu = measure(lambda: restore_run(run, NullProgress()))
        table.add_row("", "decompress", f"{wall:.1f} s, {cpu:.1f} CPU s, {size / cpu / 1e6:,.0f} MB/CPU s")
        table.add_row("", "equal afterwards", "yes" if read_all(run) == before else "NO")
        table.add_row("", "largest memory", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")
    Console(width=max(120, console.width)).print(table)


if __name__ == "__main__":
    main()
