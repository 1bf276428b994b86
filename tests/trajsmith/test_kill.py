"""A run that is killed again and again, and resumed each time, ends byte for byte like an undisturbed one."""

import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import orjson
import pytest

from trajsmith.rundir import SCRAP

KILLS = 20
LINES = 2
"""Runs that are disturbed at the same time, with half of the kills each."""
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
        [sys.executable, "-m", "trajsmith.cli", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(config, path):
    process = start(config, path)
    said, _ = process.communicate()
    assert process.returncode == 0, said


def disturb(config, folder, delays):
    """Kill a run, then its resumptions, once after each delay; what ends before its kill makes place for a new run."""
    names = count()
    runs = [folder / f"run{next(names)}"]
    for delay in delays:
        while True:
            process = start(config, runs[-1])
            try:
                said, _ = process.communicate(timeout=delay)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                break
            assert process.returncode == 0, said
            runs.append(folder / f"run{next(names)}")
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
def disturbed(tmp_path_factory):
    """The undisturbed run, and all runs that 20 kills went through."""
    folder = tmp_path_factory.mktemp("killed")
    config = folder / "line.yaml"
    config.write_text(CONFIG)
    began = time.monotonic()
    finish(config, folder / "undisturbed")
    whole = time.monotonic() - began
    dice = random.Random(20)
    delays = [whole * (slot + dice.random()) / KILLS for slot in range(KILLS)]
    dice.shuffle(delays)
    with ThreadPoolExecutor(LINES) as pool:
        made = [
            pool.submit(disturb, config, folder / f"line{number}", delays[number::LINES]) for number in range(LINES)
        ]
    return folder / "undisturbed", [run for line in made for run in line.result()]


def test_kills_lose_and_double_no_record(disturbed):
    undisturbed, runs = disturbed
    wanted = {name: ids(data) for name, data in records(undisturbed).items() if name.endswith(".jsonl")}
    assert all(len(found) == len(set(found)) for found in wanted.values())
    assert {len(found) for found in wanted.values()} == {24}
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
