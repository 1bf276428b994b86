"""The arena with a stand-in for training: rounds, records, going on after a kill, the stop rule, and errors."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from trajsmith.evals.diagnosis import Diagnosis, GroupFinding
from trajsmith.evals.observations import EpisodeObservation
from trajsmith.evals.round_comparison import compare_round
from trajsmith.pipeline.arena import explain_missing_plan, list_steps, prepare_arena
from trajsmith.pipeline.arena_config import ArenaConfig
from trajsmith.pipeline.arena_trainers import TRAINERS, TrainingJob
from trajsmith.pipeline.format_export import iter_selected
from trajsmith.pipeline.run_directory import RunDirectory, find_written_tasks
from trajsmith.pipeline.yaml_settings import dump_yaml, load_settings
from trajsmith.records import InputError, RunError, Task, canonical_json
from trajsmith.records.journal import read_records
from trajsmith.toolgraph import PlanTarget

STAND_IN = Path(__file__).with_name("arena_standin.py")
DATA = {
    "name": "data",
    "environments": [{"library": "bank", "states": {"small": 6}}],
    "sample": {"count": 20, "length": [2, 4]},
    "write": {"direct": 1.0},
}
ARENA = {
    "name": "tiny",
    "seed": 3,
    "model": "start",
    "data": "data.yaml",
    "held_out": {"count": 36},
    "rows": 24,
    "trainer": {"kind": "standin"},
    "served": {"provider": "standin", "model": "start", "preflight": False},
}


class Folder:
    """A configuration and the folder of its arena."""

    def __init__(self, path: Path) -> None:
        self.path, self.out = path, path / "out"
        (path / "data.yaml").write_text(yaml.safe_dump(DATA))
        self.write()

    def write(self, **changes):
        (self.path / "arena.yaml").write_text(yaml.safe_dump(ARENA | {"out": str(self.out)} | changes))

    def command(self, *options):
        return subprocess.run(
            [sys.executable, str(STAND_IN), "arena", str(self.path / "arena.yaml"), *options],
            capture_output=True,
            text=True,
            check=False,
        )

    def change(self, **changes):
        """Give the arena other settings, also in the file by which the command would refuse them, and run it."""
        stored = yaml.safe_load((self.out / "arena.yaml").read_text()) | changes
        (self.out / "arena.yaml").write_text(dump_yaml(stored))
        (self.path / "arena.yaml").write_text(dump_yaml(stored))
        return self.command()

    def stamps(self):
        """Files of finished steps, with the times at which they were written."""
        records = list(self.out.rglob("step.json"))
        files = [file for record in records for file in record.parent.rglob("*.jsonl")]
        return {str(file.relative_to(self.out)): file.stat().st_mtime_ns for file in (*records, *files)}

    def results(self):
        return json.loads((self.out / "arena.json").read_bytes())


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """An arena that was killed in its first training, and went on; with the files that were there at the kill."""
    folder = Folder(tmp_path_factory.mktemp("arena"))
    shown = folder.command("--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "to do: " in shown.stdout and not folder.out.exists()
    folder.path.joinpath("kill").touch()
    stopped = folder.command()
    assert stopped.returncode == -signal.SIGKILL, stopped.stdout + stopped.stderr
    before = folder.stamps()
    again = folder.command()
    assert again.returncode == 0, again.stdout + again.stderr
    return folder, before, again


def test_a_killed_arena_goes_on_without_repeating_finished_steps(killed):
    folder, before, again = killed
    finished = {name.removesuffix("/step.json") for name in before if name.endswith("step.json")}
    expected = {f"round-{number}/held-out" for number in range(3)} | {"round-0/evaluation"}
    assert finished == expected | {"round-1/diagnosis", "round-1/synthesis"}
    assert {name: folder.stamps()[name] for name in before} == before
    everything = folder.stamps()
    third = folder.command()
    assert third.returncode == 0 and folder.stamps() == everything
    assert third.stdout == again.stdout


def test_the_weak_group_gains_and_the_control_arm_does_not(killed):
    folder, _, again = killed
    (only,) = folder.results()["rounds"]
    weak, others = only["groups"][0], only["groups"][1]
    assert (weak["name"], weak["after"]) == ("weak groups", 1.0)
    assert weak["gain"]["low"] > 0 and weak["advantage"]["low"] > 0
    assert others["tasks"] > 0 and others["gain"]["mean"] >= 0
    assert any(group["name"] == "bank.pay_payee" for group in only["groups"])
    assert "round 2: 0 failures" in folder.results()["stopped"], "nothing is left to diagnose"
    assert "stopped: round 2" in again.stdout
    page = (folder.out / "arena.html").read_text()
    assert "bank.pay_payee" in page and "weak groups" in page
    attribution = folder.results()["attribution"]
    assert "too little to say which rows moved which tasks: 1 of at least 3 rounds" in attribution["says"]
    shares = {(one["dimension"], one["name"]): one["differences"] for one in attribution["shares"]}
    assert shares["tool", "bank.pay_payee"][0] > 0.2, "targeted rows have more of the weak tool"
    assert attribution["says"] in again.stdout.replace("\n", " ") and attribution["says"] in page


def test_both_arms_have_as_many_rows_and_none_repeats_an_evaluated_task(killed):
    folder, _, _ = killed
    files = [folder.out / f"round-{number}/held-out/tasks.jsonl" for number in range(3)]
    held = [_get_content(task) for file in files for task in read_records(file, Task)]
    assert len(held) == 3 * 36
    for arm in ("synthesis", "control-synthesis"):
        run = RunDirectory.open(folder.out / "round-1" / arm / "run")
        rows = {task.id for task, _, verdict in iter_selected(run) if verdict.accepted}
        trained = [_get_content(task) for task in read_records(find_written_tasks(run), Task) if task.id in rows]
        assert len(trained) == 24 and not set(trained) & set(held)


def _get_content(task):
    return task.initial_state, tuple((call.tool, canonical_json(call.arguments)) for call in task.gold_calls)


def test_rounds_without_gain_and_evaluations_without_failures_are_one_line(killed):
    folder, _, _ = killed
    folder.write(model="perfect")
    refused = folder.command()
    assert refused.returncode == 2
    assert "holds an arena with other settings (model): name another folder as out" in refused.stderr
    for name in ("training", "evaluation", "comparison"):  # the steps before them stay as they are
        shutil.rmtree(folder.out / "round-1" / name)
    without = folder.change(trainer={"kind": "standin", "settings": {"learns": False}})
    assert without.returncode == 1
    assert without.stderr.splitlines()[-1].startswith("error: round 1: the weak groups gained 0.0 points on ")
    assert folder.results()["model"] == "start"
    shutil.rmtree(folder.out / "round-0" / "evaluation")
    shutil.rmtree(folder.out / "round-1" / "diagnosis")
    few = folder.change(model="perfect")
    assert few.returncode == 1
    assert few.stderr.splitlines()[-1].startswith("error: round 1: 0 failures in 36 episodes are too few")


NUMBERS = {"unscored": 0, "rate": 0.3, "low": 0.2, "high": 0.4, "base": 0.1}
GROUP = {"episodes": 50, "failures": 30, "rate": 0.6, "low": 0.5, "high": 0.7, "elsewhere": 0.1, "p": 0.0, "q": 0.0}


@pytest.mark.parametrize(
    ("failures", "groups", "text"),
    [
        pytest.param(2, (), "few: raise held_out.count in another folder", id="few_failures"),
        pytest.param(30, (), "few: nothing to make rows for", id="no_group"),
        pytest.param(
            30,
            (GroupFinding(dimension="skill", name="tool search", named=True, **GROUP),),
            "no environment can serve the plan: chains cannot be chosen by skill tool search",
            id="unserved",
        ),
    ],
)
def test_why_there_is_no_plan(failures, groups, text):
    diagnosis = Diagnosis(name="e", episodes=99, failures=failures, says="few", groups=groups, **NUMBERS)
    assert explain_missing_plan(diagnosis).startswith(text)


def _observe(task, tool, passed):
    return EpisodeObservation(
        episode=task, task=task, environment="bank", passed=passed, groups={"tool": (tool,), "environment": ("bank",)}
    )


def test_arms_are_compared_on_the_tasks_that_all_were_scored_on():
    tasks = [(f"t{number}", "bank.a" if number < 20 else "bank.b") for number in range(40)]
    before = [_observe(task, tool, tool == "bank.b") for task, tool in tasks]
    after = [_observe(task, tool, None if task == "t0" else task != "t1") for task, tool in tasks]
    control = [_observe(task, tool, tool == "bank.b" or task == "t2") for task, tool in tasks]
    targets = [PlanTarget(dimension="tool", name=name, share=1) for name in ("bank.a", "bank.none")]
    weak, others, every, a, none = compare_round(before, after, control, targets)
    assert (weak.tasks, others.tasks, every.tasks, a.tasks, none.tasks) == (19, 20, 39, 19, 0)
    assert (weak.before, weak.after, weak.control) == (0.0, 0.9474, 0.0526)
    assert weak.gain.mean == 0.9474 and weak.advantage.mean == 0.8947 and weak.advantage.low > 0.5
    assert (others.gain.mean, others.gain.low, others.gain.high) == (0.0, -0.1260, 0.1260)
    assert compare_round(before, after, None, targets)[0].advantage is None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"trainer": {"kind": "stf"}}, 'no trainer named .stf. \\(did you mean "sft"'),
        ({"evaluation": {"limit": 4}, "trainer": {"kind": "command", "settings": {"command": ["x"]}}}, "limit"),
        ({"trainer": {"kind": "command", "settings": {}}}, "trainer.settings: .*command"),
    ],
    ids=["trainer", "evaluation", "settings"],
)
def test_wrong_settings_are_found_before_any_work(tmp_path, changes, text):
    (tmp_path / "data.yaml").write_text(yaml.safe_dump(DATA))
    settings = {key: value for key, value in ARENA.items() if key != "served"} | {"out": str(tmp_path / "out")}
    (tmp_path / "arena.yaml").write_text(yaml.safe_dump(settings | changes))
    with pytest.raises(InputError, match=text):
        prepare_arena(load_settings(tmp_path / "arena.yaml", ArenaConfig))
    assert not (tmp_path / "out").exists()


def test_a_command_trains_and_its_failure_is_one_line(tmp_path):
    def job(*command):
        return TrainingJob("base", tmp_path / "run", tmp_path / "model", {"command": [sys.executable, "-c", *command]})

    write = "import sys, pathlib; pathlib.Path(sys.argv[3], 'm').write_text(' '.join(sys.argv[1:3]))"
    trainer = TRAINERS.get("command")
    assert trainer.train(job(write, "{model}", "{dataset}", "{out}")) == str(tmp_path / "model")
    assert (tmp_path / "model" / "m").read_text() == f"base {tmp_path / 'run' / 'dataset'}"
    with pytest.raises(RunError, match="ended with 3"):
        trainer.train(job("raise SystemExit(3)"))
    with pytest.raises(InputError, match=r"only {model}, {run}, {dataset} and {out} are filled in"):
        trainer.train(job("pass", "{mdel}"))


def test_the_steps_of_a_round_without_control():
    config = ArenaConfig(name="a", out="o", model="m", data="d.yaml", rounds=1, control=False)
    assert list_steps(config) == [
        *("round-0/held-out", "round-1/held-out", "round-0/evaluation", "round-1/diagnosis", "round-1/synthesis"),
        *("round-1/training", "round-1/evaluation-before", "round-1/evaluation", "round-1/comparison"),
    ]
