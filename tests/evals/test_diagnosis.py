"""Planted weaknesses are named, what they explain is not, and chance is told from weakness."""

import itertools
import random

import pytest

from trajsmith.evals.diagnosis import diagnose
from trajsmith.evals.observations import EpisodeObservation
from trajsmith.evals.wrong_steps import WrongStep

ENVIRONMENTS, TOOLS = 8, 12
PLANTED = {
    ("environment", "e0"): 0.35,
    ("tool", "e1.t0"): 0.6,
    ("tool", "e1.t1"): 0.6,
    ("tool", "e1.t2"): 0.5,
    ("tool", "e2.t3"): 0.5,
    ("tool", "e3.t4"): 0.7,
    ("edge", "e4.t1 -> e4.t2"): 0.8,
    ("edge", "e5.t3 -> e5.t4"): 0.8,
    ("skill", "question to the user"): 0.25,
    ("skill", "tool search"): 0.3,
    ("variant", "changed_mind"): 0.4,
    ("length", "11 or more calls"): 0.3,
}
"""Group to the chance that a task of it fails, beside 3 % everywhere."""


def make_episodes(count, planted, seed=1):
    rng, episodes = random.Random(seed), []
    for number in range(count):
        name = f"e{rng.randrange(ENVIRONMENTS)}"
        length = rng.choice([2, 4, 4, 8, 8, 12])
        start, calls = rng.randrange(TOOLS), []
        for _ in range(length):  # half of the steps go to the next tool, so that edges repeat
            calls.append(f"{name}.t{start}")
            start = (start + 1) % TOOLS if rng.random() < 0.5 else rng.randrange(TOOLS)
        skills = [
            skill for skill, share in (("question to the user", 0.3), ("tool search", 0.1)) if rng.random() < share
        ]
        groups = {
            "environment": (name,),
            "tool": tuple(dict.fromkeys(calls)),
            "edge": tuple(dict.fromkeys(f"{a} -> {b}" for a, b in itertools.pairwise(calls))),
            "skill": tuple(skills),
            "variant": (rng.choice(["base"] * 8 + ["changed_mind", "tool_failure"]),),
            "length": ("11 or more calls" if length > 10 else f"{length} calls",),
        }
        weak = [label for label in planted if label[1] in groups[label[0]] and rng.random() < planted[label]]
        failed = weak or rng.random() < 0.03
        step = WrongStep(kind=f"kind_{list(planted).index(weak[0])}", message=3) if weak else None
        episodes.append(
            EpisodeObservation(
                episode=f"traj_{number}", task=f"task_{number}", environment=name, passed=not failed,
                error="wrong_state" if failed else "", groups=groups, step=step,
            )
        )  # fmt: skip
    return episodes


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_twelve_planted_weaknesses_are_named_and_what_they_explain_is_not(seed):
    found = diagnose(make_episodes(4000, PLANTED, seed), "planted")
    named = [(group.dimension, group.name) for group in found.named]
    assert len(set(named) & PLANTED.keys()) >= 10, PLANTED.keys() - set(named)
    assert len(set(named) - PLANTED.keys()) <= 1, set(named) - PLANTED.keys()
    assert 0.01 < found.base < 0.06
    tool = next(group for group in found.named if group.name == "e3.t4")
    assert tool.telling[:1] == ("kind_5",) and abs(tool.added - 0.7) < 0.15
    assert all(example.kind for group in found.named for example in group.examples)
    assert found.cover[-1].covered > 0.8
    assert [row.covered for row in found.cover] == sorted(row.covered for row in found.cover)


def test_even_failures_name_no_group():
    named = [diagnose(make_episodes(1500, {}, seed), "even").named for seed in range(8)]
    assert sum(map(bool, named)) <= 1
    assert "no group fails more often" in diagnose(make_episodes(1500, {}, 1), "even").says


def test_too_few_failures_say_so():
    found = diagnose(make_episodes(60, {}, 4)[:19], "few")
    assert "too few" in found.says and not found.groups
    passed = [one.model_copy(update={"passed": True, "error": ""}) for one in make_episodes(100, {}, 4)]
    assert "0 failures in 100 episodes are too few" in diagnose(passed, "all passed").says


