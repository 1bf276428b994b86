"""Which pairs (output, parameter) are looked at: all within a small server, by keys and a vector index elsewhere.

A server of ordinary size is compared completely: that is linear in the number of servers. Within a giant one a
parameter meets only outputs of its name, outputs of the thing that it identifies, and its nearest neighbours by meaning
in a usearch index (HNSW); between servers only the first outputs of its keys. Never all pairs. Everything inside a
server depends on that server alone, and between servers on who gives a key first, so that a part of a graph can be kept
when another server changes (`toolgraph.cross_server`).

Why usearch and not faiss or hnswlib: docs/decisions/0009-tool-graph-matching.md; `benchmarks/neighbours.py`.
"""

import re
from typing import Any

import numpy as np

from trajsmith.toolgraph.candidate_pairs import KIND
from trajsmith.toolgraph.endpoint_table import EndpointSide, EndpointTable, hash_words

WHOLE = 60_000
"""Pairs up to which a server is compared completely."""
JOINED = 32
"""Outputs of the same name, or the same thing, that a parameter of a giant server meets."""
ABROAD = 8
"""The same, on other servers."""
NEAREST = 16
"""Nearest neighbours by meaning that a parameter of a giant server meets."""
EXPANSION = 48
"""Depth of the HNSW search (and of its construction)."""


def find_home_pairs(table: EndpointTable) -> tuple[Any, Any]:
    """Rows of outputs and parameters of one server to compare, for all servers; no tool with itself."""
    outs, ins = np.arange(len(table.outputs.tool)), _asking(table.parameters)
    ends_out = _bounds(table.server[table.outputs.tool], table)
    ends_in = _bounds(table.server[table.parameters.tool[ins]], table)
    mentioned = _mentioned_pairs(table)
    pairs: list[tuple[Any, Any]] = []
    for server in range(len(ends_out) - 1):
        server_outputs = outs[ends_out[server] : ends_out[server + 1]]
        taken = ins[ends_in[server] : ends_in[server + 1]]
        if not len(server_outputs) or not len(taken):
            continue
        if len(server_outputs) * len(taken) <= WHOLE:
            pairs.append((np.tile(server_outputs, len(taken)), np.repeat(taken, len(server_outputs))))
        else:
            named_here = np.isin(mentioned[0], server_outputs) & np.isin(mentioned[1], taken)
            pairs.append(
                _unique(
                    table, [_giant(table, server_outputs, taken), (mentioned[0][named_here], mentioned[1][named_here])]
                )
            )
    o, p = (np.concatenate([*(pair[side] for pair in pairs), np.zeros(0, np.int64)]) for side in (0, 1))
    further = ~np.isin(mentioned[1], ins)
    return _inserted(table, (o, p), _unique(table, [(mentioned[0][further], mentioned[1][further])]))


def _inserted(table: EndpointTable, pairs: tuple[Any, Any], further: tuple[Any, Any]) -> tuple[Any, Any]:
    """Ordered pairs with a few more in their places, without pairs of a tool with itself."""
    size = np.int64(max(1, len(table.outputs.tool)))
    packed, more = (p.astype(np.int64) * size + o for o, p in (pairs, further))
    packed = np.insert(packed, np.searchsorted(packed, more), more)
    o, p = packed % size, packed // size
    other = table.outputs.tool[o] != table.parameters.tool[p]
    return o[other], p[other]


def _mentioned_pairs(table: EndpointTable) -> tuple[Any, Any]:
    """All outputs of the tools that a parameter's description names."""
    size = np.int64(max(1, len(table.tools)))
    taken, tool = table.mentioned // size, table.mentioned % size
    number = np.bincount(table.outputs.tool, minlength=len(table.tools))
    first = np.concatenate(([0], np.cumsum(number)))[tool]
    offset = np.arange(int(number[tool].sum())) - np.repeat(np.cumsum(number[tool]) - number[tool], number[tool])
    return np.repeat(first, number[tool]) + offset, np.repeat(taken, number[tool])


