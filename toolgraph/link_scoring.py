"""Scored links of a table: candidates, measures, score."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from trajsmith.toolgraph.candidates import find_cross_server_pairs, find_home_pairs
from trajsmith.toolgraph.endpoint_table import EndpointTable
from trajsmith.toolgraph.link_features import compute_link_features
from trajsmith.toolgraph.link_model import LinkModel

KEPT = (
    "identifier", "named", "carried", "resource", "pipe", "told", "circular", "echo", "same_server", "source_read",
    "source_changes", "source_creates", "oneself", "new",
)  # fmt: skip
"""Features that the kinds of parameters are judged by."""


@dataclass(frozen=True)
class ScoredLinks:
    """Columns of equal length, one row per link that could be."""

    table: EndpointTable
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


def score_links(table: EndpointTable, model: LinkModel, cross_server: bool = True) -> ScoredLinks:
    """All candidates of a table with their scores; the tools of a server must stand together."""
    o, p = find_home_pairs(table)
    if cross_server:
        far = find_cross_server_pairs(table)
        o, p = np.concatenate([o, far[0]]), np.concatenate([p, far[1]])
    o, p, features = compute_link_features(table, o, p)
    return ScoredLinks(table, o, p, model.score(features), {name: features[name] for name in KEPT})
