"""Dialogues with every role played over HTTP by a server that fails, killed on the way and resumed.

    python benchmarks/language_faults.py [DIALOGUES] [--kills N]      # 5000 and 3 if not given

Of the requests 30 % fail, in fourteen ways. The run is killed with SIGKILL after some of its work and resumed. In the
end every record must be accepted or have a reason, none may be lost or be there twice, and nothing may be paid twice
but what was in flight when the run was killed. Exit code 1 if one of these does not hold.
"""

import argparse
import json
import os
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

from trajsmith.journal import ledger_counts  # noqa: E402
from trajsmith.rundir import RunDirectory  # noqa: E402
from trajsmith.stages import ORDER  # noqa: E402

CONCURRENCY = 64
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
sample: {{count: {count}, length: [6, 11]}}
models: {{local: {{model: test-model, base_url: "{url}", concurrency: {concurrency}, timeout: 20, deadline: 90,
  attempts: 12, first_wait: 0.05, longest_wait: 1.0, outage_after: 1000}}}}
roles: {{writer: local, user: local, agent: local, judge: local}}
engine: {{concurrency: {concurrency}}}
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("dialogues", type=int, nargs="?", default=5000)
    parser.add_argument("--kills", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return work(Path(folder), given.dialogues, given.kills)


def work(folder: Path, count: int, kills: int) -> int:
    run, config = folder / "run", folder / "faults.yaml"
    os.environ[RUN] = str(run)
    os.environ["PYTHONPATH"] = str(ROOT)
    start = time.monotonic()
    with RunningServer(script=str(SERVER / "speaking.py"), faults=FAULTS) as server:
        config.write_text(CONFIG.format(count=count, url=server.url, concurrency=CONCURRENCY))
        command = ["run", str(config), "--run", str(run)]
        for kill in range(kills):
            killed = until(command, run, wanted=(kill + 1) * count * 20 // (kills + 1))
            print(f"killed after {killed} paid requests", flush=True)
            command = ["resume", str(run)]
        code = subprocess.run([sys.executable, "-m", "trajsmith.cli", *command], check=False).returncode
        return report(run, code, server.stats(), kills, time.monotonic() - start)


def until(command: list[str], run: Path, wanted: int) -> int:
    """Start or resume the run, and kill it as soon as so many requests are paid; gives their number."""
    process = subprocess.Popen([sys.executable, "-m", "trajsmith.cli", *command], stdout=subprocess.DEVNULL)
    while process.poll() is None and paid(run) < wanted:
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return paid(run)


def paid(run: Path) -> int:
    file = run / "usage.jsonl"
    return file.read_bytes().count(b"\n") if file.is_file() else 0


def report(run: Path, code: int, stats: dict[str, Any], kills: int, seconds: float) -> int:
    summary = json.loads((run / "summary.json").read_bytes())
    faults = list(problems(run, summary, stats, kills))
    failed = sum(stats["faults"].values())
    print(f"{stats['requests']} requests, {failed / stats['requests']:.1%} failed: {stats['faults']}")
    print(f"{summary['funnel']}, rejected {summary['rejected']}")
    print({stage["name"]: stage["dropped"] for stage in summary["stages"] if stage["dropped"]})
    print(f"answered twice: {stats['answered_twice']} (in flight at {kills} kills: at most {kills * CONCURRENCY})")
    print(f"{seconds:.0f} s; exit code {code}; {'; '.join(faults) or 'everything accounted for'}")
    return 1 if code or faults else 0


def problems(run: Path, summary: dict[str, Any], stats: dict[str, Any], kills: int) -> Iterator[str]:
    """What does not hold, in words."""
    opened = RunDirectory.open(run)
    for name in ORDER:
        read, written, dropped = ledger_counts(opened, name)
        if read != written + sum(dropped.values()):
            yield f"{name}: {read} in, {written} out, {sum(dropped.values())} dropped"
    before = summary["funnel"]["sampled"]
    for name in ORDER[1:]:
        read, written, _ = ledger_counts(opened, name)
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
    if stats["answered_twice"] > kills * CONCURRENCY:
        yield f"{stats['answered_twice']} requests were paid twice"


if __name__ == "__main__":
    sys.exit(main())
