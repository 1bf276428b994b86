"""Environments that are the same under another name: by tool signatures, by records, by what they are about.

EnvScaler (3.1) compares descriptions only. Descriptions of two shops are alike whether or not their tools are, so here
three likenesses are measured and all are told.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from trajsmith.envgen.growth.environment_shape import Encoder, EnvironmentShape, ToolShape
from trajsmith.records import EnvironmentSpec, FrozenModel, InputError

SAME_TOOL_LIKENESS = 0.55
"""Likeness from which two tools count as each other's counterpart."""
WEIGHTS = {"tools": 0.45, "state": 0.3, "text": 0.25}
DUPLICATE_THRESHOLD = 0.6
"""Score from which a pair is told as duplicates."""
CONTAINED_SHARE = 0.85
"""Share of the smaller one's tools that the larger one has, from which it counts as contained."""
CLEARLY_DIFFERENT = 0.35
"""Likeness of text below which tools are not compared where there are many environments."""
MAX_COMPARED = 400
"""Environments from which pairs are chosen by text first."""


@dataclass(frozen=True)
class RarityWeights:
    """Weights of tools and fields: rare ones count more."""

    tools: dict[str, float]
    fields: dict[str, float]

    @classmethod
    def of(cls, shapes: Sequence[EnvironmentShape]) -> "RarityWeights":
        return cls(
            _weights([{tool.name for tool in shape.tools} for shape in shapes]),
            _weights([shape.fields for shape in shapes]),
        )

    def tool(self, name: str) -> float:
        return self.tools[name]


def _weights(sets: Sequence[Set[str]]) -> dict[str, float]:
    counts = Counter(name for names in sets for name in names)
    return {name: math.log(1 + len(sets) / count) for name, count in counts.items()}


class DuplicatePair(FrozenModel):
    """Two environments that are near-duplicates."""

    keep: str
    drop: str
    score: float
    tools: float
    """Share of the larger one's tools that have a counterpart, by how alike and how rare they are."""
    state: float | None
    """Likeness of the records that are kept; None if one of them shows no state."""
    text: float
    contained: float
    """The same as `tools`, of the smaller one."""
    counterparts: tuple[tuple[str, str], ...]
    """Tools that are alike, of the one kept and the one dropped."""
    why: str
    """Why that one is kept."""


