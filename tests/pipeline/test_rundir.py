"""The run directory: what it refuses, what it writes, and who may write."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trajsmith.models import BudgetSettings
from trajsmith.models.response_cache import ResponseCache
from trajsmith.models.usage import UsageLedger
from trajsmith.pipeline.journal import Journal
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import InputError, RunError, Task, canonical_json, content_hash, hash_bytes
from trajsmith.records.journal import AppendFile, StepJournal

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from trajsmith.pipeline.run_directory import RunDirectory
with RunDirectory.open(sys.argv[1]).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create(tmp_path / "run", "seed: 1\n")


def files(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def hold_in_other_process(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_create_makes_the_layout(run):
    assert run.config_path.read_text() == "seed: 1\n"
    assert sorted(path.name for path in run.path.iterdir() if path.is_dir()) == ["environments", "ledger", "states"]
    assert RunDirectory.open(run.path).path == run.path


def test_create_refuses_a_run_and_says_what_to_do(run):
    (run.path / "ledger" / "sample.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=f"already holds a run: .*`trajsmith resume {run.path}`.* --fresh"):
        RunDirectory.create(run.path, "seed: 1\n")
    assert run.config_path.read_text() == "seed: 1\n"


@pytest.mark.parametrize(
    ("from_python", "config", "end"),
    [
        (
            False,
            "{seed: 1, sample: {count: 9}}",
            "(sample.count 5 -> 9): trajsmith resume RUN --set sample.count=9 changes it, "
            "--fresh starts anew, --run names another directory",
        ),
        (False, "{seed: 2, sample: {count: 5}}", "(seed 1 -> 2): --fresh starts anew, --run names another directory"),
        (
            True,
            "{seed: 1, sample: {count: 9}, run: b}",
            "(sample.count 5 -> 9): trajsmith.resume('RUN', overrides={'sample.count': 9}) changes it, "
            "fresh=True starts anew, run= names another directory",
        ),
    ],
    ids=["command", "another seed", "Python"],
)
def test_create_says_in_which_settings_a_run_differs(tmp_path, from_python, config, end):
    run = RunDirectory.create(tmp_path / "run", "{seed: 1, sample: {count: 5}, run: a}")
    run.write_text("ledger/sample.jsonl", "{}\n")
    with pytest.raises(InputError) as caught:
        RunDirectory.create(run.path, config, from_python=from_python)
    expected = f"{run.path} holds a run of another configuration " + end.replace("RUN", str(run.path))
    assert str(caught.value) == expected


def test_check_new_writes_nothing_and_names_what_is_in_the_way(tmp_path):
    RunDirectory(tmp_path / "a" / "run").check_new("seed: 1\n")
    assert files(tmp_path) == [] and not (tmp_path / "a").exists()
    (tmp_path / "a").write_text("")
    with pytest.raises(InputError, match=f"cannot be a run directory: {tmp_path / 'a'} is a file"):
        RunDirectory(tmp_path / "a" / "run").check_new("seed: 1\n")


def test_create_takes_over_a_run_without_records(run):
    run.put_state({"a": 1})
    run.write_json("environments/shop.json", {"name": "shop"})
    RunDirectory.create(run.path, "seed: 2\n")
    assert files(run.path) == [".lock", "config.yaml"]
    assert run.config_path.read_text() == "seed: 2\n"


@pytest.mark.parametrize("name", ["chains.jsonl", "ledger/sample.jsonl", "graph.json", "mine.txt"])
def test_create_never_takes_over_a_run_with_a_record(run, name):
    run.write_text(name, "{}\n")
    with pytest.raises(InputError, match="holds a run of another configuration"):
        RunDirectory.create(run.path, "seed: 2\n")
    assert files(run.path) == sorted([".lock", "config.yaml", name])


def test_fresh_replaces_a_run_and_leaves_nothing_of_it(run):
    run.put_state({"a": 1})
    run.write_text("dataset/README.md", "old")
    with run.lock():
        (run.path / "ledger" / "sample.jsonl").write_text("{}\n")
    (run.path / "link").symlink_to(ROOT / "trajsmith")
    RunDirectory.create(run.path, "seed: 2\n", fresh=True)
    assert files(run.path) == [".lock", "config.yaml"]
    assert run.config_path.read_text() == "seed: 2\n"
    assert (ROOT / "trajsmith" / "__main__.py").is_file()


@pytest.mark.parametrize("fresh", [False, True], ids=["plain", "fresh"])
@pytest.mark.parametrize("name", ["thesis.tex", "config.yaml", ".env"])
def test_create_never_takes_a_foreign_directory(tmp_path, name, fresh):
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        RunDirectory.create(tmp_path, "seed: 1\n", fresh=fresh)
    assert (tmp_path / name).read_text() == "mine"


def test_create_refuses_a_file(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(InputError, match="is a file"):
        RunDirectory.create(tmp_path / "run", "")


def test_create_takes_what_a_killed_start_left(tmp_path):
    for folder in ("ledger", "states", ".tmp"):
        (tmp_path / folder).mkdir()
    (tmp_path / ".lock").write_text("1\n")
    (tmp_path / ".tmp" / "config.yaml.1.1").write_text("se")
    assert files(RunDirectory.create(tmp_path, "seed: 1\n").path) == [".lock", "config.yaml"]


def test_open_without_a_run(tmp_path):
    with pytest.raises(InputError, match=r"no run here: .* has no config\.yaml"):
        RunDirectory.open(tmp_path)


def test_second_writer_in_another_process_is_refused_by_pid(run):
    process = hold_in_other_process(run.path)
    try:
        with pytest.raises(RunError, match=f"is being written by process {process.pid}"), run.lock():
            pytest.fail("two writers")
        with pytest.raises(RunError, match=f"is being written by process {process.pid}"):
            RunDirectory.create(run.path, "", fresh=True)
        assert run.config_path.read_text() == "seed: 1\n"
    finally:
        process.kill()
        process.communicate()
    with run.lock():
        assert run.locked
    assert not run.locked


def test_second_writer_in_the_same_process_is_refused(run):
    with (
        run.lock(),
        pytest.raises(RunError, match=f"is being written by process {os.getpid()}"),
        RunDirectory.open(run.path).lock(),
    ):
        pytest.fail("two writers")


def test_scraps_are_harmless_and_cleaned_by_the_next_writer(run):
    scrap = run.path / ".tmp" / "summary.json.1.1"
    scrap.parent.mkdir()
    scrap.write_text('{"half":')
    assert RunDirectory.open(run.path) and scrap.exists()
    with run.lock():
        assert not scrap.exists()


def test_scraps_of_a_killed_worker_go_with_the_lock(run):
    scrap = run.path / ".tmp" / "state.json.2.2"
    with run.lock():
        scrap.parent.mkdir(exist_ok=True)
        scrap.write_text("half")
    assert not scrap.parent.exists()


def test_state_is_stored_once_under_its_content_hash(run):
    state = {"b": [1, {"c": None}], "a": "ä"}
    name = run.put_state(state)
    assert name == content_hash(state) == hash_bytes(canonical_json(state)) and len(name) == 32
    assert run.put_state(dict(reversed(state.items()))) == name
    assert files(run.path / "states") == [f"{name}.json"]
    assert run.get_state(name) == state


def test_state_is_not_shared_between_readers(run):
    name = run.put_state({"a": [1]})
    run.get_state(name)["a"].append(2)
    assert run.get_state(name) == {"a": [1]}


def test_changed_state_is_refused(run):
    name = run.put_state({"a": 1})
    (run.path / "states" / f"{name}.json").write_text('{"a":2}')
    with pytest.raises(RunError, match="does not have the hash"):
        RunDirectory.open(run.path).get_state(name)


def test_missing_state_is_named(run):
    with pytest.raises(RunError, match=r"state 00ff cannot be read: .*No such file"):
        run.get_state("00ff")


def test_state_file_emptied_by_an_outage_is_written_again(run):
    name = run.put_state({"a": 1})
    (run.path / "states" / f"{name}.json").write_text("")
    run.put_state({"a": 1})
    assert run.get_state(name) == {"a": 1}


def test_json_round_trip_leaves_no_scraps(run):
    run.write_json("environments/shop.json", {"z": 1, "a": [None]})
    assert run.read_json("environments/shop.json") == {"z": 1, "a": [None]}
    assert not any((run.path / ".tmp").iterdir())


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", ""])
def test_names_stay_inside_the_run(run, name):
    with pytest.raises(InputError, match="not a file name inside a run"):
        run.write_text(name, "x")


def test_read_json_tells_missing_from_broken(run):
    with pytest.raises(InputError, match=r"graph\.json is missing"):
        run.read_json("graph.json")
    run.write_text("graph.json", "{")
    with pytest.raises(InputError, match=r"graph\.json cannot be read"):
        run.read_json("graph.json")


def test_full_disk_keeps_the_old_file(run, monkeypatch):
    run.write_text("a.txt", "old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"disk full .*free some space, then `trajsmith resume"):
        run.write_text("a.txt", "new")
    assert (run.path / "a.txt").read_text() == "old"
    assert not any((run.path / ".tmp").iterdir())


LINKED = [
    ".lock", ".tmp", "config.yaml", "tasks.jsonl", "trajectories.jsonl", "usage.jsonl", "report.html", "graph.json",
    "states", "ledger", "environments", "cache", "dataset", "states/abc.json", "ledger/play.jsonl",
    "cache/answers.sqlite", "cache/answers.sqlite-wal", ".report.html.part", "exports/openai",
]  # fmt: skip


@pytest.fixture
def linked(run, tmp_path):
    """Put a link in the run that leads to somebody's file or folder."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("mine")

    def link(name, target="thesis.tex"):
        path = run.path / name
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(mine / target)
        return path

    yield link
    assert {file.name: file.read_text() for file in mine.iterdir()} == {"thesis.tex": "mine"}


