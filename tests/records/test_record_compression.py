"""Compressed record files: the same lines in either form, kills, damage, and look-ups by id."""

import os
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pyarrow
import pytest

from trajsmith.records import (
    AppendFile,
    InputError,
    Record,
    RecordLookup,
    RunError,
    compress_records,
    count_records,
    has_records,
    id_index,
    iter_placed_lines,
    open_output,
    open_records,
    read_lines,
    read_records,
    record_compression,
    record_files,
    remove_records,
    restore_records,
)
from trajsmith.records.record_files import build_compressed_path, build_index_path

STEPS = frozenset({"open", "os.rename", "os.remove", "os.utime"})
"""Events of the interpreter before each of which a process is killed."""


class Entry(Record):
    PREFIX: ClassVar[str] = "entry"

    number: int
    text: str = ""


def make_entries(count, longest=200):
    rng = random.Random(7)
    return [Entry(number=number, text="ä\r" + "x" * rng.randrange(longest)) for number in range(count)]


def write(path, entries):
    path.write_bytes(b"".join(entry.to_line() for entry in entries))
    return path.read_bytes()


@pytest.fixture
def small_frames(monkeypatch):
    monkeypatch.setattr(record_compression, "FRAME", 1000)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "entries.jsonl"


def compress(file):
    compress_records(file, file.with_name("part"))


def restore(file):
    restore_records(file, file.with_name("part"))


def read_all(file):
    with open_records(file) as source:
        return b"".join(source.iter_blocks())


@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_both_forms_give_the_same_lines(file, small_frames, count):
    entries = make_entries(count)
    plain = write(file, entries)
    lines, time = list(read_lines(file)), file.stat().st_mtime_ns
    compress(file)
    assert [path.name for path in file.parent.iterdir()] == ["entries.jsonl.zst"]
    assert build_compressed_path(file).stat().st_mtime_ns == time
    assert list(read_lines(file)) == lines
    assert list(read_records(file, Entry, skip=3)) == entries[3:]
    assert count_records(file) == count
    assert read_all(file) == plain
    restore(file)
    assert [path.name for path in file.parent.iterdir()] == ["entries.jsonl"]
    assert file.read_bytes() == plain
    assert file.stat().st_mtime_ns == time


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 16])
def test_placed_lines_are_those_that_are_not_blank(file, monkeypatch, block):
    monkeypatch.setattr(record_files, "BLOCK", block)
    texts = [b'{"a": 1}\n', b"\n", b" \t\r\n", b"  x\n", b"y" * 300 + b"\n", b"\n", b'{"torn":']
    file.write_bytes(b"".join(texts))
    kept = [(sum(map(len, texts[:number])), text) for number, text in enumerate(texts) if not text.isspace()]
    with open_records(file) as source:
        assert [(place, bytes(line)) for place, line in iter_placed_lines(source)] == kept


def test_a_count_follows_the_file(file):
    for content, count in ((b"12\n", 1), (b"1\n2\n", 2), (b"1\n\n ", 1)):
        file.write_bytes(content)
        os.utime(file, ns=(count, len(content) + count))
        assert [count_records(file), count_records(file)] == [count, count]


def test_any_place_can_be_read(file, small_frames):
    plain = write(file, make_entries(100))
    compress(file)
    rng = random.Random(3)
    with open_records(file) as source:
        assert source.size == len(plain)
        for _ in range(300):
            start, length = rng.randrange(len(plain) + 10), rng.randrange(3000)
            assert source.read(start, length) == plain[start : start + length]


def test_other_programs_read_the_frames(file, small_frames):
    plain = write(file, make_entries(100))
    compress(file)
    with pyarrow.input_stream(build_compressed_path(file), compression="zstd") as stream:
        assert stream.read() == plain


def test_a_line_that_is_longer_than_a_frame_is_a_frame(file, small_frames):
    plain = write(file, make_entries(5, longest=5000))
    compress(file)
    assert read_all(file) == plain


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(b'{"id":"a"}\n{"id":"b"', "its last line has no end; finish the run first", id="torn"),
        pytest.param(b'{"id":"a"}\n{"name":"b"}\n', "entries.jsonl:2: not a record with an id", id="no id"),
        pytest.param(b'{"id":"a"}\n\n[1]\n', "entries.jsonl:3: not a record with an id", id="no object"),
    ],
)
def test_what_is_no_finished_record_file_stays_as_it_is(file, content, error):
    file.write_bytes(content)
    with pytest.raises(InputError, match=error):
        compress(file)
    assert [path.name for path in file.parent.iterdir()] == ["entries.jsonl"]
    assert file.read_bytes() == content


