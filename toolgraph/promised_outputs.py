"""What a tool gives that declares no outputs, judged against what its sibling tools ask for.

Most MCP servers declare no outputs. What such a tool returns is told by its name ("search_hotels" gives hotels), by its
description ("details of a user, including their reservations"), and by its siblings: if `cancel_order` needs an
`order_id`, then `list_orders`, `search_orders` or `create_order` gives it. Each way is a measure from 0 to 1 of the
tool's one promised output, at path `$`, against one parameter; `toolgraph.link_model` weighs them.
"""

from typing import Any

import numpy as np

from trajsmith.phrasing import stem
from trajsmith.toolgraph.candidate_pairs import KIND, SPECIFIC, CandidatePairs, contains_any_word, select_last_word
from trajsmith.toolgraph.endpoint_table import EndpointTable, compute_once
from trajsmith.toolgraph.lexicon import SELECTING, SELECTIONS, VERB_CLASSES, find_kinds, find_media, is_verb

READ, CREATE, COMPUTE = (VERB_CLASSES.index(name) for name in ("read", "create", "compute"))
SEND = VERB_CLASSES.index("send")
SEARCHING = ("search", "find", "query", "lookup", "look", "browse", "discover", "list", "available")
PERSONAL = sum(KIND[name] for name in ("email", "phone", "secret"))
"""Kinds of value that people know by heart."""
TIMES = sum(KIND[name] for name in ("date", "year", "duration", "count", "currency", "language", "category"))
"""Kinds of value that people choose."""
TEXT, NUMBER = find_media("text"), find_media("number")
FEW = 0.3
"""Share of a server's look-ups from which a look-up is its main one."""

PROMISES = (
    "head", "noun", "name", "returned", "described", "kind", "subject", "only", "select", "select_name", "names",
    "belongs", "media", "media_text", "media_number", "media_clash", "worker", "creates", "same_name", "meaning",
    "token", "open", "other",
)  # fmt: skip


def get_promise_name(promise: str) -> str:
    """Return the name of a promise among the features and terms of links."""
    return f"promise_{promise}"


def compute_promises(pairs: CandidatePairs) -> dict[str, Any]:
    """float32 [n] by name in `PROMISES`, for pairs whose output is virtual."""
    table, ins, outs = pairs.table, pairs.ins, pairs.outs
    nouns, own, entity = table.nouns[pairs.source], ins.own[pairs.p], ins.entity[pairs.p]
    identifies = pairs.into("identifies") | pairs.kind("in", "token")
    read = pairs.source_verb(READ)
    create = pairs.source_verb(CREATE)
    makes = table.makes[pairs.source][:, None]
    last = select_last_word(nouns)[:, None]
    head = np.maximum(pairs.cover(last, entity), 0.8 * pairs.cover(last, ins.meant[pairs.p]))

    def cover_wanted(having: Any) -> Any:
        return np.where(identifies, pairs.cover(having, entity), pairs.cover(having, own))

    subject = _share_subject(pairs)
    reads = np.bincount(table.server, table.verb == READ, len(table.server))
    selecting = find_selecting(table)[pairs.target]
    searching = contains_any_word(table, SEARCHING)[pairs.source] | (read & (_required_ids(table)[pairs.source] == 0))
    few = np.where(read & pairs.same_server, 1 / np.maximum(reads[table.server[pairs.source]], 1), 0.0)
    near = (subject > 0.3) | (few >= FEW)
    select = selecting & searching & read & pairs.same_server & near
    naming = pairs.kind("in", "name") | (pairs.cover(own, last) > 0)
    chosen = (ins.kinds[pairs.p] & (PERSONAL | TIMES)) > 0
    media_out, media_in = table.gives[pairs.source], _media(table)[pairs.p]
    known = (media_out > 0) & (media_in > 0) & ~identifies
    shared = np.where(known, media_out & media_in, 0)
    works = pairs.target_verb(COMPUTE, SEND) & pairs.into("carrier") & pairs.into("required")
    works |= pairs.target_verb(CREATE) & pairs.source_verb(COMPUTE) & pairs.kind("in", "money") & pairs.into("required")
    same_kind = (outs.kinds[pairs.o] & ins.kinds[pairs.p] & SPECIFIC) > 0
    by_description = pairs.cover(ins.described[pairs.p], outs.own[pairs.o]) * same_kind * read * ~identifies
    returned, described = cover_wanted(outs.meant[pairs.o]), cover_wanted(outs.described[pairs.o])
    mentioned = np.maximum.reduce([head, returned, described, pairs.cover(table.spoken[pairs.source], entity)]) > 0
    tells = pairs.source_verb(COMPUTE) | (read & pairs.kind("in", "text", "data"))
    return {
        "head": head * read,
        "noun": pairs.cover(nouns, entity) * read,
        "name": np.maximum(
            pairs.cover(outs.own[pairs.o], own) * pairs.cover(own, outs.own[pairs.o]), 0.9 * by_description
        ),
        "returned": returned,
        "described": described,
        "subject": subject,
        "kind": ((_promised_kinds(table)[pairs.source] & ins.kinds[pairs.p] & SPECIFIC) > 0) & read,
        "only": few,
        "select": select & ~chosen,
        "select_name": select & naming & ~chosen & ~identifies,
        "names": read & pairs.kind("in", "name") & (pairs.cover(own, last) > 0) & ~chosen & ~identifies,
        "belongs": _belongs(pairs) & pairs.into("identifies"),
        "media": (shared & ~(TEXT | NUMBER)) > 0,
        "media_text": (shared & TEXT) > 0,
        "media_number": (shared & NUMBER) > 0,
        "media_clash": known & (shared == 0),
        "worker": works & tells,
        "creates": pairs.cover(np.concatenate([select_last_word(nouns)[:, None], makes], 1), entity)
        * create
        * pairs.into("identifies"),
        "same_name": pairs.cover(table.spoken[pairs.source], own) * (own[:, 0] >= 0),
        "token": pairs.kind("in", "token")
        & (pairs.cover(table.spoken[pairs.source], select_last_word(own)[:, None]) > 0),
        "other": identifies & (entity[:, 0] >= 0) & (nouns[:, 0] >= 0) & ~mentioned,
        "open": identifies & read & pairs.into("required") & pairs.same_server,
        "meaning": pairs.cosine(outs.text_vector[pairs.o], ins.text_vector[pairs.p]),
    }


