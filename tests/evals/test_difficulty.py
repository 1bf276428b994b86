"""Difficulty by playing: labels, plays that count, readings on which solvers agree, and the command."""

import asyncio
import shutil
from types import SimpleNamespace

import orjson
import pytest

from trajsmith.cli.calibrate import _render_reading
from trajsmith.evals import find_ambiguous_tasks, measure_difficulty, read_attempts
from trajsmith.evals.readings import TaskReading, list_stated_values
from trajsmith.pipeline import calibration
from trajsmith.pipeline.calibration import CalibrationSettings, calibrate_run
from trajsmith.pipeline.config import resolve_config
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import export_again, run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import FunctionCall, InputError, Message, RunError, SolverAttempt, ToolCall
from trajsmith.train_grpo.pass_rates import ALL_SOLVERS, select_by_pass_rate
from trajsmith.train_grpo.settings import PassRateSettings

SETTINGS = CalibrationSettings(solvers=("scripted:0.05", "scripted:0.4"), runs=3, limit=4)


def attempt(solver="a", sample=0, passed=True, task="task_1", **more):
    more = {"version": "1", "checks": 1.0 if passed else 0.5, "calls": 1, **more}
    return SolverAttempt(task_id=task, solver=solver, sample=sample, passed=passed, **more)


@pytest.mark.parametrize(
    ("outcomes", "label"),
    [
        ([False] * 5, "unsolved"),
        ([True] + [False] * 4, "unsolved"),
        ([True] * 2 + [False] * 8, "hard"),
        ([True] * 2 + [False] * 3, "medium"),
        ([True] * 4 + [False], "easy"),
        ([True] * 5, "trivial"),
        ([True, None, None], None),
    ],
)
def test_the_share_of_plays_that_passed_gives_the_label(outcomes, label):
    attempts = [attempt(sample=number, passed=passed) for number, passed in enumerate(outcomes)]
    measured = measure_difficulty(attempts)
    assert (measured["task_1"].label if measured else None) == label


def test_solvers_count_alike_whatever_the_number_of_their_plays():
    attempts = [attempt("weak", number, False) for number in range(8)] + [attempt("strong", 0), attempt("strong", 1)]
    assert measure_difficulty(attempts)["task_1"].rate == 0.5


def test_of_a_solver_only_its_newest_version_counts(tmp_path):
    old, new = attempt(passed=False, date="2026-01-01"), attempt(passed=True, version="2", date="2026-02-01")
    (tmp_path / "attempts.jsonl").write_bytes(old.to_line() + new.to_line() + b'{"torn"')
    assert [one.version for one in read_attempts(tmp_path / "attempts.jsonl")] == ["2"]
    (tmp_path / "attempts.jsonl").write_bytes(old.to_line().replace(b'"passed":false', b'"passed":true'))
    with pytest.raises(InputError, match="changed by hand"):
        read_attempts(tmp_path / "attempts.jsonl")


def test_a_play_counts_once_with_what_was_written_last(tmp_path):
    lost = attempt(passed=None, error="model_timeout")
    lines = [lost, attempt(passed=None, sample=1), attempt(passed=True), attempt(passed=None, sample=1)]
    (tmp_path / "attempts.jsonl").write_bytes(b"".join(one.to_line() for one in lines))
    assert [(one.sample, one.passed) for one in read_attempts(tmp_path / "attempts.jsonl")] == [(0, True), (1, None)]


@pytest.mark.parametrize(("error", "again"), [("model_timeout", True), ("model_server", True), ("undecided", False)])
def test_only_plays_that_a_server_lost_are_repeated(error, again):
    assert attempt(passed=None, error=error).should_retry is again


def test_the_day_of_a_play_does_not_name_it():
    assert attempt(date="2026-01-01").id == attempt(date="2026-02-01").id


def gold_call(name, effect="write"):
    return SimpleNamespace(tool="cancel", arguments={"order": name}, effect=effect)


WRITE = SimpleNamespace(id="task_1", gold_calls=[gold_call("A"), gold_call("B")], turns=())
READ = SimpleNamespace(
    id="task_1", gold_calls=[gold_call("A", "read")], turns=(SimpleNamespace(facts=(SimpleNamespace(value="5 May"),)),)
)
GOLD = ('cancel(order="A")', 'cancel(order="B")')
OTHER = ('cancel(order="A")', 'cancel(order="C")')


MANY = tuple(f"{number} June" for number in range(10, 30))


def failed(solver, sample, actions=(), stated=()):
    return attempt(solver, sample, False, actions=actions, stated=stated)


