"""Rubrics in runs: tasks have them, candidates are compared by them, dataset, report, solvers and GRPO show them."""

import asyncio
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet
import pytest

from trajsmith.models import CallableModel, ChatReply
from trajsmith.pipeline.calibration import CalibrationSettings, calibrate_run
from trajsmith.pipeline.config import resolve_config
from trajsmith.pipeline.run_directory import TASKS, TRAJECTORIES, VERDICTS, RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.stages import RoleFactory
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import Message, Task, Trajectory, Verdict
from trajsmith.records.journal import read_records
from trajsmith.train_grpo import reward_functions
from trajsmith.train_grpo.episodes import EpisodeResult
from trajsmith.train_grpo.reward_functions import EpisodeReward


def make_run(folder: Path, **more: Any) -> RunDirectory:
    config = resolve_config(
        {
            "name": "rubrics", "seed": 5, "run": str(folder / "run"), "sample": {"count": 6},
            "environments": [{"library": "bank", "states": {"small": 2}}], "engine": {"workers": 1},
            "play": {"candidates": 2, "faulty": 1}, "write": {"direct": 1.0, "audit": {"mutants": 1}},
            "verify": {"rewards": {"names": ["checks", "composite", "rubric", "rubric_weighted"]}}, **more,
        }
    )  # fmt: skip
    run = RunDirectory.create(config.run, dump_settings(config))
    asyncio.run(run_pipeline(run))
    return run


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return make_run(tmp_path_factory.mktemp("rubrics"))


def list_groups(run: RunDirectory) -> list[tuple[Task, list[tuple[Trajectory, Verdict]]]]:
    """The judged plays of each task."""
    plays = {play.id: play for play in read_records(run.file(TRAJECTORIES), Trajectory)}
    verdicts = list(read_records(run.file(VERDICTS), Verdict))
    return [
        (task, [(plays[each.trajectory_id], each) for each in verdicts if each.task_id == task.id])
        for task in read_records(run.file(TASKS), Task)
    ]


def test_candidates_are_compared_by_the_criteria_that_tell_them_apart(done: RunDirectory) -> None:
    told_apart = 0
    for task, judged in list_groups(done):
        assert task.rubric and {"untouched", "claims", "effort", "format"} <= {each.about for each in task.rubric}
        (_, right), (_, faulty) = judged
        assert len(right.rubric) == len(faulty.rubric) == len(task.rubric)
        assert all(each.met for each in right.rubric) and right.rewards["rubric"] == 1.0
        differ = [one.met is not other.met for one, other in zip(right.rubric, faulty.rubric, strict=True)]
        if any(differ):
            told_apart += 1
            for verdict in (right, faulty):
                assert [each.counts for each in verdict.rubric] == differ
            assert right.rewards["rubric_weighted"] == 1.0 > faulty.rewards["rubric_weighted"]
        else:
            assert all(each.counts for each in faulty.rubric) and faulty.rewards["rubric_weighted"] == 1.0
    assert told_apart >= 2


def test_the_dataset_and_the_report_show_the_criteria(done: RunDirectory) -> None:
    files = sorted(done.file("dataset").rglob("*.parquet"))
    rows = [row for file in files for row in pyarrow.parquet.read_table(file, columns=["id", "rubric"]).to_pylist()]
    verdicts = {verdict.trajectory_id: verdict for verdict in read_records(done.file(VERDICTS), Verdict)}
    assert rows
    for row in rows:
        shown = [orjson.loads(each) for each in row["rubric"]]
        wanted = verdicts[row["id"]].rubric
        assert [(each["says"], each["met"], each["left_out"]) for each in shown] == [
            (each.says, each.met, each.left_out) for each in wanted
        ]
    page = done.file("report.html").read_text()
    assert "Criteria of the rubrics" in page and "met by all candidates" in page


def test_solvers_are_compared_by_the_criteria(done: RunDirectory) -> None:
    settings = CalibrationSettings(solvers=("scripted:0.0", "scripted:1.0"), runs=1)
    report = asyncio.run(calibrate_run(done, settings))
    whole = sum(len(task.rubric) for task, _ in list_groups(done))
    assert report.criteria.total() == whole
    assert report.criteria["met_by_all"] > report.criteria["discriminating"] > 0


def test_a_group_of_episodes_is_rewarded_by_what_tells_them_apart(done: RunDirectory) -> None:
    logged: dict[str, float] = {}
    for task, judged in list_groups(done):
        whole = [
            verdict.model_copy(
                update={"rubric": tuple(each.model_copy(update={"left_out": ""}) for each in verdict.rubric)}
            )
            for _, verdict in judged
        ]
        episodes = [EpisodeResult(task, play, verdict, 0.0) for (play, _), verdict in zip(judged, whole, strict=True)]
        for name in ("rubric", "rubric_weighted"):
            reward = EpisodeReward(name, lambda: None)  # type: ignore[arg-type, return-value]
            scores = reward([[], []], episodes=episodes, log_metric=lambda key, value: logged.update({key: value}))
            assert scores == [verdict.rewards[name] for _, verdict in judged]
    assert logged.keys() >= {"rubric/counted", "rubric/dropped", "rubric/no_judge"}