def test_several_plays_of_a_task_count_once_and_unscored_ones_do_not():
    episodes = make_episodes(200, PLANTED)
    again = [one.model_copy(update={"episode": f"{one.episode}_2"}) for one in episodes]
    lost = episodes[0].model_copy(update={"task": "task_lost", "passed": None})
    found = diagnose([*episodes, *again, lost], "repeated")
    once = diagnose(episodes, "repeated")
    assert (found.episodes, found.repeated, found.unscored) == (200, 200, 1)
    assert found.groups == once.groups


def test_order_of_the_episodes_does_not_matter():
    episodes = make_episodes(800, PLANTED)
    mixed = random.Random(3).sample(episodes, len(episodes))
    assert diagnose(mixed, "mixed").model_dump_json() == diagnose(episodes, "mixed").model_dump_json()


def test_groups_that_changed_are_told_from_those_that_did_not():
    cured = {label: rate for label, rate in PLANTED.items() if label != ("tool", "e3.t4")}
    found = diagnose(make_episodes(3000, cured, 5), "after", make_episodes(3000, PLANTED, 6), "before")
    verdicts = {(row.dimension, row.name): row.verdict for row in found.comparisons}
    assert verdicts["tool", "e3.t4"] == "better" and verdicts["tool", "e2.t3"] == "no difference shown"
    shown = [verdict for verdict in verdicts.values() if verdict != "no difference shown"]
    assert shown.count("worse") <= 0.2 * len(shown)  # false discoveries are controlled, not impossible


def test_a_run_is_diagnosed_and_what_is_none_is_refused(tmp_path):
    from typer.testing import CliRunner

    from trajsmith import run
    from trajsmith.cli.app import app
    from trajsmith.evals.observations import observe_episode
    from trajsmith.pipeline.diagnosis import _read_run, load_failed_traces, read_diagnosis
    from trajsmith.records import InputError

    config = {
        "name": "faults",
        "seed": 3,
        "run": str(tmp_path / "run"),
        "environments": [{"library": "bank", "states": {"small": 2}}, {"library": "retail", "states": {"small": 2}}],
        "sample": {"count": 40, "length": [4, 8]},
        "write": {"tools": {"search": 0.3}},
        "vary": {"rates": {"refused_call": 0.4}},
        "play": {"candidates": 3, "faulty": 2},
    }
    run(config)
    steps = {}
    for played in _read_run(tmp_path / "run"):
        if played.trajectory.injected:
            found = observe_episode(played).step
            steps.setdefault(played.trajectory.injected[0].kind, []).append(found.kind if found else "")
    renamed = {
        "premature_answer": "missing_call",
        "missed_error": "unrecovered_error",
        "needless_read": "repeated_read",
    }
    named = {kind for kind, found in steps.items() if found.count(renamed.get(kind, kind)) > len(found) / 2}
    assert len(steps) >= 10 and len(named) >= len(steps) - 1, steps

    traces = load_failed_traces(tmp_path / "run", 6)
    assert len(traces) == 6 and all(trace.messages[0].role == "system" for trace in traces)
    called = {trace.step.tool for trace in traces if trace.step is not None and trace.step.tool}
    assert called <= {tool for trace in traces for tool in trace.tools}, "tools of steps and of prompts have one form"

    result = CliRunner().invoke(app, ["diagnose", str(tmp_path / "run"), "--out", str(tmp_path / "why")])
    assert result.exit_code == 0 and "too few" in result.output, result.output
    assert read_diagnosis(tmp_path / "why").episodes == len(
        {one.task for one in map(observe_episode, _read_run(tmp_path / "run"))}
    )
    assert "First wrong steps" not in (tmp_path / "why" / "diagnosis.html").read_text()
    with pytest.raises(InputError, match="no evaluation, no benchmark and no run"):
        CliRunner().invoke(
            app, ["diagnose", str(tmp_path), "--out", "x"], standalone_mode=False, catch_exceptions=False
        )
    with pytest.raises(InputError, match="trajsmith diagnose EVAL"):
        read_diagnosis(tmp_path)
