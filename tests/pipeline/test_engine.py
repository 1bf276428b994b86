"""The local engine: order, window, drops, crashes, and that a killed run ends byte for byte like an undisturbed one."""

import asyncio
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from typing import ClassVar

import pytest
from rich.console import Console

from trajsmith.pipeline.engine import AHEAD, PipelineStage, run_stage, summarize_stage
from trajsmith.pipeline.journal import read_ledger
from trajsmith.pipeline.progress import open_progress
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.stage_times import read_stage_times
from trajsmith.records import EnvironmentFault, InputError, Record, RecordDropped, RunError
from trajsmith.records.journal import read_records

ROOT = Path(__file__).parents[2]


class Item(Record):
    PREFIX: ClassVar[str] = "item"

    number: int


class Pair(Record):
    PREFIX: ClassVar[str] = "pair"

    item: str
    part: int


def numbers(stop):
    return [(f"n{number}", number) for number in range(stop)]


def maker(work):
    return PipelineStage(name="make", work=work, output="items.jsonl", output_model=Item)


async def make(number):
    return [Item(number=number)]


async def split(item):
    """0 to 2 records, some of them after a wait whose length has nothing to do with the record's place."""
    digest = hashlib.sha256(item.id.encode()).digest()
    await asyncio.sleep(digest[0] / 100_000)
    if digest[1] % 7 == 0:
        raise RecordDropped("seventh", item.id)
    return [Pair(item=item.id, part=part) for part in range(digest[1] % 3)]


SPLIT = PipelineStage(
    name="split", work=split, input="items.jsonl", input_model=Item, output="pairs.jsonl", output_model=Pair
)


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create(tmp_path / "run", "seed: 1\n")
    with run.lock():
        yield run


def made(run):
    return [item.number for item in read_records(run.path / "items.jsonl", Item)]


def content(run):
    names = ["items.jsonl", "pairs.jsonl", "ledger/make.jsonl", "ledger/split.jsonl"]
    return {name: (run.path / name).read_bytes() for name in names}


async def test_results_are_in_order_whatever_the_delays(run):
    delays = random.Random(1)

    async def work(number):
        await asyncio.sleep(delays.random() / 100)
        return [Item(number=number)]

    summary = await run_stage(maker(work), run, numbers(200), concurrency=16)
    assert made(run) == list(range(200))
    assert (summary.name, summary.read, summary.written, summary.dropped) == ("make", 200, 200, {})


@pytest.mark.parametrize("concurrency", [1, 3, 16])
async def test_no_more_in_flight_than_allowed_and_few_taken_up(run, concurrency):
    running = most_running = taken = most_taken = 0
    all_at_work, window_full = asyncio.Event(), asyncio.Event()
    ledger = run.path / "ledger" / "make.jsonl"

    def inputs():
        nonlocal taken, most_taken
        for pair in numbers(300):
            taken += 1
            most_taken = max(most_taken, taken - len(ledger.read_bytes().splitlines()))
            if most_taken == AHEAD * concurrency:
                window_full.set()
            yield pair

    async def work(number):
        nonlocal running, most_running
        running += 1
        most_running = max(most_running, running)
        if running == concurrency:
            all_at_work.set()
        await all_at_work.wait()
        await (window_full.wait() if number == 0 else asyncio.sleep(0))
        running -= 1
        return [Item(number=number)]

    await run_stage(maker(work), run, inputs(), concurrency=concurrency)
    assert most_running == concurrency
    assert most_taken == AHEAD * concurrency
    assert made(run) == list(range(300))


async def test_work_that_never_waits_is_committed_one_by_one(run):
    ledger = run.path / "ledger" / "make.jsonl"
    behind = []

    async def work(number):
        behind.append(number - len(ledger.read_bytes().splitlines()))
        return [Item(number=number)]

    await run_stage(maker(work), run, numbers(100), concurrency=8)
    assert set(behind) == {0}


async def test_the_loop_lives_beside_work_that_never_waits(run):
    beats = 0

    async def beat():
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    await run_stage(maker(make), run, numbers(100))
    heart.cancel()
    assert beats >= 100


async def test_drops_and_faults_are_counted_under_their_reason(run):
    async def work(number):
        if number % 4 == 0:
            raise RecordDropped("too_short", f"{number} calls")
        if number % 4 == 1:
            raise EnvironmentFault("timeout", "shop", "no answer in 30 s", "buy")
        return [] if number % 4 == 2 else [Item(number=number), Item(number=-number)]

    summary = await run_stage(maker(work), run, numbers(10))
    assert (summary.read, summary.written) == (10, 4)
    assert summary.dropped == {"environment_fault:timeout": 3, "too_short": 3}
    rows = list(read_ledger(run.path / "ledger" / "make.jsonl"))
    assert rows[1].drop.detail == "shop.buy: timeout: no answer in 30 s"
    assert rows[2].drop is None and rows[2].outputs == ()
    assert summarize_stage(run, "make") == summary


class Outage(RunError):
    pass


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (InputError("no such model"), InputError, "^no such model$"),
        (Outage("endpoint is down"), Outage, "^endpoint is down$"),
        (KeyError("price"), RunError, r"^stage make, record n5: KeyError: 'price' \(a bug"),
        (ValueError("two\nlines"), RunError, r"record n5: ValueError: two lines \(a bug"),
        (asyncio.CancelledError(), RunError, "record n5: the work cancelled itself"),
    ],
    ids=["input", "run", "bug", "multi-line bug", "self-cancelled"],
)
async def test_errors_stop_the_run_and_keep_what_was_committed(run, error, kind, reason):
    async def work(number):
        await asyncio.sleep(0.001 * (number % 3))
        if number == 5:
            raise error
        return [Item(number=number)]

    with pytest.raises(kind, match=reason) as caught:
        await run_stage(maker(work), run, numbers(50))
    assert caught.value is error or caught.value.__cause__ is error
    assert made(run) == [0, 1, 2, 3, 4]
    await run_stage(maker(make), run, numbers(50))
    assert made(run) == list(range(50))