def build_episodes(run: RunDirectory) -> list[EpisodeResult]:
    """Four episodes of a task; each misses one criterion more than the one before."""
    task, judged = list_groups(run)[0]
    play, verdict = judged[0]
    rubrics = [
        tuple(
            each.model_copy(update={"left_out": "", "met": place >= missed})
            for place, each in enumerate(verdict.rubric)
        )
        for missed in range(4)
    ]
    return [EpisodeResult(task, play, verdict.model_copy(update={"rubric": rubric}), 0.0) for rubric in rubrics]


def score(episodes: list[EpisodeResult]) -> list[float | None]:
    reward = EpisodeReward("rubric_weighted", lambda: None)  # type: ignore[arg-type, return-value]
    return reward([[]] * len(episodes), episodes=episodes)


def test_a_group_over_several_processes_is_compared_as_a_whole(
    done: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    episodes = build_episodes(done)
    whole = score(episodes)
    assert whole[0] == 1.0 and len(set(whole)) == 4
    assert score(episodes[:2]) + score(episodes[2:]) == [1.0, 0.0, 1.0, 0.0]  # as two groups, with nothing in common
    everything = [(each.task.id, each.verdict.rubric) for each in episodes if each.verdict is not None]
    monkeypatch.setattr(reward_functions, "gather_rubrics", lambda own: everything)
    assert score(episodes[:2]) + score(episodes[2:]) == whole
    assert score([]) == []


WORKER = """
import json, pickle, sys
from pathlib import Path
from torch import distributed
from trajsmith.train_grpo.reward_functions import EpisodeReward

folder, rank = Path(sys.argv[1]), int(sys.argv[2])
distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
episodes = pickle.loads((folder / "episodes").read_bytes())
reward = EpisodeReward("rubric_weighted", None)
scores = []
for cut in (2, 3, 4):
    own = episodes[cut:] if rank else episodes[:cut]
    scores.append(reward([[]] * len(own), episodes=own))
print(json.dumps(scores))
distributed.destroy_process_group()
"""


@pytest.mark.train
def test_processes_of_a_training_gather_what_their_episodes_met(done: RunDirectory, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is missing: pip install -e '.[train]'")
    episodes = build_episodes(done)
    (tmp_path / "episodes").write_bytes(pickle.dumps(episodes))
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), str(rank)], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        scores = [orjson.loads(worker.communicate(timeout=120)[0]) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert [first + second for first, second in zip(*scores, strict=True)] == [score(episodes)] * 3


async def answer(request: Any) -> ChatReply:
    """Propose one criterion for a judge; as judge, find it met where something was done."""
    if request.purpose == "rubric":
        reply: Any = {"criteria": [{"says": "The agent works.", "weight": 2, "by": "judge", "rule": None}]}
    elif request.purpose == "rubric_judge":
        reply = {"reasoning": "So.", "met": ["assistant_calls" in request.messages[-1].content]}
    elif request.purpose == "checklist":
        reply = {"items": ["All is well."]}
    elif request.purpose == "judge":
        reply = {"reasoning": "So.", "answers": [], "outcome": "completed"}
    else:
        reply = {"source": "def check(initial_state, final_state, answer):\n    return True\n"}
    return ChatReply(message=Message(role="assistant", content=orjson.dumps(reply).decode()))


@pytest.mark.parametrize("judged", [True, False])
def test_a_model_adds_criteria_and_a_judge_decides_them(
    judged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RoleFactory, "checker", CallableModel("checker", answer))
    if judged:
        monkeypatch.setattr(RoleFactory, "judge", CallableModel("judge", answer))
    written = {"direct": 1.0, "rubric": {"written": 3}, "checks": {"repairs": 0, "mutants": 1, "equivalents": 1}}
    run = make_run(tmp_path, sample={"count": 3}, write=written, sources={"chains": 0, "state_first": 1})
    outcomes = []
    for task, plays in list_groups(run):
        assert [each.says for each in task.rubric if each.author] == ["The agent works."]
        assert "verify/rubric" in task.prompts
        outcomes += [each for _, verdict in plays for each in verdict.rubric if each.about == "judged"]
        assert plays[0][1].rewards["rubric"] == 1.0
    assert outcomes
    expected = {(True, "met_by_all"), (True, "")} if judged else {(None, "no_judge")}
    assert {(each.met, each.left_out) for each in outcomes} <= expected
    assert judged or "need a judge, and there was none" in run.file("report.html").read_text()
