"""OpenEnv's own clients list the tools of tasks, play transcripts, and get the verdict of the pipeline as reward."""

import os
import subprocess

import orjson
import pytest
from other_side import ROOT, find_python, run_script

from trajsmith.pipeline.record_joins import join_verdicts

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def url(run):
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [find_python("openenv"), "-m", "trajsmith", "task", "serve", str(run.path), "--openenv", "127.0.0.1:0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, cwd=ROOT)
    lines = []
    for line in server.stderr:
        lines.append(line)
        if "serving OpenEnv at" in line:
            break
    else:
        pytest.fail("".join(lines))
    yield line.split(" at ")[1].split(";")[0]
    server.terminate()
    server.communicate(timeout=30)


@pytest.mark.parametrize("client", ["MCPToolClient", "GenericEnvClient"])
def test_rewards_are_the_verdicts(run, url, transcripts, tmp_path, checked, client):
    file = tmp_path / "transcripts.jsonl"
    file.write_bytes(b"\n".join(orjson.dumps(transcript) for transcript in transcripts))
    *results, about = run_script("openenv", "drive_openenv.py", url, file, client)
    assert len(results) == len(transcripts)
    assert {True, False} == {transcript["accepted"] for transcript in transcripts}
    shown = {task.id: [*task.shown_tools, "message_user"] for task, *_ in join_verdicts(run)}
    for result, transcript in zip(results, transcripts, strict=True):
        assert client != "MCPToolClient" or result["tools"] == shown[transcript["task_id"]]
    same = sum(
        result["reward"] == float(transcript["accepted"])
        for result, transcript in zip(results, transcripts, strict=True)
    )
    checked("openenv", about["version"], client, same, len(transcripts))
