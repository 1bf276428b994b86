"""Dialogues with every role played over HTTP by a server that fails, killed on the way and resumed.

    python benchmarks/language_faults.py [DIALOGUES] [--kills N]      # 5000 and 3 if not given

Of the requests 30 % fail, in fourteen ways. The run is killed with SIGKILL after some of its work and resumed. In the
end every record must be accepted or have a reason, none may be lost or be there twice, and nothing may be paid twice
but what was in flight when the run was killed. Exit code 1 if one of these does not hold.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SERVER = ROOT / "tests" / "language_server"
sys.path[:0] = [str(ROOT), str(SERVER)]

from running_server import RunningServer  # noqa: E402 - beside the tests
from speaking import RUN  # noqa: E402

from trajsmith.pipeline.config import load_config  # noqa: E402
from trajsmith.pipeline.journal import count_ledger  # noqa: E402
from trajsmith.pipeline.run_directory import RunDirectory  # noqa: E402
from trajsmith.pipeline.stages import list_stages  # noqa: E402

CONCURRENCY = 64
TIMEOUT, DEADLINE = 5, 40
"""Seconds for an attempt, and for a request with all its attempts; the server answers at once or never."""
ON_THE_WAY = 1
"""Seconds that a busy machine may take between the client's clock and the server's."""
FAULTS = {
    **dict.fromkeys(("content_filter", "overflow"), 0.003),
    "stall": 0.004,
    **dict.fromkeys(("rate_limit", "server_error", "overloaded", "drop", "half", "garbage", "empty", "silent"), 0.034),
    **dict.fromkeys(("wrong_tool", "bad_arguments", "bad_schema"), 0.017),
}
"""Those that end a record are rare, as they are in life. The last three only show where they apply: 30 % in effect."""
CONFIG = """
name: faults
seed: 5
environments: [{{library: "*", states: {{small: 2}}}}]
sample: {{count: {count}, length: [4, 7]}}
models: {{local: {{model: test-model, base_url: "{url}", concurrency: {concurrency}, timeout: {timeout},
  deadline: {deadline}, attempts: 12, first_wait: 0.05, longest_wait: 1.0, outage_after: 1000}}}}
roles: {{writer: local, user: local, agent: local, judge: local}}
engine: {{concurrency: {concurrency}}}
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("dialogues", type=int, nargs="?", default=5000)
    parser.add_argument("--kills", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return work(Path(folder), arguments.dialogues, arguments.kills)


def work(folder: Path, count: int, kills: int) -> int:
    run, config = folder / "run", folder / "faults.yaml"
    os.environ[RUN] = str(run)
    os.environ["PYTHONPATH"] = str(ROOT)
    start = time.monotonic()
    with RunningServer(script=str(SERVER / "speaking.py"), faults=FAULTS) as server:
        limits = {"concurrency": CONCURRENCY, "timeout": TIMEOUT, "deadline": DEADLINE}
        config.write_text(CONFIG.format(count=count, url=server.url, **limits))
        command = ["run", str(config), "--run", str(run)]
        for kill in range(kills):
            killed = until(command, run, wanted=(kill + 1) * count * 13 // (kills + 1))
            print(f"killed after {killed} paid requests", flush=True)
            server.change()  # requests from here on are new ones
            command = ["resume", str(run)]
        code = subprocess.run([sys.executable, "-m", "trajsmith", *command], check=False).returncode
        return report(run, code, server.stats(), kills, time.monotonic() - start)


def until(command: list[str], run: Path, wanted: int) -> int:
    """Start or resume the run, and kill it as soon as so many requests are paid; gives their number."""
    process = subprocess.Popen([sys.executable, "-m", "trajsmith", *command], stdout=subprocess.DEVNULL)
    paid = Lines(run / "usage.jsonl")
    while process.poll() is None and paid.so_far() < wanted:
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return paid.so_far()


class Lines:
    """Counts the lines of a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = self._lines = 0

    def so_far(self) -> int:
        if self._path.is_file():
            with self._path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
            self._read += len(new)
            self._lines += new.count(b"\n")
        return self._lines


def report(run: Path, code: int, stats: dict[str, Any], kills: int, seconds: float) -> int:
    summary = json.loads((run / "summary.json").read_bytes())
    faults = list(problems(run, summary, stats, kills))
    failed = sum(stats["faults"].values())
    print(f"{stats['requests']} requests, {failed / stats['requests']:.1%} failed: {stats['faults']}")
    print(f"{summary['funnel']}, rejected {summary['rejected']}")
    print({stage["name"]: stage["dropped"] for stage in summary["stages"] if stage["dropped"]})
    print(f"answered twice: {stats['answered_twice']} (in flight at {kills} kills: at most {kills * CONCURRENCY})")
    longest = stats["longest_request"]
    print(f"longest request, from its first attempt to its last: {longest:.1f} s (deadline {DEADLINE} s)")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{seconds:.0f} s, CPU {used.ru_utime + used.ru_stime:.0f} s; exit code {code}; ", end="")
    print("; ".join(faults) or "everything accounted for")
    return 1 if code or faults else 0


def problems(run: Path, summary: dict[str, Any], stats: dict[str, Any], kills: int) -> Iterator[str]:
    """Describe every condition that does not hold."""
    opened = RunDirectory.open(run)
    stages = list_stages(load_config(opened.config_path))
    for name in stages:
        read, written, dropped, _ = count_ledger(opened, name)
        if read != written + sum(dropped.values()):
            yield f"{name}: {read} in, {written} out, {sum(dropped.values())} dropped"
    before = summary["funnel"]["sampled"]
    for name in stages[1:]:
        read, written, *_ = count_ledger(opened, name)
        if read != before:
            yield f"{name}: {read} records came in of {before}"
        before = written
    for file in ("chains", "grounded", "tasks", "trajectories", "verdicts"):
        ids = Counter(json.loads(line)["id"] for line in (run / f"{file}.jsonl").open("rb"))
        if len(ids) != ids.total():
            yield f"{file}: {ids.total() - len(ids)} records twice"
    verdicts = [json.loads(line) for line in (run / "verdicts.jsonl").open("rb")]
    silent = [one["id"] for one in verdicts if not one["accepted"] and not one["reasons"]]
    if silent:
        yield f"{len(silent)} verdicts without a reason"
    if stats["longest_request"] > DEADLINE + ON_THE_WAY:
        yield f"a request took {stats['longest_request']:.0f} s"
    if stats["answered_twice"] > kills * CONCURRENCY:
        yield f"{stats['answered_twice']} requests were paid twice"


if __name__ == "__main__":
    sys.exit(main())