def compute_promised_fit(x: dict[str, Any]) -> Any:
    """float32 [n]: the strongest promise, on the scale of a declared output's fit."""
    ways = {"head": 0.8, "noun": 0.4, "name": 0.95, "returned": 0.7, "creates": 0.8, "belongs": 0.6, "select_name": 0.7,
            "select": 0.45, "described": 0.45, "token": 0.95, "kind": 0.42}  # fmt: skip
    return np.maximum.reduce([x[name] * most for name, most in ways.items()])


@compute_once
def find_first_verbs(table: EndpointTable, words: tuple[str, ...] | frozenset[str]) -> Any:
    """Return bool [tools]: the first verb of a name is one of these: `book_flight`, `BookRoom`, not `get_book`."""
    wanted = frozenset(map(stem, words))
    return np.array([next(filter(is_verb, text.spoken), "") in wanted for text in table.texts], bool)


@compute_once
def find_selecting(table: EndpointTable) -> Any:
    """Return bool [tools]: it acts on one of the things that a search has shown: `book_flight`, `make_reservation`."""
    orders = np.array([bool(SELECTIONS.intersection(text.spoken)) for text in table.texts], bool)
    return find_first_verbs(table, SELECTING) | (orders & (table.verb == CREATE))


def _share_subject(pairs: CandidatePairs) -> Any:
    """Cover of the target's nouns by those of the source."""
    nouns, others = pairs.table.nouns[pairs.source], pairs.table.nouns[pairs.target]
    return np.maximum(pairs.cover(nouns, others), pairs.cover(others, nouns))


@compute_once
def _promised_kinds(table: EndpointTable) -> Any:
    """int32 [tools]: kinds of value that the name and the description of a tool without outputs promise."""
    masks = np.zeros(len(table.tools), np.int32)
    for end in table.outputs.endpoints:
        if end.virtual:
            for word in (*table.texts[end.tool].nouns, *end.meant[:4]):
                masks[end.tool] |= find_kinds(word)
    return masks


@compute_once
def _required_ids(table: EndpointTable) -> Any:
    """Number of required identifiers that each tool asks for."""
    flags = table.parameters.flags
    return np.bincount(table.parameters.tool, flags["identifies"] & flags["required"], len(table.tools))


@compute_once
def _media(table: EndpointTable) -> Any:
    """int32 [parameters]: media that its own name names; for a name that says nothing, what its tool takes."""
    masks = [
        next((mask for word in reversed(end.own) if (mask := find_media(word))), 0)
        for end in table.parameters.endpoints
    ]
    carrier = table.parameters.flags["carrier"]
    return np.where(carrier, table.takes[table.parameters.tool], np.array(masks, np.int32))


def _belongs(pairs: CandidatePairs) -> Any:
    """bool: some tool of the server makes or lists what the parameter identifies, for the thing that the source reads.

    `book_reservation(user_id)` says that users have reservations: so `get_user` may tell their ids.
    """
    table = pairs.table
    ins = table.parameters
    ids = np.flatnonzero(ins.flags["identifies"] & _stand_alone(table))
    maker = np.isin(table.verb[ins.tool[ids]], (CREATE, READ))
    about = select_last_word(table.nouns)
    owner = select_last_word(ins.entity)
    makers = ids[maker]
    server = table.server[ins.tool[makers]].astype(np.int64)
    owned = np.unique(_triple(server, owner[makers], about[ins.tool[makers]]))
    wanted = _triple(table.server[pairs.source].astype(np.int64), about[pairs.source], owner[pairs.p])
    asks = np.unique(ins.tool[ids].astype(np.int64) * len(table.weights) + owner[ids]) if len(table.weights) else ids
    own = np.isin(pairs.source.astype(np.int64) * len(table.weights) + about[pairs.source], asks)
    other = about[pairs.source] != owner[pairs.p]
    return np.isin(wanted, owned) & own & other & pairs.same_server & pairs.source_verb(READ)


@compute_once
def _stand_alone(table: EndpointTable) -> Any:
    """bool [parameters]: it is not inside another one."""
    return np.array([end.field.path.isidentifier() for end in table.parameters.endpoints], bool)


def _triple(server: Any, first: Any, second: Any) -> Any:
    return (server * np.int64(1_000_003) + first) * np.int64(1_000_003) + second
