"""`inspect eval` plays the tasks of a run, and its scores are our verdicts."""

import os
import subprocess

import orjson
import pytest
from other_side import HERE, ROOT, find_python, run_script

from trajsmith.pipeline.task_packages import write_task_package

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect") / "tasks"
    write_task_package(run, "inspect", folder)
    return folder


@pytest.mark.timeout(900)
def test_scores_are_the_verdicts(folder, transcripts, tmp_path, checked):
    file = tmp_path / "transcripts.jsonl"
    file.write_bytes(b"\n".join(orjson.dumps(transcript) for transcript in transcripts))
    *results, about = run_script("inspect", "drive_inspect.py", folder, file, tmp_path / "logs")
    assert len(results) == len(transcripts)
    wrong = [
        (result, transcripts[result["number"]]["kind"])
        for result in results
        if result["score"] != float(transcripts[result["number"]]["accepted"])
    ]
    assert not wrong
    checked("inspect-ai", about["version"], "eval (mockllm)", len(results), len(transcripts))


def test_the_command_evaluates_the_folder(folder, tmp_path, checked):
    """A model that only says that it cannot gets nothing."""
    command = [find_python("inspect"), str(HERE / "inspect_command.py"), "eval", "task.py", "--model", "silent/model"]
    command += ["--limit", "3", "--display", "plain"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "INSPECT_LOG_DIR": str(tmp_path), "INSPECT_LOG_FORMAT": "json"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=200, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    (log,) = tmp_path.glob("*.json")
    content = orjson.loads(log.read_bytes())
    assert content["status"] == "success"
    scores = [sample["scores"]["verdict"]["value"] for sample in content["samples"]]
    assert scores == [0.0, 0.0, 0.0]
    checked("inspect-ai", content["eval"]["packages"]["inspect_ai"], "inspect eval (no answer: 0)", 3, 3)
    command = [*command[:2], "score", str(log), "--overwrite", "--action", "overwrite", "--display", "plain"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=200, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    again = orjson.loads(log.read_bytes())
    assert [sample["scores"]["verdict"]["value"] for sample in again["samples"]] == scores
    assert again["stats"]["completed_at"]
