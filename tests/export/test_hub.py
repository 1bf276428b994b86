"""Pushing through the real client to a Hub of our own on this machine."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hub_server import serve
from samples import ENVIRONMENTS, make_items, make_spec, make_summary

from trajsmith.export import DatasetWriter, Statistics, build_card, build_row
from trajsmith.export.hub import detect_repo_kind, execute_push, plan_push, translate_hub_errors
from trajsmith.records import InputError, RunError

SPECS = {name: make_spec(name) for name in ENVIRONMENTS}
ROOT = Path(__file__).parents[2]


@pytest.fixture
def hub(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    with serve() as hub:
        yield hub


def api_of(hub, token="hf_good"):
    from huggingface_hub import HfApi

    return HfApi(endpoint=hub.url, token=token)


def rows_of(count: int) -> list[dict]:
    return [build_row(*item, SPECS[item[1].environment]) for item in make_items(count)]


def make_dataset(folder: Path, count: int = 7) -> list[dict]:
    rows = rows_of(count)
    with DatasetWriter(folder, rows_per_shard=2) as writer:
        for number, row in enumerate(rows):
            writer.write(row, "test" if number == 0 else "train")
        writer.attach("README.md", build_card(make_summary(), list(SPECS.values()), Statistics(), splits=writer.splits))
    return rows


def pushed(folder: Path, hub, repo: str = "me/rows"):
    plan = plan_push(folder, repo, api_of(hub))
    execute_push(plan, api_of(hub))
    return plan


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_dataset_is_pushed_private_and_loads_from_the_hub_as_it_was(tmp_path, hub):
    rows = make_dataset(tmp_path / "dataset")
    pushed(tmp_path / "dataset", hub)
    assert hub.repos["datasets/me/rows"]["private"] is True
    assert hub.files("datasets/me/rows") == contents(tmp_path / "dataset")
    code = (
        "import os, sys, orjson\nfrom datasets import load_dataset\n"
        "loaded = load_dataset('me/rows')\n"
        "streamed = list(load_dataset('me/rows', split='train', streaming=True))\n"
        "assert streamed == list(loaded['train'])\n"
        "sys.stdout.buffer.write(orjson.dumps({name: list(split) for name, split in loaded.items()}))\n"
        "sys.stdout.flush()\n"
        "os._exit(0)\n"  # threads of a streamed dataset can abort the interpreter at its end
    )
    environment = {
        **os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": hub.token, "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    import orjson

    assert orjson.loads(done.stdout) == {"train": rows[1:], "test": rows[:1]}


def test_the_card_comes_last_and_old_data_goes_with_it(tmp_path, hub):
    make_dataset(tmp_path / "dataset", 9)
    pushed(tmp_path / "dataset", hub)
    make_dataset(tmp_path / "dataset", 5)
    plan = pushed(tmp_path / "dataset", hub)
    assert len(plan.delete) == 4 and plan.upload
    assert hub.files("datasets/me/rows") == contents(tmp_path / "dataset")
    assert hub.commits[0][1][-1] == "README.md"


def test_an_interrupted_push_goes_on_with_what_is_missing(tmp_path, hub, monkeypatch):
    monkeypatch.setattr("trajsmith.export.hub.FILES_PER_COMMIT", 2)
    make_dataset(tmp_path / "dataset", 9)
    hub.commits_left = 1
    with pytest.raises(RunError, match=r"me/rows: the Hub answered 502: run the same command again"):
        pushed(tmp_path / "dataset", hub)
    assert len(hub.files("datasets/me/rows")) == 2
    hub.commits_left = 100
    plan = pushed(tmp_path / "dataset", hub)
    assert len(plan.same) == 2 and len(plan.upload) == 4
    assert hub.files("datasets/me/rows") == contents(tmp_path / "dataset")
    assert plan_push(tmp_path / "dataset", "me/rows", api_of(hub)).upload == ()


def test_nothing_to_do_is_no_commit(tmp_path, hub):
    make_dataset(tmp_path / "dataset")
    pushed(tmp_path / "dataset", hub)
    before = len(hub.commits)
    pushed(tmp_path / "dataset", hub)
    assert len(hub.commits) == before


def test_a_model_is_pushed(tmp_path, hub):
    (tmp_path / "model").mkdir()
    for name, data in (("config.json", b"{}"), ("model.safetensors", b"\0" * 64), ("chat_template.jinja", b"{{ x }}")):
        (tmp_path / "model" / name).write_bytes(data)
    (tmp_path / "model" / ".secret").write_text("not for others")
    pushed(tmp_path / "model", hub, "me/agent")
    assert set(hub.files("models/me/agent")) == {"config.json", "model.safetensors", "chat_template.jinja"}


def test_a_folder_that_is_neither_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds neither a dataset"):
        detect_repo_kind(tmp_path)


def test_a_wrong_token_is_one_line(tmp_path, hub):
    make_dataset(tmp_path / "dataset", 2)
    with pytest.raises(InputError, match=r"the Hub refuses the token \(401\): set HF_TOKEN"):
        execute_push(plan_push(tmp_path / "dataset", "me/rows", api_of(hub, "hf_bad")), api_of(hub, "hf_bad"))
    assert hub.repos == {}


@pytest.mark.parametrize(
    ("repo", "text"),
    [
        pytest.param("you/rows", r"this token may not use it \(403\): check the name", id="not-ours"),
        pytest.param("me/../rows", "write the repository as owner/name, for example me/rows", id="path"),
        pytest.param("rows", "write the repository as owner/name, for example me/rows", id="no-owner"),
        pytest.param("me/a b", "is no name of a repository", id="space"),
    ],
)
def test_a_wrong_repository_is_one_line(tmp_path, hub, repo, text):
    make_dataset(tmp_path / "dataset", 2)
    with pytest.raises(InputError, match=text):
        pushed(tmp_path / "dataset", hub, repo)


def test_a_hub_that_is_away_is_one_line(tmp_path, monkeypatch):
    from huggingface_hub import HfApi

    monkeypatch.setattr("time.sleep", lambda seconds: None)  # the client waits between its attempts

    make_dataset(tmp_path / "dataset", 2)
    with pytest.raises(RunError, match="the Hub cannot be reached"):
        plan_push(tmp_path / "dataset", "me/rows", HfApi(endpoint="http://127.0.0.1:1", token="hf_x"))


def test_a_full_disk_is_one_line():
    with pytest.raises(RunError, match="disk full"), translate_hub_errors("me/rows"):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_the_command_shows_a_dry_run_and_pushes(tmp_path, hub):
    make_dataset(tmp_path / "run" / "dataset")
    (tmp_path / "run" / "verdicts.jsonl").touch()
    environment = {
        **os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": hub.token, "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1", "PYTHONPATH": str(ROOT), "COLUMNS": "200",
    }  # fmt: skip

    def call(*options: str):
        command = [sys.executable, "-m", "trajsmith", "push", *options]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)

    dry = call("run", "me/rows", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "dry run: private dataset me/rows: at most 5 files to upload" in dry.stdout and hub.repos == {}
    assert hub.log == []
    wrong = call("run", "me/.rows", "--dry-run")
    assert wrong.returncode == 2 and hub.log == []
    done = call("run", "me/rows")
    assert done.returncode == 0 and f"{hub.url}/datasets/me/rows" in done.stdout, done.stderr
    missing = call("run", "me/rows", "--format", "grpo")
    assert missing.returncode == 2
    assert missing.stderr == "error: nothing at run/exports/grpo: write it with `trajsmith export` first\n"


@pytest.mark.parametrize("name", ["config.yaml", "data/extra.parquet"])
def test_a_file_with_a_key_is_not_pushed(tmp_path, hub, name):
    import pyarrow
    from pyarrow import parquet

    make_dataset(tmp_path / "rows")
    key, path = "sk-" + "a1B2" * 8, tmp_path / "rows" / name
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.table({"text": ["fine", f"my key is {key}"]}), path)
    else:
        path.write_text(f"name: rows\nkey: {key}\n")
    with pytest.raises(InputError, match=rf"{name}:2: it holds what looks like a key") as caught:
        pushed(tmp_path / "rows", hub)
    assert key not in str(caught.value)


def test_a_dataset_with_a_symbolic_link_is_not_pushed(tmp_path, hub):
    make_dataset(tmp_path / "rows")
    (tmp_path / "id").write_text("mine")
    (tmp_path / "rows" / "notes.txt").symlink_to(tmp_path / "id")
    with pytest.raises(InputError, match=r"notes\.txt is a symbolic link"):
        pushed(tmp_path / "rows", hub)
