"""verifiers' own validator and harness on the package of a run: checks are green, rewards are our verdicts."""

import os
import subprocess

import orjson
import pytest
from other_side import HERE, ROOT, find_python, read_version

pytestmark = pytest.mark.servers


def run_there(site, command, folder):
    env = os.environ | {"PYTHONPATH": f"{site}:{ROOT / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=env, cwd=folder, timeout=5400, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.timeout(1800)
def test_validator_is_green(run, verifiers_site, tmp_path, checked):
    validate = find_python("verifiers").replace("/python", "/vf-validate")
    for number, options in enumerate([[], ["--only-setup"]]):
        out = tmp_path / str(number)
        command = [validate, "trajsmith-run", "--runtime.type", "subprocess", "--rich", "False", "-c", "4", "-o", out]
        run_there(verifiers_site, [*command, *(f"{option}=True" for option in options)], tmp_path)
        (file,) = out.glob("*/summary.json")
        summary = orjson.loads(file.read_bytes())
        name = "vf-validate (setup)" if options else "vf-validate (gold, no-op)"
        checked(
            "verifiers", read_version("verifiers", "verifiers"), name, summary["outcomes"]["valid"], summary["total"]
        )


def test_rewards_are_the_verdicts(verifiers_site, transcripts, tmp_path, checked):
    assert {True, False} == {transcript["accepted"] for transcript in transcripts}
    same, count, version = compare_rewards(verifiers_site, transcripts, tmp_path, "score")
    checked("verifiers", version, "Task.score", same, count)


@pytest.mark.timeout(5400)
def test_rollouts_of_the_harness_get_the_verdicts(verifiers_site, transcripts, tmp_path, checked, full):
    kinds = {transcript["kind"]: transcript for transcript in transcripts}
    chosen = transcripts if full else [kinds["right"], kinds["wrong state"]]
    same, count, version = compare_rewards(verifiers_site, chosen, tmp_path, "rollout")
    checked("verifiers", version, "Env.run_episode (null harness)", same, count)


def compare_rewards(site, transcripts, folder, way):
    file = folder / "transcripts.jsonl"
    file.write_bytes(b"\n".join(orjson.dumps(transcript) for transcript in transcripts))
    command = [find_python("verifiers"), HERE / "drive_verifiers.py", "trajsmith_run", file, way]
    *results, about = (orjson.loads(line) for line in run_there(site, command, folder).splitlines())
    assert len(results) == len(transcripts)
    wrong = [
        result | {"kind": transcripts[result["number"]]["kind"]} for result in results
        if result["reward"] != float(transcripts[result["number"]]["accepted"])
    ]  # fmt: skip
    assert not wrong
    return len(results) - len(wrong), len(transcripts), about["version"]
