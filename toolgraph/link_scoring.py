"""Scored links of a table: candidates, measures, score."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trajsmith.toolgraph.candidate_pairs import CandidatePairs
from trajsmith.toolgraph.candidates import find_cross_server_pairs, find_home_pairs
from trajsmith.toolgraph.endpoint_table import EndpointTable
from trajsmith.toolgraph.fit_features import compute_fit_features
from trajsmith.toolgraph.flow_features import compute_flow_features
from trajsmith.toolgraph.link_model import LinkModel

CHUNK = 50_000
"""Pairs that are measured at a time: bounds the memory."""
HOPELESS = 0.4
"""Fit below which nothing else could make a link of a pair, so that it is dropped."""
ANYWAY = (
    "carried",
    "resource",
    "told",
    "promise_media",
    "promise_media_text",
    "promise_worker",
    "promise_select",
    "promise_open",
)
"""Measures that make a link whatever the fit."""


def compute_link_features(table: EndpointTable, output: Any, parameter: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Rows of outputs and parameters that are left, and feature name to float32 [n].

    All candidates of a server must be among the pairs: a link is also judged by what else there is.
    """
    selected, measures = _measure(table, output, parameter)
    o, p = output[selected], parameter[selected]
    features = {**measures, **compute_flow_features(CandidatePairs(table, o, p), measures["fit"], measures["told"])}
    return o, p, {name: np.asarray(values, np.float32) for name, values in features.items()}


def _measure(table: EndpointTable, output: Any, parameter: Any) -> tuple[Any, dict[str, Any]]:
    rows, parts = [], []
    for start, chunk in _chunks(table, output, parameter):
        chunk["fit"] = np.maximum(chunk["identifier"], chunk["named"])
        left = np.flatnonzero((chunk["fit"] >= HOPELESS) | np.logical_or.reduce([chunk[name] > 0 for name in ANYWAY]))
        rows.append(left + start)
        parts.append({name: np.asarray(values, np.float32)[left] for name, values in chunk.items()})
    return np.concatenate(rows), {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}


def _chunks(table: EndpointTable, output: Any, parameter: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for start in range(0, max(1, len(output)), CHUNK):
        end = start + CHUNK
        yield start, compute_fit_features(CandidatePairs(table, output[start:end], parameter[start:end]))


KEPT = (
    "identifier", "named", "carried", "resource", "pipe", "told", "circular", "echo", "same_server", "source_read",
    "source_changes", "source_creates", "oneself", "new", "virtual", "promise_select_name",
    "promise_names", "promise_worker",
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
