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
from trajsmith.grounding.names import CODE_WORDS
from trajsmith.phrasing.words import stem
from trajsmith.records import JsonObject
from trajsmith.toolgraph.candidate_pairs import KIND, contains_any_word
from trajsmith.toolgraph.endpoint_table import EndpointTable
from trajsmith.toolgraph.endpoints import Endpoint
from trajsmith.toolgraph.flow_features import AUTH_WORDS, CREATE, READ
from trajsmith.toolgraph.graph import ParameterKind, ParameterNode
from trajsmith.toolgraph.known_values import (
    LOGIN,
    SEEKING,
    finds_persons,
    is_asked_by_lookup,
    is_held,
    is_listed,
    is_secret_key,
)
from trajsmith.toolgraph.lexicon import MANNER, TRUTHS, WRITTEN, YES_AND_NO
from trajsmith.toolgraph.link_model import load_shipped_model, logistic
from trajsmith.toolgraph.link_scoring import ScoredLinks
from trajsmith.toolgraph.promised_outputs import PERSONAL, SEND, TIMES, find_first_verbs, find_selecting

KIND_PRIOR: dict[str, float] = {
    "bias": -3.0,
    "id": 3.0,
    "code": -1.0,
    "link": 3.0,
    "named_link": 1.5,
    "promised": 3.0,
    "identifier": 2.5,
    "promised_id": 1.5,
    "promised_name": 3.6,
    "promised_choice": 3.0,
    "token": 2.0,
    "told": 4.0,
    "carried": 4.0,
    "sent": -1.5,
    "resource": 2.0,
    "row": 3.0,
    "asked": -2.0,
    "listed": 3.5,
    "held": -4.0,
    "known_name": 0.5,
    "named": 0.5,
    "oneself": -2.0,
    "personal": -2.0,
    "chosen": -1.0,
    "new": -4.0,
    "control": -4.0,
    "choice": -6.0,
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
    token = _is_token(table)
    virtual = x["virtual"] > 0
    near = home | (token & (_most(p, x["identifier"] * home, size) < 0.6))[p]
    quiet = home & (x["source_changes"] == 0) & (x["source_creates"] == 0)
    plain = np.where((x["identifier"] > 0) | virtual, 0, x["named"]) * quiet * (x["new"] == 0)
    identifier = _most(p, x["identifier"] * fresh * near * ~virtual, size)
    promised_id = _most(p, x["identifier"] * fresh * near * virtual, size)
    own_identifier = _most(p, x["identifier"] * fresh * home * (x["oneself"] == 0), size)
    named = _most(p, plain * fresh, size)
    own = side.flags["oneself"] & side.flags["identifies"] & (own_identifier < 0.6)
    own &= ~finds_persons(table)[table.server[side.tool]]
    own |= side.flags["identifies"] & contains_any_word(table, LOGIN)[side.tool] & ~token
    personal = (side.kinds & (PERSONAL | KIND["person"])) > 0
    selects, by_name = find_selecting(table)[side.tool], (side.kinds & KIND["name"]) > 0
    picked = selects & by_name & (named >= 0.8)
    declared_score = _most(p, links.score * near * ~virtual, size) * ~own
    is_id = side.flags["identifies"] | token
    coded = np.array([bool(end.own) and end.own[-1] in CODE_WORDS for end in side.endpoints], bool)
    worked = np.maximum(x["carried"], x["promise_worker"])
    makes = table.verb[side.tool] == CREATE
    flags = {name: side.flags[name].astype(float) for name in ("identifies", "required", "choice", "default")}
    plain_value = ~side.flags["identifies"] & ~side.flags["choice"]
    asked = is_asked_by_lookup(table) & ~by_name
    listed = is_listed(table) & selects & makes & plain_value & ~asked & ((side.kinds & TIMES) == 0)
    row = (_most(p, plain, size) >= SURE) & _company(links) & makes
    columns = {
        "bias": np.ones(size),
        "id": flags["identifies"],
        "code": flags["identifies"] * coded,
        "link": declared_score * is_id,
        "named_link": declared_score * ~is_id,
        "promised": _most(p, links.score * near * virtual, size) * is_id * ~own,
        "identifier": identifier * flags["identifies"] * ~own,
        "promised_id": promised_id * flags["identifies"] * ~own,
        "promised_name": _most(p, x["promise_names"] * fresh * home, size)
        * (flags["required"] * ~makes * ~personal * ~find_first_verbs(table, SEEKING)[side.tool]),
        "promised_choice": _most(p, np.maximum(x["promise_select_name"], picked[p]) * fresh * home, size)
        * flags["required"],
        "token": token & (np.maximum(identifier, promised_id) > 0.5),
        "told": _most(p, x["told"], size),
        "carried": np.minimum(1, np.log1p(np.bincount(p, weights=worked, minlength=size)) / np.log1p(MANY)),
        "sent": (table.verb[side.tool] == SEND) & side.flags["carrier"],
        "resource": _most(p, np.maximum(x["resource"], x["pipe"] > 0), size),
        "row": row * (1 - 0.5 * flags["choice"]),
        "asked": asked & ~side.flags["identifies"],
        "listed": listed * flags["required"],
        "held": is_held(side),
        "known_name": named >= 0.8,
        "named": named,
        "oneself": own,
        "personal": ((side.kinds & PERSONAL) > 0) | is_secret_key(side),
        "chosen": (side.kinds & TIMES) > 0,
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


def _is_token(table: EndpointTable) -> Any:
    """bool [parameters]: tokens are made to be passed on, also to other servers."""
    return (table.parameters.kinds & KIND["token"]) > 0


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


def classify_kinds(links: ScoredLinks, internal: Any, usable: Any) -> Sequence[tuple[ParameterKind, str]]:
    """Kind of every parameter, and why, in half a sentence.

    Args:
        links: All candidates.
        internal: bool [parameters]: the model takes it for internal.
        usable: bool [links]: links that stand in the graph; a parameter that none of them gives is not internal.
    """
    best: dict[int, int] = {}
    near = (links.features["same_server"] > 0) | _is_token(links.table)[links.parameter]
    rows = np.flatnonzero(usable)
    for row in rows[np.argsort(links.score[rows], kind="stable")]:
        best[int(links.parameter[row])] = int(row)
    taken = internal.copy()
    taken &= np.isin(np.arange(len(taken)), links.parameter[usable & near])
    return [_kind(links, index, chosen, best.get(index)) for index, chosen in enumerate(taken.tolist())]


def _kind(links: ScoredLinks, index: int, internal: bool, link: int | None) -> tuple[ParameterKind, str]:
    side = links.table.parameters
    flags = {name: bool(values[index]) for name, values in side.flags.items()}
    noun = "an identifier" if flags["identifies"] else "a value"
    if internal and link is not None:
        giver = links.table.tools[int(links.table.outputs.tool[links.output[link]])]
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
    if not flags["required"] and flags["default"] and head in _MANNER:
        return "a manner with a default"
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
