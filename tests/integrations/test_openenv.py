"""OpenEnv's own clients list the tools of tasks, play transcripts, and get the verdict of the pipeline as reward."""

import os
import subprocess
import sys
import urllib.request

import orjson
import pytest
from other_side import ROOT, find_python, read_version, run_script, start, stop

from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.task_packages import write_task_package

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("openenv") / "tasks"
    write_task_package(run, "openenv", folder)
    return folder


@pytest.mark.parametrize("client", ["MCPToolClient", "GenericEnvClient"])
def test_rewards_are_the_verdicts(run, openenv_url, transcripts, tmp_path, checked, client):
    file = tmp_path / "transcripts.jsonl"
    file.write_bytes(b"\n".join(orjson.dumps(transcript) for transcript in transcripts))
    *results, about = run_script("openenv", "drive_openenv.py", openenv_url, file, client)
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


def test_a_split_that_is_not_there_is_refused(run):
    tasks = {judged.task.id for judged in join_verdicts(run)}
    answers = [line["answer"] for line in run_script("openenv", "reset_openenv.py", run.path)]
    refused = "there is no split 'test': the tasks are in 'all'"
    assert [refused if answer == refused else answer in tasks for answer in answers] == [
        True, True, refused, refused, True,
    ]  # fmt: skip


def run_openenv(folder, *arguments, **env):
    command = [find_python("openenv").replace("/python", "/openenv"), *map(str, arguments)]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"} | env
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_folder_is_valid(folder, tmp_path, checked):
    """Static checks of the folder, and those of its running server."""
    report = orjson.loads(run_openenv(folder, "validate", ".", "--level", "static", "--skip-build", "--json"))
    assert report["verdict"] == "pass", report
    version = read_version("openenv", "openenv")
    checked("openenv", version, "openenv validate (folder)", len(report["results"]), len(report["results"]))
    command = [find_python("openenv"), "-m", "uvicorn", "server.app:app", "--port", "0"]
    server, line = start(command, folder, "Uvicorn running on")
    try:
        url = line.split("running on ")[1].split(" ")[0]
        report = orjson.loads(run_openenv(folder, "validate", "--url", url, "--json", "--timeout", "60"))
        (splits,) = read_json(f"{url}/trajsmith_run/splits")
        tasks = read_json(f"{url}/trajsmith_run/tasks", {"split": "all"})["tasks"]
    finally:
        stop(server)
    passed = sum(one["passed"] for one in report["criteria"])
    checked("openenv", version, "openenv validate --url", passed, len(report["criteria"]))
    assert splits["name"] == "all" and len(tasks) > 5


def read_json(url, body=None):
    data = None if body is None else orjson.dumps(body)
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return orjson.loads(answer.read())


def test_the_folder_is_pushed_as_a_space(folder, tmp_path, checked):
    """To a Hub on this machine, which holds what the Hub would hold."""
    sys.path.insert(0, str(ROOT / "tests" / "export"))
    from hub_server import serve

    with serve() as hub:
        hub_env = {"HF_ENDPOINT": hub.url, "HF_TOKEN": hub.token, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1"}
        run_openenv(folder, "push", "--repo-id", "me/tasks", "--no-interface", **hub_env)
        files = hub.files("spaces/me/tasks")
    kept = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    own = {path.relative_to(folder).as_posix(): path for path in kept}
    moved = {name.removeprefix("server/") if name == "server/Dockerfile" else name: own[name] for name in own}
    same = sum(files.get(name) == path.read_bytes() for name, path in moved.items())
    checked("openenv", read_version("openenv", "openenv"), "openenv push (local Hub), files", same, len(moved))
