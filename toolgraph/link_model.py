"""The score of a link: a logistic model over named terms, read from a file that says how it was made.

The weights in `data/model.json` start from what the terms mean (a reader can judge each sign) and are moved by data as
far as the data of several benchmarks agree: `benchmarks/train_toolgraph.py`, docs/toolgraph.md. A score is the
probability that values flow that way, as far as schemas can tell.
"""

import functools
import json
import math
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from trajsmith.records import InputError
from trajsmith.toolgraph.promised_outputs import PROMISES, get_promise_name

DAMAGED = "toolgraph/data/model.json is damaged, install trajsmith again"
PRIOR: dict[str, float] = {
    "bias": -6.0,
    "identifier": 7.0,
    "named": 6.0,
    "carried": 5.2,
    "resource": 5.5,
    "pipe": 4.0,
    "told": 6.0,
    "circular": -4.0,
    "echo": -1.0,
    "gap": -3.0,
    "read_gap": -4.0,
    "home_gap": -3.0,
    "abroad_named": -2.0,
    "abroad_identifier": -0.7,
    "source_searches": 0.5,
    "source_creates_id": -0.5,
    "source_creates": -2.0,
    "source_changes": -2.5,
    "target_authenticates": -2.0,
    "target_reads": -0.5,
    "named_for": 1.0,
    "oneself": -1.0,
    "new": -1.5,
    "optional": -1.5,
    "choice": -2.5,
    "default": -0.7,
    "control": -5.0,
    "kinds_clash": -1.5,
    "types_differ": -1.0,
    "receipt": -1.0,
    "cover": 1.0,
    "back_cover": -0.5,
    "backwards": -2.0,
    "promise": -5.0,
    "promise_head": 3.0,
    "promise_noun": 1.0,
    "promise_name": 3.0,
    "promise_returned": 2.0,
    "promise_described": 1.0,
    "promise_subject": 0.7,
    "promise_only": 1.0,
    "promise_select": 1.5,
    "promise_select_name": 2.5,
    "promise_names": 1.0,
    "promise_belongs": 1.5,
    "promise_kind": 1.0,
    "promise_media": 4.0,
    "promise_media_text": 4.0,
    "promise_media_number": 0.5,
    "promise_media_clash": -2.0,
    "promise_worker": 1.5,
    "promise_creates": 3.0,
    "promise_same_name": 1.0,
    "promise_meaning": 1.0,
    "promise_token": 3.0,
    "promise_open": 0.5,
    "promise_other": -2.0,
    "promise_id": 1.5,
    "promise_told": 6.0,
    "promise_circular": -4.0,
    "promise_gap": -2.0,
    "promise_read_gap": -2.0,
    "promise_abroad": -9.0,
    "promise_searches": 0.5,
    "promise_changes": -2.5,
    "promise_authenticates": -2.0,
    "promise_reads": -0.5,
    "promise_oneself": -1.0,
    "promise_new": -1.5,
    "promise_optional": -1.5,
    "promise_choice": -2.5,
    "promise_default": -0.7,
    "promise_control": -5.0,
    "promise_backwards": -2.0,
}
"""Term to the weight that its meaning suggests; training keeps the sign and is drawn to this value."""


FREE = ("bias", "promise")
"""Constant terms: their weights may have any sign."""