def kill_before_step(step, work):
    """Do the work in a process that is killed before its n-th step; return whether it came to the end."""
    pid = os.fork()
    if pid == 0:
        left = step

        def count(event, arguments):
            nonlocal left
            if event in STEPS and (event != "open" or "entries" in str(arguments[0]) or "part" in str(arguments[0])):
                left -= 1
                if not left:
                    os._exit(9)

        with suppress(BaseException):
            sys.addaudithook(count)
            work()
            os._exit(0)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("work", [compress, restore])
def test_killed_before_any_step_either_form_is_whole_and_the_same_command_goes_on(file, small_frames, work):
    entries = make_entries(50)
    plain = write(file, entries)
    before, after = ("entries.jsonl", "entries.jsonl.zst")[:: 1 if work is compress else -1]
    for step in range(1, 30):
        if work is restore:
            compress(file)
        code = kill_before_step(step, lambda: work(file))
        assert code in (0, 9)
        assert read_all(file) == plain
        assert count_records(file) == 50
        work(file)
        assert (file.parent / after).exists()
        assert not (file.parent / before).exists()
        assert read_all(file) == plain
        if work is compress:
            restore(file)
        if code == 0:
            break
    assert step > 4, "no step was counted"


def test_whatever_byte_is_damaged_no_other_record_is_read(file, small_frames):
    entries = make_entries(12)
    plain = write(file, entries)
    compress(file)
    packed = build_compressed_path(file)
    whole = packed.read_bytes()
    names = [entry.id for entry in entries]
    for place in range(len(whole)):
        packed.write_bytes(whole[:place] + bytes([whole[place] ^ 0x11]) + whole[place + 1 :])
        for read, expected in ((read_all, plain), (lambda path: look_up(path, names), entries)):
            try:
                assert read(file) == expected
            except InputError as error:
                assert str(error).startswith(f"{packed}") and "\n" not in str(error)


@pytest.mark.parametrize("left", [0, 1, 9, 100, -1, -9, -20])
def test_a_torn_file_says_so_in_one_line(file, small_frames, left):
    write(file, make_entries(12))
    compress(file)
    packed = build_compressed_path(file)
    packed.write_bytes(packed.read_bytes()[:left])
    with pytest.raises(InputError, match=r"entries.jsonl.zst is damaged: it does not end in the table of its frames"):
        next(read_lines(file))


def test_frames_that_claim_to_be_huge_are_refused(file):
    write(file, make_entries(2))
    compress(file)
    packed = build_compressed_path(file)
    whole = bytearray(packed.read_bytes())
    whole[-17:-13] = (1 << 31).to_bytes(4, "little")
    packed.write_bytes(whole)
    with pytest.raises(InputError, match="the table of its frames does not belong to them"):
        next(read_lines(file))


def test_a_compressed_file_is_not_read_through_a_link(file, tmp_path):
    write(file, make_entries(2))
    compress(file)
    packed = build_compressed_path(file)
    packed.rename(tmp_path / "elsewhere")
    packed.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"entries.jsonl cannot be read"):
        next(read_lines(file))


def look_up(file, names, part=None):
    with RecordLookup(file, part) as lookup:
        return [lookup.find(name, Entry) for name in names]


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize("alike", [False, True], ids=["", "one-hash"])
def test_records_are_found_by_id(file, small_frames, monkeypatch, compressed, alike):
    if alike:
        monkeypatch.setattr(id_index, "hash_id", lambda name: 5)
    entries = make_entries(80)
    write(file, entries)
    if compressed:
        compress(file)
    assert look_up(file, [entry.id for entry in entries]) == entries
    assert look_up(file, ["entry_0", ""]) == [None, None]


