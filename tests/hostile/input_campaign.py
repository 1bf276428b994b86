"""Runs commands on bad input, and judges each: one line, the right exit code, no traceback, no hang, nothing lost.

A warm process imports the commands once and forks for every case, so that a case costs its own work only and a crash
ends nothing else. Cases are data; the files `*_cases.py` beside this one make them.
"""

import contextlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 300.0
"""Wall time of a case before it counts as hanging: many times what it takes on a machine that has other work, too."""
SLOW = 30.0
"""CPU time of a case and of what it started, from which it is a fault although it ended."""
MEMORY = 4 << 30
NOTES = re.compile(r"[a-z ]+: (started|resumed|stopped|done)?(, )?\d+(/\d+)?(, |$)|note: |left out: ")
"""Progress, and what commands say on standard error beside errors."""
RECORDS = ("*.jsonl", "ledger/*.jsonl", "states/*", "graph.json", "config.yaml", "environments/*")


@dataclass(frozen=True)
class Case:
    """A command on files that are written first."""

    name: str
    argv: tuple[str, ...]
    """Arguments of `trajsmith`, which runs in the folder of the case."""
    files: dict[str, bytes | str] = field(default_factory=dict)
    codes: frozenset[int] = frozenset({0, 1, 2})
    """Exit codes that are right; of a mutation nobody knows whether it still makes sense."""
    says: str = ""
    """Text that the error must have."""
    run: str = ""
    """Folder that a run is copied to before the files are written over it."""
    writes: frozenset[str] = frozenset()
    """Files that the command is asked to write."""
    pipes: tuple[str, ...] = ()
    """Files of the run in whose place pipes stand that nobody writes."""
    grows: bool = False
    """The command writes the run on: its records may become more."""


@dataclass(frozen=True)
class Outcome:
    """What a case came to."""

    code: int | None
    """None after a hang, negative after a signal."""
    out: str
    err: str
    seconds: float
    """CPU time."""


def run_warm() -> None:
    """Read cases from standard input as JSON lines, run each in a fork, answer with a line each."""
    import trajsmith.api
    import trajsmith.api.runs
    import trajsmith.pipeline.config
    import trajsmith.pipeline.runner  # noqa: F401
    from trajsmith.cli import app

    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            _become(request, app)
        sys.stdout.write(json.dumps(_wait(child, request["seconds"])) + "\n")
        sys.stdout.flush()


def _become(request, app) -> None:
    """Run one command as the console script does; never returns."""
    code = 70
    try:
        os.setsid()
        os.chdir(request["at"])
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number, name in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(handle, number)
        sys.argv = ["trajsmith", *request["argv"]]
        os.environ.update(request["environment"])
        try:
            app.main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
        except BaseException:  # noqa: BLE001 - this is what the judge looks for
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(0, 0)
        os._exit(code & 0xFF)


def _wait(child: int, seconds: float) -> tuple[int | None, float]:
    """Exit code of a child, None if it had to be killed with all that it started, and its CPU time."""
    handle = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([handle], [], [], seconds)
    finally:
        os.close(handle)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status) if ready else None, used.ru_utime + used.ru_stime