async def test_a_record_of_the_wrong_kind_is_a_bug(run):
    async def work(number):
        return [Pair(item="x", part=number)]

    with pytest.raises(RunError, match="stage make, record n0: gave a Pair in place of a Item"):
        await run_stage(maker(work), run, numbers(1))


async def test_cancelled_nothing_is_left_running_and_the_rest_follows_on_resume(run):
    state = {"running": 0, "cancelled": 0}
    reached = asyncio.Event()

    async def work(number):
        state["running"] += 1
        try:
            if number >= 10:
                reached.set()
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            state["cancelled"] += 1
            raise
        finally:
            state["running"] -= 1
        return [Item(number=number)]

    task = asyncio.create_task(run_stage(maker(work), run, numbers(30), concurrency=4))
    await reached.wait()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert state == {"running": 0, "cancelled": 4}
    assert made(run) == list(range(10))
    await run_stage(maker(make), run, numbers(30))
    assert made(run) == list(range(30))


async def test_resume_does_only_what_is_missing(run):
    await run_stage(maker(make), run, numbers(20))
    calls = []

    async def work(number):
        calls.append(number)
        return [Item(number=number)]

    summary = await run_stage(maker(work), run, iter(numbers(25)))
    assert calls == [20, 21, 22, 23, 24]
    assert summary.read == 25
    assert await run_stage(maker(work), run, numbers(25)) == summary


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        (numbers(3), "input 5 was n4 and is missing now"),
        ([("m", 1)] * 9, "input 5 was n4 and is m now"),
    ],
    ids=["fewer", "others"],
)
async def test_changed_inputs_are_refused(run, inputs, reason):
    await run_stage(maker(make), run, numbers(5))
    with pytest.raises(RunError, match=f"stage make: the run was changed by hand: {reason}"):
        await run_stage(maker(make), run, inputs)


async def test_missing_input_file_is_named(run):
    with pytest.raises(InputError, match=r"items\.jsonl cannot be read: No such file"):
        await run_stage(SPLIT, run)


async def test_seconds_add_up_over_resumed_parts(run):
    await run_stage(maker(make), run, numbers(3))
    run.write_json("ledger/make.time.json", {"seconds": 1000.0, "cpu_seconds": 900.0})
    summary = await run_stage(maker(make), run, numbers(4))
    assert (summary.seconds, summary.cpu_seconds) == read_stage_times(run, "make")
    assert summary.seconds >= 1000.0 > summary.cpu_seconds >= 900.0


async def test_plain_progress_tells_start_and_end(run, capsys):
    async def work(number):
        if number:
            raise RecordDropped("no")
        return [Item(number=number)]

    with open_progress() as progress:
        await run_stage(maker(work), run, numbers(3), progress=progress)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == "make: started, 0/3"
    assert err.splitlines()[-1].startswith("make: done, 3/3, 2 dropped")


async def test_bars_show_title_count_and_drops(run):
    async def work(number):
        raise RecordDropped("no")

    stage = PipelineStage(name="make", work=work, output="items.jsonl", output_model=Item, title="Making [items]")
    console = Console(file=StringIO(), force_terminal=True, width=150, color_system=None)
    with open_progress(console) as progress:
        await run_stage(stage, run, iter(numbers(3)), progress=progress)
    shown = console.file.getvalue()
    assert "Making [items]" in shown and "3/?" in shown and "3 dropped" in shown


def line(run):
    """A small pipeline of two stages, as the killed process runs it."""

    async def both():
        await run_stage(maker(make), run, iter(numbers(1000)), concurrency=4)
        await run_stage(SPLIT, run, concurrency=8)

    with run.lock():
        asyncio.run(both())


CHILD = """
import sys
sys.path.insert(0, sys.argv[2])
import test_engine
from trajsmith.pipeline.run_directory import RunDirectory
test_engine.line(RunDirectory.open(sys.argv[1]))
"""


def start(run):
    command = [sys.executable, "-c", CHILD, str(run.path), str(Path(__file__).parent)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True)


def ledger_bytes(run):
    return sum(path.stat().st_size for path in (run.path / "ledger").glob("*.jsonl"))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_stopped_at_any_moment_it_ends_like_an_undisturbed_run(tmp_path, how):
    undisturbed = RunDirectory.create(tmp_path / "undisturbed", "")
    line(undisturbed)
    whole = ledger_bytes(undisturbed)
    run = RunDirectory.create(tmp_path / "stopped", "")
    moments = random.Random(int(how))
    for stop in sorted(moments.uniform(0.02, 0.95) for _ in range(8 if how == signal.SIGKILL else 2)):
        child = start(run)
        while child.poll() is None and ledger_bytes(run) < stop * whole:
            time.sleep(moments.random() / 1000)
        child.send_signal(how)
        _, errors = child.communicate()
        assert child.returncode in {-how, 0}, errors  # 0: a slow machine looked too late, the run was through
    line(run)
    assert content(run) == content(undisturbed)