def test_a_record_that_was_changed_by_hand_is_not_shown(file):
    entries = make_entries(3)
    file.write_bytes(write(file, entries).replace(b'"number":1', b'"number":9'))
    with pytest.raises(InputError, match=rf"entries.jsonl: {entries[1].id}: changed by hand"):
        look_up(file, [entries[1].id])


def test_only_a_large_plain_file_gets_an_index_beside_it(file, monkeypatch):
    entries = make_entries(30)
    write(file, entries)
    look_up(file, [entries[0].id], file.parent / ".tmp" / "part")
    assert not build_index_path(file).exists()
    monkeypatch.setattr(record_files, "INDEXED", 1000)
    look_up(file, [entries[0].id], file.parent / ".tmp" / "part")
    assert build_index_path(file).exists()
    monkeypatch.setattr(record_files, "IdIndexBuilder", None)  # it is not built again
    assert look_up(file, [entry.id for entry in entries]) == entries


def appended(file):
    with AppendFile(file) as out:
        out.append(Entry(number=99).to_line())


def replaced(file):
    write(file, [Entry(number=99), *make_entries(30)[1:]])


def damaged_index(file):
    index = build_index_path(file)
    data = bytearray(index.read_bytes())
    data[60] ^= 1
    index.write_bytes(data)
    replaced(file)


def torn_index(file):
    build_index_path(file).write_bytes(build_index_path(file).read_bytes()[:50])
    replaced(file)


@pytest.mark.parametrize("change", [appended, replaced, damaged_index, torn_index])
def test_an_index_of_other_records_is_built_anew(file, monkeypatch, change):
    monkeypatch.setattr(record_files, "INDEXED", 1000)
    write(file, make_entries(30))
    part = file.parent / "part"
    look_up(file, [""], part)
    change(file)
    assert look_up(file, [Entry(number=99).id], part) == [Entry(number=99)]


def test_without_a_place_for_an_index_records_are_found_too(file, monkeypatch):
    monkeypatch.setattr(record_files, "INDEXED", 1000)
    entries = make_entries(30)
    write(file, entries)
    assert look_up(file, [entries[4].id], Path("/proc/nothing/part")) == [entries[4]]


def test_no_index_of_a_torn_line_is_written(file, monkeypatch):
    monkeypatch.setattr(record_files, "INDEXED", 1000)
    entries = make_entries(30)
    file.write_bytes(write(file, entries) + b'{"id":"entry_torn"')
    assert look_up(file, [entries[29].id, "entry_torn"], file.parent / "part") == [entries[29], None]
    assert not build_index_path(file).exists()


def test_the_first_change_makes_a_compressed_file_plain(file, small_frames):
    entries = make_entries(60)
    plain = write(file, entries)
    compress(file)
    with_nothing = open_output(file, file.with_name("part"))
    with_nothing.cut(with_nothing.end)
    assert with_nothing.read(20, 3000) == plain[20:3000]
    with_nothing.close(sync=True)
    assert not file.exists()
    output = open_output(file, file.with_name("part"))
    output.append(b'{"id":"more"}\n')
    output.cut(output.end - len(entries[59].to_line()))
    output.close(sync=True)
    assert not build_compressed_path(file).exists()
    assert file.read_bytes() == (plain + b'{"id":"more"}\n')[: -len(entries[59].to_line())]


def test_what_a_kill_left_of_the_other_form_goes_before_a_file_grows(file):
    plain = write(file, make_entries(5))
    compress(file)
    file.write_bytes(plain)
    output = open_output(file, file.with_name("part"))
    output.append(b'{"id":"more"}\n')
    output.close()
    assert not build_compressed_path(file).exists()
    assert read_all(file) == plain + b'{"id":"more"}\n'


def test_all_forms_are_removed(file):
    plain = write(file, make_entries(5))
    compress(file)
    file.write_bytes(plain)
    build_index_path(file).write_bytes(b"")
    remove_records(file)
    assert not has_records(file)
    assert list(file.parent.iterdir()) == []


def test_a_full_disk_keeps_the_plain_file(file, monkeypatch):
    plain = write(file, make_entries(5))

    def fail(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RunError, match="disk full"):
        compress(file)
    assert file.read_bytes() == plain
    assert not build_compressed_path(file).exists()
