"""Journals: what a kill, an outage, a full disk or a hand leaves behind, and what opening makes of it."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import orjson
import pytest

from trajsmith.pipeline.journal import Journal, count_ledger, read_ledger
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import InputError, Record, RecordDropped, RunError
from trajsmith.records.journal import count_records, read_records

ROOT = Path(__file__).parents[2]


class Item(Record):
    PREFIX: ClassVar[str] = "item"

    number: int
    part: int = 0


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create(tmp_path / "run", "seed: 1\n")
    with run.lock():
        yield run


def open_journal(run):
    return Journal(run, "make", "items.jsonl")


def commit(journal, number):
    """Input k gives k % 3 records; every fifth is dropped."""
    if number % 5 == 4:
        journal.commit(f"in_{number}", (), RecordDropped("fifth", f"number {number}"))
    else:
        journal.commit(f"in_{number}", [Item(number=number, part=part) for part in range(number % 3)])


def fill(run, start, stop):
    with open_journal(run) as journal:
        for number in range(start, stop):
            commit(journal, number)


def content(run):
    return (run.path / "items.jsonl").read_bytes(), (run.path / "ledger" / "make.jsonl").read_bytes()


def test_rows_tell_inputs_outputs_ends_and_drops(run):
    fill(run, 0, 5)
    records, ledger = content(run)
    rows = [orjson.loads(line) for line in ledger.splitlines()]
    assert [row["input"] for row in rows] == [f"in_{number}" for number in range(5)]
    assert [len(row["outputs"]) for row in rows] == [0, 1, 2, 0, 0]
    assert rows[-1]["end"] == len(records)
    assert rows[-1]["drop"] == {"reason": "fifth", "detail": "number 4"}
    assert "drop" not in rows[0]
    assert count_ledger(run, "make") == (5, 3, {"fifth": 1}, {})


def test_taken_up_again_it_knows_where_to_go_on(run):
    fill(run, 0, 7)
    with open_journal(run) as journal:
        assert (journal.rows, journal.last_input, journal.counts()) == (7, "in_6", count_ledger(run, "make"))


def torn_ledger_line(run):
    with (run.path / "ledger" / "make.jsonl").open("ab") as file:
        file.write(b'{"input":"in_9","outp')
    return 9


def torn_first_row(run):
    path = run.path / "ledger" / "make.jsonl"
    path.write_bytes(path.read_bytes()[:5])
    return 0


def zeros_after_an_outage(run):
    with (run.path / "ledger" / "make.jsonl").open("ab") as file:
        file.write(b"\0" * 100)
    return 9


def torn_output(run):
    with (run.path / "items.jsonl").open("ab") as file:
        file.write(b'{"id":"item_1","numb')
    return 9


def output_beyond_the_ledger(run):
    with (run.path / "items.jsonl").open("ab") as file:
        file.write(Item(number=100).to_line() + Item(number=101).to_line())
    return 9


def output_without_its_row(run):
    path = run.path / "ledger" / "make.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    return 8


def output_lost_by_an_outage(run):
    path = run.path / "items.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    return 8


def output_file_gone(run):
    (run.path / "items.jsonl").unlink()
    return 1


@pytest.mark.parametrize(
    "damage",
    [
        torn_ledger_line,
        torn_first_row,
        zeros_after_an_outage,
        torn_output,
        output_beyond_the_ledger,
        output_without_its_row,
        output_lost_by_an_outage,
        output_file_gone,
    ],
    ids=lambda damage: damage.__name__,
)
def test_damage_is_cut_off_and_done_again(run, damage):
    fill(run, 0, 20)
    undisturbed = content(run)
    RunDirectory.create(run.path.parent / "other", "")
    other = RunDirectory.open(run.path.parent / "other")
    with other.lock():
        fill(other, 0, 9)
        rows = damage(other)
        with open_journal(other) as journal:
            assert journal.rows == rows
        fill(other, rows, 20)
        assert content(other) == undisturbed


def other_last_record(run):
    path = run.path / "items.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b'"id":"item_', b'"id":"itxm_'))
    return r"items\.jsonl: the run was changed by hand: at byte \d+ are other records than its ledger names"


def shifted_records(run):
    path = run.path / "items.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"number":1,', b'"number":100,'))
    return r"items\.jsonl: the run was changed by hand: (no records at|at) byte \d+"


def missing_record(run):
    path = run.path / "items.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    return r"items\.jsonl: the run was changed by hand: (no records at|at) byte \d+"


def damaged_middle_row(run):
    path = run.path / "ledger" / "make.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"oops\n", *lines[2:]]))
    return r"make\.jsonl:2: the run was changed by hand"


def swapped_rows(run):
    path = run.path / "ledger" / "make.jsonl"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    return "ends before the row above it"


@pytest.mark.parametrize(
    "change",
    [other_last_record, shifted_records, missing_record, damaged_middle_row, swapped_rows],
    ids=lambda c: c.__name__,
)
def test_changes_by_hand_are_refused(run, change):
    fill(run, 0, 9)
    reason = change(run)
    before = content(run)
    with pytest.raises(RunError, match=reason):
        open_journal(run)
    assert content(run) == before


def test_writing_needs_the_lock(tmp_path):
    run = RunDirectory.create(tmp_path / "unlocked", "")
    with pytest.raises(RunError, match="needs the run's lock"):
        open_journal(run)


def test_drop_detail_is_made_writable_and_short(run):
    with open_journal(run) as journal:
        journal.commit("in_0", (), RecordDropped("odd", "\ud800" + "x" * 5000))
    (row,) = read_ledger(run.path / "ledger" / "make.jsonl")
    assert row.drop.detail.startswith("?x") and len(row.drop.detail) == 2000


FULL = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from test_journal import Item, commit, open_journal
from trajsmith.records import RunError
from trajsmith.pipeline.run_directory import RunDirectory
run = RunDirectory.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
with run.lock():
    try:
        with open_journal(run) as journal:
            for number in range(journal.rows, 300):
                commit(journal, number)
    except RunError as error:
        print(error)
"""


