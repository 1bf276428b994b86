"""A run that is killed again and again, and resumed each time, ends byte for byte like an undisturbed one."""

import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from trajsmith.pipeline.run_directory import SCRAP

KILLS = 6, 20
"""Kills, and with --full."""
RUNS = 2, 4
"""Runs that share the kills, and with --full."""
AT_A_TIME = 2
CONFIG = """
name: killed
seed: 3
environments:
  - {library: bank, states: {small: 1}}
  - {library: mobile_care, states: {small: 1}}
sample: {count: 24, length: [3, 5]}
"""


def start(config, path):
    """`resume` where there is a run, `run` where the kill came before there was one; as a user would."""
    if (path / "config.yaml").is_file():
        arguments = ["resume", str(path)]
    else:
        arguments = ["run", str(config), "--run", str(path)]
    return subprocess.Popen(
        [sys.executable, "-m", "trajsmith", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(config, path):
    process = start(config, path)
    said, _ = process.communicate()
    assert process.returncode == 0, said


def size(path):
    """Bytes in the run directory: how far the run is, whatever the load of the machine."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(FileNotFoundError):  # temp files come and go
                total += Path(folder, name).stat().st_size
    return total


def watch(config, path):
    """An undisturbed run as a curve: (seconds, bytes) at every growth."""
    began = time.monotonic()
    process = start(config, path)
    curve = [(0.0, 0)]
    while process.poll() is None:
        now = size(path)
        if now != curve[-1][1]:
            curve.append((time.monotonic() - began, now))
        time.sleep(0.01)
    assert process.returncode == 0, process.communicate()
    return [*curve, (time.monotonic() - began, curve[-1][1])]


def moments(curve, dice, kills):
    """Random moments spread over the whole duration, as (bytes to wait for, seconds to wait then)."""
    whole = curve[-1][0]
    first_commit = next(seconds for seconds, grown in curve if grown)
    found = []
    for slot in range(kills):
        at = whole * (slot + dice.random()) / kills
        seconds, grown = max(point for point in curve if point[0] <= at)
        found.append((grown, at - seconds, first_commit))
    return found


def killed(process, path, grown, lag, startup):
    """Kill at one moment; False if the process ended before it. A resumed run needs its start before the lag counts."""
    if grown and size(path) >= grown:
        lag += startup
    while process.poll() is None and size(path) < grown:
        time.sleep(0.003)
    with suppress(subprocess.TimeoutExpired):
        said, _ = process.communicate(timeout=lag)
        assert process.returncode == 0, said
        return False
    process.kill()
    process.communicate()
    return True


def disturb(config, path, wanted):
    """Kill a run, then its resumptions, at moments in rising order; what ends before its kill makes place for a new
    run, in which the kill comes earlier."""
    runs = [path]
    for grown, lag, startup in sorted(wanted):
        while not killed(start(config, runs[-1]), runs[-1], grown, lag, startup):
            runs.append(path.with_name(f"{path.name}-{len(runs)}"))
            grown, lag = grown // 2, lag / 2
    finish(config, runs[-1])
    return runs


def records(path):
    """Every file that must come out the same, with its bytes: records, ledgers, states, specs and the graph."""
    files = [*path.glob("*.jsonl"), *path.glob("ledger/*.jsonl"), *path.glob("states/*"), *path.glob("environments/*")]
    return {str(file.relative_to(path)): file.read_bytes() for file in [*files, path / "graph.json"]}


def ids(lines):
    return sorted(row.get("id") or row["input"] for row in map(orjson.loads, lines.splitlines()))


def rows(path):
    import datasets

    return datasets.load_dataset("parquet", data_dir=str(path / "dataset"), split="train", cache_dir=str(path.parent))


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory, full):
    """The undisturbed run, and all runs that the kills went through."""
    folder = tmp_path_factory.mktemp("killed")
    config = folder / "line.yaml"
    config.write_text(CONFIG)
    dice = random.Random(20)
    runs = RUNS[full]
    wanted = moments(watch(config, folder / "undisturbed"), dice, KILLS[full])
    dice.shuffle(wanted)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        made = [pool.submit(disturb, config, folder / f"run{number}", wanted[number::runs]) for number in range(runs)]
    return folder / "undisturbed", [run for line in made for run in line.result()]


def test_kills_lose_and_double_no_record(disturbed):
    undisturbed, runs = disturbed
    wanted = {name: ids(data) for name, data in records(undisturbed).items() if name.endswith(".jsonl")}
    assert all(len(found) == len(set(found)) for found in wanted.values())
    assert min(len(found) for found in wanted.values()) >= 20, "a story that a state does not allow is dropped"
    for run in runs:
        assert {name: ids(data) for name, data in records(run).items() if name.endswith(".jsonl")} == wanted, run


def test_kills_change_no_byte(disturbed):
    undisturbed, runs = disturbed
    wanted = records(undisturbed)
    for run in runs:
        found = records(run)
        assert found.keys() == wanted.keys()
        assert [name for name, data in found.items() if data != wanted[name]] == [], run


def test_kills_leave_the_same_dataset(disturbed):
    undisturbed, runs = disturbed
    wanted = rows(undisturbed).to_list()
    assert len(wanted) > 0
    for run in runs:
        assert rows(run).to_list() == wanted, run


def test_kills_leave_nothing_lying_about(disturbed):
    undisturbed, runs = disturbed
    wanted = {str(file.relative_to(undisturbed)) for file in undisturbed.rglob("*")}
    for run in runs:
        found = {str(file.relative_to(run)) for file in run.rglob("*")}
        odd = {name for name in found ^ wanted if not name.endswith(".time.json")}  # wall times may be lost
        assert odd == set(), run
        assert not (run / SCRAP).exists()
        assert not list(run.rglob("*.part"))
