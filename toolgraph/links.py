"""Scored links of a table: candidates, measures, score."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from toolgraph.candidates import abroad_pairs, home_pairs
from toolgraph.features import link_features
from toolgraph.score import LinkModel
from toolgraph.table import Table

KEPT = (
    "identifier", "named", "carried", "resource", "pipe", "told", "circular", "echo", "same_server", "source_read",
    "source_changes", "source_creates", "oneself", "new",
)  # fmt: skip
"""Features that the kinds of parameters are judged by."""


@dataclass(frozen=True)
class Links:
    """Columns of equal length, one row per link that could be."""

    table: Table
    output: Any
    parameter: Any
    score: Any
    """float32: probability, by schemas, that values flow this way."""
    features: dict[str, Any]
    """float32 by name, those in `KEPT`."""

    @property
    def source(self) -> Any:
        """Row of the tool that gives."""
        return self.table.outputs.tool[self.output]

    @property
    def target(self) -> Any:
        return self.table.parameters.tool[self.parameter]


def score_links(table: Table, model: LinkModel, cross_server: bool = True) -> Links:
    """All candidates of a table with their scores; the tools of a server must stand together."""
    o, p = home_pairs(table)
    if cross_server:
        far = abroad_pairs(table)
        o, p = np.concatenate([o, far[0]]), np.concatenate([p, far[1]])
    o, p, features = link_features(table, o, p)
    return Links(table, o, p, model.score(features), {name: features[name] for name in KEPT})