def compute_link_terms(features: dict[str, Any]) -> Any:
    """float64 [n, terms] in the order of `PRIOR`, from `toolgraph.link_scoring.compute_link_features`."""
    x = features
    piped = x["pipe"] > 0
    anything = np.clip(x["carried"] + x["resource"] + x["told"] + piped, 0, 1)
    known = 1 - anything
    identifier = x["identifier"] >= x["named"]
    abroad = 1 - x["same_server"]
    named = np.where(piped, np.maximum(x["named"], 0.95), x["named"]) * np.where(x["carried"] > 0, 0.25, 1.0)
    columns = {
        "bias": np.ones_like(x["fit"]),
        "identifier": np.where(identifier, x["identifier"], 0),
        "named": np.where(identifier, 0, named),
        "carried": x["carried"],
        "resource": x["resource"],
        "pipe": x["pipe"],
        "told": x["told"],
        "circular": x["circular"] * known,
        "echo": x["echo"] * known,
        "gap": x["gap"] * known,
        "read_gap": x["read_gap"] * known,
        "home_gap": x["home_gap"],
        "abroad_named": abroad * ~identifier,
        "abroad_identifier": abroad * identifier,
        "source_searches": x["source_searches"] * known,
        "source_creates_id": x["source_creates_id"],
        "source_creates": x["source_creates"] * known,
        "source_changes": x["source_changes"] * known,
        "target_authenticates": x["target_authenticates"],
        "target_reads": x["target_reads"] * known * ~identifier,
        "named_for": x["named_for"],
        "oneself": x["oneself"] * identifier,
        "new": x["new"],
        "optional": 1 - x["required"],
        "choice": x["choice"],
        "default": x["default"],
        "control": x["control"],
        "kinds_clash": x["kinds_clash"] * known * ~identifier,
        "types_differ": x["types_differ"] * (1 - x["number_to_text"] * (x["carried"] > 0)),
        "receipt": x["receipt"] * known,
        "cover": x["cover"],
        "back_cover": x["back_cover"],
        "backwards": x["backwards"] * known,
    }
    promised = x["virtual"] > 0
    columns = {name: np.where(promised, 0, values) for name, values in columns.items()} | _promise_terms(x)
    return np.stack([columns[name] for name in PRIOR], 1).astype(np.float64)


def _promise_terms(x: dict[str, Any]) -> dict[str, Any]:
    """Terms of links from tools that declare no outputs."""
    columns = {get_promise_name(name): x[get_promise_name(name)] for name in PROMISES} | {
        "promise": np.ones_like(x["fit"]),
        "promise_id": x["identifier"] > x["named"],
        "promise_told": x["told"],
        "promise_circular": x["circular"],
        "promise_gap": x["gap"],
        "promise_read_gap": x["read_gap"],
        "promise_abroad": (1 - x["same_server"]) * (1 - x["promise_token"]),
        "promise_searches": x["source_searches"],
        "promise_changes": np.maximum(x["source_changes"], x["source_creates"]),
        "promise_authenticates": x["target_authenticates"],
        "promise_reads": x["target_reads"],
        "promise_oneself": x["oneself"],
        "promise_new": x["new"],
        "promise_optional": 1 - x["required"],
        "promise_choice": x["choice"],
        "promise_default": x["default"],
        "promise_control": x["control"],
        "promise_backwards": x["backwards"],
    }
    return {name: np.where(x["virtual"] > 0, values, 0) for name, values in columns.items()}


@dataclass(frozen=True)
class LinkModel:
    """Weights by term, and the score from which a link makes an edge."""

    weights: dict[str, float]
    threshold: float

    def score(self, features: dict[str, Any]) -> Any:
        """float32 [n]: probabilities."""
        weights = np.array([self.weights[name] for name in PRIOR])
        return logistic(compute_link_terms(features) @ weights).astype(np.float32)


def logistic(values: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(values, -30, 30)))


@functools.lru_cache(maxsize=1)
def load_shipped_model() -> dict[str, Any]:
    """The model file: weights, thresholds, recipe, cross-validated figures.

    Raises:
        InputError: The installed file is damaged.
    """
    return read_model((files("trajsmith.toolgraph") / "data" / "model.json").read_bytes())


def read_model(data: bytes) -> dict[str, Any]:
    """A model file, checked: every term has a weight with the sign that its meaning asks for.

    Raises:
        InputError: It is no such file.
    """
    try:
        stored = dict(json.loads(data))
        weights, threshold = dict(stored["links"]["weights"]), float(stored["links"]["threshold"])
        wrong = [name for name in PRIOR if not _sound(name, float(weights[name]))]
        kinds = dict(stored["kinds"]["weights"]), float(stored["kinds"]["threshold"])
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{DAMAGED}: {type(error).__name__} {error}") from error
    if wrong:
        raise InputError(f"{DAMAGED}: the sign of {wrong[0]!r}")
    if not (0 < threshold < 1 and 0 < kinds[1] < 1):
        raise InputError(f"{DAMAGED}: a threshold is no probability")
    return stored


def _sound(name: str, weight: float) -> bool:
    """Return True if a weight has the sign that its term implies; the bias may be anything."""
    return math.isfinite(weight) and (name in FREE or weight * PRIOR[name] >= 0)


def load_link_model() -> LinkModel:
    """The model that ships."""
    stored = load_shipped_model()["links"]
    return LinkModel(stored["weights"], stored["threshold"])