def find_cross_server_pairs(table: EndpointTable) -> tuple[Any, Any]:
    """Rows to compare between servers: identifiers only; a name, a text or a promise says nothing there."""
    outs, output_keys, ins, parameter_keys = list_cross_server_keys(table)
    anybody = output_keys % JOINS == ANYBODY
    if anybody.sum() > ABROAD:
        outs, output_keys = outs[~anybody], output_keys[~anybody]
    o, p = _unique(table, [_join(outs, output_keys, ins, parameter_keys, ABROAD)])
    apart = table.server[table.outputs.tool[o]] != table.server[table.parameters.tool[p]]
    return o[apart], p[apart]


def list_cross_server_keys(table: EndpointTable) -> tuple[Any, Any, Any, Any]:
    """Return what servers can give each other: outputs with a key, look-ups first, and parameters with theirs.

    Equal keys fit: the same name, where it says what it identifies; the thing that a bare id in a list identifies; and
    an access token of the same suite of servers (`acme_accounts`, `acme_mail`), also where it is only promised. Where
    few tools promise one at all, it goes to everybody; a promise that many servers make says nothing.

    Returns:
        Rows of outputs, their keys; rows of parameters, their keys. A row has several keys or none.
    """
    outs, ins = table.outputs, table.parameters
    flags = outs.flags
    declared = np.flatnonzero(flags["identifies"] & ~flags["echo"] & ~flags["virtual"])
    asking = _asking(ins)
    token_in = asking[is_token(ins)[asking]]
    asking = asking[ins.flags["identifies"][asking]]
    listed, named, named_in = (
        declared[flags["bare"][declared]],
        declared[_names_itself(outs)[declared]],
        asking[_names_itself(ins)[asking]],
    )
    token_out = np.flatnonzero(is_token(outs) & flags["virtual"])
    suites = np.array([hash_words(_suite(tool.server)) for tool in table.tools], np.int64)
    everybody = np.full(len(table.tools), ANYBODY, np.int64)
    o, output_keys = _keyed(
        (named, outs.name_key[named]),
        (listed, _concept_keys(outs, listed)),
        (token_out, suites[outs.tool[token_out]]),
        (token_out, everybody[outs.tool[token_out]]),
    )
    p, parameter_keys = _keyed(
        (named_in, ins.name_key[named_in]),
        (asking, _concept_keys(ins, asking)),
        (token_in, suites[ins.tool[token_in]]),
        (token_in, everybody[ins.tool[token_in]]),
    )
    order = np.lexsort((o, ~_reading(table)[outs.tool[o]]))
    return o[order], output_keys[order], p, parameter_keys


KEY_BITS = 48
"""Bits of a key that are kept: numbers that every reader of JSON reads exactly."""
JOINS, ANYBODY = 4, 3
"""Kinds of key, which a key's last bits say; the one of promised tokens that anybody may ask for."""


def _keyed(*joins: tuple[Any, Any]) -> tuple[Any, Any]:
    """Rows and keys of all joins, the number of the join in a key's last bits."""
    rows = np.concatenate([rows for rows, _ in joins]).astype(np.int64)
    keys = np.concatenate(
        [np.where(keys < 0, -1, (keys % (1 << KEY_BITS)) * JOINS + n) for n, (_, keys) in enumerate(joins)]
    )
    return rows[keys >= 0], keys[keys >= 0]


def _suite(server: str) -> tuple[str, ...]:
    """First word of a server's name: its owner, or what it is part of."""
    return tuple(re.findall(r"[^\W_]+", server)[:1])


def _asking(side: EndpointSide) -> Any:
    """Parameters that a value can flow into: no switches of the call itself, no choices that may be left out."""
    flags = side.flags
    return np.flatnonzero(~flags["control"] & ~(flags["choice"] & ~flags["required"]))


