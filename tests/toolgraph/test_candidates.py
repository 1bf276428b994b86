"""Candidates: small servers completely, giant ones and other servers by keys and by the index, never all pairs."""

from typing import Any

import numpy as np
import pytest

from trajsmith.records import ToolSpec
from trajsmith.toolgraph import candidates
from trajsmith.toolgraph.candidates import find_cross_server_pairs, find_home_pairs
from trajsmith.toolgraph.endpoint_table import EndpointTable, build_table
from trajsmith.toolgraph.match import sort_by_server

STRING = {"type": "string"}
THINGS = ("order", "ticket", "room", "flight", "invoice", "parcel", "contract", "recipe", "station", "lesson")


def server(name: str, copies: int = 1, **changes: Any) -> list[ToolSpec]:
    """Tools that list things, and tools that take one of them by its id."""
    tools = []
    for copy in range(copies):
        for thing in THINGS:
            row = {"type": "object", "properties": {f"{thing}_id": STRING, "note": STRING}}
            rows = {"type": "object", "properties": {f"{thing}s": {"type": "array", "items": row}}}
            takes = {"type": "object", "properties": {f"{thing}_id": STRING}, "required": [f"{thing}_id"], **changes}
            tools.append(
                ToolSpec(server=name, name=f"list_{thing}s_{copy}", input_schema={"type": "object"}, output_schema=rows)
            )
            tools.append(ToolSpec(server=name, name=f"close_{thing}_{copy}", input_schema=takes))
    return tools


def pairs(table: EndpointTable, found: tuple[Any, Any]) -> set[tuple[str, str]]:
    outs, ins = table.outputs, table.parameters
    return {
        (table.tools[outs.tool[o]].full_name, table.tools[ins.tool[p]].full_name)
        for o, p in zip(*found, strict=True)
        if outs.endpoints[o].field.name == ins.endpoints[p].field.name
    }


def test_a_small_server_is_compared_completely_and_no_tool_with_itself() -> None:
    table = build_table(sort_by_server(server("shop")))
    o, p = find_home_pairs(table)
    others = table.outputs.tool[:, None] != table.parameters.tool[None]
    assert len(o) == others.sum()
    assert not np.any(table.outputs.tool[o] == table.parameters.tool[p])


def test_a_giant_server_finds_the_same_true_pairs_with_a_fraction_of_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    table = build_table(sort_by_server(server("shop", copies=8)))
    whole = find_home_pairs(table)
    monkeypatch.setattr(candidates, "WHOLE", 10)
    part = find_home_pairs(table)
    assert pairs(table, part) == pairs(table, whole)
    assert len(part[0]) < len(whole[0]) / 3


def test_servers_are_compared_with_each_other_by_identifiers_only() -> None:
    table = build_table(sort_by_server([*server("a"), *server("b")]))
    o, p = find_cross_server_pairs(table)
    assert np.all(table.server[table.outputs.tool[o]] != table.server[table.parameters.tool[p]])
    assert np.all(table.outputs.flags["identifies"][o] & table.parameters.flags["identifies"][p])
    assert ("a.list_orders_0", "b.close_order_0") in pairs(table, (o, p))


def test_the_number_of_pairs_grows_with_the_tools_not_with_their_square() -> None:
    def number(servers: int) -> int:
        table = build_table(sort_by_server([tool for at in range(servers) for tool in server(f"s{at}")]))
        return len(find_home_pairs(table)[0]) + len(find_cross_server_pairs(table)[0])

    assert number(40) < 5 * number(10)


def test_a_tool_that_a_description_names_is_always_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    named = ToolSpec(server="shop", name="read_sign", input_schema={"type": "object"})
    asks = {"type": "object", "properties": {"glyph": {**STRING, "description": "what read_sign returned"}}}
    monkeypatch.setattr(candidates, "WHOLE", 0)
    monkeypatch.setattr(candidates, "NEAREST", 1)
    tools = sort_by_server([*server("shop"), named, ToolSpec(server="shop", name="engrave", input_schema=asks)])
    table = build_table(tools)
    o, p = find_home_pairs(table)
    giver, taker = (
        next(row for row, tool in enumerate(tools) if tool.name == name) for name in ("read_sign", "engrave")
    )
    assert np.any((table.outputs.tool[o] == giver) & (table.parameters.tool[p] == taker))


def test_a_giant_server_has_each_pair_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a description names the tool of a parameter that is not asked for elsewhere: it has its choices."""
    monkeypatch.setattr(candidates, "WHOLE", 0)
    choices = {**STRING, "enum": ["o1", "o2"], "description": "An order from list_orders_0"}
    asks = {"type": "object", "properties": {"order_id": choices, "ticket_id": STRING}, "required": ["ticket_id"]}
    table = build_table(sort_by_server([*server("shop"), ToolSpec(server="shop", name="engrave", input_schema=asks)]))
    found = list(zip(*(side.tolist() for side in find_home_pairs(table)), strict=True))
    assert ("shop.list_orders_0", "shop.engrave") in pairs(table, find_home_pairs(table))
    assert len(found) == len(set(found))


def test_candidates_are_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "WHOLE", 10)
    table = build_table(sort_by_server([*server("a", 3), *server("b", 3)]))
    for look in (find_home_pairs, find_cross_server_pairs):
        once, again = look(table), look(table)
        assert np.array_equal(once[0], again[0])
        assert np.array_equal(once[1], again[1])


def test_no_tools_give_no_candidates() -> None:
    table = build_table([])
    assert [len(side) for look in (find_home_pairs, find_cross_server_pairs) for side in look(table)] == [0, 0, 0, 0]