@pytest.mark.parametrize("target", ["thesis.tex", "new.tex", ""], ids=["file", "nothing", "folder"])
@pytest.mark.parametrize("name", LINKED)
def test_no_writer_takes_a_run_with_a_symbolic_link(run, linked, name, target):
    path = linked(name, target)
    said = f"^{path} is a symbolic link, and nothing is read or written through it"
    with pytest.raises(InputError, match=said), RunDirectory(run.path).lock():
        pass


@pytest.mark.parametrize("name", ["tasks.jsonl", "states/abc.json", "environments/bank.json"])
def test_no_path_of_a_run_leads_out_by_a_symbolic_link(run, linked, name):
    linked(name if name == "tasks.jsonl" else name.split("/")[0], "thesis.tex" if name == "tasks.jsonl" else "")
    with pytest.raises(InputError, match="is a symbolic link"):
        run.file(name)


def test_a_run_whose_configuration_is_a_symbolic_link_is_not_opened(run, linked):
    linked("config.yaml")
    with pytest.raises(InputError, match=r"config\.yaml is a symbolic link"):
        RunDirectory.open(run.path)


@pytest.mark.parametrize("name", ["ledger", ".lock", "cache"])
def test_fresh_removes_nothing_through_a_symbolic_link(run, linked, name):
    linked(name, "" if name != ".lock" else "thesis.tex")
    with pytest.raises(InputError, match="is a symbolic link"):
        RunDirectory.create(run.path, "seed: 2\n", fresh=True)


