"""`trajsmith bench`: a player on the tasks of a suite; finished tasks are stored, and the same command goes on."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

from trajsmith.evals.evaluate import await_all
from trajsmith.evals.observations import OBSERVATIONS, EpisodeObservation, write_observations
from trajsmith.evals.scores import compute_wilson_interval
from trajsmith.evals.suites.players import SuitePlay, SuitePlayer
from trajsmith.evals.suites.suite import Suite, SuiteTask
from trajsmith.evals.wrong_steps import WrongStep
from trajsmith.records import (
    AppendFile,
    FrozenModel,
    InputError,
    ModelFault,
    count_records,
    read_entries,
    storage_boundary,
    write_whole_file,
)

PLAYS, QUESTION, RESULTS = "plays.jsonl", "question.json", "results.json"


class BenchPlay(FrozenModel):
    """One judged task."""

    task: str
    category: str
    passed: bool | None
    """None if the model's server failed."""
    error: str = ""
    play: SuitePlay


class CategoryScore(FrozenModel):
    """Score of one category."""

    category: str
    tasks: int
    passed: int
    unscored: int
    pass1: float
    low: float
    high: float
    """95 % interval (Wilson)."""
    tokens: float
    errors: dict[str, int]


async def run_suite(
    suite: Suite,
    tasks: Sequence[SuiteTask],
    player: SuitePlayer,
    out: Path,
    question: dict[str, str],
    concurrency: int = 8,
    over: Callable[[], None] = lambda: None,
) -> list[CategoryScore]:
    """Play what is not in `out` yet, judge it by the suite's checker, and write scores and observations.

    Args:
        suite: An open suite.
        tasks: Tasks to play.
        player: Who plays them.
        out: Folder of the results.
        question: Suite, version and model that the results belong to.
        concurrency: Tasks at a time.
        over: Called after each task that is over.

    Raises:
        InputError: The folder holds results of something else.
        RunError: The results cannot be written, or the suite ended.
    """
    _check_question(out, question)
    done = {one.task: one for one in read_entries(out / PLAYS, BenchPlay) if one.passed is not None}
    gate = asyncio.Semaphore(concurrency)

    async def one(task: SuiteTask, file: AppendFile, number: int) -> None:
        async with gate:
            judged = await _judge(suite, task, player, f"{number}")
        file.append(judged.model_dump_json().encode() + b"\n")
        done[task.id] = judged
        over()

    with AppendFile(out / PLAYS, lock=True) as file:
        file.cut_torn_line()
        missing = [task for task in tasks if task.id not in done]
        for _ in range(len(tasks) - len(missing)):
            over()
        await await_all(one(task, file, number) for number, task in enumerate(missing))
    plays = [done[task.id] for task in tasks]
    write_observations(out / OBSERVATIONS, map(_observe, tasks, plays))
    scores = score_plays(plays)
    results = question | {"scores": [score.model_dump() for score in scores]}
    write_whole_file(out / RESULTS, orjson.dumps(results, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return scores


async def _judge(suite: Suite, task: SuiteTask, player: SuitePlayer, run: str) -> BenchPlay:
    try:
        play = await player(suite, task, run)
    except ModelFault as fault:
        return BenchPlay(
            task=task.id, category=task.category, passed=None, error=f"model_{fault.kind}", play=SuitePlay(steps=())
        )
    error = play.error or await suite.check(task, run, play.steps)
    return BenchPlay(task=task.id, category=task.category, passed=not error, error=error, play=play)


def _check_question(out: Path, question: dict[str, str]) -> None:
    file = out / QUESTION
    with storage_boundary(out):
        out.mkdir(parents=True, exist_ok=True)
    if file.is_file() and orjson.loads(file.read_bytes()) != question and count_records(out / PLAYS):
        raise InputError(f"{out} holds results of another model or benchmark: name another folder with --out")
    write_whole_file(file, orjson.dumps(question))


def score_plays(plays: Sequence[BenchPlay]) -> list[CategoryScore]:
    """Return the score of every category, and of all together first where there are several."""
    groups: dict[str, list[BenchPlay]] = defaultdict(list)
    for play in plays:
        groups[play.category].append(play)
    named = list(groups.items())
    return [_score(name, members) for name, members in ([("all", list(plays)), *named] if len(named) > 1 else named)]


def _score(category: str, plays: Sequence[BenchPlay]) -> CategoryScore:
    scored = [one for one in plays if one.passed is not None]
    passed = sum(one.passed is True for one in scored)
    low, high = compute_wilson_interval(passed, len(scored))
    errors: dict[str, int] = defaultdict(int)
    for one in plays:
        if one.error:
            errors[one.error] += 1
    return CategoryScore(
        category=category,
        tasks=len(plays),
        passed=passed,
        unscored=len(plays) - len(scored),
        pass1=round(passed / max(1, len(scored)), 4),
        low=round(low, 4),
        high=round(high, 4),
        tokens=round(sum(one.play.tokens for one in plays) / max(1, len(plays)), 1),
        errors=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
    )


def _observe(task: SuiteTask, judged: BenchPlay) -> EpisodeObservation:
    """Return a judged task for a diagnosis; tools are those of the suite's own gold."""
    names = [call.name for turn in task.gold or () for step in turn for call in step]
    called = [call.name for turn in judged.play.steps for step in turn for call in step]
    pairs = itertools.pairwise(names)
    groups = {
        "category": (task.category,),
        "tool": tuple(dict.fromkeys(names)),
        "edge": tuple(dict.fromkeys(f"{first} -> {second}" for first, second in pairs)),
        "turns": (f"{len(task.turns)} turns",),
    }
    at = next((place for place, pair in enumerate(zip(names, called, strict=False)) if pair[0] != pair[1]), len(called))
    step = None
    if judged.passed is False:
        tool = names[at] if at < len(names) else ""
        kind = "missing_call" if len(called) < len(names) and at == len(called) else "wrong_argument"
        if at < min(len(called), len(names)):
            kind = "wrong_tool"
        step = WrongStep(kind=kind if names else "needless_call", message=at, tool=tool, detail=judged.error)
    return EpisodeObservation(
        episode=task.id,
        task=task.id,
        environment=task.category,
        passed=judged.passed,
        error=judged.error,
        groups={name: members for name, members in groups.items() if members},
        step=step,
        request=task.turns[0][-1].content[:300] if task.turns and task.turns[0] else "",
    )
