"""`trajsmith export` on a small run: formats, splits, and one line for what is wrong."""

import asyncio
import os
import time

import pytest

from trajsmith.cli.app import app
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.run_pages import is_outdated
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import InputError

CONFIG = """
name: small
run: {run}
environments:
  - {{library: helpdesk, states: {{small: 1}}}}
  - {{library: mobile_care, states: {{small: 1}}}}
sample: {{count: 24, length: [4, 6]}}
export:
  formats: [grpo, openai]
  split: {{held_out: [mobile_care], validation: 0.3}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    (folder / "line.yaml").write_text(CONFIG.format(run=folder / "run"))
    settings = load_config(folder / "line.yaml")
    asyncio.run(run_pipeline(RunDirectory.create(settings.run, dump_settings(settings))))
    return settings.run


def load(folder, cache):
    from datasets import load_dataset

    return load_dataset(str(folder), cache_dir=str(cache))


def test_a_run_writes_its_formats_in_its_splits(run, tmp_path):
    loaded = load(run / "dataset", tmp_path)
    assert {row["environment"] for row in loaded["test"]} == {"mobile_care"}
    assert {row["environment"] for name in ("train", "validation") for row in loaded[name]} == {"helpdesk"}
    tasks = {name: {row["task_id"] for row in split} for name, split in loaded.items()}
    grpo = load(run / "exports" / "grpo", tmp_path)
    assert {name: {row["id"] for row in split} for name, split in grpo.items()} == tasks
    assert sorted(path.name for path in (run / "exports" / "openai" / "data").iterdir()) == [
        "test.jsonl", "train.jsonl", "validation.jsonl",
    ]  # fmt: skip


def test_the_card_is_read_without_its_front_matter_or_as_it_is(run, capsys):
    def said(*arguments):
        app(["card", *arguments], standalone_mode=False)
        return capsys.readouterr().out

    shown, whole = said(str(run)), said(str(run / "dataset"), "--plain")
    assert "license:" not in shown and "load_dataset" in shown and f"card: {run}/dataset/README.md" in shown
    assert whole.rstrip() == (run / "dataset" / "README.md").read_text().rstrip()
    with pytest.raises(InputError, match=r"nothing at .*sharegpt: write it with `trajsmith export`"):
        said(str(run), "--format", "sharegpt")


def test_the_dataset_carries_card_pictures_and_a_configuration_that_runs(run):
    card = (run / "dataset" / "README.md").read_text()
    for picture in (run / "dataset" / "plots").iterdir():
        assert f"![plots/{picture.name}](plots/{picture.name})" in card
    assert "| validation |" in card and "data/test-*" in card
    shared = load_config(run / "dataset" / "config.yaml")
    assert shared.model_copy(update={"run": run}) == load_config(run / "config.yaml")
    assert not shared.run.is_absolute()


def test_grpo_states_are_those_of_the_run(run, tmp_path):
    from trajsmith.records import Task, content_hash

    for row in load(run / "exports" / "grpo", tmp_path)["train"]:
        assert content_hash(row["state"]) == row["initial_state"] == Task.model_validate(row["task"]).initial_state


def test_single_formats_go_where_they_are_told(trajsmith, run, tmp_path):
    done = trajsmith("export", run, "--format", "per_step", "--window", 2, "--out", tmp_path / "steps")
    assert done.code == 0 and "per_step: " in done.out and "test rows in" in done.out
    assert load(tmp_path / "steps", tmp_path / "c")["train"].column_names[:2] == ["id", "task_id"]
    done = trajsmith("export", run, "--format", "sharegpt", "--format", "verl_rl", "--out", tmp_path / "two")
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == ["sharegpt", "verl_rl"]


def test_nothing_is_written_where_one_of_the_formats_is_unknown(trajsmith, run, tmp_path):
    done = trajsmith("export", run, "--format", "harbor", "--format", "csv", "--out", tmp_path / "out")
    assert done.code == 2 and not (tmp_path / "out").exists()


def test_formats_are_listed_with_a_line_each(trajsmith):

    from trajsmith.export import FORMATS

    done = trajsmith("export", "--formats")
    assert done.code == 0
    assert all(f" {name} " in done.out and one.about[:30] in done.out for name, one in FORMATS.load_all().items())
    assert all(f" {name} " in done.out for name in ("harbor", "hub_traces", "verifiers"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(
            ["--format", "csv"],
            "no format named 'csv'; there are: atif, dpo, grpo, json_text, judged",
            id="unknown-format",
        ),
        pytest.param(
            ["--format", "csv"],
            "verl_sft, harbor, hub_traces, inspect, nemo_gym, openenv, verifiers",
            id="task-formats",
        ),
        pytest.param(["--format", "harbour"], 'did you mean "harbor"?', id="nearest-format"),
        pytest.param(["--window", "3"], "--out and --window go with --format", id="window-alone"),
        pytest.param(["--preview"], "--preview needs --model", id="no-model"),
    ],
)
def test_wrong_use_is_one_line(trajsmith, run, options, text):
    done = trajsmith("export", run, *options)
    assert done.code == 2 and text in done.err and done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("export.split.held_out=[mobile]", "no environment mobile; there are helpdesk, mobile_care"),
        ("export.formats=[csv]", "no format named 'csv'"),
        ("export.split.validation=1.5", "export.split.validation"),
    ],
)
def test_wrong_settings_stop_a_run_before_it_starts(trajsmith, run, tmp_path, override, text):
    config = tmp_path / "line.yaml"
    config.write_text(CONFIG.format(run=tmp_path / "run"))
    done = trajsmith("run", config, "--set", override)
    assert done.code == 2 and text in done.err and done.err.count("\n") == 1
    assert not (tmp_path / "run" / "chains.jsonl").exists()


def test_rejected_rows_of_a_run_that_rejected_nothing_are_no_failure_of_it(trajsmith, run, tmp_path):
    number = len((run / "verdicts.jsonl").read_text().splitlines())
    done = trajsmith("export", run, "--include", "rejected", "--out", tmp_path / "none")
    assert done.code == 1
    assert f"nothing was rejected: all {number} trajectories were accepted; --include all writes every one" in done.err


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(None, True, id="none"),
        pytest.param(-100, True, id="older_than_the_verdicts"),
        pytest.param(0, False, id="newer"),
        pytest.param(10**8, True, id="before_the_clock_was_set_back"),
    ],
)
def test_pages_of_another_time_are_written_again(tmp_path, written, expected):
    run = RunDirectory.create(tmp_path / "run", "name: x\n")
    for path in (run.config_path, run.write_text("verdicts.jsonl", "")):
        os.utime(path, (time.time() - 50,) * 2)
    if written is not None:
        os.utime(run.write_text("gallery/index.html", ""), (time.time() + written,) * 2)
    assert is_outdated(run) is expected
