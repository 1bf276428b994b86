"""Pairs (output, parameter) as rows: what their two sides share."""

from typing import Any

import numpy as np

from trajsmith.toolgraph.endpoint_table import TYPES, EndpointSide, EndpointTable, compute_once
from trajsmith.toolgraph.lexicon import KIND_NAMES

NUMERIC = TYPES["integer"] | TYPES["number"]
KIND = {name: 1 << bit for bit, name in enumerate(KIND_NAMES)}
SPECIFIC = sum(KIND[name] for name in KIND_NAMES if name not in ("data", "status", "name", "category", "count", "text"))
"""Kinds of value that tell fields apart."""


class CandidatePairs:
    """n pairs of rows of a table; every measure is an array of n."""

    def __init__(self, table: EndpointTable, output: Any, parameter: Any) -> None:
        self.table = table
        self.outs: EndpointSide = table.outputs
        self.ins: EndpointSide = table.parameters
        self.o, self.p = output, parameter
        self.source = table.outputs.tool[output]
        self.target = table.parameters.tool[parameter]
        self.same_server = table.server[self.source] == table.server[self.target]

    def __len__(self) -> int:
        return len(self.o)

    def out(self, flag: str) -> Any:
        """A flag of the output."""
        return self.outs.flags[flag][self.o]

    def into(self, flag: str) -> Any:
        """A flag of the parameter."""
        return self.ins.flags[flag][self.p]

    def kind(self, side: str, *names: str) -> Any:
        """True where the output ("out") or parameter ("in") is of one of these kinds."""
        mask = sum(KIND[name] for name in names)
        values = self.outs.kinds[self.o] if side == "out" else self.ins.kinds[self.p]
        return (values & mask) > 0

    def source_verb(self, *rows: int) -> Any:
        return np.isin(self.table.verb[self.source], rows)

    def target_verb(self, *rows: int) -> Any:
        return np.isin(self.table.verb[self.target], rows)

    def cover(self, having: Any, wanted: Any) -> Any:
        """Share of the wanted words' weight that the other side has; 0 where nothing is wanted. Both [n, words]."""
        weights = np.where(wanted >= 0, self.table.weights[wanted], np.float32(0))
        covered = np.zeros(wanted.shape, bool)
        for column in range(having.shape[1]):
            covered |= having[:, column, None] == wanted
        total = weights.sum(1)
        return np.where(total > 0, (weights * covered).sum(1) / np.maximum(total, 1e-6), 0.0).astype(np.float32)

    def cosine(self, left: Any, right: Any) -> Any:
        """Likeness of two rows of vectors, at least 0."""
        return np.maximum(np.einsum("ij,ij->i", left, right), 0)


def select_last_word(words: Any) -> Any:
    """Last word of each row of a padded array."""
    last = np.maximum((words >= 0).sum(1) - 1, 0)
    return words[np.arange(len(words)), last]


@compute_once
def contains_any_word(table: EndpointTable, words: tuple[str, ...]) -> Any:
    """bool [tools]: the name has one of these words (stems)."""
    wanted = frozenset(words)
    return np.array([bool(wanted.intersection(text.spoken)) for text in table.texts], bool)
