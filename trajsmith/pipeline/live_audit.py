"""Audit of a suite that another library runs: its client plays gold, nothing and mutants, and its code rewards them.

The library shows no state. That a mutant is wrong is shown by what its tools answer: after the same calls, a state that
is the same gives the same results. Gold's calls are made once more after both plays, in episodes that are not scored,
and another result means another state.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson

from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.suite_counts import (
    EMPTY_PASSES,
    GOLD_FAILS,
    SuiteAudit,
    SuiteCall,
    build_mutants,
    collect_values,
    find_untold,
    name_by_text,
)
from trajsmith.pipeline.task_server import build_solution, iter_solutions
from trajsmith.records import EnvironmentFault, InputError, derive_seed
from trajsmith.train_grpo import MESSAGE_USER

OTHER_CALLS = 4
"""Calls of other tasks that are tried as the one that nobody asked for."""
NO_GOLD = "no gold play is known"


@dataclass(frozen=True)
class GoldPlay:
    """A play that should pass; what is said is a call of `message_user`."""

    calls: tuple[SuiteCall, ...]
    lacks: Callable[[Sequence[SuiteCall]], bool]
    """Returns True if a play does not say what the task wants to be said and gold says."""


@dataclass(frozen=True)
class LiveTask:
    """A task of the suite, with the plays that may be its gold: the first one that passes is."""

    name: str
    golds: tuple[GoldPlay, ...]


@dataclass(frozen=True)
class LiveResult:
    """Reward and results of a play."""

    reward: float | None
    """None where the suite gave none."""
    results: tuple[str, ...]
    """Results of the calls that were made before the episode was over."""


class LivePlayer(Protocol):
    """Plays tasks of a suite by the client of its library."""

    async def play(self, task: str, calls: Sequence[SuiteCall]) -> LiveResult:
        """Play calls from the start of a task, then nothing until the episode is over.

        Raises:
            EnvironmentFault: The suite broke.
        """

    async def validate(self, task: str) -> bool | None:
        """Return whether the task's own test of its solution passes, or None if it has none.

        Raises:
            EnvironmentFault: The test broke.
        """


def read_golds(place: Path) -> dict[str, GoldPlay]:
    """Read gold plays by task: the accepted plays of a run, or a file of them.

    A line of the file is `{"task": NAME, "lines": [{"tool": ..., "arguments": {...}}, ...], "answer": TEXT}`; `answer`
    is what a right play must tell, and may be left out.

    Raises:
        InputError: It cannot be read.
    """
    if place.is_dir():
        golds = {}
        for judged in iter_solutions(RunDirectory.open(place)):
            calls = tuple(SuiteCall(line["tool"], line["arguments"]) for line in build_solution(judged))
            task = judged.task
            golds[task.id] = GoldPlay(calls, lambda play, task=task, gold=calls: bool(find_untold(task, gold, play)))  # type: ignore[misc]
        return golds
    try:
        rows = [orjson.loads(line) for line in place.read_bytes().splitlines() if line.strip()]
    except (OSError, orjson.JSONDecodeError) as error:
        raise InputError(f"{place}: gold plays cannot be read: {error}") from error
    return dict(_read_gold(place, number, row) for number, row in enumerate(rows, 1))


def _read_gold(place: Path, number: int, row: Any) -> tuple[str, GoldPlay]:
    lines = row.get("lines") if isinstance(row, dict) else None
    if not isinstance(lines, list) or not all(_is_call(line) for line in lines) or "task" not in row:
        form = '{"task": NAME, "lines": [{"tool": NAME, "arguments": {...}}]}'
        raise InputError(f"{place}:{number}: a gold play is {form}, with an `answer` that must be told")
    calls = tuple(SuiteCall(line["tool"], line["arguments"]) for line in lines)
    return str(row["task"]), build_gold(calls, str(row.get("answer", "")))


def _is_call(line: Any) -> bool:
    return isinstance(line, dict) and isinstance(line.get("tool"), str) and isinstance(line.get("arguments"), dict)


def build_gold(calls: tuple[SuiteCall, ...], answer: str) -> GoldPlay:
    """Build a gold play with an answer that it must tell, in a text or an argument."""
    return GoldPlay(calls, lambda play: _is_told(answer, calls) and not _is_told(answer, play))


def say(text: str) -> SuiteCall:
    """Return a text of the agent as a call."""
    return SuiteCall(MESSAGE_USER.name, {"text": text})


def _is_told(answer: str, calls: Sequence[SuiteCall]) -> bool:
    values = "\n".join(str(value) for call in calls for value in call.arguments.values())
    return bool(answer) and answer.casefold() in values.casefold()


class LiveAudit:
    """The audit of one suite."""

    def __init__(
        self, audit: SuiteAudit, player: LivePlayer, tasks: Sequence[LiveTask], mutants: int, seed: int, passes: float
    ) -> None:
        self._audit = audit
        self._player = player
        self._tasks = tasks
        self._mutants = mutants
        self._seed = seed
        self._passes = passes
        self._values = collect_values(call for task in tasks for gold in task.golds[:1] for call in gold.calls)

    async def examine(self, progress: RunProgress | None = None) -> None:
        """Examine the tasks, each with all its plays."""
        self._audit.tasks = len(self._tasks)
        with (progress or NullProgress()).stage(f"audit {self._audit.suite}", len(self._tasks), 0, 0) as bar:
            for task in self._tasks:
                try:
                    await self._examine_task(task)
                except EnvironmentFault as fault:
                    self._audit.report(f"cannot be judged: {fault.kind}", f"{task.name}: {fault.message}")
                bar.advance()

    async def _examine_task(self, task: LiveTask) -> None:
        audit = self._audit
        empty = await self._player.play(task.name, ())
        audit.played += 1
        if empty.reward is None:
            audit.report("empty play is undecided: no reward is given", task.name)
        elif empty.reward < self._passes:
            audit.empty_fails += 1
        else:
            audit.report(EMPTY_PASSES, task.name)
        valid = await self._player.validate(task.name)
        gold, reward = None, None
        for candidate in task.golds:
            reward = (await self._player.play(task.name, candidate.calls)).reward
            if reward is not None and reward >= self._passes:
                gold = candidate
                break
        if valid is False:
            audit.report(f"{GOLD_FAILS}: the task's own validation", task.name)
        elif gold is not None or (valid and not task.golds):
            audit.gold_passes += 1
        elif task.golds:
            audit.report(f"{GOLD_FAILS}: reward {'none' if reward is None else f'{reward:g}'}", task.name)
        if not task.golds:
            audit.report(f"{NO_GOLD}, so that there are no mutants", task.name)
        if gold is not None and valid is not False:
            await self._examine_mutants(task, gold)

    async def _examine_mutants(self, task: LiveTask, gold: GoldPlay) -> None:
        rng = random.Random(derive_seed(self._seed, task.name))
        others = [
            call
            for other in self._tasks
            for play in other.golds[:1]
            for call in play.calls
            if other is not task and call.tool != MESSAGE_USER.name and call not in gold.calls
        ]
        some = rng.sample(others, min(OTHER_CALLS, len(others)))
        probes = _ProbedStates(self._player, task.name, gold.calls, some)
        await probes.learn()
        wrong = 0
        for play in build_mutants(gold.calls, (), some, self._values, self._mutants, rng, added_first=True):
            if wrong >= self._mutants:
                break
            mutant = name_by_text(play, gold.calls)
            try:
                if not gold.lacks(mutant.calls) and not await probes.differs(mutant.calls):
                    self._audit.equivalent += 1
                    continue
                reward = (await self._player.play(task.name, mutant.calls)).reward
            except EnvironmentFault as fault:
                self._audit.report(f"mutant cannot be judged: {fault.kind}", f"{task.name}: {fault.message}")
                continue
            if reward is None:
                self._audit.report(f"mutant is undecided: no reward is given: {mutant.kind}", task.name)
                continue
            wrong += 1
            self._audit.count_mutant(task.name, mutant, reward >= self._passes)


class _ProbedStates:
    """Compares the state after a play with that after gold, by the results of the same calls after both.

    Where gold's own calls end the episode, nothing can be asked after them: then the last results are compared.
    """

    def __init__(self, player: LivePlayer, task: str, gold: Sequence[SuiteCall], others: Sequence[SuiteCall]) -> None:
        self._player = player
        self._task = task
        self._gold = _drop_last_texts(gold)
        own = {str(call): call for call in gold if call.tool != MESSAGE_USER.name}
        self._own = list(own.values())
        self._probes = list((own | {str(call): call for call in others}).values())
        self._known: list[str | None] = []
        """Results after gold; None where two plays of gold gave two."""

    async def learn(self) -> None:
        """Find what gold leads to, and whether that is the same twice."""
        try:
            first = await self._ask(self._gold)
        except EnvironmentFault:  # a call of another task breaks this one
            self._probes = self._own
            first = await self._ask(self._gold)
        if self._probes and first[0] is None:
            self._probes = []
            first = await self._ask(self._gold)
        second = await self._ask(self._gold)
        self._known = [one if one == other else None for one, other in zip(first, second, strict=True)]

    async def differs(self, calls: Sequence[SuiteCall]) -> bool:
        """Return True if this play leads to another result than gold."""
        if not any(self._known):
            return False
        asked = await self._ask(_drop_last_texts(calls))
        pairs = zip(self._known, asked, strict=True)
        return any(known is not None and other is not None and known != other for known, other in pairs)

    async def _ask(self, calls: Sequence[SuiteCall]) -> list[str | None]:
        """Return the results of the probes after a play, or its own last one where nothing can be asked."""
        results = (await self._player.play(self._task, [*calls, *self._probes])).results
        if not self._probes:
            return [results[-1] if results else ""]
        after = results[len(calls) :]
        return [*after, *[None] * (len(self._probes) - len(after))]


def _drop_last_texts(calls: Sequence[SuiteCall]) -> list[SuiteCall]:
    """Return a play without its last texts, which change nothing and may end the episode."""
    rest = list(calls)
    while rest and rest[-1].tool == MESSAGE_USER.name:
        rest.pop()
    return rest