@pytest.mark.parametrize(
    ("task", "plays", "ambiguous"),
    [
        pytest.param(WRITE, [failed("a", 0, OTHER), failed("b", 0, OTHER)], True, id="two-solvers-agree"),
        pytest.param(WRITE, [failed("a", 0, OTHER), failed("a", 1, OTHER)], False, id="one-solver-repeats-itself"),
        pytest.param(
            WRITE, [failed("scripted:0.1", 0, OTHER), failed("scripted:0.2", 0, OTHER)], False, id="scripted-alike"
        ),
        pytest.param(
            WRITE, [failed("scripted", 0, OTHER), failed("m@http://a", 0, OTHER)], True, id="scripted-and-a-model"
        ),
        pytest.param(WRITE, [failed("a", 0, GOLD[:1]), failed("b", 0, GOLD[:1])], False, id="a-call-left-out"),
        pytest.param(WRITE, [failed("a", 0, GOLD), failed("b", 0, GOLD)], False, id="right-calls-wrong-words"),
        pytest.param(READ, [failed("a", 0, (), ("6 May",)), failed("b", 0, (), ("6 May",))], True, id="another-answer"),
        pytest.param(READ, [failed("a", 0, (), ()), failed("b", 0, (), ())], False, id="no-answer"),
        pytest.param(READ, [failed("a", 0, (), ("5 May",)), failed("b", 0, (), ("5 May",))], False, id="right-value"),
        pytest.param(
            WRITE,
            [failed("a", 0, OTHER), failed("b", 0, OTHER), *(attempt("a", n, actions=GOLD) for n in range(1, 10))],
            False,
            id="too-few-of-all-plays",
        ),
    ],
)
def test_readings_on_which_independent_solvers_agree(task, plays, ambiguous):
    found = find_ambiguous_tasks({"task_1": task}, plays)
    assert bool(found) is ambiguous
    if found and task is WRITE:
        assert (found[0].gold.actions, found[0].other.actions) == (GOLD, OTHER)
        assert found[0].other.solvers == {play.solver: 1 for play in plays}


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated") / "run"
    config = resolve_config(
        {
            "name": "calibrated", "seed": 3, "run": str(folder),
            "environments": [{"library": name, "states": {"small": 1}} for name in ("retail", "bank")],
            "sample": {"count": 8}, "sources": {"programs": 1.0, "chains": 0.0},
        }
    )  # fmt: skip
    run = RunDirectory.create(config.run, dump_settings(config))
    asyncio.run(run_pipeline(run))
    return run, asyncio.run(calibrate_run(run, SETTINGS))


