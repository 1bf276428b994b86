"""Rebuilding what changed equals a full build."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajsmith.records import ToolSpec
from trajsmith.toolgraph import GraphSettings, ToolGraph
from trajsmith.toolgraph import incremental_build as module
from trajsmith.toolgraph.cross_server import ServerKeys
from trajsmith.toolgraph.graph import LinkEvidence
from trajsmith.toolgraph.incremental_build import compute_builder_digest, compute_part_digests, update_graph

ENTITIES = ("order", "customer", "parcel", "invoice")
FIELDS = ("id", "name", "status", "email")


def random_tool(rng: random.Random, server: str, number: int) -> ToolSpec:
    entity = rng.choice(ENTITIES)
    inputs = {f"{rng.choice(ENTITIES)}_{rng.choice(FIELDS)}": {"type": "string"} for _ in range(rng.randint(0, 2))}
    outputs = {f"{entity}_{rng.choice(FIELDS)}": {"type": "string"} for _ in range(rng.randint(0, 3))}
    spec: dict[str, Any] = {
        "server": server,
        "name": f"{rng.choice(('get', 'find', 'cancel', 'create'))}_{entity}_{number % 4}",
        "description": f"Works on one {entity}.",
        "inputSchema": {"type": "object", "properties": inputs, "required": list(inputs)},
        "outputSchema": {"type": "object", "properties": outputs} if outputs else None,
    }
    return ToolSpec.model_validate(spec)


def random_world(seed: int) -> dict[str, list[ToolSpec]]:
    rng = random.Random(seed)
    return {
        f"server{home}": [random_tool(rng, f"server{home}", number) for number in range(rng.randint(1, 5))]
        for home in range(rng.randint(1, 4))
    }


def listed(world: dict[str, list[ToolSpec]]) -> list[ToolSpec]:
    return [tool for tools in world.values() for tool in tools]


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from(["change", "add", "remove", "nothing", "shuffle", "grow"]), st.booleans())
def test_an_update_equals_a_full_build_byte_for_byte(seed: int, what: str, across: bool) -> None:
    before, rng = random_world(seed), random.Random(seed)
    after = {server: list(tools) for server, tools in before.items()}
    if what == "change":
        after["server0"] = random_world(seed + 1)["server0"]
    elif what == "add":
        after = {"aaa": [random_tool(rng, "aaa", number) for number in range(3)], **after}
    elif what == "remove":
        del after["server0"]
    elif what == "shuffle":
        after = dict(sorted(after.items(), reverse=True))
    elif what == "grow":
        after["server0"] = [random_tool(rng, "server0", 9), *after["server0"]]
    wanted = GraphSettings(cross_server=across)
    old = update_graph(None, listed(before), wanted)
    full = update_graph(None, listed(after), wanted)
    updated = update_graph(old, listed(after), wanted)
    assert updated == full
    assert updated.to_bytes() == full.to_bytes()


@pytest.mark.parametrize("across", [False, True])
def test_only_the_changed_server_is_built_anew(monkeypatch: pytest.MonkeyPatch, across: bool) -> None:
    wanted = GraphSettings(cross_server=across)
    world = {f"server{home}": [random_tool(random.Random(home), f"server{home}", 1)] for home in range(4)}
    old = update_graph(None, listed(world), wanted)
    asked = watch_builds(monkeypatch)
    assert update_graph(old, listed(world), wanted) == old
    assert asked == []
    world["server2"] = [random_tool(random.Random(99), "server2", 1)]
    update_graph(old, listed(world), wanted)
    assert asked[0] >= {"server2"}
    assert across or asked == [{"server2"}]


def watch_builds(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Return a list that takes the servers of every build from now on."""
    asked: list[set[str]] = []
    build = module.build_graph_and_keys

    def watched(tools: list[ToolSpec], *more: Any) -> tuple[ToolGraph, dict[str, ServerKeys]]:
        asked.append({tool.server for tool in tools})
        return build(tools, *more)

    monkeypatch.setattr(module, "build_graph_and_keys", watched)
    return asked


