"""A run as session traces: written, loaded by `datasets`, imported again with the same calls and results, pushed."""

import shutil
import sys
from pathlib import Path

import orjson
import pytest

import trajsmith as ts
from trajsmith.api.imports import import_dialogues
from trajsmith.pipeline.record_joins import join_verdicts

sys.path.insert(0, str(Path(__file__).parents[1] / "export"))
from session_schema import check_session

CONFIG = {
    "name": "sessions",
    "seed": 3,
    "environments": [{"library": "bank", "states": {"small": 1}}],
    "sample": {"count": 12, "length": [1, 3], "method": "random_walk"},
    "ground": {"min_calls": 1},
    "play": {"reasoning": "grounded", "reasoning_share": 0.5},
    "export": {"split": {"validation": 0.3}, "license": "cc-by-4.0"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ts.run(CONFIG, run=tmp_path_factory.mktemp("sessions") / "run")


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run.path, tmp_path / "copy")


@pytest.fixture
def sessions(trajsmith, run, tmp_path):
    done = trajsmith("export", run.path, "--format", "hub_traces", "--out", tmp_path / "sessions")
    assert done.code == 0 and f"hub_traces: {len(run.trajectories)} sessions in " in done.out
    return tmp_path / "sessions"


def load(*arguments, **options):
    from datasets import load_dataset

    return load_dataset(*arguments, **options)


def read_sessions(folder):
    """Return the lines of each session, by id."""
    return {
        path.stem: [orjson.loads(line) for line in path.read_bytes().splitlines()]
        for path in sorted(folder.glob("data/*/*.jsonl"))
    }


def test_every_accepted_play_is_a_file_of_its_split(run, sessions, tmp_path):
    splits = load(str(run.path / "dataset"), cache_dir=str(tmp_path))
    rows = {row["id"]: row for split in splits.values() for row in split}
    written = read_sessions(sessions)
    assert written.keys() == rows.keys() and len(rows) > 3 and set(splits) == {"train", "validation"}
    for name, lines in written.items():
        header, messages = check_session(lines)
        assert header.id == name and header.trajsmith["environment"] == "bank"
        assert [one.content for one in messages] == [one["content"] for one in rows[name]["messages"]]
    for split, part in splits.items():
        assert {path.stem for path in (sessions / "data" / split).iterdir()} == set(part["id"])


def test_datasets_loads_the_lines_of_a_folder_and_of_a_file(sessions, tmp_path):
    from datasets.packaged_modules.json.json import JsonConfig

    if not hasattr(JsonConfig, "parse_agent_traces"):
        pytest.skip("this version of datasets knows no traces of agents, and its JSON reader fails on their lines")
    options = {"cache_dir": str(tmp_path), "parse_agent_traces": False}
    written = read_sessions(sessions)
    whole = load(str(sessions), **options)
    assert sum(len(split) for split in whole.values()) == sum(map(len, written.values()))
    name, lines = next(iter(written.items()))
    (file,) = sessions.glob(f"data/*/{name}.jsonl")
    loaded = load("json", data_files=str(file), split="train", **options)
    assert [row["message"] for row in loaded][1:] == [line["message"] for line in lines[1:]]
    assert loaded[0]["trajsmith"] == lines[0]["trajsmith"]


def test_the_folder_is_replaced_whole_and_nothing_else_is(trajsmith, run, sessions):
    card = (sessions / "README.md").read_text()
    assert "license: cc-by-4.0" in card and "- agent-traces" in card and "data/validation/*.jsonl" in card
    again = ["export", run.path, "--format", "hub_traces", "--out", sessions]
    before = sorted((path.name, path.read_bytes()) for path in sessions.rglob("*") if path.is_file())
    assert trajsmith(*again).code == 0
    assert before == sorted((path.name, path.read_bytes()) for path in sessions.rglob("*") if path.is_file())
    (sessions / "data" / "train" / "mine.jsonl").write_text("x")
    done = trajsmith(*again)
    assert done.code == 1 and "holds data/train/mine.jsonl, which no export writes" in done.err
    pushed = trajsmith("push", sessions, "me/sessions", "--dry-run")
    assert pushed.code == 0 and "upload data/train/traj_" in pushed.out and "private dataset me/sessions" in pushed.out


def test_an_id_that_is_a_path_writes_no_file(trajsmith, copy, tmp_path):
    text = (copy / "trajectories.jsonl").read_text()
    name = orjson.loads(text.splitlines()[0])["id"]
    for file in ("trajectories.jsonl", "verdicts.jsonl"):
        (copy / file).write_text((copy / file).read_text().replace(name, "../../../outside"))
    done = trajsmith("export", copy, "--format", "hub_traces", "--out", tmp_path / "bad" / "out")
    assert done.code == 2 and "changed by hand" in done.err
    assert not list(tmp_path.rglob("outside*")) and not list((tmp_path / "bad").rglob("*.jsonl"))


def test_import_of_sessions_makes_the_same_calls_with_the_same_results(run, sessions, tmp_path):
    files = sorted(sessions.glob("data/*/*.jsonl"))
    again = import_dialogues(files, run=tmp_path / "again", config=run.path / "config.yaml")
    ours = {trajectory.id: trajectory for _, trajectory, _ in join_verdicts(run.directory)}
    replayed = [trajectory for _, trajectory, _ in join_verdicts(again.directory)]
    assert {one.recorded["dialogue"] for one in replayed} == ours.keys() == {path.stem for path in files}
    for one in replayed:
        play = ours[one.recorded["dialogue"]]
        assert all(event.agrees for event in one.events)
        assert [(event.tool, event.arguments) for event in one.events] == [
            (event.tool, event.arguments) for event in play.events
        ]
        assert one.final_state == play.final_state


def test_a_push_puts_sessions_beside_the_rows(trajsmith, copy, tmp_path):
    pushed = trajsmith("push", copy, "me/rows", "--traces", "--sessions", 3, "--dry-run")
    assert pushed.code == 0 and "3 sessions in " in pushed.out and "upload traces/" in pushed.out
    rows = load(str(copy / "dataset"), cache_dir=str(tmp_path / "c"))
    sessions = load(str(copy / "dataset"), "traces", cache_dir=str(tmp_path / "c"))
    assert {name for split in sessions.values() for name in split["session_id"]} <= {
        name for split in rows.values() for name in split["id"]
    }
    assert sum(map(len, sessions.values())) == 3
    for split, part in sessions.items():
        assert set(part["session_id"]) <= set(rows[split]["id"])
        for row in part:
            assert (copy / "dataset" / row["file_path"]).read_text() == row["trace"]
    assert trajsmith("export", copy).code == 0
    assert not (copy / "dataset" / "traces").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["dataset"], "--traces puts sessions of a run beside the rows", id="no-run"),
        pytest.param([".", "--format", "openai"], "--traces puts sessions of a run beside the rows", id="format"),
        pytest.param([".", "--sessions", "0"], "Invalid value for '--sessions'", id="none"),
    ],
)
def test_traces_of_what_has_none_are_an_error_of_one_line(trajsmith, copy, arguments, text):
    (copy / "exports" / "openai").mkdir(parents=True)
    source, *options = arguments
    done = trajsmith("push", copy / source, "me/rows", "--traces", "--dry-run", *options)
    assert done.code == 2 and text in done.err
    alone = trajsmith("push", copy, "me/rows", "--sessions", 3, "--dry-run")
    assert alone.code == 2 and "--sessions goes with --traces" in alone.err


def test_a_dataset_without_a_card_gets_no_sessions(trajsmith, copy):
    (copy / "dataset" / "README.md").unlink()
    done = trajsmith("push", copy, "me/rows", "--traces", "--dry-run")
    assert done.code == 2 and "has no card: write it with `trajsmith export" in done.err
    assert not list((copy / "dataset").glob("*traces*"))
