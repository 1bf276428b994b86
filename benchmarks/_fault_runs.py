"""Runs of the command line that are disturbed at chosen moments, and their comparison with an undisturbed one."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import orjson
import psutil
import yaml

from trajsmith.records.storage import SAME_COMMAND

ROOT = Path(__file__).parents[1]
DISK = ROOT / "tests" / "hostile" / "disk_faults.c"
STAGES = ("start", "sample", "ground", "write", "vary", "play", "verify", "export")
LEDGERS = STAGES[1:-1]
PER_RUN = 5
"""Disturbances of one run."""
POLL_SECONDS = 0.002
LAG_SECONDS = 0.05
"""Disturbances come up to this long after the record that they wait for, so that they fall between writes, too."""
VOLATILE = re.compile(r"\.lock|\.lock\.owner|ledger/\w+\.time\.json|cache/.*|usage\.jsonl|.*\.pyc")
"""Files that are not compared: lock, times, and answers of models with their bill, which is in the order of answers."""
GOES_ON = ("trajsmith resume", SAME_COMMAND, "wait for it, or stop it")
"""How the line of a run that stopped says what to do."""
NOT_COMPARED = {"run", "engine"}
"""Settings that do not change what a run makes."""
TIMES = {"seconds", "cpu_seconds", "wall_seconds"}
WORK_TIME = re.compile(rb"(\d+ h )?(\d+ min \d+ s|[\d.]+ s) of work")


class Moment(NamedTuple):
    """When a run is disturbed: at a share of the records of a stage, or of the time of its start or export."""

    stage: str
    share: float
    lag: float


@dataclass
class Calm:
    """An undisturbed run: what others are compared with, and how long its parts are."""

    path: Path
    rows: dict[str, int] = field(default_factory=dict)
    """Inputs of each stage."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall seconds of start and export."""

    @property
    def stages(self) -> tuple[str, ...]:
        """Stages of this run, with start and export."""
        return tuple(name for name in STAGES if name in self.rows or name in self.seconds)


