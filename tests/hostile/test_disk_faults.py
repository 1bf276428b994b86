"""A disk that fails in the middle of a run: one line, and a resumed run has what an undisturbed one has.

A preloaded library makes one call below the run directory fail: no space, an I/O error, a short write, or the end of
the process before the call or in the middle of a write; or the clock jumps by ten years. See disk_faults.c.
"""

import errno
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from input_campaign import Campaign, Case, find_faults

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="the failing file system is compiled with cc"),
]
CONFIG = (
    "name: tiny\nseed: 1\nenvironments:\n  - {library: bank, states: {small: 1}}\nsample: {count: 4, length: [3, 4]}\n"
)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOENT, errno.EMFILE)
KINDS = (*map(str, ERRORS), "short", "kill", "torn", "forward", "backward")
FAULTS = 8, 200
"""Faults that are tried, and with --full."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The failing file system."""
    target = tmp_path_factory.mktemp("library") / "faults.so"
    source = Path(__file__).with_name("disk_faults.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", target, source, "-ldl"], check=True)
    return target


def read_records(run: Path) -> dict[str, bytes]:
    """Everything that a run must not lose, by its name."""
    files = [*run.glob("*.jsonl"), *run.glob("ledger/*.jsonl"), *run.glob("states/*"), *run.glob("environments/*")]
    return {str(file.relative_to(run)): file.read_bytes() for file in [*files, run / "graph.json"]}


def find_loss(campaign: Campaign, calm: dict[str, bytes], calls: int, dice: random.Random, number: int) -> str | None:
    """Let one call of a run fail, complete the run, and return what is wrong with that; None if nothing is."""
    kind, at = dice.choice(KINDS), dice.randint(1, calls)
    fault = {"FAULT_ROOT": str(campaign.folder), "FAULT_KIND": kind, "FAULT_AT": str(at)}
    if dice.random() < 0.5 and kind not in ("kill", "torn"):
        fault["FAULT_STAY"] = "1"
    place = campaign.folder / f"fault{number}"
    place.mkdir()
    (place / "line.yaml").write_text(CONFIG)
    label = f"fault {number}: {fault}"
    outcome = campaign.call(place, ("run", "line.yaml", "--run", "run"), fault)
    if outcome.code == -9 and kind in ("kill", "torn"):
        faults = []
    else:
        faults = list(find_faults(Case(label, ()), outcome))
    again = ("resume", "run") if (place / "run" / "ledger").is_dir() else ("run", "line.yaml", "--run", "run")
    completed = campaign.call(place, again)
    if completed.code == 2 and again[0] == "resume":  # the start was stopped before there was a run
        completed = campaign.call(place, ("run", "line.yaml", "--run", "run"))
    if completed.code != 0:
        faults.append(f"cannot be completed: {completed.err[-300:]}")
    elif read_records(place / "run") != calm:
        faults.append("has other records than an undisturbed run")
    elif list((place / "run").rglob("*.part")) or (place / "run" / ".tmp").exists():
        faults.append("leaves temporary files")
    shutil.rmtree(place)
    return f"{label}: {'; '.join(faults)}: {outcome.err[-200:]}" if faults else None


@pytest.mark.timeout(3600)
def test_random_faults_of_the_disk_lose_and_double_nothing(
    library: Path, tmp_path: Path, full: bool, record_property: Callable[[str, object], None]
) -> None:
    dice = random.Random(7)
    folder = tmp_path / "cases"
    folder.mkdir()
    with Campaign(folder, environment={"LD_PRELOAD": str(library)}) as campaign:
        (folder / "calm").mkdir()
        (folder / "calm" / "line.yaml").write_text(CONFIG)
        log = tmp_path / "calls.txt"
        counting = {"FAULT_ROOT": str(folder), "FAULT_LOG": str(log)}
        assert campaign.call(folder / "calm", ("run", "line.yaml", "--run", "run"), counting).code == 0
        calls = len(log.read_text().splitlines())
        assert calls > 100, "the library sees the writes"
        calm = read_records(folder / "calm" / "run")
        times = FAULTS[full]
        bad = [loss for number in range(times) if (loss := find_loss(campaign, calm, calls, dice, number))]
    record_property("cases", times)
    record_property("not_held", len(bad))
    assert not bad, "\n".join(bad)


def test_the_clock_jumps_when_it_is_told_to(library: Path, tmp_path: Path) -> None:
    write = f"open({str(tmp_path / 'x')!r}, 'w').close()"
    code = f"import time; began = time.time(); {write}; print(round((time.time() - began) / 86400))"
    environment = {**os.environ, "LD_PRELOAD": str(library), "FAULT_ROOT": str(tmp_path), "FAULT_AT": "1"}
    for kind, days in (("forward", "3650"), ("backward", "-3650")):
        told = {**environment, "FAULT_KIND": kind}
        done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == days


def test_the_clock_wanders_when_it_is_told_to(library: Path, tmp_path: Path) -> None:
    write = f"open({str(tmp_path / 'x')!r}, 'w').close()"
    code = f"import time\nfor _ in range(4): {write}; print(round(time.time() / 86400))"
    told = {"LD_PRELOAD": str(library), "FAULT_ROOT": str(tmp_path), "FAULT_AT": "1", "FAULT_STAY": "1"}
    environment = {**os.environ, **told, "FAULT_KIND": "wander"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    days = [int(line) for line in done.stdout.split()]
    steps = [later - earlier for earlier, later in pairwise(days)]
    assert min(steps) < -100 and max(steps) > 100, days


def test_the_disk_is_slow_when_it_is_told_to(library: Path, tmp_path: Path) -> None:
    write = f"open({str(tmp_path / 'x')!r}, 'w').close()"
    code = f"import time; began = time.monotonic(); {write}; print(time.monotonic() - began)"
    told = {"LD_PRELOAD": str(library), "FAULT_ROOT": str(tmp_path), "FAULT_AT": "1", "FAULT_SLOW": "60"}
    environment = {**os.environ, **told, "FAULT_KIND": "slow"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(done.stdout) >= 0.06


def test_the_library_fails_when_it_is_told_to(library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    (folder / "one").mkdir(parents=True)
    fault = {"FAULT_ROOT": str(folder / "one"), "FAULT_KIND": str(errno.ENOSPC), "FAULT_AT": "1", "FAULT_STAY": "1"}
    with Campaign(folder, environment={"LD_PRELOAD": str(library)}) as campaign:
        outcome = campaign.call(folder / "one", ("configs", "copy", "quickstart", "mine.yaml"), fault)
    assert outcome.code == 1
    assert "No space left on device" in outcome.err
    assert not (folder / "one" / "mine.yaml").exists()
