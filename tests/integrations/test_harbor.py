"""Harbor's own loader, runner and verifier, and TRL's `HarborSpec`, on the tasks of a run."""

import os
import shutil
import subprocess

import orjson
import pytest
from other_side import HERE, ROOT, find_python, read_version, run_script

from trajsmith.pipeline.harbor_tasks import write_harbor_tasks
from trajsmith.pipeline.record_joins import join_verdicts

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def tasks(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("harbor") / "suite"
    write_harbor_tasks(run, folder)
    return folder


def test_harbor_loads_every_task(run, tasks, checked):
    *read, about = run_script("harbor", "read_harbor.py", tasks / "tasks")
    accepted = {task.id: task for task, _, verdict in join_verdicts(run) if verdict.accepted}
    good = 0
    for found in read:
        task = accepted[found["metadata"]["task_id"]]
        assert task.turns[0].query in found["instruction"]
        assert found["metadata"]["discrimination"] == task.audit.discrimination
        assert found["servers"] == ["http://127.0.0.1:8765/mcp"]
        good += found["valid"]
    assert len(read) == len(accepted)
    checked("harbor", about["version"], "models.task.Task", good, len(accepted))


def test_trl_reads_the_suite(tasks, checked):
    harbor = pytest.importorskip("trl.experimental.harbor", reason="trl is missing: pip install -e '.[train]'")
    import trl

    rows = harbor.HarborSpec(str(tasks)).train_dataset
    assert {row["task_dir"] for row in rows} == {str(path) for path in (tasks / "tasks").iterdir()}
    checked("trl", trl.__version__, "HarborSpec", len(rows), len(list((tasks / "tasks").iterdir())))


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and overlays need root")
@pytest.mark.timeout(600)
def test_oracle_passes_and_nop_fails_in_harbors_runner(transcripts, tasks, tmp_path, checked):
    """Without Docker: containers are namespaces over an overlay of this machine, with a network of their own."""
    wrong = write_wrong_task(transcripts, tasks, tmp_path)
    chosen = sorted((tasks / "tasks").iterdir())[:2]
    passed = 0
    for agent, folder, reward in [("oracle", chosen[0], 1.0), ("nop", chosen[1], 0.0), ("oracle", wrong, 0.0)]:
        jobs = tmp_path / f"{agent}-{folder.name}"
        run_harbor(agent, folder, jobs)
        (result,) = jobs.glob("*/*/result.json")
        rewards = orjson.loads(result.read_bytes())["verifier_result"]["rewards"]
        assert rewards["reward"] == reward, (agent, rewards)
        passed += 1
    checked("harbor", read_version("harbor", "harbor"), "harbor run (oracle, nop)", passed, 3)


JUDGE_ALL = """
mount -t overlay overlay -o lowerdir=/,upperdir=$1/upper,workdir=$1/work $1/root
mount -t proc proc $1/root/proc && mount --rbind /dev $1/root/dev
for job in $1/jobs/*; do
    rm -rf $1/root/tests $1/root/opt/trajsmith $1/root/logs
    mkdir -p $1/root/opt/trajsmith $1/root/logs/verifier
    cp -r $(cat $job/task)/tests $1/root/tests
    cp $job/transcript.jsonl $1/root/opt/trajsmith/
    chroot $1/root sh /tests/test.sh > $job/log 2>&1
    cp $1/root/logs/verifier/reward.json $job/
done
"""
"""Run the test of a task for each job, where a container would have transcript, test and rewards."""


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and overlays need root")
@pytest.mark.timeout(3000)
def test_rewards_of_the_test_script_are_the_verdicts(tasks, transcripts, tmp_path, checked, full):
    chosen = transcripts if full else transcripts[:5]
    for name in ("upper", "work", "root", "jobs"):
        (tmp_path / name).mkdir()
    for number, transcript in enumerate(chosen):
        job = tmp_path / "jobs" / f"{number:04}"
        job.mkdir()
        (job / "task").write_text(str(tasks / "tasks" / transcript["task_id"].replace("_", "-")))
        (job / "transcript.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in transcript["lines"]))
    env = os.environ | {"PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"}
    command = ["unshare", "-m", "-n", "sh", "-c", JUDGE_ALL, "sh", str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=2900, check=False)
    rewards = [orjson.loads(path.read_bytes())["reward"] for path in sorted((tmp_path / "jobs").glob("*/reward.json"))]
    assert len(rewards) == len(chosen), done.stderr[-2000:]
    same = sum(reward == float(one["accepted"]) for reward, one in zip(rewards, chosen, strict=True))
    checked("harbor tasks", "schema 1.4", "tests/test.sh", same, len(chosen))


def write_wrong_task(transcripts, tasks, folder):
    """Return a copy of a task whose solution leaves a change out."""
    wrong = next(one for one in transcripts if one["kind"] == "wrong state")
    name = wrong["task_id"].replace("_", "-")
    shutil.copytree(tasks / "tasks" / name, folder / "wrong" / name)
    lines = b"".join(orjson.dumps(line) + b"\n" for line in wrong["lines"])
    (folder / "wrong" / name / "solution" / "transcript.jsonl").write_bytes(lines)
    return folder / "wrong" / name


def run_harbor(agent, folder, jobs):
    harbor = find_python("harbor").replace("/python", "/harbor")
    command = [harbor, "run", "-p", folder, "-a", agent, "-e", "harbor_overlay:OverlayEnvironment", "-o", jobs]
    env = os.environ | {
        "PYTHONPATH": str(HERE), "TRAJSMITH_BIN": str(ROOT / ".venv" / "bin"), "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }  # fmt: skip
    done = subprocess.run(
        [*map(str, command), "-n", "1", "-y", "-q"], capture_output=True, text=True, env=env, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