def _bounds(server: Any, table: EndpointTable) -> Any:
    """Return the row ranges of each server; rows are ordered by tool, tools by server."""
    return np.searchsorted(server, np.arange(int(table.server.max(initial=-1)) + 2))


def _reading(table: EndpointTable) -> Any:
    from trajsmith.toolgraph.flow_features import READ

    return table.verb == READ


def _giant(table: EndpointTable, outputs: Any, taken: Any) -> tuple[Any, Any]:
    parts = [*_joined(table, outputs, taken), _nearest(table, outputs, taken, NEAREST)]
    return np.concatenate([o for o, _ in parts]), np.concatenate([p for _, p in parts])


def _joined(table: EndpointTable, outputs: Any, taken: Any) -> list[tuple[Any, Any]]:
    """Pairs of one name, and of one thing (orders[*].id with order_id), up to `JOINED` per parameter."""
    outs, ins = table.outputs, table.parameters
    asking = taken[ins.flags["identifies"][taken]]
    giving = outputs[outs.flags["bare"][outputs] | outs.flags["virtual"][outputs] | outs.flags["list"][outputs]]
    return [
        _join(outputs, outs.name_key[outputs], taken, ins.name_key[taken], JOINED),
        _join(giving, _concept_keys(outs, giving), asking, _concept_keys(ins, asking), JOINED),
    ]


def _names_itself(side: EndpointSide) -> Any:
    """order_id and access_token do, id does not."""
    return ~side.flags["bare"] | is_token(side)


def is_token(side: EndpointSide) -> Any:
    """bool: access tokens and the like."""
    return (side.kinds & KIND["token"]) > 0


def _concept_keys(side: EndpointSide, rows: Any) -> Any:
    return np.array([hash_words(side.endpoints[row].entity[-1:]) for row in rows], np.int64)


def _join(outputs: Any, given_keys: Any, taken: Any, taken_keys: Any, most: int) -> tuple[Any, Any]:
    """Rows with equal keys, the first `most` of each key in the given order."""
    order = np.argsort(given_keys, kind="stable")
    keys = given_keys[order]
    begin = np.searchsorted(keys, taken_keys, "left")
    number = np.minimum(np.searchsorted(keys, taken_keys, "right") - begin, most)
    number = np.where(taken_keys == -1, 0, number)
    p = np.repeat(taken, number)
    offset = np.arange(len(p)) - np.repeat(np.cumsum(number) - number, number)
    return outputs[order[np.repeat(begin, number) + offset]], p


def _nearest(table: EndpointTable, outputs: Any, taken: Any, most: int) -> tuple[Any, Any]:
    """Nearest outputs by meaning; equal texts are one entry of the index."""
    from usearch.index import Index

    vectors, member = np.unique(table.outputs.text_vector[outputs], axis=0, return_inverse=True)
    wanted, asks = np.unique(table.parameters.text_vector[taken], axis=0, return_inverse=True)
    index = Index(ndim=vectors.shape[1], metric="ip", dtype="f32", expansion_add=EXPANSION, expansion_search=EXPANSION)
    index.add(np.arange(len(vectors)), vectors, threads=1)
    near = min(most, len(vectors))
    keys = index.search(wanted, near, threads=1).keys.astype(np.int64).reshape(len(wanted), near)
    first = np.unique(member.reshape(-1), return_index=True)[1]
    rows = outputs[first[keys[asks.reshape(-1)]]]
    return rows.reshape(-1), np.repeat(taken, near)


def _unique(table: EndpointTable, pairs: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Each pair once, ordered by parameter, without pairs of a tool with itself."""
    if not pairs:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    o, p = (np.concatenate([pair[side] for pair in pairs]).astype(np.int64) for side in (0, 1))
    other = table.outputs.tool[o] != table.parameters.tool[p]
    size = np.int64(max(1, len(table.outputs.tool)))
    packed = np.unique(p[other] * size + o[other])
    return packed % size, packed // size
