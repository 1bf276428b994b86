"""What the two tools of a pair, and the other candidates, say about a link: direction, novelty, competition."""

from typing import Any

import numpy as np

from trajsmith.toolgraph.candidate_pairs import CandidatePairs, contains_any_word, select_last_word
from trajsmith.toolgraph.endpoint_table import EndpointTable, compute_once
from trajsmith.toolgraph.fit_features import WORKERS, has_kind_clash
from trajsmith.toolgraph.lexicon import VERB_CLASSES

_VERB = {name: row for row, name in enumerate(VERB_CLASSES)}
READ, CREATE, COMPUTE = _VERB["read"], _VERB["create"], _VERB["compute"]
CHANGES = (_VERB["update"], _VERB["delete"], _VERB["send"])
AUTH_WORDS = ("login", "authenticate", "signin", "auth", "register")
"""What one asks for oneself: a person knows everything that such a tool takes."""
EXACT, NEAR = 0.9, 0.8
"""Where a tool of the server gives the very thing, others must at least come near."""
NEW_WORDS = ("add", "create", "new", "register", "make", "insert", "open")
SAID = 0.95
"""Fit of what a description says."""
GOOD = 0.6
"""Fit from which a candidate counts as a way to get a value."""


def is_circular(pairs: CandidatePairs) -> Any:
    """The source asks for the same thing itself: who has it already need not call it for that."""
    ins, tools = pairs.ins, pairs.ins.tool.astype(np.int64)
    taken = np.unique(_pack(tools, ins.concept_key))
    ids = np.flatnonzero(ins.flags["identifies"])
    asked_entities = np.unique(_pack(tools[ids], _entity_keys(pairs.table)[ids]))
    source = pairs.source.astype(np.int64)
    same = np.isin(_pack(source, ins.concept_key[pairs.p]), taken)
    return same | (
        pairs.into("identifies") & np.isin(_pack(source, _entity_keys(pairs.table)[pairs.p]), asked_entities)
    )


@compute_once
def _entity_keys(table: EndpointTable) -> Any:
    from trajsmith.toolgraph.endpoint_table import hash_words

    return np.array([hash_words(end.entity) for end in table.parameters.endpoints], np.int64)


def _pack(tool: Any, key: Any) -> Any:
    return key * np.int64(1_000_003) + tool


def compute_flow_features(pairs: CandidatePairs, fit: Any, description_fit: Any) -> dict[str, Any]:
    """Features of direction and competition; `fit` and `told` are measures of `fits`.

    Only candidates of the target's own server compete: what a server's part of a graph says depends on it alone.
    """
    table = pairs.table
    again = is_circular(pairs)
    description_fit = description_fit * _fittest(pairs, fit)
    fit = np.maximum(fit, SAID * description_fit)
    read = pairs.source_verb(READ)
    fresh = np.where(again | ~pairs.same_server, 0.0, fit)
    best = _best(pairs.p, fresh, len(table.parameters.tool))
    best_read = _best(pairs.p, np.where(read, fresh, 0.0), len(table.parameters.tool))
    asks = np.bincount(table.parameters.tool, minlength=len(table.tools))
    entity = np.where(pairs.out("virtual")[:, None], pairs.ins.entity[pairs.p], pairs.outs.entity[pairs.o])
    own = pairs.cover(table.spoken[pairs.source], entity) >= 0.5
    names = pairs.out("identifies") | (pairs.out("virtual") & pairs.source_verb(CREATE))
    creates_id = ~read & ~again & names & own & ~pairs.kind("out", "token") & ~pairs.source_verb(_VERB["delete"])
    asks_ids = np.bincount(
        table.parameters.tool, pairs.ins.flags["identifies"] & pairs.ins.flags["required"], len(table.tools)
    )
    about = pairs.cover(table.nouns[pairs.source], pairs.ins.entity[pairs.p]) >= 0.99
    direct_read = read & (about | (asks_ids[pairs.source] == 0)) & ~again
    named_for = pairs.cover(table.spoken[pairs.source], pairs.ins.own[pairs.p]) * pairs.into("identifies")
    auth = contains_any_word(table, AUTH_WORDS)
    grants = contains_any_word(table, ("login", "authenticate", "signin", "auth", "token", "session", "connect"))
    search = contains_any_word(table, ("search", "find", "query", "lookup")) | _asks_words(table)
    return {
        "circular": again,
        "echo": pairs.out("echo"),
        "gap": np.where((best[pairs.p] >= EXACT) & (fit < NEAR), 1.0, np.maximum(0, best[pairs.p] - fit)),
        "read_gap": np.where(read, 0.0, np.maximum(0, best_read[pairs.p] - GOOD)),
        "home_gap": np.where(pairs.same_server, 0.0, best[pairs.p]),
        "same_server": pairs.same_server,
        "virtual": pairs.out("virtual"),
        "source_read": read,
        "source_searches": search[pairs.source] & read,
        "source_asks_nothing": asks[pairs.source] == 0,
        "source_creates_id": creates_id,
        "source_creates": pairs.source_verb(CREATE) & ~creates_id,
        "source_computes": pairs.source_verb(COMPUTE),
        "source_changes": pairs.source_verb(*CHANGES)
        & ~creates_id
        & ~(grants[pairs.source] & pairs.kind("out", "token")),
        "target_works": pairs.target_verb(*WORKERS),
        "target_reads": pairs.target_verb(READ),
        "target_authenticates": auth[pairs.target],
        "named_for": named_for,
        "oneself": pairs.into("oneself") & ~direct_read,
        "required": pairs.into("required"),
        "choice": pairs.into("choice"),
        "default": pairs.into("default"),
        "new": pairs.into("new") | (_of_the_new_thing(pairs) & ~pairs.into("identifies")),
        "control": pairs.into("control") | (pairs.out("control") & ~pairs.out("virtual")),
        "kinds_clash": has_kind_clash(pairs),
        "receipt": pairs.out("receipt"),
        "output_choice": pairs.out("choice"),
        "backwards": _backwards(pairs, fit, again) & ~pairs.into("identifies") & pairs.target_verb(READ),
        "told": description_fit,
        **_coverage(pairs, fit),
        **_sharing(pairs),
    }


