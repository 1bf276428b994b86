"""ATIF documents of a run are validated by the package `atif` and by Harbor, and come back as the same calls.

So do session logs of Claude Code, as ATIF by Harbor's converter.
"""

import orjson
import pytest
from other_side import run_script
from session_logs import write_claude_code_log

from trajsmith.api.datasets import export_dataset
from trajsmith.api.imports import import_dialogues
from trajsmith.api.runs import load_run
from trajsmith.pipeline.record_joins import join_verdicts


@pytest.fixture(scope="module")
def documents(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("atif")
    export_dataset(load_run(run.path), out=folder, format="atif")
    return next(folder.rglob("train*.jsonl"))


@pytest.mark.servers
@pytest.mark.parametrize("package", ["atif", "harbor"])
def test_every_document_is_valid_and_comes_back_unchanged(documents, checked, package):
    *results, version = run_script(package, "read_atif.py", documents, package)
    rows = documents.read_text("utf-8").splitlines()
    assert len(results) == len(rows) > 5
    same = sum(result == orjson.loads(row) for result, row in zip(results, rows, strict=True))
    checked(package, version["version"], f"{version['client']}.model_validate", same, len(rows))


def test_import_of_an_export_makes_the_same_calls_with_the_same_results(run, documents, tmp_path):
    config = tmp_path / "import.yaml"
    config.write_text((run.path / "config.yaml").read_text())
    lines = [orjson.loads(line) for line in documents.read_text("utf-8").splitlines()]
    ours = {trajectory.id: trajectory for _, trajectory, _ in join_verdicts(run)}
    for environment in ("smart_home", "bank"):
        own = [line for line in lines if line["extra"]["trajsmith"]["environment"] == environment]
        (tmp_path / f"{environment}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, own)))
        again = import_dialogues(
            [tmp_path / f"{environment}.jsonl"], run=tmp_path / environment, config=config, environment=environment
        )
        replayed = [trajectory for _, trajectory, _ in join_verdicts(again.directory)]
        assert len(replayed) == len(own) > 0
        for trajectory, line in zip(replayed, own, strict=True):
            assert all(event.agrees for event in trajectory.events)
            assert trajectory.final_state == ours[line["trajectory_id"]].final_state
            assert trajectory.recorded["dialogue"] == line["trajectory_id"]


@pytest.mark.servers
def test_session_logs_that_harbor_converts_make_the_same_calls_with_the_same_results(run, tmp_path, checked):
    plays = [trajectory for _, trajectory, _ in join_verdicts(run) if trajectory.environment == "bank"]
    folders = [tmp_path / f"log-{number}" for number in range(len(plays))]
    for folder, play in zip(folders, plays, strict=True):
        write_claude_code_log(play, folder / "sessions" / "projects" / "-root-desk", "desk")
    *documents, about = run_script("harbor", "convert_session.py", *folders)
    files = [folder / "trajectory.json" for folder in folders]
    for file, document in zip(files, documents, strict=True):
        file.write_bytes(orjson.dumps(document))
    accept = {"verify.imported.without_gold": "replay"}
    config = tmp_path / "import.yaml"
    config.write_text((run.path / "config.yaml").read_text())
    again = import_dialogues(files, run=tmp_path / "run", config=config, environment="bank", overrides=accept)
    same = 0
    for (_, replayed, verdict), play in zip(join_verdicts(again.directory), plays, strict=True):
        assert [event.tool for event in replayed.events] == [event.tool for event in play.events]
        assert all(event.agrees for event in replayed.events), replayed.events
        assert replayed.final_state == play.final_state
        same += verdict.accepted
    checked("harbor", about["version"], "convert_trajectory of Claude Code's logs, imported", same, len(plays))