@pytest.mark.parametrize("limit", [1000, 5017], ids=["small", "odd"])
def test_full_disk_is_said_and_resuming_gives_the_same_ids(run, limit):
    fill(run, 0, 300)
    other = RunDirectory.create(run.path.parent / "other", "")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FULL, str(other.path), str(Path(__file__).parent), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.startswith("disk full (")
    assert f"free some space, then `trajsmith resume {other.path}`" in done.stdout
    with other.lock():
        with open_journal(other) as journal:
            assert 0 < journal.rows < 300
            rows = journal.rows
        fill(other, rows, 300)
    assert content(other) == content(run)


@pytest.fixture
def full(monkeypatch):
    def take_nothing(handle, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", take_nothing)


def test_device_that_takes_nothing_is_a_full_disk(run, full):
    with pytest.raises(RunError, match=r"disk full \(No space left on device\)"), open_journal(run) as journal:
        commit(journal, 1)
    assert count_ledger(run, "make").read == 0


def test_after_a_failed_write_nothing_more_is_committed(run, full):
    with open_journal(run) as journal:
        with pytest.raises(RunError, match="disk full"):
            commit(journal, 1)
        with pytest.raises(RunError, match="writing failed before"):
            commit(journal, 3)


def test_records_that_the_ledger_could_not_vouch_for_are_cut_off(run, monkeypatch):
    with open_journal(run) as journal:
        commit(journal, 1)
        before = content(run)
        write = os.write

        def only_short(handle, data):
            return write(handle, data[:7]) if data.startswith(b'{"input"') else write(handle, data)

        monkeypatch.setattr(os, "write", only_short)
        with pytest.raises(RunError, match="disk full"):
            commit(journal, 2)
        assert content(run) == before


def test_reading_skips_streams_and_counts(tmp_path):
    path = tmp_path / "items.jsonl"
    items = [Item(number=number) for number in range(4)]
    path.write_bytes(b"\n".join(item.to_line() for item in items))
    assert list(read_records(path, Item)) == items
    assert list(read_records(path, Item, skip=3)) == items[3:]
    assert (count_records(path), count_records(tmp_path / "none.jsonl")) == (4, 0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"number": "x"}\n', r"items\.jsonl:2: number: "),
        (b'{"number": 1, "colour": 2}\n', r"items\.jsonl:2: colour: "),
        (b'{"number": 1', r"items\.jsonl:2 \(last line, torn\?\): "),
    ],
    ids=["type", "unknown key", "torn"],
)
def test_reading_names_file_and_line(tmp_path, line, reason):
    path = tmp_path / "items.jsonl"
    path.write_bytes(Item(number=1).to_line() + line)
    with pytest.raises(InputError, match=reason):
        list(read_records(path, Item))


def test_reading_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl cannot be read: No such file"):
        list(read_records(tmp_path / "none.jsonl", Item))
