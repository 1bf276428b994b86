"""What every bundled environment promises, whoever wrote it."""

import asyncio
import functools
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin

import orjson
import pytest
import replay_elsewhere
from pydantic import BaseModel

from trajsmith.environments import native
from trajsmith.environments.library import ENVIRONMENTS, SIZES, get_phrases_path
from trajsmith.environments.native import Environment, native_tools
from trajsmith.environments.native_program import NativeSession
from trajsmith.environments.session import ToolResult
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.grounding.fields import list_input_fields, list_output_fields
from trajsmith.phrasing import Phrasebook, load_phrasebook
from trajsmith.phrasing.templates import list_slots, render_phrase
from trajsmith.records import (
    Actor,
    Chain,
    GroundedChain,
    InputError,
    JsonObject,
    RecordDropped,
    UserCache,
    compute_state_digest,
    content_hash,
)
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, compute_closure_depths

ROOT = Path(__file__).parents[2]
CHAINS = 40
STATES = 2
RULE = re.compile(r"^\s*(?:[-*]\s*)?\d+[.)]\s", re.MULTILINE)

each = pytest.mark.parametrize("name", ENVIRONMENTS.names())


class Watched(NativeSession):
    """A session that notes of every call that succeeds whether the state has changed."""

    def __init__(self, cls: type[Environment[Any]]) -> None:
        super().__init__(cls, cls.describe())
        self.seen: list[tuple[str, JsonObject, bool]] = []

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        before = await self.state_hash()
        result = await super().call(tool, arguments, actor)
        if result.ok:
            self.seen.append((tool, arguments, await self.state_hash() != before))
        return result


@dataclass
class Grounded:
    """Chains of one environment, run for real."""

    states: dict[str, JsonObject] = field(default_factory=dict)
    chains: list[GroundedChain] = field(default_factory=list)
    seen: list[tuple[str, JsonObject, bool]] = field(default_factory=list)


@functools.cache
def graph_of(name: str) -> GraphIndex:
    return GraphIndex(build_graph(ENVIRONMENTS.get(name).describe().tools), name)


@functools.cache
def phrases_of(name: str) -> Phrasebook:
    return load_phrasebook(get_phrases_path(ENVIRONMENTS.get(name)))


@functools.cache
def grounded(name: str) -> Grounded:
    """Sampled chains, grounded on small states; a chain that cannot be grounded is left out."""
    cls = ENVIRONMENTS.get(name)
    found = Grounded()
    states = [cls.seed_state("small", seed).model_dump(mode="json") for seed in range(STATES)]
    grounders = [Grounder(cls.describe(), state, phrases_of(name), GroundSettings()) for state in states]
    sampler = Sampler(graph_of(name), SampleSettings())
    session = Watched(cls)

    async def ground_all() -> None:
        for index in range(CHAINS):
            tools, dependencies = sampler.draw(random.Random(index))
            state = states[index % STATES]
            chain = Chain(
                index=index,
                environment=name,
                tools=tuple(tools),
                dependencies=tuple(dependencies),
                state=content_hash(state),
                sampler={},
                seed=index,
            )
            found.states[chain.state] = state
            try:
                found.chains.append(await grounders[index % STATES].ground(chain, session))
            except RecordDropped as dropped:
                assert dropped.reason == "too_few_calls"

    asyncio.run(ground_all())
    found.seen = session.seen
    return found


def tables(cls: type[Environment[Any]]) -> list[str]:
    """Fields of the state that are `dict[str, Model]`."""
    found = []
    for name, info in cls.state_type().model_fields.items():
        arguments = get_args(info.annotation)
        is_table = get_origin(info.annotation) is dict and isinstance(arguments[1], type)
        if is_table and issubclass(arguments[1], BaseModel):
            found.append(name)
    return found


@functools.cache
def seeded(name: str, size: str) -> bytes:
    """One state of each size, as bytes; large ones take a while to make."""
    cls = ENVIRONMENTS.get(name)
    return cls(cls.seed_state(size, 7)).dump()


def rows(name: str, size: str) -> int:
    state = orjson.loads(seeded(name, size))
    return sum(len(state[table]) for table in tables(ENVIRONMENTS.get(name)))


