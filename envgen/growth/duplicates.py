"""Environments that are the same under another name: by tool signatures, by records, by what they are about.

EnvScaler (3.1) compares descriptions only. Descriptions of two shops are alike whether or not their tools are, so here
three likenesses are measured and all are told.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from envgen.growth.shape import Encoder, Shape, ToolShape
from trajectory import EnvironmentSpec, Frozen, InputError

SAME_TOOL = 0.55
"""Likeness from which two tools count as each other's counterpart."""
WEIGHTS = {"tools": 0.45, "state": 0.3, "text": 0.25}
THRESHOLD = 0.6
"""Score from which a pair is told as duplicates."""
CONTAINED = 0.85
"""Share of the smaller one's tools that the larger one has, from which it counts as contained."""
NEAR = 0.35
"""Likeness of text below which tools are not compared where there are many environments."""
MANY = 400
"""Environments from which pairs are chosen by text first."""


@dataclass(frozen=True)
class Rarity:
    """Weights of tools and fields: those that few environments have tell more."""

    tools: dict[str, float]
    fields: dict[str, float]

    @classmethod
    def of(cls, shapes: Sequence[Shape]) -> "Rarity":
        return cls(
            _weights([{tool.name for tool in shape.tools} for shape in shapes]),
            _weights([shape.fields for shape in shapes]),
        )

    def tool(self, name: str) -> float:
        return self.tools[name]


def _weights(sets: Sequence[Set[str]]) -> dict[str, float]:
    counts = Counter(name for names in sets for name in names)
    return {name: math.log(1 + len(sets) / count) for name, count in counts.items()}


class Pair(Frozen):
    """Two environments that are much alike."""

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
    threshold: float = THRESHOLD,
    scores: Mapping[str, float] | None = None,
) -> list[Pair]:
    """Pairs of environments from a score on, the most alike first.

    Args:
        specs: Names may repeat; those that do are told by their place.
        encode: For the likeness of texts.
        threshold: 0 to 1.
        scores: The doctor's scores by name, where known: the better one is kept.

    Raises:
        InputError: The threshold is none.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"--threshold is above 0 and at most 1, not {threshold}")
    shapes = [Shape(spec) for spec in named_apart(specs)]
    if len(shapes) < 2:
        return []
    vectors = encode([shape.text for shape in shapes])
    texts = vectors @ vectors.T
    rarity = Rarity.of(shapes)
    found = []
    for one in range(len(shapes)):
        for other in range(one + 1, len(shapes)):
            text = float(texts[one, other])
            if len(shapes) <= MANY or text >= NEAR:
                pair = _pair(shapes[one], shapes[other], text, rarity, scores or {})
                if pair.score >= threshold or (pair.contained >= CONTAINED and pair.score >= threshold - 0.15):
                    found.append(pair)
    return sorted(found, key=lambda pair: (-pair.score, pair.keep, pair.drop))


def dropped(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """The environments that can go so that of every pair one stays; the most alike pairs decide first."""
    gone: dict[str, None] = {}
    for pair in pairs:
        if pair.keep not in gone:
            gone.setdefault(pair.drop)
    return tuple(gone)


def named_apart(specs: Sequence[EnvironmentSpec]) -> list[EnvironmentSpec]:
    """The same with a number behind names that were there before."""
    seen, found = Counter[str](), []
    for spec in specs:
        seen[spec.name] += 1
        number = seen[spec.name]
        found.append(spec if number == 1 else spec.model_copy(update={"name": f"{spec.name} ({number})"}))
    return found


def _pair(one: Shape, other: Shape, text: float, rarity: Rarity, scores: Mapping[str, float]) -> Pair:
    keep, drop, why = _better(one, other, scores)
    matched = counterparts(keep.tools, drop.tools)
    sizes = [sum(rarity.tool(tool.name) for tool in shape.tools) for shape in (keep, drop)]
    shared = sum(likeness * min(rarity.tool(first), rarity.tool(second)) for first, second, likeness in matched)
    tools = shared / max(sizes) if max(sizes) else 0.0
    state = _overlap(keep.fields, drop.fields, rarity.fields) if keep.fields and drop.fields else None
    parts = {"tools": tools, "state": state, "text": max(0.0, text)}
    known = {name: value for name, value in parts.items() if value is not None}
    score = sum(WEIGHTS[name] * value for name, value in known.items()) / sum(WEIGHTS[name] for name in known)
    return Pair(
        keep=keep.name, drop=drop.name, score=round(score, 3), tools=round(tools, 3),
        state=None if state is None else round(state, 3), text=round(text, 3),
        contained=round(shared / min(sizes) if min(sizes) else 0.0, 3),
        counterparts=tuple((first, second) for first, second, _ in matched), why=why,
    )  # fmt: skip


def counterparts(one: Sequence[ToolShape], other: Sequence[ToolShape]) -> list[tuple[str, str, float]]:
    """Tools of two environments in pairs, each at most once, so that they are alike as much as possible together."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    if not one or not other:
        return []
    alike = np.array([[tool_likeness(first, second) for second in other] for first in one])
    rows, columns = linear_sum_assignment(-alike)
    return [
        (one[row].name, other[column].name, float(alike[row, column]))
        for row, column in zip(rows, columns, strict=True)
        if alike[row, column] >= SAME_TOOL
    ]


def tool_likeness(one: ToolShape, other: ToolShape) -> float:
    """0 to 1: by what is done, to what, and with which parameters."""
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


def _better(one: Shape, other: Shape, scores: Mapping[str, float]) -> tuple[Shape, Shape, str]:
    """Which of two to keep, and why."""
    criteria = (
        ("the doctor gives it {} against {}", lambda shape: round(scores.get(shape.name, -1.0), 2)),
        ("it has {} tools against {}", lambda shape: len(shape.tools)),
        ("it keeps {} kinds of facts against {}", lambda shape: len(shape.fields)),
        ("its policy has {} letters against {}", lambda shape: len(shape.spec.policy)),
    )
    for text, measure in criteria:
        mine, theirs = measure(one), measure(other)
        if text.startswith("the doctor") and -1.0 in (mine, theirs):
            continue
        if mine != theirs:
            first, second = (one, other) if mine > theirs else (other, one)
            return first, second, text.format(max(mine, theirs), min(mine, theirs))
    first, second = sorted((one, other), key=lambda shape: shape.name)
    return first, second, "they are equal; by name"