def test_a_link_made_after_the_check_is_not_followed(run, linked):
    with run.lock():
        linked("items.jsonl")
        with pytest.raises((InputError, RunError), match="is a symbolic link"):
            Journal(run, "make", "items.jsonl")
        with pytest.raises(RunError, match="is a symbolic link"):
            AppendFile(run.path / "items.jsonl")
        linked("usage.jsonl")
        with pytest.raises(RunError, match=r"usage\.jsonl"):
            UsageLedger(run.path / "usage.jsonl", ResponseCache(run.path / "answers.sqlite"), BudgetSettings(), "again")
        linked("linked.sqlite", "new.sqlite")
        with pytest.raises(InputError, match="is a symbolic link"):
            ResponseCache(run.path / "linked.sqlite")
        linked("drafts.jsonl")
        with pytest.raises(InputError, match="is a symbolic link"):
            StepJournal(run.path).get("drafts", Task, "key")


def test_a_run_may_itself_be_reached_by_a_symbolic_link(run, tmp_path):
    (tmp_path / "there").symlink_to(run.path)
    through = RunDirectory.open(tmp_path / "there")
    with through.lock():
        through.write_text("a.txt", "text")
    assert (run.path / "a.txt").read_text() == "text"


@pytest.mark.parametrize("name", ["trajectories.jsonl", "states"])
def test_resume_refuses_a_run_with_a_symbolic_link(trajsmith, run, linked, name):
    run.write_text("config.yaml", "name: linked\nenvironments: [{library: bank}]\n")
    path = linked(name, "" if name == "states" else "thesis.tex")
    told = trajsmith("resume", run.path)
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert told.err.startswith(f"error: {path} is a symbolic link")