def templates(value: Any, skip: frozenset[str] = frozenset()) -> Iterator[str]:
    """All texts inside a phrasebook part, but not those under the keys of `skip`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, child in value.items():
            if key not in skip:
                yield from templates(child, skip)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from templates(child, skip)


def field_names(schema: Any) -> Iterator[str]:
    """Names of all properties anywhere in a schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"]
        for child in schema.values():
            yield from field_names(child)
    elif isinstance(schema, list):
        for child in schema:
            yield from field_names(child)


def names_in_tools(name: str) -> set[str]:
    tools = ENVIRONMENTS.get(name).describe().tools
    return {
        found for tool in tools for schema in (tool.input_schema, tool.output_schema) for found in field_names(schema)
    }


def test_there_are_environments_to_test() -> None:
    assert len(ENVIRONMENTS.names()) >= 8


# Shape


@each
def test_size_of_the_toolset(name: str) -> None:
    tools = ENVIRONMENTS.get(name).describe().tools
    assert 10 <= len(tools) <= 25
    assert ENVIRONMENTS.get(name).environment_name() == name
    assert {tool.server for tool in tools} == {name}


@each
def test_there_are_six_tables_of_entities(name: str) -> None:
    assert len(tables(ENVIRONMENTS.get(name))) >= 6


@each
def test_the_policy_has_five_numbered_rules(name: str) -> None:
    assert len(RULE.findall(ENVIRONMENTS.get(name).describe().policy)) >= 5


@each
def test_everything_is_described(name: str) -> None:
    spec = ENVIRONMENTS.get(name).describe()
    silent = [tool.name for tool in spec.tools if not tool.description.strip()]
    silent += [
        f"{tool.name}.{parameter}"
        for tool in spec.tools
        for parameter, schema in tool.parameters.items()
        if not schema.get("description", "").strip()
    ]
    assert silent == []
    assert spec.description
    assert spec.domain


# States


@each
def test_sizes_grow_to_thousands_of_entities(name: str) -> None:
    small, medium, large = (rows(name, size) for size in SIZES)
    assert small < medium < large
    assert large >= 2000


@each
@pytest.mark.parametrize("size", SIZES)
def test_the_same_seed_gives_the_same_state(name: str, size: str) -> None:
    cls = ENVIRONMENTS.get(name)
    assert cls(cls.seed_state(size, 7)).dump() == seeded(name, size)
    if size != "large":
        assert cls(cls.seed_state(size, 8)).dump() != seeded(name, size)


@each
@pytest.mark.parametrize("size", SIZES)
def test_a_dump_restores_to_the_same_bytes(name: str, size: str) -> None:
    cls = ENVIRONMENTS.get(name)
    dumped = seeded(name, size)
    again = cls(cls.state_type().model_construct())
    again.restore(dumped)
    assert again.dump() == dumped


@each
async def test_a_session_sees_the_same_state(name: str) -> None:
    cls = ENVIRONMENTS.get(name)
    state = cls.seed_state("small", 5).model_dump(mode="json")
    session = NativeSession(cls, cls.describe())
    await session.reset(state)
    assert await session.state_hash() == compute_state_digest(state)
    assert await session.snapshot() == state


@each
def test_rows_are_kept_under_their_own_id(name: str) -> None:
    """The key of a row is one of its own values wherever any row of the table has it so."""
    state = ENVIRONMENTS.get(name).seed_state("small", 2).model_dump(mode="json")
    for table in tables(ENVIRONMENTS.get(name)):
        keyed = [key in map(str, row.values()) for key, row in state[table].items()]
        assert all(keyed) or not any(keyed), table


@each
def test_references_lead_to_rows(name: str) -> None:
    """A field that is called like the id of a table's rows holds an id of such a table; what was deleted is gone."""
    cls = ENVIRONMENTS.get(name)
    state = cls.seed_state("medium", 2).model_dump(mode="json")
    owners: dict[str, set[str]] = {}
    for table in tables(cls):
        for key, row in state[table].items():
            own = next((column for column, value in row.items() if value == key), None)
            if own is not None and own.endswith("_id"):
                owners.setdefault(own, set()).update(state[table])
                break
    dangling = [
        f"{table}.{key}.{column}={value}"
        for table in tables(cls)
        for key, row in state[table].items()
        if row.get("deleted_at") is None
        for column, value in row.items()
        if column in owners and value is not None and value not in owners[column]
    ]
    assert owners
    assert dangling == []


