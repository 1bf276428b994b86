"""ATIF documents of a run are validated by the package `atif` and by Harbor, and come back as the same calls."""

import orjson
import pytest
from other_side import run_script

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
