"""Count how far themes came, why the others failed, and what an accepted environment costs."""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import orjson

from trajsmith.envgen.synthesis.records import SynthesisOutcome
from trajsmith.records import FrozenModel, RunError, UsageSummary

STEPS = ("sources", "proposed", "designed", "drafted", "examined", "checked", "accepted")
_PASSED = {"propose": 0, "design": 1, "draft": 2, "examine": 3, "repair": 3, "check": 4, "accept": 5}
"""Stage at which a rejected theme ended, to the last step that it passed."""


class StageCost(FrozenModel):
    """Requests, tokens and cost of one stage."""

    stage: str
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


class Funnel(FrozenModel):
    """Counts and costs of a run."""

    themes: dict[str, int]
    """Step to how many themes passed it."""
    rejected: dict[str, int]
    """Short reason to how often."""
    undecided: int
    """Themes that could not be decided because a model was out; the next start takes them up."""
    repairs: dict[str, int]
    """Environment to the rounds of repair that its theme took."""
    stages: tuple[StageCost, ...]
    requests: int
    tokens: int
    cost: float
    tokens_per_accepted: int | None
    """Of all that was spent, rejected themes included."""
    cost_per_accepted: float | None
    cost_by_theme: dict[str, float]
    """Source's name to money."""


def build_funnel(outcomes: Sequence[SynthesisOutcome], undecided: int, usage: Path) -> Funnel:
    """Return the counts and costs of a run.

    Args:
        usage: Its `usage.jsonl`.
    """
    accepted = sum(outcome.accepted for outcome in outcomes)
    stages, themes = _sum_usage(usage)
    total = sum(stages.values(), UsageSummary())
    names = {outcome.theme: outcome.source for outcome in outcomes}
    return Funnel(
        themes=_count_steps(outcomes, undecided),
        rejected=dict(Counter(shorten_reason(one) for one in outcomes if not one.accepted).most_common()),
        undecided=undecided,
        repairs={one.name or one.source: one.rounds for one in outcomes},
        stages=tuple(
            StageCost(
                stage=stage, requests=one.requests, prompt_tokens=one.prompt_tokens,
                completion_tokens=one.completion_tokens, cost=round(one.cost, 6),
            )
            for stage, one in stages.items()
        ),
        requests=total.requests, tokens=total.tokens, cost=round(total.cost, 6),
        tokens_per_accepted=round(total.tokens / accepted) if accepted else None,
        cost_per_accepted=round(total.cost / accepted, 6) if accepted else None,
        cost_by_theme={names[theme]: round(one.cost, 6) for theme, one in themes.items() if theme in names},
    )  # fmt: skip


class UsageByStage(FrozenModel):
    """Requests, tokens and cost of some stages of a run."""

    requests: int
    tokens: int
    cost: float


def count_usage(usage: Path, stages: Collection[str]) -> UsageByStage:
    """Return what some stages of a run have used.

    Args:
        usage: Its `usage.jsonl`.
    """
    total = sum((one for stage, one in _sum_usage(usage)[0].items() if stage in stages), UsageSummary())
    return UsageByStage(requests=total.requests, tokens=total.tokens, cost=round(total.cost, 6))


def _count_steps(outcomes: Sequence[SynthesisOutcome], undecided: int) -> dict[str, int]:
    passed = [_find_last_step(outcome) for outcome in outcomes]
    counts = {step: sum(one >= number for one in passed) for number, step in enumerate(STEPS)}
    return counts | {STEPS[0]: counts[STEPS[0]] + undecided}


def _find_last_step(outcome: SynthesisOutcome) -> int:
    """The last step that a theme passed, as a place in STEPS."""
    if outcome.accepted:
        return len(STEPS) - 1
    if outcome.stage == "repair" and outcome.semantic is not None:
        return _PASSED["check"]
    return _PASSED[outcome.stage]


def shorten_reason(outcome: SynthesisOutcome) -> str:
    """Return the short reason of a rejection."""
    first = outcome.reasons[0]
    if first.startswith(("the code uses names", "nothing usable")):
        return first.partition(":")[0]
    return ":".join(first.split(":")[:2])[:120]


def _sum_usage(path: Path) -> tuple[dict[str, UsageSummary], dict[str, UsageSummary]]:
    """Return the usage by stage and by theme."""
    stages: dict[str, UsageSummary] = {}
    themes: dict[str, UsageSummary] = {}
    for line in path.read_bytes().splitlines(keepends=True) if path.is_file() else ():
        if not line.endswith(b"\n"):
            break  # torn; the next start completes it from the answers' file
        try:
            row = orjson.loads(line)
            stage = str(row["purpose"]).split(".")[-1]
            names = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "cost")
            one = UsageSummary(requests=1, **{name: row[name] for name in names})
            stages[stage] = stages.get(stage, UsageSummary()) + one
            themes[row["record"]] = themes.get(row["record"], UsageSummary()) + one
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise RunError(f"{path}: a line was changed by hand: {line[:80]!r}") from error
    return stages, themes