# Graph


@each
def test_required_internal_parameters_have_producers(name: str) -> None:
    index = graph_of(name)
    needs = [(tool, parameter) for tool in index.tools for parameter in index.needs[tool]]
    orphans = [need for need in needs if not [source for source in index.sources(*need) if source != need[0]]]
    assert needs
    assert orphans == []


@each
def test_every_tool_can_be_reached_within_three_levels(name: str) -> None:
    depths = compute_closure_depths(graph_of(name))
    assert set(depths) == set(graph_of(name).tools)
    assert max(depths.values()) <= 3


# Phrasebook


@each
def test_phrasebook_tools_exist(name: str) -> None:
    tools = {tool.name for tool in ENVIRONMENTS.get(name).describe().tools}
    assert set(phrases_of(name).tools) - tools == set()


@each
def test_phrasebook_parameters_and_entities_exist(name: str) -> None:
    spec, phrases, known = ENVIRONMENTS.get(name).describe(), phrases_of(name), names_in_tools(name)
    strange = [f"entity {key}" for key in phrases.entities if key not in known]
    for key in phrases.parameters:
        tool, dot, parameter = key.partition(".")
        leaves = {leaf.name for leaf in list_input_fields(spec.tool(tool))} if dot and tool in names(spec) else set()
        if parameter not in leaves if dot else key not in known:
            strange.append(f"parameter {key}")
    assert strange == []


def names(spec: Any) -> set[str]:
    return {tool.name for tool in spec.tools}


@each
def test_phrasebook_choices_exist(name: str) -> None:
    """Words for an enumerated value are words for a value that some schema has."""
    state = orjson.dumps(ENVIRONMENTS.get(name).describe().model_dump(mode="json")).decode()
    large = ENVIRONMENTS.get(name).seed_state("medium", 1).model_dump_json()
    strange = [
        f"{key}: {value}"
        for key, phrases in phrases_of(name).parameters.items()
        for value in phrases.values
        if f'"{value}"' not in state + large and value not in ("true", "false") and not value.isdigit()
    ]
    assert strange == []


@each
def test_all_templates_compile_and_know_their_slots(name: str) -> None:
    phrases, wrong = phrases_of(name), []
    spec = ENVIRONMENTS.get(name).describe()
    allowed: list[tuple[str, Any, set[str]]] = [("scenarios", phrases.scenarios, {"name", "role"})]
    for tool, said in phrases.tools.items():
        parameters = {leaf.name for leaf in list_input_fields(spec.tool(tool))} | set(spec.tool(tool).parameters)
        before = (said.ask, said.say, said.narrate, said.request)
        after = {"out", "arg", "before", "others", "user_name", "now"}
        allowed += [(tool, before, parameters), (tool, (said.done, said.report), after)]
        allowed.append((tool, said.confirm, parameters | {"row", "now"}))
        fields = {field for text in said.confirm for field in re.findall(r"\brow(?:\.|\[')(\w+)", text)}
        wrong += [f"{tool}: no result has the field {field}" for field in sorted(fields - names_in_tools(name))]
    for key, parameter in phrases.parameters.items():
        allowed += [(key, parameter.tell, {"value"}), (key, parameter.ask, set())]
    for key, entity in phrases.entities.items():
        allowed += [(key, entity.by, {"value", "noun"}), (key, [*entity.row], names_in_tools(name))]
    for where, texts, free in allowed:
        for text in templates(texts):
            try:
                render_phrase(text, {})
                unknown = list_slots(text) - free
            except InputError as error:
                wrong.append(str(error))
            else:
                wrong += [f"{where}: {text!r} has no value for {slot}" for slot in sorted(unknown)]
    assert wrong == []


