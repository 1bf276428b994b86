"""NeMo Gym's own command starts the exported server, and its agent's rollouts get our verdicts."""

import os
import signal
import subprocess
import time

import orjson
import pytest
from other_side import ROOT, find_python, read_version, run_script
from responses_model import serve_transcripts

from trajsmith.pipeline.task_packages import write_task_package

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    """The exported folder; every server of NeMo Gym finds the one environment in which all is installed."""
    folder = tmp_path_factory.mktemp("nemo_gym") / "gym"
    write_task_package(run, "nemo_gym", folder)
    there = ROOT / ".integrations" / "nemo_gym"
    for part in (
        "resources_servers/trajsmith_run",
        "responses_api_agents/simple_agent",
        "responses_api_models/openai_model",
    ):
        (folder / "environments" / part).mkdir(parents=True)
        (folder / "environments" / part / ".venv").symlink_to(there)
    return folder


def prepare_command(*arguments):
    gym = find_python("nemo_gym").replace("/python", "/gym")
    path = f"{ROOT / '.integrations' / 'nemo_gym' / 'bin'}:{os.environ['PATH']}"
    env = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": path,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
    }
    return [gym, *map(str, arguments)], env


def start_servers(command, env, folder, log):
    """Return the running servers, or None if they did not start."""
    with log.open("wb") as out:
        started = subprocess.Popen(
            command, env=env, cwd=folder, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    end = time.monotonic() + 600
    while b"servers ready! Polling" not in log.read_bytes():
        if started.poll() is not None:
            return None
        if time.monotonic() > end:
            os.killpg(started.pid, signal.SIGKILL)
            return None
        time.sleep(1)
    return started


@pytest.fixture(scope="module")
def model(folder, transcripts):
    """NeMo Gym's servers, with the transcripts as the model."""
    with serve_transcripts(transcripts) as url:
        command, env = prepare_command(
            "env", "start", "--config", "resources_servers/trajsmith_run/configs/trajsmith_run.yaml",
            "--config", "responses_api_models/openai_model/configs/openai_model.yaml",
            f"+policy_base_url={url}", "+policy_api_key=none", "+policy_model_name=model",
            "+skip_venv_if_present=true", f"+uv_venv_dir={folder / 'environments'}",
        )  # fmt: skip
        started = None
        for number in range(5):  # Ray waits for itself for 30 s, whatever else the machine does
            started = started or start_servers(command, env, folder, folder / f"servers_{number}.log")
        if started is None:
            pytest.fail((folder / "servers_4.log").read_text()[-4000:])
        yield url
        os.killpg(started.pid, signal.SIGINT)
        started.wait(30)


@pytest.mark.timeout(2400)
def test_rewards_of_rollouts_are_the_verdicts(folder, model, transcripts, tmp_path, checked):
    rows = [orjson.loads(line) for line in (folder / "resources_servers/trajsmith_run/data/tasks.jsonl").open("rb")]
    by_task = {row["task_id"]: row for row in rows}
    asked = []
    for number, transcript in enumerate(transcripts):
        row = by_task[transcript["task_id"]]
        request = row["responses_create_params"] | {"metadata": {"transcript": str(number)}}
        asked.append(row | {"responses_create_params": request, "number": number})
    (tmp_path / "rows.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in asked))
    out = tmp_path / "rollouts.jsonl"
    command, env = prepare_command(
        "eval", "run", "--no-serve", "--agent", "trajsmith_run_simple_agent", "--input", tmp_path / "rows.jsonl",
        "--output", out, "--concurrency", "4",
    )  # fmt: skip
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    results = [orjson.loads(line) for line in out.read_bytes().splitlines()]
    assert len(results) == len(transcripts)
    wrong = [
        (result["outcome"], result["reasons"], transcripts[result["number"]]["kind"])
        for result in results
        if result["reward"] != float(transcripts[result["number"]]["accepted"])
    ]
    assert not wrong
    checked(
        "nemo-gym", read_version("nemo-gym", "nemo_gym"), "gym eval run (simple_agent)", len(results), len(transcripts)
    )


def test_what_the_server_cannot_use_or_score_has_a_status_of_its_own(run):
    answers = {line["request"]: line for line in run_script("nemo_gym", "break_nemo_gym.py", run.path)}
    status = {name: answer["status"] for name, answer in answers.items()}
    assert status == {"seed": 200, "broken json": 400, "a list": 400, "call": 200, "fault": 503}, answers
    assert "cannot be scored" in answers["fault"]["text"] and "it is gone" in answers["fault"]["text"]