def test_plays_are_records_of_the_run_and_are_not_made_twice(calibrated, monkeypatch):
    run, report = calibrated
    attempts = read_attempts(run.file("attempts.jsonl"))
    assert len(attempts) == report.tasks * 6 and {one.solver for one in attempts} == set(SETTINGS.solvers)
    assert all(one.date and one.version for one in attempts)
    (_, strong, _), (_, weak, _) = report.solvers.values()
    assert strong == weak == report.tasks * 3
    assert report.solvers["scripted:0.05"][0] > report.solvers["scripted:0.4"][0]
    before = run.file("attempts.jsonl").read_bytes()
    whole = set(before.splitlines())
    run.file("attempts.jsonl").write_bytes(before[: len(before) // 2])  # as a kill leaves it
    again = asyncio.run(calibrate_run(run, SETTINGS))
    assert set(run.file("attempts.jsonl").read_bytes().splitlines()) == whole
    assert again.solvers == report.solvers

    async def never(*arguments):
        raise AssertionError("played again")

    monkeypatch.setattr(calibration, "attempt_task", never)
    assert asyncio.run(calibrate_run(run, SETTINGS)).difficulties == again.difficulties


def test_an_earlier_version_of_a_solver_is_not_played_again(calibrated, tmp_path, monkeypatch):
    run = RunDirectory.open(shutil.copytree(calibrated[0].path, tmp_path / "run"))
    run.file("attempts.jsonl").unlink()

    def calibrate(version, runs):
        monkeypatch.setattr(calibration, "version", lambda name: version)
        settings = CalibrationSettings(solvers=("scripted:0.4",), runs=runs, limit=2)
        return asyncio.run(calibrate_run(run, settings)).solvers["scripted:0.4"]

    first = calibrate("1", 3)
    assert calibrate("2", 1) != first
    plays = len(read_attempts(run.file("attempts.jsonl"), every_version=True))
    assert calibrate("1", 3) == first
    assert len(read_attempts(run.file("attempts.jsonl"), every_version=True)) == plays
    assert calibrate("1", 3) == first


def test_plays_that_a_server_lost_are_made_again(calibrated, tmp_path, monkeypatch):
    run = RunDirectory.open(shutil.copytree(calibrated[0].path, tmp_path / "run"))
    attempts = read_attempts(run.file("attempts.jsonl"))
    lost = {"id": "", "passed": None, "error": "model_timeout"}
    first = SolverAttempt(**attempts[0].model_dump() | lost)
    run.file("attempts.jsonl").write_bytes(b"".join(one.to_line() for one in (*attempts[1:], first)))
    played = []
    play = calibration.attempt_task

    async def count(*arguments):
        played.append(arguments)
        return await play(*arguments)

    monkeypatch.setattr(calibration, "attempt_task", count)
    report = asyncio.run(calibrate_run(run, SETTINGS))
    assert len(played) == 1
    assert report.solvers == calibrated[1].solvers


def test_all_values_that_an_answer_tells_are_compared():
    call = ToolCall(id="1", function=FunctionCall(name="list_days", arguments={}))
    messages = (
        Message(role="user", content="Which days?"),
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content=orjson.dumps(MANY).decode(), tool_call_id="1", name="list_days"),
        Message(role="assistant", content=f"They are {', '.join(MANY)}."),
    )
    play = SimpleNamespace(messages=messages, turns=[SimpleNamespace(start=0, stop=4)])
    assert list_stated_values(play) == MANY


def test_a_long_reading_is_cut_only_where_it_is_printed():
    printed = _render_reading(TaskReading(actions=(), stated=MANY, solvers={"a": 1}))
    assert MANY[11] in printed and MANY[12] not in printed and "and 8 more" in printed


def test_a_solver_that_does_not_start_is_named_and_the_others_play(calibrated):
    run, _ = calibrated
    wrong = {
        "nobody": "is no solver",
        "scripted:often": "a number from 0 to 1",
        "qwen@http://127.0.0.1:9/v1": "",
    }
    report = asyncio.run(calibrate_run(run, SETTINGS.model_copy(update={"solvers": (*SETTINGS.solvers, *wrong)})))
    assert report.not_started.keys() == wrong.keys() and report.solvers.keys() == set(SETTINGS.solvers)
    assert all(reason in report.not_started[name] for name, reason in wrong.items())
    with pytest.raises(RunError, match="no solver starts: nobody: nobody is no solver"):
        asyncio.run(calibrate_run(run, SETTINGS.model_copy(update={"solvers": ("nobody",)})))


def test_rows_have_the_pass_rates(calibrated):
    import pyarrow.parquet as parquet

    run, report = calibrated
    asyncio.run(export_again(run, NullProgress()))
    (path,) = (run.file("dataset") / "data").iterdir()
    rows = parquet.read_table(path, columns=["task_id", "pass_rates"]).to_pylist()
    assert {row["task_id"]: orjson.loads(row["pass_rates"]) for row in rows} == {
        row["task_id"]: report.difficulties[row["task_id"]].rates for row in rows
    }


def test_training_draws_from_the_band_and_leaves_out_groups_without_a_difference(calibrated):
    run, report = calibrated
    tasks = [SimpleNamespace(id=name) for name in report.difficulties]
    weak = [name for name, one in report.difficulties.items() if 0 < one.rates["scripted:0.4"] < 1]
    wide = PassRateSettings(solver="scripted:0.4", low=0, high=1)
    assert 0 < len(weak) < len(tasks)
    assert [task.id for task in select_by_pass_rate(tasks, wide, run.path)] == weak
    mixed = [name for name, one in report.difficulties.items() if 0 < one.passed < one.plays]
    chosen = select_by_pass_rate(tasks, PassRateSettings(solver=ALL_SOLVERS, low=0, high=1), run.path)
    assert [task.id for task in chosen] == mixed
    with pytest.raises(InputError, match=r"no plays of solver other; there are: scripted:0\.05, scripted:0\.4"):
        select_by_pass_rate(tasks, PassRateSettings(solver="other"), run.path)


def test_a_dataset_has_the_shares_of_difficulty_that_are_asked_for(calibrated, tmp_path):
    run, report = calibrated
    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    labels = [one.label for one in report.difficulties.values()]
    label = max(sorted(set(labels)), key=labels.count)
    changed = RunDirectory.open(copy)

    def ask(count, shares):
        config = resolve_config(run.config_path)
        accept = {"count": count, "by": {"difficulty": shares}}
        data = config.model_dump(mode="json") | {
            "run": str(copy),
            "accept": accept,
        }
        changed.write_text("config.yaml", dump_settings(resolve_config(data)))
        return asyncio.run(run_pipeline(changed))

    assert ask(labels.count(label), {label: 1}).funnel["exported"] == labels.count(label)
    with pytest.raises(RunError, match=rf"difficulty {label}: 40 short\. Difficulty is measured by playing"):
        ask(labels.count(label) + 40, {label: 1})
    with pytest.raises(InputError, match="there is no 'awful'"):
        ask(1, {"awful": 1})
    (copy / "attempts.jsonl").unlink()
    with pytest.raises(InputError, match="no solver has played the tasks"):
        ask(1, {label: 1})