@each
def test_facts_stand_in_the_result(name: str) -> None:
    spec = ENVIRONMENTS.get(name).describe()
    strange = [
        f"{tool}: {fact}"
        for tool, said in phrases_of(name).tools.items()
        for fact in said.facts
        if not any(
            leaf.path == fact or leaf.path.startswith(f"{fact}[") for leaf in list_output_fields(spec.tool(tool))
        )
    ]
    assert strange == []


@each
def test_tools_have_the_phrases_that_their_role_needs(name: str) -> None:
    missing = []
    for tool in ENVIRONMENTS.get(name).describe().tools:
        said = phrases_of(name).tools.get(tool.name)
        wanted = {"phrases": said}
        if said is not None and tool.actor == "user":
            wanted = {"request": said.request, "report": said.report}
        elif said is not None and tool.declares_write:
            wanted = {"done": said.done, "facts": said.facts, "ask or say": said.ask or said.say}
        missing += [f"{tool.name}: {what}" for what, texts in wanted.items() if not texts]
    assert missing == []


# Execution


@each
def test_chains_can_be_grounded(name: str) -> None:
    assert len(grounded(name).chains) >= 0.75 * CHAINS


@each
def test_reads_never_change_the_state(name: str) -> None:
    tools = native_tools(ENVIRONMENTS.get(name))
    lying = {tool for tool, _, changed in grounded(name).seen if changed and tools[tool].effect == "read"}
    assert lying == set()


@each
def test_writes_that_succeed_change_the_state(name: str) -> None:
    tools = native_tools(ENVIRONMENTS.get(name))
    lying = {tool for tool, _, changed in grounded(name).seen if not changed and tools[tool].effect == "write"}
    assert lying == set()


@each
def test_gold_effects_are_as_declared(name: str) -> None:
    tools = native_tools(ENVIRONMENTS.get(name))
    wrong = {
        call.tool for chain in grounded(name).chains for call in chain.calls if call.effect != tools[call.tool].effect
    }
    assert wrong == set()


@each
def test_nine_tools_in_ten_get_called(name: str) -> None:
    called = {call.tool for chain in grounded(name).chains for call in chain.calls}
    missing = names(ENVIRONMENTS.get(name).describe()) - called
    assert len(missing) <= 0.1 * len(native_tools(ENVIRONMENTS.get(name))), missing


# Another process


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, Any]:
    """The same gold calls made in one process with another hash seed."""
    request = {
        name: [
            {"state": found.states[chain.initial_state], "calls": [(c.tool, c.arguments, c.actor) for c in chain.calls]}
            for chain in found.chains[:12]
        ]
        for name in ENVIRONMENTS.names()
        if (found := grounded(name))
    }
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, str(Path(replay_elsewhere.__file__))],
        input=orjson.dumps(request),
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": other, "PYTHONPATH": str(ROOT), "TZ": "Asia/Tokyo"},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return orjson.loads(done.stdout)


@each
def test_gold_calls_give_the_same_in_another_process(name: str, elsewhere: dict[str, Any]) -> None:
    here = [
        [
            part
            for state, call in zip(chain.states, chain.calls, strict=True)
            for part in (state, ToolResult(call.result).hash)
        ]
        for chain in grounded(name).chains[:12]
    ]
    assert len(here) == 12
    assert elsewhere[name]["replayed"] == here


@each
def test_states_versions_and_chains_are_the_same_in_another_process(name: str, elsewhere: dict[str, Any]) -> None:
    cls = ENVIRONMENTS.get(name)
    assert elsewhere[name]["seeded"] == cls.seed_state("small", 3).model_dump(mode="json")
    assert elsewhere[name]["version"] == cls.describe().version
    assert elsewhere[name]["sampled"] == orjson.loads(orjson.dumps(replay_elsewhere.sampled(name)))


@each
def test_a_stored_spec_is_the_one_that_was_built(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAJSMITH_CACHE", str(tmp_path))
    monkeypatch.setattr(native, "_SPECS", UserCache("specs"))
    cls = ENVIRONMENTS.get(name)
    built = native._describe.__wrapped__(cls)
    monkeypatch.setattr(native, "build_class_spec", None)
    stored = native._describe.__wrapped__(cls)
    assert stored == built == cls.describe()
    assert stored.model_dump_json() == built.model_dump_json()
