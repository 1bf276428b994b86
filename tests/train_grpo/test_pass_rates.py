"""Tasks in a band of pass rates."""

from types import SimpleNamespace

import pytest

from trajsmith.cli.train import grpo
from trajsmith.evals import Episode
from trajsmith.records import InputError
from trajsmith.train_grpo.pass_rates import measure_rates, select_by_pass_rate
from trajsmith.train_grpo.settings import PassRateSettings

TASKS = [SimpleNamespace(id=f"task_{name}") for name in ("never", "sometimes", "always", "unplayed", "broken")]
PASSED = {"never": [False] * 4, "sometimes": [True, False, False, None], "always": [True] * 4, "broken": [None] * 4}


@pytest.fixture
def folder(tmp_path):
    episodes = [
        Episode(
            task_id=f"task_{name}", environment="e", variant="base", sample=sample, passed=value,
            checks=0.5 if value is False else 1.0, turns=1, calls=1, tokens=9, trajectory_id=f"t{name}{sample}",
        )
        for name, values in PASSED.items()
        for sample, value in enumerate(values)
    ]  # fmt: skip
    (tmp_path / "episodes.jsonl").write_bytes(b"".join(episode.to_line() for episode in episodes))
    return tmp_path


def test_episodes_that_say_nothing_do_not_count(folder):
    assert measure_rates(folder, "passed") == {
        "task_never": 0.0,
        "task_sometimes": pytest.approx(1 / 3),
        "task_always": 1,
    }
    assert measure_rates(folder, "checks")["task_sometimes"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("band", "names"),
    [
        ({}, ["task_sometimes"]),
        ({"low": 0.0, "high": 0.5}, ["task_never", "task_sometimes"]),
        ({"measure": "checks", "low": 0.4}, ["task_never", "task_sometimes"]),
    ],
    ids=["default", "wide", "checks"],
)
def test_tasks_of_the_band_stay_in_order(folder, band, names):
    settings = PassRateSettings(evaluation=folder, **band)
    assert [task.id for task in select_by_pass_rate(TASKS, settings, folder)] == names


def test_fewer_tasks_than_a_step_takes_are_refused():
    from trajsmith.train_grpo.training import check_enough_tasks

    arguments = SimpleNamespace(generation_batch_size=16, num_generations=4)
    check_enough_tasks(arguments, TASKS[:4])
    with pytest.raises(InputError, match=r"3 tasks to train on, and a step takes 4 \(16 episodes, 4 of each task\)"):
        check_enough_tasks(arguments, TASKS[:3])


def test_nothing_in_the_band_says_what_to_do(folder, tmp_path):
    with pytest.raises(InputError, match=r"no task has a rate from 0\.4 to 0\.5 \(2 of 3 below\): widen"):
        select_by_pass_rate(TASKS, PassRateSettings(evaluation=folder, low=0.4, high=0.5), folder)
    with pytest.raises(InputError, match="played none of the 1 tasks"):
        select_by_pass_rate(TASKS[3:4], PassRateSettings(evaluation=folder), folder)
    with pytest.raises(InputError, match=r"has no episodes\.jsonl"):
        select_by_pass_rate(TASKS, PassRateSettings(evaluation=tmp_path / "none"), folder)
    with pytest.raises(ValueError, match="name either an evaluation or a solver"):
        PassRateSettings(evaluation=folder, solver="all")
    with pytest.raises(ValueError, match=r"low: 0\.6 is above high: 0\.5"):
        PassRateSettings(evaluation=folder, low=0.6, high=0.5)


def test_solver_rates_of_a_run_of_the_hub_are_refused_before_any_work(tmp_path):
    file = tmp_path / "grpo.yaml"
    file.write_text(
        f"model: m\nrun: hub:me/rows\nout: {tmp_path / 'out'}\nepisode_tokens: 99\npass_rates: {{solver: all}}\n"
    )
    with pytest.raises(InputError, match=r"^hub:me/rows: a run of the Hub has no plays") as error:
        grpo(file)
    assert "\n" not in str(error.value)
