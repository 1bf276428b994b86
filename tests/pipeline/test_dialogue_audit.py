"""`trajsmith audit`: faults of language are counted with examples, and variety is measured."""

import json

import pytest
from typer.testing import CliRunner

from trajsmith import run
from trajsmith.cli.app import app
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import InputError
from trajsmith.verify.dialogue_audit import FAULT_KINDS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit") / "run"
    run(
        {
            "name": "audit",
            "run": str(folder),
            "environments": [{"library": "retail"}],
            "sample": {"count": 12},
            "play": {"candidates": 2, "faulty": 1},
        }
    )
    return folder


def audit(folder, *options):
    target = folder.parent / "audit.json"
    result = CliRunner().invoke(app, ["audit", str(folder), "--json", str(target), *options])
    assert result.exit_code == 0, result.output
    return result.output, json.loads(target.read_bytes())


def test_the_dataset_has_no_fault(folder):
    output, counts = audit(folder)
    accepted = [verdict for _, _, verdict in join_verdicts(RunDirectory.open(folder)) if verdict.accepted]
    tasks = {verdict.task_id for verdict in accepted}
    assert counts["rows"] == len(accepted) == len(tasks) >= 10
    assert {kind: row["faults"] for kind, row in counts["faults"].items()} == dict.fromkeys(FAULT_KINDS, 0)
    assert 0 < counts["variety"]["retail.user"]["distinct_3"] <= 1
    assert counts["skeletons"]["assistant"] and "unsupported_claim" in output


def test_rejected_dialogues_show_theirs_with_the_text(folder):
    output, counts = audit(folder, "--all")
    played = {
        trajectory.id: (trajectory, verdict) for _, trajectory, verdict in join_verdicts(RunDirectory.open(folder))
    }
    assert counts["rows"] == len(played) >= 20
    assert counts["examples"]
    for kind, shown in counts["examples"].items():
        rows = counts["faults"][kind]
        assert rows["faults"] >= max(len(shown), rows["rows"]) > 0 and kind in output
        for example in shown:
            trajectory, verdict = played[example["trajectory_id"]]
            assert not verdict.accepted
            assert example["text"] == trajectory.messages[example["message"]].content and example["detail"]
            assert kind != "unsupported_claim" or example["detail"] in example["text"]


def test_a_run_without_verdicts_is_refused(folder, tmp_path):
    copy = tmp_path / "run"
    copy.mkdir()
    copy.joinpath("config.yaml").write_bytes(folder.joinpath("config.yaml").read_bytes())
    result = CliRunner().invoke(app, ["audit", str(copy)])
    assert isinstance(result.exception, InputError)
    assert "no dialogue is verified yet: trajsmith resume" in str(result.exception)


def test_dialogues_across_environments_are_audited(tmp_path):
    folder = tmp_path / "run"
    run(
        {
            "name": "across",
            "run": str(folder),
            "environments": [{"library": "bank"}, {"library": "calendar"}],
            "sample": {"count": 6, "servers": 2, "scenarios": 0},
        }
    )
    _, counts = audit(folder)
    accepted = [row for _, row, verdict in join_verdicts(RunDirectory.open(folder)) if verdict.accepted]
    assert "bank+calendar" in {row.environment for row in accepted}
    assert counts["rows"] == len(accepted)
    assert {kind: row["faults"] for kind, row in counts["faults"].items()} == dict.fromkeys(FAULT_KINDS, 0)
