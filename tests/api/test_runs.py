"""`run`, `resume`, `load_run` and what a run gives."""

import asyncio
import subprocess
import sys
from types import ModuleType

import pytest

import trajsmith as ts
from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import InputError

CONFIG = {
    "name": "small",
    "seed": 4,
    "environments": [{"library": "retail", "states": {"small": 1}}],
    "sample": {"count": 12, "length": [3, 5]},
    "export": {"split": {"test": 0.5}},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ts.run(CONFIG, run=tmp_path_factory.mktemp("api") / "run")


def test_every_public_name_is_there_with_an_example():
    for name in ts.__all__:
        if name in ("RunEnv", "RunTaskset"):  # they import `verifiers`, which is no dependency
            continue
        assert getattr(ts, name).__doc__, name
    functions = ["run", "resume", "load_run", "open_environment", "check_environment", "build_graph"]
    functions += ["filter_trajectories", "export_dataset", "evaluate", "TrajsmithSpec", "import_dialogues"]
    assert [name for name in functions if "Example:" not in getattr(ts, name).__doc__] == []
    assert set(ts.__all__) <= set(dir(ts))


def test_import_loads_nothing_heavy():
    code = "import sys, trajsmith; print(sorted({'numpy', 'pydantic', 'datasets', 'trajsmith.api'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_verify_is_a_function_and_a_package():
    from trajsmith.verify import replay_trajectory

    assert isinstance(ts.verify, ModuleType) and ts.verify is sys.modules["trajsmith.verify"]
    assert ts.verify.replay_trajectory is replay_trajectory
    with pytest.raises(TypeError, match="missing 3 required positional arguments"):
        ts.verify()


def test_records_are_read_lazily_and_as_often_as_wanted(run):
    assert len(run.tasks) == len(run.trajectories) == len(run.verdicts) == run.summary.funnel["played"] > 5
    trajectories = run.trajectories
    assert [one.id for one in trajectories] == [one.id for one in trajectories]
    for task, trajectory, verdict in run.judged:
        assert trajectory.task_id == task.id and verdict.trajectory_id == trajectory.id


def test_rows_and_dataset_hold_the_same(run):
    rows = {row["id"]: row for row in run.rows()}
    loaded = [*run.dataset("train"), *run.dataset("test")]
    assert len(rows) == run.summary.funnel["exported"] and {row["id"]: row for row in loaded} == rows
    with pytest.raises(InputError, match="has no split 'validation'; there are train, test"):
        run.dataset("validation")


def test_the_same_run_from_mapping_settings_and_a_running_loop(run, tmp_path):
    async def inside() -> ts.Run:
        return ts.run(RunConfig.model_validate(CONFIG), run=tmp_path / "b", overrides={"sample.count": 12})

    again = asyncio.run(inside())
    assert [one.id for one in again.verdicts] == [one.id for one in run.verdicts]
    assert again.config.run == tmp_path / "b"


def test_resume_changes_settings_and_does_what_is_stale(tmp_path):
    small = ts.run(CONFIG, run=tmp_path / "run", overrides=["sample.count=3"])
    before = len(small.trajectories)
    resumed = ts.resume(small.path, overrides={"verify.rewards.names": ["checks"]})
    assert len(resumed.trajectories) == before
    assert {name for verdict in resumed.verdicts for name in verdict.rewards} == {"checks"}


@pytest.mark.parametrize(
    ("config", "overrides", "text"),
    [
        pytest.param({**CONFIG, "sampel": {}}, (), 'sampel: unknown key; did you mean "sample"', id="unknown-key"),
        pytest.param(CONFIG, {"sample.count": "many"}, "sample.count", id="wrong-override"),
        pytest.param("nowhere.yaml", (), "no such file: nowhere.yaml", id="no-file"),
    ],
)
def test_wrong_configurations_are_one_line(config, overrides, text, tmp_path):
    with pytest.raises(InputError, match=text) as error:
        ts.run(config, run=tmp_path / "run", overrides=overrides)
    assert "\n" not in str(error.value) and not (tmp_path / "run").exists()


def test_a_run_of_another_configuration_names_arguments_of_python(run):
    with pytest.raises(InputError) as error:
        ts.run({**CONFIG, "export": {"split": {"test": 0.2}}}, run=run.path)
    assert "(export.split.test 0.3 -> 0.2): trajsmith.resume(" in str(error.value)
    assert "overrides={'export.split.test': 0.2}) changes it, fresh=True starts anew" in str(error.value)
    with pytest.raises(InputError, match=r"already holds a run: resume with trajsmith\.resume\(.* fresh=True"):
        ts.run(CONFIG, run=run.path)


def test_no_run_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"no run here: .* has no config\.yaml"):
        ts.load_run(tmp_path)


def test_relative_paths_start_at_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"environment file not found: {tmp_path}/none.py"):
        ts.run({"name": "x", "environments": [{"python": "none.py"}]}, run="runs/x")


def test_verify_gives_the_verdict_of_the_run(run):
    for task, trajectory, verdict in run.judged:
        with run.open_environment(task) as environment:
            assert ts.verify(task, trajectory, environment, run.config.verify) == verdict
        break


def test_verify_sees_a_trajectory_that_does_not_do_the_task(run):
    task, trajectory = next((task, one) for task, one, _ in run.judged if any(event.effect for event in one.events))
    spans = tuple(span.model_copy(update={"state_hash": trajectory.initial_state}) for span in trajectory.turns)
    idle = trajectory.model_copy(update={"events": (), "turns": spans, "id": ""})
    with run.open_environment(task) as environment:
        verdict = ts.verify(task, idle, environment)
    assert verdict.outcome in ("partial", "agent_error") and "the final state is not the gold state" in verdict.reasons


def test_verify_refuses_another_initial_state(run):
    task, trajectory, _ = next(run.judged)
    with ts.open_environment("retail", seed=99) as environment, pytest.raises(InputError, match="does not start from"):
        ts.verify(task, trajectory, environment)


INTERRUPTED = """
import asyncio, os, pathlib, signal, sys, threading, time
import trajsmith as ts

def interrupt():
    while not pathlib.Path(sys.argv[1], "chains.jsonl").exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

async def cell():
    threading.Thread(target=interrupt).start()
    ts.run("quickstart", run=sys.argv[1], overrides={"sample.count": 5000})

loop = asyncio.new_event_loop()  # as a notebook's: without the handler of asyncio.run, which waits for a second Ctrl-C
try:
    loop.run_until_complete(cell())
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""


def test_an_interrupt_in_a_notebook_ends_the_work_and_the_run_goes_on(tmp_path):
    path = tmp_path / "run"
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(path)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted 1\n", done.stderr
    with RunDirectory.open(path).lock():  # nobody holds it any more
        pass
    assert ts.resume(path, overrides={"sample.count": 3}).summary.funnel["sampled"] == 3
