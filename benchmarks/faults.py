"""Faults of machines at random moments of runs, which are resumed: every record and byte must be that of a calm run.

    python benchmarks/faults.py                      # every fault, ten times each; hours on a busy machine
    python benchmarks/faults.py --only driver worker --count 24

Each run is the command line in a process of its own, on the quick start's settings with few chains. A run is disturbed
several times, in a random order of stages: at a random record, up to 50 ms after it, and at random moments of start and
export. In the end all files of the run directory are compared with those of an undisturbed run: records, ledgers,
states, graph, dataset, card, report and pages. Not compared are wall and CPU times, the settings `run` and `engine`,
and the order of the lines of `usage.jsonl`, which is that of the answers. Exit code 1 if a run differs, a traceback was
printed, or an answer was paid twice.
"""

import argparse
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import psutil
from _fault_runs import ROOT, Act, Bench, Driver, FaultResult, LeftOut, environment_of, list_workers, measure_calm

SERVER = ROOT / "tests" / "language_server"
sys.path[:0] = [str(ROOT), str(SERVER)]

from running_server import RunningServer  # noqa: E402 - beside the tests
from speaking import RUN  # noqa: E402

COMPUTING = ("ground", "write", "vary", "play", "verify")
LOCAL_WORKERS = ("trajsmith.pipeline.worker_process", "trajsmith.pipeline.export_worker")
RAY_WORKERS = ("ray::RayWorker",)
LOOK_SECONDS = 0.05
"""Between two looks for a worker, where there is none yet."""
SLOW_MILLISECONDS = 20
SPARE_MIB = 48
"""Room on the small disk beside what a run takes."""
LATENCY, CONCURRENCY = 0.05, 8
MODELS = """
name: paid
seed: 5
environments: [{{library: "*", states: {{small: 1}}}}]
sample: {{count: {count}, length: [4, 7]}}
models: {{local: {{model: test-model, base_url: "{url}", concurrency: {concurrency}, first_wait: 0.05}}}}
roles: {{writer: local, agent: local}}
engine: {{concurrency: {concurrency}}}
"""


def kill_driver(driver: Driver) -> bool:
    """SIGKILL of the driver."""
    driver.kill()
    return False


def quick(bench: Bench, workers: int = 1, *options: str) -> list[str]:
    """Words of a quick start; the last one is the run directory."""
    return ["run", "quickstart", *bench.settings(workers), *options, "--run", "RUN"]


def try_driver(bench: Bench, row: FaultResult) -> None:
    """SIGKILL of the driver"""
    bench.disturb(row, kill_driver, bench.calm, quick(bench))


def try_driver_with_workers(bench: Bench, row: FaultResult) -> None:
    """SIGKILL of the driver of two workers"""
    bench.disturb(row, kill_driver, bench.calm, quick(bench, 2))


def make_worker_killer(bench: Bench, root: Callable[[Driver], int], marks: tuple[str, ...]) -> Act:
    """Return a fault that ends a random worker below a process."""

    def kill_worker(driver: Driver) -> bool | None:
        while driver.is_running:
            if workers := list_workers(root(driver), marks):
                with suppress(psutil.NoSuchProcess):
                    bench.dice.choice(workers).kill()
                    return True
            time.sleep(LOOK_SECONDS)
        return None

    return kill_worker


def try_worker(bench: Bench, row: FaultResult) -> None:
    """SIGKILL of a worker process, of two"""
    kill = make_worker_killer(bench, lambda driver: driver.pid, LOCAL_WORKERS)
    bench.disturb(row, kill, bench.calm, quick(bench, 2), stages=(*COMPUTING, "export"), may_stop=True)


@contextmanager
def open_cluster() -> Iterator[Any]:
    """Two nodes of Ray on this machine, of one core each."""
    try:
        from ray.cluster_utils import Cluster
    except ImportError as error:
        raise LeftOut("needs Ray") from error
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - its name; workers get no turn on a busy machine otherwise
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        cluster.shutdown()


def disturb_ray(bench: Bench, row: FaultResult, make_act: Callable[[Any], Act]) -> None:
    """Disturb runs on a cluster of two nodes."""
    with open_cluster() as cluster:
        options = ["--set", "engine.kind=ray", "--set", f"engine.ray.address={cluster.address}"]
        bench.disturb(row, make_act(cluster), bench.calm, quick(bench, 2, *options), stages=COMPUTING, may_stop=True)


