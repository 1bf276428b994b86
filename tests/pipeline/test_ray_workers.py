"""The Ray engine on two nodes of one machine: the bytes of a local run, also when an actor or a node is lost."""

import asyncio
import itertools
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trajsmith.api.runs import run
from trajsmith.pipeline import ray_workers
from trajsmith.pipeline.config import RaySettings
from trajsmith.pipeline.raw_records import RawRecord
from trajsmith.pipeline.ray_workers import RayWorker, RayWorkers
from trajsmith.pipeline.worker_frames import WorkOutcome
from trajsmith.records import Chain, InputError, RunError

ray = pytest.importorskip("ray", reason="needs the ray extra")
pytestmark = pytest.mark.timeout(600)

SETTINGS = {
    "name": "ray",
    "seed": 5,
    "environments": [{"library": "bank", "states": {"small": 1}}],
    "sample": {"count": 10, "length": [3, 5]},
    "vary": {"rates": {"refused_call": 0.5}},
    "play": {"candidates": 2, "faulty": 1},
}


def read_files(path: Path) -> dict[str, bytes]:
    """Records, ledgers and states."""
    files = [*path.glob("*.jsonl"), *path.glob("ledger/*.jsonl"), *path.glob("states/*")]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of two cores; the second one is also called `spare`."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1, resources={"spare": 1})
    nodes.wait_for_nodes()
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture(autouse=True)
def disconnect() -> Iterator[None]:
    """Leave the cluster also after a test that failed: the next ones need a driver of their own."""
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("ray") / "local"
    run({**SETTINGS, "engine": {"workers": 1}}, run=path)
    return read_files(path)


def test_a_worker_that_is_lost_as_it_answers_is_waited_for_again() -> None:
    async def choose() -> tuple[int, bool]:
        workers = RayWorkers.__new__(RayWorkers)
        first, again = (asyncio.ensure_future(asyncio.sleep(seconds)) for seconds in (0, 0.05))
        first.add_done_callback(lambda _: workers._answers.__setitem__(0, again))
        workers._answers, workers._load, workers._run = [first], [0], "run"
        return await workers._choose_worker(), again.done()

    assert asyncio.run(choose()) == (0, True)


def run_on_ray(cluster: Any, path: Path) -> dict[str, bytes]:
    run({**SETTINGS, "engine": {"kind": "ray", "workers": 2, "ray": {"address": cluster.address}}}, run=path)
    return read_files(path)


def test_two_nodes_give_the_bytes_of_a_local_run(cluster: Any, local: dict[str, bytes], tmp_path: Path) -> None:
    assert run_on_ray(cluster, tmp_path / "run") == local
    assert not ray.is_initialized()


