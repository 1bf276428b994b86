"""What servers can give each other, kept with a graph, so that an update knows which other servers a change reaches.

Between servers a parameter meets the first outputs of its keys (`toolgraph.candidates.list_cross_server_keys`): servers
in order of their names, look-ups first. So a change of one server reaches another only if it changes who comes first
for a key that the other asks for.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from trajsmith.toolgraph.candidates import ABROAD, list_cross_server_keys
from trajsmith.toolgraph.endpoint_table import EndpointTable
from trajsmith.toolgraph.lexicon import VERB_CLASSES


class ServerKeys(NamedTuple):
    """Keys of one server, see `list_cross_server_keys`."""

    looked_up: tuple[int, ...]
    """Given by look-ups, one for each output, in their order."""
    returned: tuple[int, ...]
    """Given by other tools."""
    asked: tuple[int, ...]
    """Keys that its parameters ask for, each once."""


def list_server_keys(table: EndpointTable) -> dict[str, ServerKeys]:
    """Return the keys of every server that gives or asks for one."""
    outputs, output_keys, parameters, parameter_keys = list_cross_server_keys(table)
    names: dict[str, tuple[list[int], list[int], list[int]]] = {}
    reads = table.verb == VERB_CLASSES.index("read")
    for row, key in zip(table.outputs.tool[outputs].tolist(), output_keys.tolist(), strict=True):
        names.setdefault(table.tools[row].server, ([], [], []))[0 if reads[row] else 1].append(key)
    servers = table.server[table.parameters.tool[parameters]].astype(np.int64)
    first = {int(server): table.tools[row].server for row, server in reversed(list(enumerate(table.server.tolist())))}
    for server, key in np.unique(np.stack([servers, parameter_keys], 1), axis=0).tolist():
        names.setdefault(first[server], ([], [], []))[2].append(key)
    return {name: ServerKeys(*map(tuple, keys)) for name, keys in sorted(names.items())}


def find_reached_servers(
    old: Mapping[str, ServerKeys], new: Mapping[str, ServerKeys], changed: Collection[str]
) -> tuple[set[str], set[str]]:
    """Return what a change reaches.

    Args:
        old: Keys by server before the change.
        new: Keys by server after it.
        changed: Servers that were added, changed or removed.

    Returns:
        Servers whose part of the graph may be another now, the changed ones that are left among them; and servers
        that must be read beside them to build these parts.
    """
    moved = {
        key
        for keys in (old, new)
        for name in changed
        if name in keys
        for key in (*keys[name].looked_up, *keys[name].returned)
    }
    before, after = _first_givers(old, moved), _first_givers(new, moved)
    other = {
        key
        for key in moved
        if before[key] != after[key] or any(name in changed for name, _ in (*before[key], *after[key]))
    }
    reached = {name for name, keys in new.items() if name in changed or not other.isdisjoint(keys.asked)}
    asked = {key for name in reached for key in new[name].asked}
    return reached, {name for givers in _first_givers(new, asked).values() for name, _ in givers}


def _first_givers(servers: Mapping[str, ServerKeys], keys: Collection[int]) -> dict[int, list[tuple[str, int]]]:
    """Key to the first outputs that give it, as server and place; look-ups have places from 0, others below 0.

    One more than are joined, since some keys count only if few give them.
    """
    givers: dict[int, list[tuple[str, int]]] = {key: [] for key in keys}
    for side, sign in ((0, 1), (1, -1)):
        for name in sorted(servers):
            for place, key in enumerate(servers[name][side]):
                if key in givers and len(givers[key]) <= ABROAD:
                    givers[key].append((name, sign * place - (sign < 0)))
    return givers
