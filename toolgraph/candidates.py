"""Which pairs (output, parameter) are looked at: all within a small server, by keys and a vector index elsewhere.

A server of ordinary size is compared completely: that is linear in the number of servers. Within a giant one, and
between servers, a parameter meets only outputs of its name, outputs of the thing that it identifies, and its nearest
neighbours by meaning in a usearch index (HNSW). Never all pairs. Everything inside a server depends on that server
alone, so that a part of a graph can be kept when another server changes.

Why usearch and not faiss or hnswlib: docs/decisions/0009-tool-graph-matching.md; `benchmarks/neighbours.py`.
"""

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
    pairs: list[tuple[Any, Any]] = [_mentioned_pairs(table)]
    for server in range(len(ends_out) - 1):
        server_outputs = outs[ends_out[server] : ends_out[server + 1]]
        taken = ins[ends_in[server] : ends_in[server + 1]]
        if not len(server_outputs) or not len(taken):
            continue
        if len(server_outputs) * len(taken) <= WHOLE:
            pairs.append((np.repeat(server_outputs, len(taken)), np.tile(taken, len(server_outputs))))
        else:
            pairs.append(_giant(table, server_outputs, taken))
    return _unique(table, pairs)


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
    flags = table.outputs.flags
    outs = np.flatnonzero(flags["identifies"] & ~flags["echo"] & (~flags["virtual"] | is_token(table.outputs)))
    ins = _asking(table.parameters)
    ins = ins[table.parameters.flags["identifies"][ins]]
    outs = outs[np.argsort(~_reading(table)[table.outputs.tool[outs]], kind="stable")]
    if not len(outs) or not len(ins):
        return _unique(table, [])
    pairs = [*_joined(table, outs, ins, ABROAD, apart=True), _nearest(table, outs, ins, ABROAD)]
    o, p = _unique(table, pairs)
    apart = table.server[table.outputs.tool[o]] != table.server[table.parameters.tool[p]]
    return o[apart], p[apart]


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
    parts = [*_joined(table, outputs, taken, JOINED), _nearest(table, outputs, taken, NEAREST)]
    return np.concatenate([o for o, _ in parts]), np.concatenate([p for _, p in parts])


def _joined(table: EndpointTable, outputs: Any, taken: Any, most: int, apart: bool = False) -> list[tuple[Any, Any]]:
    """Pairs of one name, and of one thing (orders[*].id with order_id), up to so many per parameter."""
    outs, ins = table.outputs, table.parameters
    named_out, named_in = outputs, taken
    if apart:
        named_out, named_in = outputs[_names_itself(outs)[outputs]], taken[_names_itself(ins)[taken]]
    pairs = [_join(named_out, outs.name_key[named_out], named_in, ins.name_key[named_in], most)]
    asking = taken[ins.flags["identifies"][taken]]
    giving = outputs[outs.flags["bare"][outputs] | outs.flags["virtual"][outputs] | outs.flags["list"][outputs]]
    if apart:
        giving = giving[outs.flags["bare"][giving] & outs.flags["identifies"][giving]]
    pairs.append(_join(giving, _concept_keys(outs, giving), asking, _concept_keys(ins, asking), most))
    return pairs


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