def try_ray_worker(bench: Bench, row: FaultResult) -> None:
    """SIGKILL of a worker of Ray, of two"""
    disturb_ray(bench, row, lambda cluster: make_worker_killer(bench, lambda driver: os.getpid(), RAY_WORKERS))


def try_ray_node(bench: Bench, row: FaultResult) -> None:
    """SIGKILL of a node of Ray, of two; another one joins"""

    def make_act(cluster: Any) -> Act:
        def lose_node(driver: Driver) -> bool:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
            cluster.add_node(num_cpus=1)
            return True

        return lose_node

    disturb_ray(bench, row, make_act)


@contextmanager
def open_small_disk(bench: Bench) -> Iterator[Path]:
    """A file system of its own with little room."""
    folder = bench.folder / "disk"
    folder.mkdir()
    taken = sum(path.stat().st_size for path in bench.calm.path.rglob("*") if path.is_file()) >> 20
    options = f"size={taken + SPARE_MIB}m"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        raise LeftOut(f"cannot mount a small file system: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(path: Path) -> None:
    """Take all the room that a file system has."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass


def try_full_disk(bench: Bench, row: FaultResult) -> None:
    """disk full at one moment; room is made after the run has ended with one line"""
    with open_small_disk(bench) as disk:

        def fill_disk(driver: Driver) -> bool | None:
            ballast = disk / "ballast"
            fill(ballast)
            code = driver.finish()
            ballast.unlink()
            if fault := driver.find_fault((0, 1)):
                row.problems.append(fault)
            row.stopped += code == 1
            return False if code else None

        bench.disturb(row, fill_disk, bench.calm, quick(bench), folder=disk)


def try_slow_disk(bench: Bench, row: FaultResult) -> None:
    """each write takes 20 ms more, and the driver is killed"""
    bench.disturb(row, kill_driver, bench.calm, quick(bench), environment=lambda run: fail_disk(bench, run, "slow"))


def try_clock(bench: Bench, row: FaultResult) -> None:
    """the clock jumps by up to ten years, to and fro, at each write, and the driver is killed"""
    bench.disturb(row, kill_driver, bench.calm, quick(bench), environment=lambda run: fail_disk(bench, run, "wander"))


def fail_disk(bench: Bench, run: Path, kind: str) -> dict[str, str]:
    """Variables of the preloaded library: a fault at every call below the run directory."""
    fault = {"FAULT_KIND": kind, "FAULT_AT": "1", "FAULT_STAY": "1", "FAULT_SLOW": str(SLOW_MILLISECONDS)}
    return {"LD_PRELOAD": str(bench.library), "FAULT_ROOT": str(run), **fault}


def try_two_drivers(bench: Bench, row: FaultResult) -> None:
    """a second driver starts while the first works; half of the first are killed then, and a second one goes on"""
    refused = Counter[str]()

    def start_second(driver: Driver) -> bool | None:
        driver.send(signal.SIGSTOP)  # the first must still be there when the second comes to the lock
        if (driver.run / ".lock").read_text("ascii").strip() != str(driver.pid):
            driver.send(signal.SIGCONT)
            return None
        before = list_sizes(driver.run)
        second = Driver(["resume", str(driver.run)], driver.run)
        code = second.finish()
        if code != 1 or f"process {driver.pid}" not in second.error or second.find_fault((1,)):
            row.problems.append(f"the second driver: exit code {code}: {second.error or second.find_fault((1,))}")
        if list_sizes(driver.run) != before:
            row.problems.append("the second driver changed files of the run")
        refused["refused"] += 1
        driver.send(signal.SIGCONT)
        if refused["refused"] % 2:
            refused["first killed"] += 1
            return kill_driver(driver)
        return True

    stages = tuple(stage for stage in bench.calm.stages if stage != "start")
    bench.disturb(row, start_second, bench.calm, quick(bench), stages=stages)
    row.notes.append(f"{refused['refused']} refused, {refused['first killed']} of the first killed")


def list_sizes(run: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of every file."""
    files = {path: path.stat() for path in run.rglob("*") if path.is_file()}
    return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in files.items()}


