"""Assess tools with tester and checker (EnvScaler 3.3); tools below a share are dropped (Agent-World 3.1).

The tester sees tools and state and no code; the checker sees a tool's source, the call, its result and what it changed.
A call at which the environment breaks has failed without anybody being asked.
"""

from collections import defaultdict

from trajsmith.envgen.synthesis.answer_schemas import Trial, TrialReview, TrialReviews, Trials
from trajsmith.envgen.synthesis.code_assembly import extract_method
from trajsmith.envgen.synthesis.examination import DraftRunner, close_source
from trajsmith.envgen.synthesis.execution import STATE_SIZES, ExecutedCall, execute_call
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import (
    Complaint,
    Design,
    EnvironmentDraft,
    Provenance,
    SemanticAssessment,
    TrialResult,
)
from trajsmith.envgen.synthesis.unit_tests import describe_tools, shorten_state
from trajsmith.environments import EnvironmentSource
from trajsmith.records import EnvironmentSpec, JsonObject

VERDICT_SCORES = {"pass": 1.0, "warning": 0.5, "fail": 0.0}
"""What a verdict counts."""
_ROWS = 12


async def assess_draft(
    generator: PromptedGenerator, bench: DraftRunner, design: Design, draft: EnvironmentDraft
) -> SemanticAssessment:
    """Run all rounds of tester and checker on one draft."""
    source = bench.open(design, draft)
    judged: list[TrialResult] = []
    where: dict[str, Provenance] = {}
    try:
        spec = await source.spec()
        for number in range(bench.settings.trial_rounds):
            state = (await source.states(number + 1))[STATE_SIZES["medium"]]
            judged += await _run_round(generator, bench, design, draft, source, spec, state, judged, number, where)
    finally:
        close_source(source)
    return build_assessment(draft.theme, draft.id, judged, where)


async def _run_round(
    generator: PromptedGenerator,
    bench: DraftRunner,
    design: Design,
    draft: EnvironmentDraft,
    source: EnvironmentSource,
    spec: EnvironmentSpec,
    state: JsonObject,
    before: list[TrialResult],
    number: int,
    where: dict[str, Provenance],
) -> list[TrialResult]:
    tried = {tool.name: sum(one.trial.tool == tool.name for one in before) for tool in spec.tools}
    answer, where[f"try {number + 1}"] = await generator.answer(
        "try", draft.theme, Trials, lambda one: _find_trials_fault(one, spec, bench.settings.trials), number=number + 1,
        count=bench.settings.trials, tools=describe_tools(spec), state=shorten_state(state, _ROWS), tried=tried,
        rules=[rule.model_dump(mode="json") for rule in design.requirements.rules],
    )  # fmt: skip
    played = await _execute_trials(source, state, answer.trials)
    opinions, provenance = await _review_trials(generator, draft, design, spec, answer.trials, played)
    where |= {} if provenance is None else {f"check {number + 1}": provenance}
    return [
        TrialResult(trial=trial, outcome=call.outcome, changes=call.changes, opinion=opinion)
        for trial, call, opinion in zip(answer.trials, played, opinions, strict=True)
    ]


def _find_trials_fault(answer: Trials, spec: EnvironmentSpec, most: int) -> str:
    names = {tool.name for tool in spec.tools}
    unknown = [trial.tool for trial in answer.trials if trial.tool not in names]
    if unknown:
        return f"{unknown[0]} is no tool."
    return f"there are {len(answer.trials)} calls; {most} is the most." if len(answer.trials) > most else ""


async def _execute_trials(
    source: EnvironmentSource, state: JsonObject, trials: tuple[Trial, ...]
) -> list[ExecutedCall]:
    """Every call from the same state."""
    session = await source.open()
    try:
        played = []
        for trial in trials:
            await session.reset(state)
            played.append(await execute_call(session, trial.tool, trial.arguments))
        return played
    finally:
        await session.close()


async def _review_trials(
    generator: PromptedGenerator,
    draft: EnvironmentDraft,
    design: Design,
    spec: EnvironmentSpec,
    trials: tuple[Trial, ...],
    played: list[ExecutedCall],
) -> tuple[list[TrialReview], Provenance | None]:
    broken = {
        number: TrialReview(trial=number, verdict="fail", reason=f"the environment {call.outcome}")
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
    sources = {
        name: extract_method(draft.code, name) for name in dict.fromkeys(trials[number].tool for number in asked)
    }
    answer, where = await generator.answer(
        "check", draft.theme, TrialReviews, lambda one: _find_reviews_fault(one, asked), calls=calls, sources=sources,
        rules=[rule.model_dump(mode="json") for rule in design.requirements.rules],
        descriptions={tool.name: tool.description for tool in spec.tools},
    )  # fmt: skip
    reviews = {opinion.trial: opinion for opinion in answer.opinions} | broken
    return [reviews[number] for number in range(len(trials))], where


def _find_reviews_fault(answer: TrialReviews, asked: list[int]) -> str:
    reviewed = [opinion.trial for opinion in answer.opinions]
    return "" if sorted(reviewed) == asked else f"give exactly one opinion on each of the calls {asked}."


def build_assessment(
    theme: str, draft: str, judged: list[TrialResult], where: dict[str, Provenance]
) -> SemanticAssessment:
    """Return the shares of approved calls, overall and by tool."""
    worths: dict[str, list[float]] = defaultdict(list)
    for one in judged:
        worths[one.trial.tool].append(VERDICT_SCORES[one.opinion.verdict])
    every = [worth for values in worths.values() for worth in values]
    return SemanticAssessment(
        theme=theme, draft=draft, judged=tuple(judged), score=round(sum(every) / len(every), 4),
        by_tool={tool: round(sum(values) / len(values), 4) for tool, values in sorted(worths.items())},
        provenance=where,
    )  # fmt: skip


def build_semantic_complaints(semantic: SemanticAssessment) -> list[Complaint]:
    """Return the calls that the checker did not approve, as evidence."""
    complaints: list[Complaint] = []
    for one in semantic.judged:
        if one.opinion.verdict != "pass":
            complaints.append(
                Complaint(
                    id=f"M{len(complaints) + 1}", kind="semantic", tool=one.trial.tool, what=one.opinion.reason,
                    calls=(f"{one.trial.tool}({one.trial.arguments}) {one.outcome}; {one.changes}",),
                    expected=one.trial.expects,
                )
            )  # fmt: skip
    return complaints
