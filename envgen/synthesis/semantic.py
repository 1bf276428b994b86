"""Tester and checker: does each tool do what it says? (EnvScaler 3.3; tools below a share go, Agent-World 3.1.)

The tester sees tools and state and no code; the checker sees a tool's source, the call, its result and what it changed.
A call at which the environment breaks has failed without anybody being asked.
"""

from collections import defaultdict

from envgen.synthesis.desk import Desk
from envgen.synthesis.examining import Bench, close
from envgen.synthesis.parts import Opinion, Opinions, Trial, Trials
from envgen.synthesis.playing import SIZES, Played, play
from envgen.synthesis.records import Complaint, Design, Draft, Judged, Provenance, Semantic
from envgen.synthesis.testing import shown, tools_shown
from envgen.synthesis.tidy import method_source
from environments import EnvironmentSource
from trajectory import EnvironmentSpec, JsonObject

WORTH = {"pass": 1.0, "warning": 0.5, "fail": 0.0}
"""What a verdict counts."""
_ROWS = 12


async def assess(desk: Desk, bench: Bench, design: Design, draft: Draft) -> Semantic:
    """All rounds of tester and checker on one draft."""
    source = bench.open(design, draft)
    judged: list[Judged] = []
    where: dict[str, Provenance] = {}
    try:
        spec = await source.spec()
        for number in range(bench.settings.trial_rounds):
            state = (await source.states(number + 1))[SIZES["medium"]]
            judged += await _round(desk, bench, design, draft, source, spec, state, judged, number, where)
    finally:
        close(source)
    return summed(draft.theme, draft.id, judged, where)


async def _round(
    desk: Desk, bench: Bench, design: Design, draft: Draft, source: EnvironmentSource, spec: EnvironmentSpec,
    state: JsonObject, before: list[Judged], number: int, where: dict[str, Provenance],
) -> list[Judged]:  # fmt: skip
    tried = {tool.name: sum(one.trial.tool == tool.name for one in before) for tool in spec.tools}
    found, where[f"try {number + 1}"] = await desk.answer(
        "try", draft.theme, Trials, lambda one: _wrong_trials(one, spec, bench.settings.trials), number=number + 1,
        count=bench.settings.trials, tools=tools_shown(spec), state=shown(state, _ROWS), tried=tried,
        rules=[rule.model_dump(mode="json") for rule in design.requirements.rules],
    )  # fmt: skip
    played = await _play(source, state, found.trials)
    opinions, told = await _check(desk, draft, design, spec, found.trials, played)
    where |= {} if told is None else {f"check {number + 1}": told}
    return [
        Judged(trial=trial, outcome=call.outcome, changes=call.changes, opinion=opinion)
        for trial, call, opinion in zip(found.trials, played, opinions, strict=True)
    ]


def _wrong_trials(found: Trials, spec: EnvironmentSpec, most: int) -> str:
    names = {tool.name for tool in spec.tools}
    unknown = [trial.tool for trial in found.trials if trial.tool not in names]
    if unknown:
        return f"{unknown[0]} is no tool."
    return f"there are {len(found.trials)} calls; {most} is the most." if len(found.trials) > most else ""


async def _play(source: EnvironmentSource, state: JsonObject, trials: tuple[Trial, ...]) -> list[Played]:
    """Every call from the same state."""
    session = await source.open()
    try:
        played = []
        for trial in trials:
            await session.reset(state)
            played.append(await play(session, trial.tool, trial.arguments))
        return played
    finally:
        await session.close()


async def _check(
    desk: Desk, draft: Draft, design: Design, spec: EnvironmentSpec, trials: tuple[Trial, ...], played: list[Played]
) -> tuple[list[Opinion], Provenance | None]:
    broken = {
        number: Opinion(trial=number, verdict="fail", reason=f"the environment {call.outcome}")
        for number, call in enumerate(played)
        if call.result is None
    }
    asked = [number for number in range(len(trials)) if number not in broken]
    if not asked:
        return [broken[number] for number in range(len(trials))], None
    calls = [
        {"trial": number, "call": trials[number].model_dump(mode="json"), "outcome": played[number].outcome,
         "changes": played[number].changes}
        for number in asked
    ]  # fmt: skip
    sources = {name: method_source(draft.code, name) for name in dict.fromkeys(trials[number].tool for number in asked)}
    found, where = await desk.answer(
        "check", draft.theme, Opinions, lambda one: _wrong_opinions(one, asked), calls=calls, sources=sources,
        rules=[rule.model_dump(mode="json") for rule in design.requirements.rules],
        descriptions={tool.name: tool.description for tool in spec.tools},
    )  # fmt: skip
    told = {opinion.trial: opinion for opinion in found.opinions} | broken
    return [told[number] for number in range(len(trials))], where


def _wrong_opinions(found: Opinions, asked: list[int]) -> str:
    told = [opinion.trial for opinion in found.opinions]
    return "" if sorted(told) == asked else f"give exactly one opinion on each of the calls {asked}."


def summed(theme: str, draft: str, judged: list[Judged], where: dict[str, Provenance]) -> Semantic:
    """Shares of approved calls, in all and by tool."""
    worths: dict[str, list[float]] = defaultdict(list)
    for one in judged:
        worths[one.trial.tool].append(WORTH[one.opinion.verdict])
    every = [worth for found in worths.values() for worth in found]
    return Semantic(
        theme=theme, draft=draft, judged=tuple(judged), score=round(sum(every) / len(every), 4),
        by_tool={tool: round(sum(found) / len(found), 4) for tool, found in sorted(worths.items())},
        provenance=where,
    )  # fmt: skip


def complaints_of(semantic: Semantic) -> list[Complaint]:
    """The calls that the checker did not approve, as evidence."""
    found: list[Complaint] = []
    for one in semantic.judged:
        if one.opinion.verdict != "pass":
            found.append(
                Complaint(
                    id=f"M{len(found) + 1}", kind="semantic", tool=one.trial.tool, what=one.opinion.reason,
                    calls=(f"{one.trial.tool}({one.trial.arguments}) {one.outcome}; {one.changes}",),
                    expected=one.trial.expects,
                )
            )  # fmt: skip
    return found