def find_duplicates(
    specs: Sequence[EnvironmentSpec],
    encode: Encoder,
    threshold: float = DUPLICATE_THRESHOLD,
    scores: Mapping[str, float] | None = None,
) -> list[DuplicatePair]:
    """Return pairs of environments above a score, the most alike first.

    Args:
        specs: Names may repeat; those that do are told by their place.
        encode: For the likeness of texts.
        threshold: 0 to 1.
        scores: The environment checker's scores by name, where known: the better one is kept.

    Raises:
        InputError: The threshold is none.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"--threshold is above 0 and at most 1, not {threshold}")
    shapes = [EnvironmentShape(spec) for spec in rename_repeated(specs)]
    if len(shapes) < 2:
        return []
    vectors = encode([shape.text for shape in shapes])
    texts = vectors @ vectors.T
    rarity = RarityWeights.of(shapes)
    pairs = []
    for one in range(len(shapes)):
        for other in range(one + 1, len(shapes)):
            text = float(texts[one, other])
            if len(shapes) <= MAX_COMPARED or text >= CLEARLY_DIFFERENT:
                pair = _compare_pair(shapes[one], shapes[other], text, rarity, scores or {})
                if pair.score >= threshold or (pair.contained >= CONTAINED_SHARE and pair.score >= threshold - 0.15):
                    pairs.append(pair)
    return sorted(pairs, key=lambda pair: (-pair.score, pair.keep, pair.drop))


def choose_dropped(pairs: Sequence[DuplicatePair]) -> tuple[str, ...]:
    """Return the environments to drop so that one of every pair stays; the most alike pairs decide first."""
    gone: dict[str, None] = {}
    for pair in pairs:
        if pair.keep not in gone:
            gone.setdefault(pair.drop)
    return tuple(gone)


def rename_repeated(specs: Sequence[EnvironmentSpec]) -> list[EnvironmentSpec]:
    """Return the specs with a number behind names that occurred before."""
    seen, renamed = Counter[str](), []
    for spec in specs:
        seen[spec.name] += 1
        number = seen[spec.name]
        renamed.append(spec if number == 1 else spec.model_copy(update={"name": f"{spec.name} ({number})"}))
    return renamed


def _compare_pair(
    one: EnvironmentShape, other: EnvironmentShape, text: float, rarity: RarityWeights, scores: Mapping[str, float]
) -> DuplicatePair:
    keep, drop, why = _choose_better(one, other, scores)
    matched = match_tools(keep.tools, drop.tools)
    sizes = [sum(rarity.tool(tool.name) for tool in shape.tools) for shape in (keep, drop)]
    shared = sum(likeness * min(rarity.tool(first), rarity.tool(second)) for first, second, likeness in matched)
    tools = shared / max(sizes) if max(sizes) else 0.0
    state = _overlap(keep.fields, drop.fields, rarity.fields) if keep.fields and drop.fields else None
    parts = {"tools": tools, "state": state, "text": max(0.0, text)}
    known = {name: value for name, value in parts.items() if value is not None}
    score = sum(WEIGHTS[name] * value for name, value in known.items()) / sum(WEIGHTS[name] for name in known)
    return DuplicatePair(
        keep=keep.name, drop=drop.name, score=round(score, 3), tools=round(tools, 3),
        state=None if state is None else round(state, 3), text=round(text, 3),
        contained=round(shared / min(sizes) if min(sizes) else 0.0, 3),
        counterparts=tuple((first, second) for first, second, _ in matched), why=why,
    )  # fmt: skip


def match_tools(one: Sequence[ToolShape], other: Sequence[ToolShape]) -> list[tuple[str, str, float]]:
    """Match the tools of two environments one to one, so that total likeness is largest."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    if not one or not other:
        return []
    alike = np.array([[score_tool_likeness(first, second) for second in other] for first in one])
    rows, columns = linear_sum_assignment(-alike)
    return [
        (one[row].name, other[column].name, float(alike[row, column]))
        for row, column in zip(rows, columns, strict=True)
        if alike[row, column] >= SAME_TOOL_LIKENESS
    ]


def score_tool_likeness(one: ToolShape, other: ToolShape) -> float:
    """Return 0 to 1: by action, object and parameters."""
    noun = _jaccard(one.noun, other.noun)
    if noun == 0 and one.noun | other.noun:
        return 0.0
    verb = _jaccard(one.verb, other.verb)
    names = _jaccard({name for name, _ in one.takes}, {name for name, _ in other.takes})
    return 0.45 * noun + 0.2 * verb + 0.2 * names + 0.15 * _jaccard(one.takes, other.takes)


def _jaccard(one: Any, other: Any) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


def _overlap(one: frozenset[str], other: frozenset[str], weights: Mapping[str, float]) -> float:
    return sum(weights[field] for field in one & other) / sum(weights[field] for field in one | other)


def _choose_better(
    one: EnvironmentShape, other: EnvironmentShape, scores: Mapping[str, float]
) -> tuple[EnvironmentShape, EnvironmentShape, str]:
    """Return which of two to keep, and the reason."""
    criteria = (
        ("the environment checker gives it {} against {}", lambda shape: round(scores.get(shape.name, -1.0), 2)),
        ("it has {} tools against {}", lambda shape: len(shape.tools)),
        ("it keeps {} kinds of facts against {}", lambda shape: len(shape.fields)),
        ("its policy has {} letters against {}", lambda shape: len(shape.spec.policy)),
    )
    for text, measure in criteria:
        mine, theirs = measure(one), measure(other)
        if text.startswith("the environment checker") and -1.0 in (mine, theirs):
            continue
        if mine != theirs:
            first, second = (one, other) if mine > theirs else (other, one)
            return first, second, text.format(max(mine, theirs), min(mine, theirs))
    first, second = sorted((one, other), key=lambda shape: shape.name)
    return first, second, "they are equal; by name"