def _of_the_new_thing(pairs: CandidatePairs) -> Any:
    """The target adds a thing of the kind that the source lists: what the old ones are like says nothing of it."""
    table = pairs.table
    adds = contains_any_word(table, NEW_WORDS)[pairs.target] & pairs.target_verb(CREATE)
    same = select_last_word(table.nouns[pairs.source]) == select_last_word(table.nouns[pairs.target])
    return adds & same & (table.nouns[pairs.target, 0] >= 0)


def _backwards(pairs: CandidatePairs, fit: Any, again: Any) -> Any:
    """The target looks up the id that the source asks for: it comes first, and is not fed by what the source tells."""
    size = np.int64(len(pairs.table.tools))
    gives_id = pairs.into("identifies") & pairs.into("required") & (fit >= NEAR) & ~again
    forth = np.unique(pairs.source[gives_id].astype(np.int64) * size + pairs.target[gives_id])
    return np.isin(pairs.target.astype(np.int64) * size + pairs.source, forth) & pairs.same_server


def _fittest(pairs: CandidatePairs, fit: Any) -> Any:
    """bool: among the outputs of its tool, this one fits the parameter best; none does if nothing fits at all."""
    group = pairs.p.astype(np.int64) * len(pairs.table.tools) + pairs.source
    known, place = np.unique(group, return_inverse=True)
    best = _best(place.reshape(-1), fit, len(known))
    return (fit >= best[place.reshape(-1)]) & ((fit > 0) | pairs.out("virtual"))


def _best(group: Any, value: Any, size: int) -> Any:
    best = np.zeros(size, np.float32)
    np.maximum.at(best, group, value)
    return best


@compute_once
def _asks_words(table: EndpointTable) -> Any:
    """Tools that take a query."""
    asks_words = np.zeros(len(table.tools), bool)
    for end in table.parameters.endpoints:
        if end.own and end.own[-1] in ("query", "q", "keyword", "search", "term"):
            asks_words[end.tool] = True
    return asks_words


def _coverage(pairs: CandidatePairs, fit: Any) -> dict[str, Any]:
    """Share of the target's required parameters that the source could fill, and the same backwards."""
    table, ins = pairs.table, pairs.ins
    size = np.int64(len(table.tools))
    pair = pairs.source.astype(np.int64) * size + pairs.target
    links, place = np.unique(np.stack([pair, pairs.p], 1), axis=0, return_inverse=True)
    best = _best(place.reshape(-1), fit, len(links))
    required = ins.flags["required"][links[:, 1]]
    edges, where = np.unique(links[:, 0], return_inverse=True)
    filled = np.bincount(where, weights=(best >= GOOD) & required, minlength=len(edges))
    needed = np.bincount(table.parameters.tool, weights=ins.flags["required"], minlength=len(table.tools))
    share = filled / np.maximum(needed[edges % size], 1)
    here = np.searchsorted(edges, pair)
    back = pairs.target.astype(np.int64) * size + pairs.source
    there = np.minimum(np.searchsorted(edges, back), max(len(edges) - 1, 0))
    return {
        "cover": share[here],
        "back_cover": np.where((edges[there] == back) & pairs.same_server, share[there], 0.0)
        if len(edges)
        else share[here],
    }


def _sharing(pairs: CandidatePairs) -> dict[str, Any]:
    """Return the number of tools per server that take, and give, a field of the parameter's name."""
    table = pairs.table
    size = np.bincount(table.server)
    users = _count(table, table.parameters)
    makers = _count(table, table.outputs)
    key = _pack(table.server[pairs.target].astype(np.int64), pairs.ins.name_key[pairs.p])
    used, made_by = users(key), makers(key)
    share = np.minimum(used, made_by) / size[table.server[pairs.target]]
    resource = pairs.kind("in", "image", "audio", "video", "file", "data", "text")
    resource &= ~pairs.into("identifies")
    shared = (used >= 3) & (made_by >= 3) & (pairs.outs.name_key[pairs.o] == pairs.ins.name_key[pairs.p]) & resource
    return {"pipe": np.where(shared, np.minimum(share, 0.5), 0.0)}


def _count(table: EndpointTable, side: Any) -> Any:
    """Look-up of (server, name) to the number of tools with such a field."""
    keys = _pack(table.server[side.tool].astype(np.int64), side.name_key)
    once = (
        np.unique(np.stack([keys, side.tool.astype(np.int64)], 1), axis=0) if len(keys) else np.zeros((0, 2), np.int64)
    )
    known, number = np.unique(once[:, 0], return_counts=True)

    def look(wanted: Any) -> Any:
        if not len(known):
            return np.zeros(len(wanted))
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, number[place], 0)

    return look
