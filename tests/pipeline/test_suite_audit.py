"""`trajsmith audit --tau2|--harbor`: suites written for the tests, with tasks whose faults are known."""

import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trajsmith import run
from trajsmith.cli import console
from trajsmith.cli.app import app
from trajsmith.cli.audit import build_suite_tables
from trajsmith.pipeline import harbor_audit
from trajsmith.pipeline.harbor_tasks import write_harbor_tasks
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.suite_counts import SuiteAudit, SuiteCall, build_mutants, collect_values, find_untold
from trajsmith.records import AnswerCheck, EnvironmentFault, InputError, Task
from trajsmith.records.canonical import hash_bytes
from trajsmith.records.journal import read_records

TAU2 = Path(__file__).parents[1] / "environments" / "tau2"
LENDING = "data/tau2/domains/lending"


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one domain, its evaluators, and tasks to audit."""
    for part in ("checkout", "evaluators"):
        shutil.copytree(TAU2 / part, tmp_path / "tau2", dirs_exist_ok=True)
    return tmp_path / "tau2"


def audit(folder, *options):
    target = folder.parent / "audit.json"
    result = CliRunner().invoke(app, ["audit", *options, "--json", str(target)])
    assert result.exit_code == 0, result.output
    return json.loads(target.read_bytes())


def read_refusal(*options):
    error = CliRunner().invoke(app, ["audit", *options]).exception
    assert isinstance(error, InputError)
    assert "\n" not in str(error)
    return str(error)


def test_tasks_of_tau2_are_judged_by_their_own_evaluators(checkout):
    (counts,) = audit(checkout, "--tau2", str(checkout))
    assert counts["suite"] == "tau2 lending"
    assert (counts["tasks"], counts["played"], counts["gold_passes"], counts["empty_fails"]) == (9, 7, 5, 4)
    assert {reason: counts["examples"][reason][0].partition(":")[0] for reason in counts["reasons"]} == {
        "gold fails: ENV_ASSERTION": "gold fails",
        "the task names no gold calls, and doing nothing fails: ENV_ASSERTION": "no gold",
        "empty play passes: gold changes nothing, and nothing must be said": "does nothing",
        "a gold call is refused": "gold is refused",
        "a part is judged by a model and was left out": "a model judges",
        "empty play is undecided: a model judges the rest": "a model judges",
        "mutant is undecided: a model judges the rest: text left out": "a model judges",
        "mutant is undecided: a model judges the rest: call added": "a model judges",
        "gold play cannot be judged: crash": "judge breaks",
        "malformed task": "malformed",
        "mutant escapes: call added": "looks at one book",
    }
    assert counts["reasons"]["empty play passes: gold changes nothing, and nothing must be said"] == 2


def test_mutants_count_only_where_execution_shows_that_they_are_wrong(checkout):
    (counts,) = audit(checkout, "--tau2", str(checkout), "--domain", "lending", "--limit", "1", "--mutants", "20")
    assert counts["equivalent"] >= 2  # without the look-up, and with another name in it
    assert counts["mutants"] == counts["caught"]
    assert counts["mutants"].keys() == {"call left out", "argument changed", "call added", "text left out"}
    assert counts["mutants"]["call left out"] == counts["mutants"]["text left out"] == 1


def test_the_same_seed_gives_the_same_figures(checkout):
    figures = [audit(checkout, "--tau2", str(checkout), "--seed", seed) for seed in ("1", "1")]
    assert figures[0] == figures[1]


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (lambda folder: None, ["--domain", "nowhere"], "no domain 'nowhere'; there are lending"),
        (lambda folder: (folder / LENDING / "tasks.json").unlink(), ["--domain", "lending"], "tasks.json cannot be"),
        (lambda folder: None, ["--domain", "lending:policy.md"], "policy.md:1: no JSON"),
        (lambda folder: (folder / "src/tau2/environment/toolkit.py").unlink(), [], "give a checkout of https://"),
        (
            lambda folder: (folder / "src/tau2/evaluator/evaluator_env.py").write_text("import socket_of_mine"),
            ["--domain", "lending"],
            "evaluator_env.py:1: ModuleNotFoundError",
        ),
    ],
    ids=["domain", "no tasks", "no JSON", "no checkout", "broken code"],
)
def test_what_cannot_be_audited_is_one_line(checkout, change, options, says):
    change(checkout)
    assert says in read_refusal("--tau2", str(checkout), *options)


def test_a_domain_that_was_not_named_and_cannot_be_read_is_a_reason(checkout):
    (checkout / LENDING / "tasks.json").unlink()
    (counts,) = audit(checkout, "--tau2", str(checkout))
    assert counts["reasons"] == {"domain cannot be read": 1} and counts["tasks"] == 0


def test_evaluators_run_in_the_sandbox(checkout):
    file = checkout / "src/tau2/evaluator/evaluator_action.py"
    file.write_text(f"{file.read_text()}\nopen({str(checkout / 'written')!r}, 'w')\n")
    assert "data files are only read here" in read_refusal("--tau2", str(checkout), "--domain", "lending")
    file.write_text(f"{file.read_text().rpartition('open(')[0]}import os\nos.mkdir({str(checkout / 'written')!r})\n")
    assert "PermissionError" in read_refusal("--tau2", str(checkout), "--domain", "lending")
    assert not (checkout / "written").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "name what is audited"),
        (["runs/x", "--tau2", "y"], "name what is audited"),
        (["runs/x", "--domain", "airline"], "--domain chooses among the domains of --tau2"),
        (["--harbor", "y", "--domain", "airline"], "--domain chooses among the domains of --tau2"),
    ],
    ids=["nothing", "both", "a domain of a run", "a domain of Harbor"],
)
def test_what_is_audited_is_named_once(options, says):
    assert read_refusal(*options).startswith(says)


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """Tasks of a run as Harbor tasks."""
    folder = tmp_path_factory.mktemp("harbor")
    made = run({"name": "h", "run": str(folder / "run"), "environments": [{"library": "bank"}], "sample": {"count": 4}})
    write_harbor_tasks(RunDirectory.open(made.path), folder / "suite")
    return folder / "suite"


def test_harbor_tasks_of_our_own_are_played_again(suite):
    (counts,) = audit(suite, "--harbor", str(suite), "--mutants", "3")
    assert counts["tasks"] == counts["played"] == counts["gold_passes"] == counts["empty_fails"] == 4
    assert sum(counts["mutants"].values()) > 0 and counts["reasons"] == {}


def test_harbor_tasks_that_are_wrong_or_need_their_image_are_counted_reasons(suite, tmp_path):
    places = sorted((suite / "tasks").iterdir())
    shutil.copytree(places[0], tmp_path / "wrong solution")
    (tmp_path / "wrong solution" / "solution" / "transcript.jsonl").write_bytes(b"")
    for name, file, text in (
        ("no toml", "task.toml", "= ="),
        ("no transcript", "solution/transcript.jsonl", "[]"),
        ("other files", "tests/task/config.yaml", "{name: h, environments: [{python: /etc/passwd}]}"),
        ("programs", "tests/task/config.yaml", "{name: h, environments: [{mcp: {name: x, command: [touch, y]}}]}"),
    ):
        shutil.copytree(places[1], tmp_path / name)
        (tmp_path / name / file).write_text(text)
    foreign = tmp_path / "foreign"
    shutil.copytree(places[1], foreign)
    shutil.rmtree(foreign / "tests" / "task")
    (counts,) = audit(tmp_path / "x", "--harbor", str(tmp_path))
    assert counts["tasks"] == 6 and counts["played"] == 1 and counts["gold_passes"] == 0
    unplayed = "malformed task: its bundle cannot be played"
    assert counts["reasons"].pop(unplayed) == 2
    refusal = "of its config.yaml starts programs, names files elsewhere or weakens the sandbox"
    assert [f"{refusal}," in example for example in counts["examples"][unplayed]] == [True, True]
    assert ["(python)" in example for example in counts["examples"][unplayed]] == [True, False]
    (gold,) = [reason for reason in counts["reasons"] if reason.startswith("gold fails: ")]
    del counts["reasons"][gold]
    assert counts["reasons"] == {
        "malformed task: task.toml cannot be read": 1,
        "malformed task: its solution is no transcript": 1,
        "not played: solution and tests need the task's image": 1,
    }


def put_state(bundle, data):
    """Let the task of a bundle start from this state."""
    (task,) = read_records(bundle / "tasks.jsonl", Task)
    (bundle / "states" / f"{task.initial_state}.json").unlink()
    name = hash_bytes(data)
    (bundle / "states" / f"{name}.json").write_bytes(data)
    (bundle / "tasks.jsonl").write_bytes(Task(**{**dict(task), "initial_state": name, "id": ""}).to_line())


def test_one_bad_task_does_not_end_the_audit(suite, tmp_path):
    place = min((suite / "tasks").iterdir())
    for name in ("good", "state", "no JSON", "no object", "deep toml", "deep config", "pipe toml", "pipe solution"):
        shutil.copytree(place, tmp_path / name)
    (state,) = (tmp_path / "state" / "tests" / "task" / "states").iterdir()
    state.write_text("{}")
    for name, data in (("no JSON", b"{"), ("no object", b"[]")):
        put_state(tmp_path / name / "tests" / "task", data)
    (tmp_path / "deep toml" / "task.toml").write_text(f"a = {'[' * 5000}{']' * 5000}")
    (tmp_path / "deep config" / "tests" / "task" / "config.yaml").write_text(f"name: {'[' * 5000}{']' * 5000}")
    for name, file in (("pipe toml", "task.toml"), ("pipe solution", "solution/transcript.jsonl")):
        (tmp_path / name / file).unlink()
        os.mkfifo(tmp_path / name / file)
    (counts,) = audit(tmp_path / "x", "--harbor", str(tmp_path))
    assert counts["tasks"] == 8 and counts["played"] == counts["gold_passes"] == 1
    assert counts["reasons"] == {
        "malformed task: its bundle cannot be played": 4,
        "malformed task: task.toml cannot be read": 1,
        "malformed task: task.toml is no file": 1,
        "not played: solution and tests need the task's image": 1,
    }
    examples = dict(one.split(": ", 1) for one in counts["examples"]["malformed task: its bundle cannot be played"])
    assert examples.keys() == {"deep config", "no JSON", "no object", "state"}
    assert "cannot be read" in examples["no JSON"] and "no JSON object" in examples["no object"]
    assert "was changed" in examples["state"]


def test_a_text_that_tells_what_was_asked_for_counts_when_it_is_left_out(suite):
    (counts,) = audit(suite, "--harbor", str(suite), "--mutants", "20")
    assert counts["mutants"]["text left out"] == counts["caught"]["text left out"] > 0
    assert counts["equivalent"] > 0
    place = next((suite / "tasks").iterdir())
    (task,) = read_records(place / "tests" / "task" / "tasks.jsonl", Task)
    told = AnswerCheck(says="the answer tells 40", value=40, turn=0)
    task = task.model_copy(update={"turns": (task.turns[0].model_copy(update={"checks": (told,)}),)})
    number, thanks = (SuiteCall("message_user", {"text": text}) for text in ("It is 40.", "You are welcome."))
    assert find_untold(task, [number, thanks], [thanks]) == ["the answer tells 40"]
    assert find_untold(task, [number, thanks], [number]) == []
    assert find_untold(task, [number, thanks], [thanks, number, thanks]) == []
    assert find_untold(task, [thanks], []) == []


def test_a_text_left_out_that_no_check_misses_escapes(suite, monkeypatch):
    judge, gold = harbor_audit._judge, {}

    def judge_by_state(source, task, calls):
        trajectory, verdict = judge(source, task, calls)
        state = gold.setdefault(task.id, trajectory.final_state)
        return trajectory, verdict.model_copy(update={"accepted": bool(calls) and trajectory.final_state == state})

    monkeypatch.setattr(harbor_audit, "_judge", judge_by_state)
    (counts,) = audit(suite, "--harbor", str(suite), "--mutants", "20")
    assert counts["reasons"].keys() == {"mutant escapes: text left out"}


def test_a_mutant_that_breaks_its_environment_leaves_the_others(suite, monkeypatch):
    judge, broken = harbor_audit._judge, set()

    def break_first_mutants(source, task, calls):
        plays[task.id] += 1
        if plays[task.id] == 3:  # after gold and nothing
            broken.add(task.id)
            raise EnvironmentFault("crash", task.environments[0], "it broke")
        return judge(source, task, calls)

    plays: Counter[str] = Counter()
    (whole,) = audit(suite, "--harbor", str(suite))
    monkeypatch.setattr(harbor_audit, "_judge", break_first_mutants)
    (counts,) = audit(suite, "--harbor", str(suite))
    assert counts["reasons"] == {"mutant cannot be judged: crash": len(broken)} and len(broken) == counts["played"]
    assert sum(counts["mutants"].values()) + counts["equivalent"] > len(broken) < sum(whole["mutants"].values())


def test_the_name_of_a_suite_may_look_like_markup():
    name = "harbor x[/b]"
    tables = build_suite_tables([SuiteAudit(name, mutants=Counter({"call added": 1}))])
    with console.out.capture() as capture:
        for table in tables:
            console.out.print(table)
    assert capture.get().count(name) == len(tables) == 2


def test_a_folder_without_tasks_is_wrong_input(tmp_path):
    assert "holds no Harbor tasks" in read_refusal("--harbor", str(tmp_path))
    assert "is no folder" in read_refusal("--harbor", str(tmp_path / "missing"))


def test_mutants_are_of_each_kind_in_turn_and_differ_from_gold():
    gold = [SuiteCall("buy", {"item": "tea", "number": 2}), SuiteCall("pay", {"sum": 3})]
    others = [SuiteCall("buy", {"item": "milk", "number": 1})] * 2
    mutants = build_mutants(gold, ["3", "30"], others, collect_values([*gold, *others]), 10, random.Random(0))
    assert [mutant.kind for mutant in mutants[:4]] == [
        "call left out", "argument changed", "call added", "text left out",
    ]  # fmt: skip
    assert [mutant.texts for mutant in mutants if mutant.kind == "text left out"] == [("3",)]  # "30" says "3", too
    assert sum(mutant.kind == "call added" for mutant in mutants) == 1
    changed = {str(mutant.calls) for mutant in mutants if mutant.kind == "argument changed"}
    assert len(changed) == 3 and str(tuple(gold)) not in changed