class Campaign:
    """The warm process, and the folder in which cases run. Use it as a context manager."""

    def __init__(
        self,
        folder: Path,
        run: Path | None = None,
        environment: dict[str, str] | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self.folder = folder
        self.seconds = seconds
        self._environment = environment or {}
        self.run = run
        """A finished run that cases take copies of."""
        self._process: subprocess.Popen[str] | None = None
        self.count = 0

    def __enter__(self) -> "Campaign":
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200", **self._environment},
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.stdin.close()
        self._process.wait()

    def play(self, case: Case, environment: dict[str, str] | None = None) -> Outcome:
        """Run a case in a folder of its own."""
        return self.call(self._prepare(case), case.argv, environment)

    def call(self, at: Path, argv: Sequence[str], environment: dict[str, str] | None = None) -> Outcome:
        """Run a command in a folder."""
        assert self._process is not None
        logs = {"out": str(at.with_suffix(".out")), "err": str(at.with_suffix(".err"))}
        request = {"argv": list(argv), "at": str(at), "seconds": self.seconds, "environment": environment or {}, **logs}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code, seconds = json.loads(self._process.stdout.readline())
        texts = (Path(logs[name]).read_bytes().decode("utf-8", "replace") for name in ("out", "err"))
        return Outcome(code, *texts, seconds)

    def judge(self, case: Case) -> list[str]:
        """Run a case and list what is wrong with how it ended; nothing if all is well."""
        self._before = None
        outcome = self.play(case)
        faults = list(find_faults(case, outcome))
        at = self.folder / str(self.count)
        lost = [name for name, data in self._before.items() if not _is_there(at / name, data, case.grows)]
        return faults + [f"lost or changed: {name}" for name in lost if not self._is_restored(at, name, case)]

    def _is_restored(self, at: Path, name: str, case: Case) -> bool:
        """Tell whether a damaged file of a run has its content again, as one whose name is a hash may."""
        path = Path(name)
        if not case.run or path.parts[0] != case.run:
            return False
        whole = self.run.joinpath(*path.parts[1:])
        return whole.is_file() and (at / name).is_file() and (at / name).read_bytes() == whole.read_bytes()

    def _prepare(self, case: Case) -> Path:
        import shutil

        self.count += 1
        at = self.folder / str(self.count)
        at.mkdir(parents=True)
        if case.run:
            assert self.run is not None
            shutil.copytree(self.run, at / case.run)
        for name, data in case.files.items():
            path = at / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data)
        for name in case.pipes:
            (at / case.run / name).unlink(missing_ok=True)
            os.mkfifo(at / case.run / name)
        self._before = {
            str(path.relative_to(at)): path.read_bytes()
            for path in sorted(at.rglob("*"))
            if path.is_file() and _counts(path.relative_to(at), case) and path.name not in case.writes
        }
        return at


def _counts(path: Path, case: Case) -> bool:
    """Tell input files and records from what a command may write again, such as a report."""
    if not case.run or path.parts[0] != case.run:
        return True
    inner = Path(*path.parts[1:])
    return any(inner.match(pattern) for pattern in RECORDS) and inner.parts[0] not in ("dataset", "exports")


def _is_there(path: Path, data: bytes, grows: bool) -> bool:
    if not path.is_file():
        return False
    now = path.read_bytes()
    return now == data or (grows and now.startswith(data[: data.rfind(b"\n") + 1]))


def find_faults(case: Case, outcome: Outcome):
    """Yield what is wrong with how a command ended."""
    lines = [line for line in outcome.err.splitlines() if line.strip() and not NOTES.match(line)]
    last = lines[-1] if lines else ""
    if outcome.code is None:
        yield "hangs"
        return
    if outcome.code < 0:
        yield f"killed by signal {-outcome.code}: {last[:300]}"
        return
    if "Traceback (most recent call last)" in outcome.err + outcome.out or "Exception ignored in" in outcome.err:
        yield f"traceback: {last[:300]}"
        return
    if "(a bug, please report it)" in outcome.err:
        yield f"a bug: {last[:300]}"
    if outcome.code not in (0, 1, 2):
        yield f"exit code {outcome.code}: {last[:300]}"
        return
    if outcome.code not in case.codes:
        yield f"exit code {outcome.code} in place of {sorted(case.codes)}: {last[:300] or outcome.out[-300:]!r}"
    if outcome.code == 2 or (outcome.code == 1 and lines):
        if len(lines) != 1:
            yield f"{len(lines)} lines of errors: {lines[:3]}"
        elif not lines[0].startswith("error: "):
            yield f"no error line: {last[:300]}"
    if outcome.code == 2 and not lines:
        yield "exit code 2 without a word"
    if outcome.code == 0 and any(line.startswith(("error", "Error")) for line in lines):
        yield f"exit code 0 with {lines[0][:300]}"
    if outcome.seconds > SLOW:
        yield f"took {outcome.seconds:.0f} s"
    if case.says and outcome.code and case.says not in outcome.err:
        yield f"does not say {case.says!r}: {last[:300]}"
    if len(last) > 1500:
        yield f"an error of {len(last)} characters: {last[:200]}"
    bad = re.search(r"<[\w.]+ object at 0x|errors\.pydantic\.dev|\[type=|Errno|\x1b", last)
    if bad:
        yield f"an error with {bad[0]!r}: {last[:300]}"
    broken = re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]", outcome.err + outcome.out)
    if broken:
        yield f"control character {broken[0]!r} in what is printed: {last[:200]}"


if __name__ == "__main__":
    run_warm()
