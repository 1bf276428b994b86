"""Append-only files: torn lines, failed writes, links, second writers, whole files, and hints at names."""

import os
import stat

import pytest

from trajsmith.records import FrozenModel, RunError
from trajsmith.records.journal import CHUNK, AppendFile, StepJournal, read_lines
from trajsmith.records.storage import open_whole_file, write_whole_file
from trajsmith.records.text import suggest_names, to_one_line


class Note(FrozenModel):
    text: str


@pytest.mark.parametrize(
    ("content", "left"),
    [
        pytest.param(b"", b"", id="empty"),
        pytest.param(b"a\nb\n", b"a\nb\n", id="whole"),
        pytest.param(b"a\nto", b"a\n", id="torn"),
        pytest.param(b"torn", b"", id="only-a-torn-line"),
        pytest.param(b"a\n" + b"x" * (2 * CHUNK + 5), b"a\n", id="torn-and-long"),
    ],
)
def test_a_torn_last_line_is_not_read_and_cut_off(tmp_path, content, left):
    file = tmp_path / "notes.jsonl"
    file.write_bytes(content)
    assert b"".join(line.data for line in read_lines(file)) == left
    with AppendFile(file) as out:
        out.cut_torn_line()
        out.append(b"c\n")
    assert file.read_bytes() == left + b"c\n"


def test_what_a_failed_write_left_behind_is_cut_off(tmp_path, monkeypatch):
    file, write = tmp_path / "notes.jsonl", os.write
    with AppendFile(file, "`trajsmith resume RUN`") as out:
        out.append(b"a\n")
        monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:3]))
        with pytest.raises(RunError, match=r"disk full .* at \S+notes.jsonl: free some space, then `trajsmith resume"):
            out.append(b"long line\n")
    assert file.read_bytes() == b"a\n"


def test_a_second_writer_is_refused_until_the_first_is_done(tmp_path):
    file = tmp_path / "notes.jsonl"
    with AppendFile(file, lock=True), pytest.raises(RunError, match="is being written by another process"):
        AppendFile(file, lock=True)
    AppendFile(file, lock=True).close()


def test_no_file_is_opened_through_a_link(tmp_path):
    (tmp_path / "notes.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="is a symbolic link"):
        AppendFile(tmp_path / "notes.jsonl")
    assert not (tmp_path / "elsewhere").exists()


async def test_a_later_result_takes_the_place_of_an_earlier_one(tmp_path):
    journal = StepJournal(tmp_path)
    journal.put("notes", "key", Note(text="first"))
    journal.put("notes", "key", Note(text="second"))
    again = StepJournal(tmp_path)
    assert again.get("notes", Note, "key") == Note(text="second") and again.all("notes", Note) == [Note(text="second")]
    (tmp_path / "notes.jsonl").write_bytes(b'{"key": "key", "record": {"words": 1}}\n')
    with pytest.raises(RunError, match="made by another version"):
        StepJournal(tmp_path).get("notes", Note, "key")


def test_a_file_that_is_not_finished_leaves_the_older_one(tmp_path):
    file = tmp_path / "page.html"
    file.write_text("old")
    with pytest.raises(ZeroDivisionError), open_whole_file(file) as out:
        out.write(b"half")
        out.flush()
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"] and file.read_text() == "old"


def test_names_that_are_spelt_alike_are_suggested():
    assert suggest_names("retial", ["bank", "retail"]) == 'did you mean "retail"?'
    assert suggest_names("list", ["lists"], most=2, first=["shop.list"]) == 'did you mean "shop.list" or "lists"?'
    assert suggest_names("zzz", ["bank"]) == ""
    assert to_one_line("a\n  b") == "a b" and to_one_line("abcdef", 3) == "abc…"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_is_written_to_and_never_replaced(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"")
    except PermissionError:
        pytest.skip("this container lets nobody make or open devices")
    write_whole_file(device, b"gone")
    assert device.is_char_device()
    assert [entry.name for entry in tmp_path.iterdir()] == ["null"]
