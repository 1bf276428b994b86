"""One rule from schema score and evidence to the final score of a link.

Recordings: a logistic model over a few named terms, like the schema score itself; the weights in `data/evidence.json`
start from what the terms mean and are moved by data as far as several sets agree (`benchmarks/evidence.py --train`).
Where no recorded call fills the parameter, recordings say nothing and the schema score stays.

Execution: what it proves is near 1 whatever the schemas say, the nearer the more (state, value) pairs worked; what it
refutes is near 0; failures that do not suffice for that divide the odds.
"""

import functools
import json
import math
from importlib.resources import files
from typing import Any

from trajsmith.toolgraph.evidence.recorded_flows import RecordedEvidence, ValueFlow
from trajsmith.toolgraph.graph import LinkEvidence, LinkKey

PRIOR: dict[str, float] = {
    "bias": -1.0,
    "schema": 0.5,
    "flows": 5.0,
    "tasks": 1.0,
    "id_like": 1.0,
    "again": 1.0,
    "known": 1.0,
    "unseen": 0.3,
    "held": 0.7,
    "silent": -0.5,
}
"""Term to the weight that its meaning suggests; training keeps the sign and is drawn to this value."""
UNMATCHED = 0.005
"""Schema score of a link that matching does not see at all."""
WORKED, FAILED = math.log(8.0), math.log(4.0)
"""Change of the logarithm of odds per (state, value) pair."""
PROVED, REFUTED = 0.97, 0.03
"""Score from which execution proves a link, and to which it lowers a refuted one, whatever the schemas say."""
MOST = 6
"""Pairs that count."""
ENOUGH = 4
"""Values that must have failed, with none that worked, before a link is refuted."""


def compute_recorded_terms(
    key: LinkKey, schema: float, mined: RecordedEvidence, threshold: float
) -> list[float] | None:
    """The terms in the order of `PRIOR`; None where no recorded call fills the parameter."""
    source, target, output, parameter = key
    origins = mined.origins.get((target, parameter))
    if origins is None or not origins.known_origins:
        return None
    flow = mined.flows.get(key, ValueFlow())
    first = bool(flow.tasks)
    without = 0.0 if first else 1.0
    return [
        1.0,
        logit(schema) - logit(threshold),
        float(first),
        math.log(len(flow.tasks)) if first else 0.0,
        float(first and flow.id_like),
        without * (flow.later + flow.echo > 0),
        without * (flow.known > 0),
        without * min(1.0, origins.unseen / 2),
        without * min(1.0, origins.held / 2),
        without * math.log1p(mined.called.get(source, 0)) * ((source, output) not in mined.givers),
    ]


@functools.lru_cache(maxsize=1)
def load_shipped_rule() -> dict[str, Any]:
    """The rule's file: weights, recipe, cross-validated figures."""
    return dict(json.loads((files("trajsmith.toolgraph") / "data" / "evidence.json").read_text("utf-8")))


def score_from_recordings(
    key: LinkKey, schema: float, mined: RecordedEvidence, threshold: float, weights: dict[str, float] | None = None
) -> float:
    """Score of a link after recordings; the threshold stays where it is.

    Args:
        key: The link.
        schema: Its score by schemas, 0 if matching does not see it.
        mined: What the recordings say.
        threshold: Score from which a link makes an edge.
        weights: Those that ship if None.
    """
    terms = compute_recorded_terms(key, max(schema, UNMATCHED), mined, threshold)
    if terms is None:
        return schema
    chosen = load_shipped_rule()["weights"] if weights is None else weights
    return _logistic(logit(threshold) + sum(chosen[name] * value for name, value in zip(PRIOR, terms, strict=True)))


def score_from_execution(score: float, evidence: LinkEvidence) -> float:
    """Score of a link after execution; `score` is what the schemas, or the recordings, say.

    Only a proof raises it; failures without success lower it.
    """
    if is_refuted(evidence):
        return min(score, REFUTED)
    if is_proved(evidence):
        return max(_logistic(logit(max(score, UNMATCHED)) + WORKED * min(evidence.worked, MOST)), PROVED)
    if evidence.failed and not evidence.worked and not evidence.chance:
        return _logistic(logit(max(score, UNMATCHED)) - FAILED * min(evidence.failed, MOST))
    return score


def compute_contrast_share(evidence: LinkEvidence) -> float:
    """Share of the values from elsewhere that failed: 0 where the parameter takes anything, or nothing was tried."""
    tried = evidence.elsewhere_worked + evidence.elsewhere_failed
    return evidence.elsewhere_failed / tried if tried else 0.0


def is_proved(evidence: LinkEvidence) -> bool:
    """Return True if execution alone makes the edge: several values work where unrelated ones fail."""
    return evidence.worked >= 2 and 3 * evidence.worked >= evidence.failed and compute_contrast_share(evidence) >= 0.75


def is_refuted(evidence: LinkEvidence) -> bool:
    """Return True if values of the output never work though the call works with others."""
    return evidence.worked == evidence.chance == 0 and evidence.failed >= ENOUGH


def logit(value: float) -> float:
    value = min(max(value, 1e-4), 1 - 1e-4)
    return math.log(value / (1 - value))


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-min(max(value, -30.0), 30.0)))
