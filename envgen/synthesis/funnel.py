"""How many themes came how far, why the others did not, and what an accepted environment costs."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson

from envgen.synthesis.records import Outcome
from trajectory import Frozen, RunError, UsageSummary

STEPS = ("sources", "proposed", "designed", "drafted", "examined", "checked", "accepted")
_PASSED = {"propose": 0, "design": 1, "draft": 2, "examine": 3, "repair": 3, "check": 4, "accept": 5}
"""Stage at which a rejected theme ended, to the last step that it passed."""


class StageCost(Frozen):
    """What one stage asked of models."""

    stage: str
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


class Funnel(Frozen):
    """A run in numbers."""

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


def funnel(outcomes: Sequence[Outcome], undecided: int, usage: Path) -> Funnel:
    """The numbers of a run.

    Args:
        usage: Its `usage.jsonl`.
    """
    accepted = sum(outcome.accepted for outcome in outcomes)
    stages, themes = _spent(usage)
    total = sum(stages.values(), UsageSummary())
    names = {outcome.theme: outcome.source for outcome in outcomes}
    return Funnel(
        themes=_steps(outcomes, undecided),
        rejected=dict(Counter(reason_of(one) for one in outcomes if not one.accepted).most_common()),
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


def _steps(outcomes: Sequence[Outcome], undecided: int) -> dict[str, int]:
    passed = [_passed(outcome) for outcome in outcomes]
    found = {step: sum(one >= number for one in passed) for number, step in enumerate(STEPS)}
    return found | {STEPS[0]: found[STEPS[0]] + undecided}


def _passed(outcome: Outcome) -> int:
    """The last step that a theme passed, as a place in STEPS."""
    if outcome.accepted:
        return len(STEPS) - 1
    if outcome.stage == "repair" and outcome.semantic is not None:
        return _PASSED["check"]
    return _PASSED[outcome.stage]


def reason_of(outcome: Outcome) -> str:
    """The short reason of a rejection."""
    first = outcome.reasons[0]
    if first.startswith(("the code reaches", "nothing usable")):
        return first.partition(":")[0]
    return ":".join(first.split(":")[:2])[:120]


def _spent(path: Path) -> tuple[dict[str, UsageSummary], dict[str, UsageSummary]]:
    """What was spent, by stage and by theme."""
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
