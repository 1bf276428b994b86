"""Workers: the same bytes whatever their number, killed or not, and only where they pay."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trajsmith.api.runs import resume, run
from trajsmith.pipeline import runner, worker_pool
from trajsmith.pipeline.raw_records import RawReader, RawRecord, load_item
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.worker_frames import WorkOutcome, WorkRequest, pack_frame
from trajsmith.pipeline.worker_pool import MOST_DEATHS, WorkerPool, choose_worker_count
from trajsmith.pipeline.worker_serving import serve_requests
from trajsmith.records import Chain, InputError, RunError

CHAINS = 24
SETTINGS = {
    "name": "workers",
    "seed": 3,
    "environments": [{"library": "bank", "states": {"small": 1}}, {"library": "mobile_care", "states": {"small": 1}}],
    "sample": {"count": CHAINS, "length": [3, 5]},
    "vary": {"rates": {"refused_call": 0.5, "batch_request": 0.4}},
    "play": {"candidates": 2, "faulty": 1},
}
RECORDS = ("chains", "grounded", "tasks", "varied", "trajectories", "verdicts")


def settings(workers: object) -> dict[str, object]:
    return SETTINGS | {"engine": {"workers": workers}}


def content(path: Path) -> dict[str, bytes]:
    """Records, ledgers and states."""
    files = [*path.glob("*.jsonl"), *path.glob("ledger/*.jsonl"), *path.glob("states/*")]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("workers") / "alone"
    run(settings(1), run=path)
    found = content(path)
    assert {f"{name}.jsonl" for name in RECORDS} <= found.keys()
    return found


@pytest.mark.parametrize("workers", [2, 3])
def test_any_number_of_workers_gives_the_same_bytes(workers: int, alone: dict[str, bytes], tmp_path: Path) -> None:
    run(settings(workers), run=tmp_path / "run")
    assert content(tmp_path / "run") == alone


def test_a_killed_worker_is_replaced_and_nothing_is_lost(
    alone: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    attempt = WorkerPool.attempt

    async def kill_now_and_then(pool: WorkerPool, stage: str, item: object) -> WorkOutcome:
        if pool._number in {10, 60, 100} and pool.processes:
            killed.append(pool.processes[0])
            os.kill(killed[-1], signal.SIGKILL)
        return await attempt(pool, stage, item)

    monkeypatch.setattr(WorkerPool, "attempt", kill_now_and_then)
    run(settings(2), run=tmp_path / "run")
    assert len(set(killed)) == 3
    assert content(tmp_path / "run") == alone


def test_a_driver_that_is_killed_takes_its_workers_along_and_resumes(alone: dict[str, bytes], tmp_path: Path) -> None:
    path, script = tmp_path / "run", tmp_path / "driver.py"
    # no guard of __main__: workers must not run the caller's program
    script.write_text(f"import trajsmith\ntrajsmith.run({settings(2)!r}, run={str(path)!r})\n")
    driver = subprocess.Popen([sys.executable, str(script)])
    try:
        written = path / "tasks.jsonl"
        end = time.monotonic() + 120
        while not (written.is_file() and written.stat().st_size) and time.monotonic() < end:
            time.sleep(0.01)
        workers = find_children(driver.pid)
        assert len(workers) == 2
    finally:
        driver.kill()
        driver.wait()
    end = time.monotonic() + 60
    while any(Path(f"/proc/{pid}/cmdline").exists() and is_running(pid) for pid in workers):
        assert time.monotonic() < end, "a worker outlives its driver"
        time.sleep(0.05)
    resume(path)
    assert content(path) == alone


def test_a_worker_whose_driver_was_killed_ends_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    incoming, requests = os.pipe()
    outcomes, outgoing = os.pipe()
    attempted: list[int] = []

    class Worker:
        async def attempt(self, request: WorkRequest) -> WorkOutcome:
            attempted.append(request.number)
            os.close(outcomes)  # what the kernel does with the pipes of a driver that dies
            os.close(requests)
            return WorkOutcome(request.number, "records")

        async def close(self) -> None: ...

    async def open_worker() -> Worker:
        return Worker()

    os.write(requests, pack_frame(WorkRequest(1, "play", None)))
    asyncio.run(serve_requests(open_worker, incoming, outgoing))
    os.close(outgoing)
    gc.collect()
    assert attempted == [1]
    assert not caplog.records, "asyncio tells of a task whose fault nobody took"


def find_children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


async def test_workers_that_die_over_one_input_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "BOOT", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    pool = WorkerPool(tmp_path, 1, 8)
    item = RawRecord(Chain, b"{}\n", "chains.jsonl:1", "chain_1")
    with pytest.raises(RunError, match=f"{MOST_DEATHS} worker processes .*signal 9.*chain_1.*engine.workers=1"):
        await asyncio.wait_for(pool.attempt("ground", item), 60)
    await pool.close()


async def test_a_worker_that_cannot_open_the_run_says_why(tmp_path: Path) -> None:
    pool = WorkerPool(tmp_path / "nowhere", 1, 8)
    with pytest.raises(RunError, match="no run here"):
        await asyncio.wait_for(pool.attempt("ground", RawRecord(Chain, b"", "x", "chain_1")), 60)
    await pool.close()
    assert pool.processes == []


async def test_a_record_that_was_changed_by_hand_is_wrong_input(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(settings(1), run=path)
    lines = (path / "chains.jsonl").read_bytes().replace(b'"index":1', b'"index":7', 1)
    (path / "chains.jsonl").write_bytes(lines)
    for name in ("grounded.jsonl", "ledger/ground.jsonl"):
        (path / name).unlink()
    (path / "config.yaml").write_text((path / "config.yaml").read_text().replace("workers: 1", "workers: 2"))
    with pytest.raises(InputError, match=r"chains.jsonl:\d+: changed by hand"):
        await runner.run_one_stage(RunDirectory.open(path), "ground")


@pytest.mark.parametrize(
    ("workers", "inputs", "cores", "expected"),
    [
        pytest.param("auto", 100, 8, 1, id="too_few_records"),
        pytest.param("auto", 320, 8, 2, id="two"),
        pytest.param("auto", 10**6, 8, 8, id="all_cores"),
        pytest.param("auto", 10**6, 1, 1, id="one_core"),
        pytest.param(3, 1, 1, 3, id="as_asked"),
    ],
)
def test_workers_are_started_where_they_pay(
    workers: object, inputs: int, cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "count_cores", lambda: cores)
    assert choose_worker_count(workers, inputs) == expected  # type: ignore[arg-type]


def test_raw_records_are_parsed_where_they_are_used() -> None:
    chain = Chain(environment="bank", tools=("a",), seed=5, index=0, state="0" * 64, dependencies=(), sampler={})
    raw = RawReader(Chain).from_line(chain.to_line(), "chains.jsonl:1")
    assert (raw.id, raw.seed) == (chain.id, 5)
    assert load_item((raw, None)) == (chain, None)
    with pytest.raises(InputError, match=r"chains.jsonl:2: not a record"):
        RawReader(Chain).from_line(b"[]\n", "chains.jsonl:2")


@pytest.mark.parametrize("workers", ["auto", 2])
def test_plugins_of_this_program_stay_in_this_process(
    workers: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trajsmith.toolgraph import SAMPLERS

    monkeypatch.setattr(worker_pool, "ITEMS_PER_WORKER", 1)
    monkeypatch.setattr(worker_pool, "count_cores", lambda: 2)
    sampler = SAMPLERS.get("random_walk")
    monkeypatch.setattr(SAMPLERS, "_things", dict(SAMPLERS._things))
    monkeypatch.setattr(SAMPLERS, "_modules", dict(SAMPLERS._modules))
    monkeypatch.setattr(SAMPLERS, "_loaded", dict(SAMPLERS._loaded))
    SAMPLERS.register("of_a_notebook")(sampler)
    few = settings(workers) | {"sample": {"count": 4, "length": [3, 4], "method": "of_a_notebook"}}
    opened: list[object] = []

    async def start(pool: WorkerPool) -> object:
        opened.append(pool)
        raise AssertionError("a worker is started")

    monkeypatch.setattr(WorkerPool, "_start", start)
    if workers == "auto":
        run(few, run=tmp_path / "run")
        assert (tmp_path / "run" / "verdicts.jsonl").stat().st_size and not opened
    else:
        with pytest.raises(InputError, match=r"engine.workers: 2: .*'of_a_notebook'.*engine.workers=1"):
            run(few, run=tmp_path / "run")
        run(few | {"engine": {"workers": 1}}, run=tmp_path / "run", fresh=True)
