"""What kind of parameter it is: only tools give its value, a person knows it, or neither (EnvFactory 3.3.2).

A logistic model like that of the links, over what the links say: is there an identifier for it, a row of which it is
one value, a result to work on; does its description name a tool; is it about the person who talks, is it new, may it be
left out. Only tools of the same server count, but for tokens that no tool of it gives: those are made to be passed on.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from trajsmith.grounding.argument_paths import get_argument_name
from trajsmith.phrasing.words import stem
from trajsmith.records import JsonObject
from trajsmith.toolgraph.candidate_pairs import KIND
from trajsmith.toolgraph.endpoints import Endpoint
from trajsmith.toolgraph.flow_features import AUTH_WORDS, CREATE, READ, contains_any_word
from trajsmith.toolgraph.graph import ParameterKind, ParameterNode
from trajsmith.toolgraph.lexicon import MANNER, TRUTHS, WRITTEN, YES_AND_NO
from trajsmith.toolgraph.link_model import load_shipped_model, logistic
from trajsmith.toolgraph.link_scoring import ScoredLinks

KIND_PRIOR: dict[str, float] = {
    "bias": -3.0,
    "link": 3.0,
    "identifier": 4.0,
    "token": 2.0,
    "told": 4.0,
    "carried": 4.0,
    "resource": 2.0,
    "row": 3.0,
    "known_name": 1.0,
    "named": 0.5,
    "oneself": -2.0,
    "new": -2.0,
    "control": -2.0,
    "choice": -1.5,
    "default": -1.5,
    "optional": -1.5,
    "target_authenticates": -2.0,
    "target_reads": -0.5,
    "example": -0.3,
}
"""Term to the weight that its meaning suggests; training keeps the sign and is drawn to this value."""
_MANNER = frozenset(map(stem, MANNER))
_WRITTEN = frozenset(map(stem, WRITTEN))
KINDS_BY_WEIGHT: tuple[ParameterKind, ...] = ("internal", "external", "other")
SURE = 0.9
"""Fit of one name."""
MANY = 20
"""Results of a server that a tool could work on, from which it is there to work on results."""


@dataclass(frozen=True)
class KindModel:
    """Weights by term, and the probability from which a parameter is internal."""

    weights: dict[str, float]
    threshold: float

    def probability(self, terms: Any) -> Any:
        """float64 [parameters]."""
        return logistic(terms @ np.array([self.weights[name] for name in KIND_PRIOR]))


def load_kind_model() -> KindModel:
    """The model that ships."""
    stored = load_shipped_model()["kinds"]
    return KindModel(stored["weights"], stored["threshold"])


def compute_kind_terms(links: ScoredLinks) -> Any:
    """float64 [parameters, terms] in the order of `KIND_PRIOR`."""
    table, side = links.table, links.table.parameters
    x, p, size = links.features, links.parameter, len(side.tool)
    home, fresh = x["same_server"] > 0, x["circular"] == 0
    token = (side.kinds & KIND["token"]) > 0
    near = home | (token & (_most(p, x["identifier"] * home, size) == 0))[p]
    quiet = home & (x["source_changes"] == 0) & (x["source_creates"] == 0)
    plain = np.where(x["identifier"] > 0, 0, x["named"]) * quiet * (x["new"] == 0)
    identifier = _most(p, x["identifier"] * fresh * near, size)
    own_identifier = _most(p, x["identifier"] * fresh * home * (x["oneself"] == 0), size)
    named = _most(p, plain * fresh, size)
    makes = table.verb[side.tool] == CREATE
    flags = {name: side.flags[name].astype(float) for name in ("identifies", "required", "choice", "default")}
    row = (_most(p, plain, size) >= SURE) & _company(links) & makes
    columns = {
        "bias": np.ones(size),
        "link": _most(p, links.score * near, size),
        "identifier": identifier * flags["identifies"],
        "token": token & (identifier > 0.5),
        "told": _most(p, x["told"], size),
        "carried": np.minimum(1, np.log1p(np.bincount(p, weights=x["carried"], minlength=size)) / np.log1p(MANY)),
        "resource": _most(p, np.maximum(x["resource"], x["pipe"] > 0), size),
        "row": row * (1 - 0.5 * flags["choice"]),
        "known_name": named >= 0.8,
        "named": named,
        "oneself": side.flags["oneself"] * flags["identifies"] * (own_identifier < 0.6),
        "new": side.flags["new"],
        "control": side.flags["control"],
        "choice": flags["choice"],
        "default": flags["default"],
        "optional": (1 - flags["required"]) * (1 - flags["identifies"]),
        "target_authenticates": contains_any_word(table, AUTH_WORDS)[side.tool],
        "target_reads": table.verb[side.tool] == READ,
        "example": side.flags["example"],
    }
    return np.stack([np.asarray(columns[name], float) for name in KIND_PRIOR], 1)


def _most(group: Any, value: Any, size: int) -> Any:
    best = np.zeros(size, np.float32)
    np.maximum.at(best, group, value)
    return best


def _company(links: ScoredLinks) -> Any:
    """bool [parameters]: a look-up gives it, by its name, together with something new that the tool asks for."""
    x, size = links.features, np.int64(len(links.table.tools))
    side = links.table.parameters
    good = (np.maximum(x["named"], x["identifier"]) >= 0.8) & (x["source_read"] > 0) & (x["same_server"] > 0)
    pair = links.source.astype(np.int64) * size + links.target
    useful = np.unique(pair[good & (x["circular"] == 0)])
    accompanied = np.zeros(len(side.tool), bool)
    accompanied[links.parameter[good & np.isin(pair, useful)]] = True
    return accompanied


def classify_kinds(links: ScoredLinks, model: KindModel, usable: Any) -> Sequence[tuple[ParameterKind, str]]:
    """Kind of every parameter, and why, in half a sentence.

    Args:
        links: All candidates.
        model: The model that ships, or a trained one.
        usable: bool [links]: links that stand in the graph; a parameter that none of them gives is not internal.
    """
    probability = model.probability(compute_kind_terms(links))
    best: dict[int, int] = {}
    rows = np.flatnonzero(usable)
    for row in rows[np.argsort(links.score[rows], kind="stable")]:
        best[int(links.parameter[row])] = int(row)
    return [
        _kind(links, index, float(chance) >= model.threshold, best.get(index))
        for index, chance in enumerate(probability)
    ]


def _kind(links: ScoredLinks, index: int, internal: bool, link: int | None) -> tuple[ParameterKind, str]:
    side = links.table.parameters
    flags = {name: bool(values[index]) for name, values in side.flags.items()}
    noun = "an identifier" if flags["identifies"] else "a value"
    if internal and link is not None:
        giver = links.table.tools[int(links.source[link])]
        home = giver.server == links.table.tools[int(side.tool[index])].server
        return "internal", f"schema: {noun} that {giver.name if home else giver.full_name} gives"
    beside = _beside(side.endpoints[index], flags)
    if beside:
        return "other", f"schema: {beside}"
    if flags["identifies"] and link is None:
        return "external", "schema: an identifier that no tool gives"
    if flags["choice"]:
        return "external", "schema: a choice that a person makes"
    return "external", f"schema: {noun} that a person can know"


def _beside(end: Endpoint, flags: dict[str, bool]) -> str:
    """Why neither a tool nor a person gives a parameter; "" if one of them does."""
    choices = {str(choice).lower() for choice in _choices(end.field.schema)}
    head = end.own[-1] if end.own else ""
    truths = TRUTHS if flags["required"] else TRUTHS | YES_AND_NO
    if end.field.types == frozenset({"boolean"}) or (choices and choices <= truths):
        return "a switch"
    if choices and all(choice.isdigit() for choice in choices):
        return ""  # how many guests, how many rooms: people say that
    if flags["control"]:
        return "says how to answer, not about what"
    if not flags["required"] and flags["default"] and (flags["choice"] or head in _MANNER):
        return "a choice with a default"
    if head in _WRITTEN and not flags["choice"]:
        return "a text that is written for the call"
    return ""


def _choices(schema: JsonObject) -> list[Any]:
    options = schema.get("enum")
    return options if isinstance(options, list) else []


def list_parameter_lines(nodes: Iterable[ParameterNode]) -> Iterator[JsonObject]:
    """Every parameter as `graph params` prints it; after the leaves of a nested one, the whole argument.

    An argument is internal if one of its leaves is: it cannot be given without what a tool gave.
    """
    for (tool, top), leaves in groupby(nodes, key=lambda node: (node.tool, get_argument_name(node.parameter))):
        paths = list(leaves)
        for node in paths:
            yield {"tool": tool, "parameter": node.parameter, "kind": node.kind, "evidence": list(node.evidence)}
        if [node.parameter for node in paths] != [top]:
            kind = next(kind for kind in KINDS_BY_WEIGHT if any(node.kind == kind for node in paths))
            because = next(node for node in paths if node.kind == kind)
            yield {
                "tool": tool,
                "parameter": top,
                "kind": kind,
                "evidence": [f"{because.parameter}: {text}" for text in because.evidence],
            }