def test_lost_workers_and_a_lost_node_cost_nothing(
    cluster: Any, local: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[str] = []
    calls = itertools.count(1)
    attempt = RayWorkers.attempt

    async def lose_now_and_then(workers: RayWorkers, stage: str, item: object) -> WorkOutcome:
        number = next(calls)
        if number in {8, 40}:
            ray.kill(workers._actors[0], no_restart=False)
            lost.append("worker")
        if number == 24:
            (node,) = cluster.worker_nodes
            await asyncio.to_thread(cluster.remove_node, node, False)
            cluster.add_node(num_cpus=1, resources={"spare": 1})
            lost.append("node")
        return await attempt(workers, stage, item)

    monkeypatch.setattr(RayWorkers, "attempt", lose_now_and_then)
    assert run_on_ray(cluster, tmp_path / "run") == local
    assert lost == ["worker", "node", "worker"]


def test_a_command_loads_ray_before_the_graph(cluster: Any, tmp_path: Path) -> None:
    """Ray ends a process in which usearch was loaded first: a program that did so is told, and commands do not."""
    given = ["engine.kind=ray", "engine.workers=1", f"engine.ray.address={cluster.address}", "sample.count=1"]
    options = [part for one in given for part in ("--set", one)]
    config = tmp_path / "small.yaml"
    config.write_text("name: small\nenvironments: [{library: bank, states: {small: 1}}]\n")
    command = [sys.executable, "-m", "trajsmith", "run", str(config), "--run", str(tmp_path / "run"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert (done.returncode, "verify by replay: done" in done.stderr) == (0, True), done.stderr
    wrong = "import usearch.index, trajsmith.cli.app as app; app.main()"
    done = subprocess.run(
        [sys.executable, "-c", wrong, "run", str(config), "--run", str(tmp_path / "other"), *options],
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert (done.returncode, "begin the program with `import ray`" in done.stderr) == (2, True), done.stderr


async def test_a_node_that_does_not_see_the_run_directory_says_so(cluster: Any, tmp_path: Path) -> None:
    workers = RayWorkers(tmp_path, RaySettings(address=cluster.address), 1, 1, 1)
    outcome = await workers.attempt("ground", RawRecord(Chain, b"{}\n", "chains.jsonl:1", "chain_1"))
    await workers.close()
    assert outcome.kind == "run_error"
    assert "no run here" in outcome.text
    assert "all nodes" in outcome.text


async def test_workers_that_die_over_one_input_stop_the_run(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dying(RayWorker):
        async def attempt(self, number: int, stage: str, item: Any) -> tuple[Any, ...]:
            os.kill(os.getpid(), signal.SIGKILL)
            return ()

    monkeypatch.setattr(ray_workers, "RayWorker", Dying)
    workers = RayWorkers(tmp_path, RaySettings(address=cluster.address), 1, 1, 1)
    with pytest.raises(RunError, match=r"3 workers of Ray in turn ended with record chain_1 .*engine.kind=local"):
        await workers.attempt("ground", RawRecord(Chain, b"{}\n", "chains.jsonl:1", "chain_1"))
    await workers.close()


async def test_workers_beyond_the_room_get_no_input(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_workers, "CLOSE_SECONDS", 0.5)
    workers = RayWorkers(tmp_path, RaySettings(address=cluster.address), 3, 1, 1)
    items = [RawRecord(Chain, b"{}\n", f"chains.jsonl:{number}", f"chain_{number}") for number in range(6)]
    outcomes = await asyncio.wait_for(asyncio.gather(*(workers.attempt("ground", item) for item in items)), 300)
    assert [outcome.kind for outcome in outcomes] == ["run_error"] * 6, "each says that there is no run"
    assert 1 <= sum(answer.done() for answer in workers._answers) <= 2
    await workers.close()


async def test_a_cluster_that_gives_no_worker_stops_the_run(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_workers, "BACK_SECONDS", 2.0)
    monkeypatch.setattr(ray_workers, "CLOSE_SECONDS", 0.5)
    workers = RayWorkers(tmp_path, RaySettings(address=cluster.address, cpus=64), 1, 1, 1)
    with pytest.raises(RunError, match=r"no worker of Ray answered within 2 s: look at `ray status`"):
        await workers.attempt("ground", RawRecord(Chain, b"{}\n", "chains.jsonl:1", "chain_1"))
    await workers.close()


async def test_a_worker_that_cannot_be_created_says_why_at_once(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(RayWorker):
        def __init__(self, run: str, concurrency: int) -> None:
            raise ModuleNotFoundError("No module named 'shop_tools'")

    monkeypatch.setattr(ray_workers, "RayWorker", Broken)
    workers = RayWorkers(tmp_path, RaySettings(address=cluster.address), 1, 1, 1)
    with pytest.raises(RunError, match=r"cannot be started \(ModuleNotFoundError: No module named 'shop_tools'\)"):
        await workers.attempt("ground", RawRecord(Chain, b"{}\n", "chains.jsonl:1", "chain_1"))
    await workers.close()


@pytest.mark.parametrize(("amount", "reason"), [({"CPU": 1}, "CPU"), ({"tpu_pod": math.inf}, "infinity")])
def test_amounts_that_ray_does_not_take_are_one_line(cluster: Any, tmp_path: Path, amount, reason) -> None:
    with pytest.raises(InputError, match=rf"engine\.ray: .*{reason}") as caught:
        RayWorkers(tmp_path, RaySettings(address=cluster.address, resources=amount), 1, 1, 1)
    assert "\n" not in str(caught.value)
    assert not ray.is_initialized()


def test_a_cluster_without_room_is_one_line(cluster: Any, tmp_path: Path) -> None:
    asked = RaySettings(address=cluster.address, resources={"tpu_pod": 1})
    with pytest.raises(InputError, match="a worker needs 1 CPU, 1 tpu_pod, and the cluster has 2 CPU, 0 tpu_pod"):
        RayWorkers(tmp_path, asked, "auto", 1000, 8)
    assert not ray.is_initialized()


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"engine.ray: 127.0.0.1:1 does not answer"):
        RayWorkers(tmp_path, RaySettings(address="127.0.0.1:1"), 1, 1, 8)
