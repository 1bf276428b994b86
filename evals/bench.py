"""`trajsmith bench`: a player on the tasks of a suite; finished tasks are stored, and the same command goes on."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

from trajsmith.evals.evaluate import await_all
from trajsmith.evals.observations import OBSERVATIONS, EpisodeObservation, write_observations
from trajsmith.evals.scores import bootstrap_interval, compute_pass_hat_k, compute_wilson_interval
from trajsmith.evals.suites.players import SuitePlayer
from trajsmith.evals.suites.suite import AnySuite, ConversationSuite, SuitePlay, SuiteTask
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


UNDECIDED = "checker_raised"
"""Error of a play on which the suite's checker came to no verdict."""


class BenchPlay(FrozenModel):
    """One judged play of a task."""

    task: str
    category: str
    trial: int = 0
    """Number of the play of this task, from 0."""
    passed: bool | None
    """None if the model's server failed, or the suite's checker broke."""
    error: str = ""
    play: SuitePlay

    @property
    def episode(self) -> str:
        """Return the id of the play in a diagnosis."""
        return f"{self.task}#{self.trial}" if self.trial else self.task


class CategoryScore(FrozenModel):
    """Score of one category."""

    category: str
    tasks: int
    """Plays, where tasks were played several times."""
    passed: int
    unscored: int
    pass1: float
    low: float
    high: float
    """95 % interval: Wilson's, or by drawing tasks with replacement where tasks were played several times."""
    pass_k: dict[int, float] = {}
    """k to the chance that k plays of one task all pass (τ-bench's pass^k)."""
    tokens: float
    """That the model wrote, in the mean of the plays."""
    prompt_tokens: float = 0.0
    """That it read, counted again at each request."""
    errors: dict[str, int]


async def run_suite(
    suite: AnySuite,
    tasks: Sequence[SuiteTask],
    player: SuitePlayer,
    out: Path,
    question: dict[str, str],
    concurrency: int = 8,
    over: Callable[[], None] = lambda: None,
    trials: int = 1,
) -> list[CategoryScore]:
    """Play what is not in `out` yet, judge it by the suite's checker, and write scores and observations.

    Args:
        suite: An open suite.
        tasks: Tasks to play.
        player: Who plays them.
        out: Folder of the results.
        question: Suite, version and model that the results belong to.
        concurrency: Tasks at a time.
        over: Called after each play that is over.
        trials: Plays of each task.

    Raises:
        InputError: The folder holds results of something else.
        RunError: The results cannot be written, or the suite ended.
    """
    _check_question(out, question)
    done = {(one.task, one.trial): one for one in read_entries(out / PLAYS, BenchPlay) if one.passed is not None}
    gate = asyncio.Semaphore(concurrency)

    async def one(task: SuiteTask, trial: int, file: AppendFile, number: int) -> None:
        async with gate:
            judged = await _judge(suite, task, trial, player, f"{number}")
        file.append(judged.model_dump_json().encode() + b"\n")
        done[task.id, trial] = judged
        over()

    with AppendFile(out / PLAYS, lock=True) as file:
        file.cut_torn_line()
        wanted = [(task, trial) for trial in range(trials) for task in tasks]
        missing = [(task, trial) for task, trial in wanted if (task.id, trial) not in done]
        for _ in range(len(wanted) - len(missing)):
            over()
        await await_all(one(task, trial, file, number) for number, (task, trial) in enumerate(missing))
    plays = [done[task.id, trial] for task, trial in wanted]
    write_observations(out / OBSERVATIONS, (_observe(task, done[task.id, trial]) for task, trial in wanted))
    scores = score_plays(plays)
    results = question | {"scores": [score.model_dump(mode="json") for score in scores]}
    write_whole_file(out / RESULTS, orjson.dumps(results, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return scores


async def _judge(suite: AnySuite, task: SuiteTask, trial: int, player: SuitePlayer, run: str) -> BenchPlay:
    try:
        play = await player(suite, task, run, trial)
    except ModelFault as fault:
        play = SuitePlay(steps=(), undecided=str(fault))
        error = f"model_{fault.kind}"
    else:
        error = UNDECIDED if play.undecided else play.error
        if not error and not isinstance(suite, ConversationSuite):
            error = await suite.check(task, run, play.steps)
    passed = None if play.undecided else not error
    return BenchPlay(task=task.id, category=task.category, trial=trial, passed=passed, error=error, play=play)


def _check_question(out: Path, question: dict[str, str]) -> None:
    file = out / QUESTION
    with storage_boundary(out):
        out.mkdir(parents=True, exist_ok=True)
    if file.is_file() and orjson.loads(file.read_bytes()) != question and count_records(out / PLAYS):
        raise InputError(
            f"{out} holds results of another model or benchmark, or of other settings: name another folder with --out"
        )
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
    outcomes: dict[str, list[bool]] = defaultdict(list)
    for one in scored:
        outcomes[one.task].append(one.passed is True)
    most = max(map(len, outcomes.values()), default=0)
    low, high = compute_wilson_interval(passed, len(scored))
    if most > 1:
        low, high = bootstrap_interval([sum(plays) / len(plays) for plays in outcomes.values()])
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
        pass_k={k: _compute_pass_k(list(outcomes.values()), k) for k in range(2, most + 1)},
        tokens=round(sum(one.play.tokens for one in plays) / max(1, len(plays)), 1),
        prompt_tokens=round(sum(one.play.prompt_tokens for one in plays) / max(1, len(plays)), 1),
        errors=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
    )


def _compute_pass_k(outcomes: Sequence[Sequence[bool]], k: int) -> float:
    """Return pass^k over the tasks that were played k times."""
    chances = [compute_pass_hat_k(sum(plays), len(plays), k) for plays in outcomes if len(plays) >= k]
    return round(sum(chances) / len(chances), 4)


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
        episode=judged.episode,
        task=task.id,
        environment=task.category,
        passed=judged.passed,
        error=judged.error,
        groups={name: members for name, members in groups.items() if members},
        step=step,
        request=task.turns[0][-1].content[:300] if task.turns and task.turns[0] else "",
    )