def identifier_server(server: str, gives: str, takes: str) -> list[ToolSpec]:
    """A server that lists one kind of thing and works on another."""
    text = {"type": "string"}
    listing = {"type": "array", "items": {"type": "object", "properties": {f"{gives}_id": text}}}
    return [
        ToolSpec(
            server=server,
            name=f"list_{gives}s",
            input_schema={"type": "object", "properties": {}},
            output_schema={"type": "object", "properties": {f"{gives}s": listing}},
        ),
        ToolSpec(
            server=server,
            name=f"ship_{takes}",
            input_schema={"type": "object", "properties": {f"{takes}_id": text}, "required": [f"{takes}_id"]},
        ),
    ]


def test_a_change_between_servers_builds_only_the_servers_that_it_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = GraphSettings()
    world = {name: identifier_server(name, name, "crate") for name in ("anvil", "barrel", "dozen", "engine")}
    world["crate"] = identifier_server("crate", "crate", "barrel")
    old = update_graph(None, listed(world), wanted)
    assert {edge.source for edge in old.edges if edge.target == "anvil.ship_crate"} == {"crate.list_crates"}
    asked = watch_builds(monkeypatch)
    world["crate"] = identifier_server("crate", "cask", "barrel")
    updated = update_graph(old, listed(world), wanted)
    assert asked.pop() == set(world), "all others ask for crates"
    assert not [edge for edge in updated.edges if edge.target == "anvil.ship_crate"]
    world["engine"] = identifier_server("engine", "engine", "barrel")
    again = update_graph(updated, listed(world), wanted)
    assert asked.pop() == {"engine", "barrel"}, "the new one, and who gives it barrels"
    assert {edge.source for edge in again.edges if edge.target == "engine.ship_barrel"} == {"barrel.list_barrels"}
    assert again.to_bytes() == update_graph(None, listed(world), wanted).to_bytes()


def test_keys_come_back_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = {name: identifier_server(name, name, "crate") for name in ("anvil", "barrel", "crate")}
    update_graph(None, listed(world)).save(tmp_path / "graph.json")
    old = ToolGraph.load(tmp_path / "graph.json")
    asked = watch_builds(monkeypatch)
    world["anvil"] = identifier_server("anvil", "anvil", "barrel")
    assert update_graph(old, listed(world)) == update_graph(None, listed(world))
    assert asked[0] == {"anvil", "barrel"}


def test_a_part_is_named_by_its_tools_the_settings_and_the_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = listed(random_world(3))
    plain = compute_part_digests(tools, GraphSettings())
    assert plain.keys() == {tool.server for tool in tools}
    assert plain == compute_part_digests(tools, GraphSettings())
    assert not set(plain.values()) & set(compute_part_digests(tools, GraphSettings(cross_server=False)).values())
    assert len(compute_builder_digest()) == 32
    monkeypatch.setattr(module, "compute_builder_digest", lambda: "another version")
    assert not set(plain.values()) & set(compute_part_digests(tools, GraphSettings()).values())


def test_a_graph_that_does_not_say_what_it_was_built_from_is_built_anew() -> None:
    tools = listed(random_world(5))
    full = update_graph(None, tools)
    forgetful = full.model_copy(update={"parts": None, "edges": (), "parameters": ()})
    assert update_graph(forgetful, tools) == full


def test_what_execution_showed_stays_with_servers_that_did_not_change() -> None:
    wanted = GraphSettings(cross_server=False)
    world = {f"server{home}": [random_tool(random.Random(home), f"server{home}", 1)] for home in range(2)}
    rows = tuple(
        LinkEvidence(source=one.full_name, target=one.full_name, output="$.x", input="y", by="execution", worked=1)
        for one in listed(world)
    )
    old = update_graph(None, listed(world), wanted).model_copy(update={"evidence": rows})
    world["server1"] = [random_tool(random.Random(9), "server1", 2)]
    assert update_graph(old, listed(world), wanted).evidence == rows[:1]