def try_models(bench: Bench, row: FaultResult) -> None:
    """SIGKILL of the driver while models write and play, by requests that a server counts"""
    config, calm_run = bench.folder / "models.yaml", bench.folder / "calm-models" / "run"
    calm_run.parent.mkdir()
    server = RunningServer(script=str(SERVER / "speaking.py"), latency=LATENCY)
    with environment_of({RUN: str(calm_run), "PYTHONPATH": str(ROOT)}), server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        config.write_text(MODELS.format(count=bench.count, url=server.url, concurrency=CONCURRENCY))
        calm = measure_calm(Driver(["run", str(config), "--run", str(calm_run)], calm_run))
    expected, lost, paid = read_bill(calm_run), 0, 0

    with ExitStack() as servers:

        def open_server(run: Path) -> dict[str, str]:
            servers.close()
            with environment_of({RUN: str(run), "PYTHONPATH": str(ROOT)}):
                settings = {"script": str(SERVER / "speaking.py"), "latency": LATENCY, "port": port}
                open_server.server = servers.enter_context(RunningServer(**settings))  # type: ignore[attr-defined]
            return {}

        def check_bill(run: Path) -> None:
            nonlocal lost, paid
            bill = read_bill(run)
            answered = open_server.server.stats()["answered"]  # type: ignore[attr-defined]
            paid += bill.total()
            lost += answered - bill.total()
            with sqlite3.connect(run / "cache" / "answers.sqlite") as database:
                (answers,) = database.execute("SELECT COUNT(*) FROM answers").fetchone()
            if bill.total() != answers:
                row.problems.append(f"{bill.total()} answers were paid and {answers} are kept")
            if bill != expected:
                row.problems.append(f"paid otherwise than in a calm run: {bill - expected}, {expected - bill}")

        bench.disturb(
            row, kill_driver, calm, ["run", str(config), "--run", "RUN"], environment=open_server, after=check_bill
        )
    row.notes.append(f"{paid} paid answers were kept, none twice; {lost} were in flight at a kill and asked again")


def read_bill(run: Path) -> Counter[str]:
    """Paid answers by purpose, record and tokens; the order is that of the answers."""
    lines = (orjson.loads(line) for line in (run / "usage.jsonl").read_bytes().splitlines())
    return Counter(f"{line['purpose']} {line['record']} {line['completion_tokens']}" for line in lines)


FAULTS: dict[str, Callable[[Bench, FaultResult], None]] = {
    "driver": try_driver, "driver_with_workers": try_driver_with_workers, "worker": try_worker,
    "ray_worker": try_ray_worker, "ray_node": try_ray_node, "full_disk": try_full_disk, "slow_disk": try_slow_disk,
    "clock": try_clock, "two_drivers": try_two_drivers, "models": try_models,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=24, help="chains of a run")
    parser.add_argument("--occurrences", type=int, default=10, help="of each fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", nargs="+", choices=FAULTS, default=list(FAULTS), metavar="FAULT", help=", ".join(FAULTS)
    )
    options = parser.parse_args()
    print("| fault | occurrences | by stage | runs | equal | stopped with one line | seen |")
    print("|---|---:|---|---:|---:|---:|---|", flush=True)
    failed = False
    with tempfile.TemporaryDirectory(prefix="trajsmith-faults-") as folder:
        bench = Bench(Path(folder), options.count, options.occurrences, options.seed)
        for name in options.only:
            row = FaultResult(" ".join((FAULTS[name].__doc__ or name).split()))
            try:
                FAULTS[name](bench, row)
            except LeftOut as reason:
                print(f"| {row.fault} | left out: {reason} | | | | | |", flush=True)
                continue
            wrong = bool(row.problems) or row.occurrences < options.occurrences
            failed |= wrong
            stages = ", ".join(f"{stage} {number}" for stage, number in row.stages.items())
            seen = "; ".join([*row.notes, f"{len(row.problems)} problems" if wrong else "nothing wrong"])
            print(
                f"| {row.fault} | {row.occurrences} | {stages} | {row.runs} | {row.equal} | {row.stopped} | {seen} |",
                flush=True,
            )
            for problem in row.problems:
                print(f"{name}: {problem}", file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