@dataclass
class FaultResult:
    """Counts of one fault."""

    fault: str
    occurrences: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    equal: int = 0
    stopped: int = 0
    """Times that the driver ended with one line and was resumed."""
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Driver:
    """A `trajsmith` command in a process of its own.

    Args:
        arguments: Of the command.
        run: Its run directory.
        environment: Variables beside those of this process.
    """

    def __init__(self, arguments: list[str], run: Path, environment: dict[str, str] | None = None) -> None:
        self.run = run
        self.began = time.monotonic()
        self._text = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "trajsmith", *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})},
        )  # fmt: skip
        self._ended = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_for(self, moment: Moment, calm: Calm) -> bool:
        """Wait for a moment; False if the process ended before it.

        For records that are there already, as in a resumed run, it comes as soon as the process has started.
        """
        if moment.stage == "start":
            end = self.began + moment.share * calm.seconds["start"]
        else:
            exporting = moment.stage == "export"
            stage = LEDGERS[-1] if exporting else moment.stage
            wanted = calm.rows[stage] if exporting else max(1, round(moment.share * calm.rows[stage]))
            later = moment.share * calm.seconds["export"] if exporting else moment.lag
            end = self.began + calm.seconds["start"] + later
            if count_rows(self.run, stage) < wanted:
                while self.is_running and count_rows(self.run, stage) < wanted:
                    time.sleep(POLL_SECONDS)
                end = time.monotonic() + later
        while self.is_running and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
        return self.is_running

    def send(self, signal_number: int) -> None:
        """Send a signal, if the process is still there."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal_number)

    def kill(self) -> None:
        """End the process with SIGKILL, and wait for that."""
        self.send(signal.SIGKILL)
        self.finish()

    def finish(self) -> int:
        """Wait for the end; the exit code. Safe to call twice."""
        if not self._ended:
            _, self._text = self._process.communicate()
            self._ended = True
        return self._process.returncode

    def find_fault(self, allowed: tuple[int, ...]) -> str | None:
        """Return what is wrong with how it ended: a traceback, another exit code, or more than one line of an error."""
        code, text = self._process.returncode, self._text
        if "Traceback (most recent call last)" in text:
            return f"traceback: {text[-1500:]}"
        errors = [line for line in text.splitlines() if line.startswith("error:")]
        if code not in allowed or len(errors) != (code != 0):
            return f"exit code {code}: {text[-1500:]}"
        if code == 1 and not any(words in errors[0] for words in GOES_ON):
            return f"does not say how to go on: {errors[0]}"
        return None

    @property
    def error(self) -> str:
        """The line of the error, after the end."""
        return next((line for line in self._text.splitlines() if line.startswith("error:")), "")


def count_rows(run: Path, stage: str) -> int:
    """Inputs that a stage has committed."""
    try:
        return (run / "ledger" / f"{stage}.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def list_workers(pid: int, marks: tuple[str, ...]) -> list[psutil.Process]:
    """Processes below one whose command line has one of these words."""
    workers = []
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if any(mark in " ".join(child.cmdline()) for mark in marks):
                    workers.append(child)
    return workers


def choose_moments(calm: Calm, dice: random.Random, count: int, stages: tuple[str, ...] | None = None) -> list[Moment]:
    """Random moments, as many in each stage as in the others, or nearly."""
    names = list(stages or calm.stages)
    dice.shuffle(names)
    return [Moment(names[number % len(names)], dice.random(), dice.random() * LAG_SECONDS) for number in range(count)]


def share_moments(moments: list[Moment], per_run: int) -> Iterator[list[Moment]]:
    """Moments of each run, in the order in which they come."""
    for start in range(0, len(moments), per_run):
        part = moments[start : start + per_run]
        yield sorted(part, key=lambda moment: (STAGES.index(moment.stage), moment.share))


def measure_calm(driver: Driver) -> Calm:
    """Wait for an undisturbed run and tell how long its parts were.

    Raises:
        SystemExit: It failed.
    """
    calm, last = Calm(driver.run), 0.0
    while driver.is_running:
        if "start" not in calm.seconds and count_rows(driver.run, LEDGERS[0]):
            calm.seconds["start"] = time.monotonic() - driver.began
        verified = count_rows(driver.run, LEDGERS[-1])
        if verified != calm.rows.get(LEDGERS[-1], 0):
            calm.rows[LEDGERS[-1]], last = verified, time.monotonic()
        time.sleep(POLL_SECONDS)
    calm.seconds["export"] = time.monotonic() - last
    if driver.finish() != 0:
        raise SystemExit(f"the undisturbed run failed: {driver.error}")
    for stage in LEDGERS:
        if rows := count_rows(driver.run, stage):
            calm.rows[stage] = rows
    return calm


def read_files(run: Path) -> dict[str, bytes]:
    """Every file of a run that must come out the same, by its name, without the times that it tells."""
    files = {}
    for path in run.rglob("*"):
        name = path.relative_to(run).as_posix()
        if not path.is_file() or VOLATILE.fullmatch(name):
            continue
        data = path.read_bytes()
        if name == "summary.json":
            data = orjson.dumps(_drop_times(orjson.loads(data)))
        elif name.endswith("config.yaml"):
            settings = yaml.safe_load(data)
            data = orjson.dumps({key: value for key, value in settings.items() if key not in NOT_COMPARED})
        elif name == "report.html":
            data = WORK_TIME.sub(b"", data)
        files[name] = data
    return files


def _drop_times(value: object) -> object:
    if isinstance(value, dict):
        return {name: _drop_times(part) for name, part in value.items() if name not in TIMES}
    return [_drop_times(part) for part in value] if isinstance(value, list) else value


def list_differences(calm: Path, run: Path) -> list[str]:
    """Names of files that only one of two runs has, or that differ."""
    expected, actual = read_files(calm), read_files(run)
    return sorted(name for name in expected | actual if expected.get(name) != actual.get(name))


Act = Callable[[Driver], bool | None]
"""Disturbs a run. True: it goes on; False: its driver has ended; None: there was nothing to disturb."""


class LeftOut(Exception):
    """This machine cannot make the fault."""


class Bench:
    """Runs that are disturbed, in a folder that is thrown away."""

    def __init__(self, folder: Path, count: int, occurrences: int, seed: int) -> None:
        self.folder = folder
        self.count = count
        self.occurrences = occurrences
        self.dice = random.Random(seed)
        self._number = 0

    @cached_property
    def calm(self) -> Calm:
        """The undisturbed run of the quick start."""
        run = self.folder / "calm" / "run"
        run.parent.mkdir()
        return measure_calm(Driver(["run", "quickstart", "--run", str(run), *self.settings()], run))

    @cached_property
    def library(self) -> Path:
        """The failing file system of the tests, compiled."""
        if shutil.which("cc") is None:
            raise LeftOut("needs cc")
        target = self.folder / "faults.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(target), str(DISK), "-ldl"], check=True)
        return target

    def settings(self, workers: int = 1) -> list[str]:
        """Options of a quick start with few chains."""
        return ["--set", f"sample.count={self.count}", "--set", f"engine.workers={workers}"]

    def new_run(self, folder: Path | None = None) -> Path:
        """A place for the next run."""
        self._number += 1
        run = (folder or self.folder) / f"disturbed-{self._number}" / "run"
        run.parent.mkdir()
        return run

    def disturb(
        self,
        row: FaultResult,
        act: Act,
        calm: Calm,
        command: list[str],
        stages: tuple[str, ...] | None = None,
        environment: Callable[[Path], dict[str, str]] = lambda run: {},
        folder: Path | None = None,
        may_stop: bool = False,
        after: Callable[[Path], None] | None = None,
    ) -> None:
        """Disturb runs until there were enough occurrences.

        Args:
            row: Takes what comes of it.
            act: The fault.
            calm: The undisturbed run.
            command: Configuration and options of `run`, with RUN for the run directory.
            stages: Where it comes; everywhere if None.
            environment: Variables of the processes of a run.
            folder: Where the runs are made.
            may_stop: The driver may end with one line.
            after: Is told of each complete run.
        """
        while row.occurrences < self.occurrences and row.runs < 3 * self.occurrences:
            moments = choose_moments(calm, self.dice, self.occurrences - row.occurrences, stages)
            for part in share_moments(moments, PER_RUN):
                run = self.new_run(folder)
                with environment_of(environment(run)):
                    self._disturb_one(
                        row, act, calm, [word.replace("RUN", str(run)) for word in command], part, may_stop
                    )
                self._compare(row, calm, run)
                if after is not None:
                    after(run)
                shutil.rmtree(run.parent)

    def _disturb_one(
        self, row: FaultResult, act: Act, calm: Calm, command: list[str], moments: list[Moment], may_stop: bool
    ) -> None:
        """One run through several disturbances, to its end."""
        run = Path(command[-1])
        waiting = list(moments)
        driver = start(command, run)
        while True:
            if waiting and driver.wait_for(waiting[0], calm):
                moment = waiting.pop(0)
                goes_on = act(driver)
                if goes_on is not None:
                    row.occurrences += 1
                    row.stages[moment.stage] += 1
                if goes_on is False:
                    driver = start(command, run)
                continue
            code = driver.finish()
            fault = driver.find_fault((0, 1) if may_stop else (0,))
            if fault:
                row.problems.append(f"{driver.run}: {fault}")
            if code == 0 or (fault and row.stopped > 3 * self.occurrences):
                return
            row.stopped += 1
            driver = start(command, run)

    def _compare(self, row: FaultResult, calm: Calm, run: Path) -> None:
        row.runs += 1
        differences = list_differences(calm.path, run)
        if differences:
            copy = Path(tempfile.mkdtemp(prefix="trajsmith-different-"))
            shutil.copytree(run, copy / "run")
            row.problems.append(f"{', '.join(differences[:5])} differ ({len(differences)} files), kept in {copy}")
        else:
            row.equal += 1


def start(command: list[str], run: Path) -> Driver:
    """Begin a run, or resume it where there is one, as a user would."""
    return Driver(["resume", str(run)] if (run / "config.yaml").is_file() else command, run)


@contextmanager
def environment_of(variables: dict[str, str]) -> Iterator[None]:
    """Variables for processes that are started meanwhile."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
