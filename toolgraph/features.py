"""All numbers that the score of a link is made of, by name, for the candidates that could make a link at all."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from toolgraph.fit import fits
from toolgraph.flow import flow
from toolgraph.pairs import Pairs
from toolgraph.table import Table

CHUNK = 200_000
"""Pairs that are measured at a time: bounds the memory."""
HOPELESS = 0.4
"""Fit below which nothing else could make a link of a pair, so that it is dropped."""
ANYWAY = ("carried", "resource", "told")
"""Measures that make a link whatever the fit."""


def link_features(table: Table, output: Any, parameter: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Rows of outputs and parameters that are left, and feature name to float32 [n].

    All candidates of a server must be among the pairs: a link is also judged by what else there is.
    """
    kept, measures = _measure(table, output, parameter)
    o, p = output[kept], parameter[kept]
    found = {**measures, **flow(Pairs(table, o, p), measures["fit"], measures["told"])}
    return o, p, {name: np.asarray(values, np.float32) for name, values in found.items()}


def _measure(table: Table, output: Any, parameter: Any) -> tuple[Any, dict[str, Any]]:
    rows, parts = [], []
    for start, found in _chunks(table, output, parameter):
        found["fit"] = np.maximum(found["identifier"], found["named"])
        left = np.flatnonzero((found["fit"] >= HOPELESS) | np.logical_or.reduce([found[name] > 0 for name in ANYWAY]))
        rows.append(left + start)
        parts.append({name: np.asarray(values, np.float32)[left] for name, values in found.items()})
    return np.concatenate(rows), {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _chunks(table: Table, output: Any, parameter: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for start in range(0, max(1, len(output)), CHUNK):
        end = start + CHUNK
        yield start, fits(Pairs(table, output[start:end], parameter[start:end]))
