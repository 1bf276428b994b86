"""Composite environments: an agent with the tools of several environments, a user with errands in each.

The state is `{environment: its state}`, a tool is `environment__tool`, and the policy has a section for each. Every
call goes to the session of its environment; sessions do not know of each other.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from trajsmith.environments.replaying import ReplayingSession
from trajsmith.environments.session import Checkpointed, EnvironmentSource, Session, ToolResult
from trajsmith.phrasing import EntityPhrases, ParameterPhrases, Phrasebook, ScenarioBook, ToolPhrases
from trajsmith.records import (
    LONGEST_NAME,
    Actor,
    EnvironmentSpec,
    InputError,
    JsonObject,
    content_hash,
    truncate_text,
)

T = TypeVar("T")
NAME_SEPARATOR = "+"
"""Between the names of environments, in the name of all together."""
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_JOINED = "joined:"
"""Before the name, in the `source` of a composite's spec."""
_LONGEST = 64
"""Characters of a tool's name that endpoints take."""


@dataclass(frozen=True)
class CompositePart:
    """Environment that is part of a composite."""

    source: EnvironmentSource
    spec: EnvironmentSpec


class CompositeLookup(dict[str, T]):
    """Environments, or what belongs to each, by name; a composite ("bank+travel") is built of its parts on demand.

    Args:
        single: The environments that are no composites.
        compose: Builds the entry of a composite from those of its parts, in the order of its name.
    """

    def __init__(self, single: Mapping[str, T], compose: Callable[[list[T]], T]) -> None:
        super().__init__(single)
        self._compose = compose

    def __missing__(self, name: str) -> T:
        parts = name.split(NAME_SEPARATOR)
        if len(parts) == 1:
            raise KeyError(name)
        self[name] = self._compose([self[part] for part in parts])
        return self[name]


def compose_tool_name(environment: str, tool: str) -> str:
    """Return the name of a tool in a composite environment: letters, digits, _ and - only."""
    return f"{_ODD.sub('_', environment)}__{tool}"


def compose_spec(specs: Sequence[EnvironmentSpec], name: str = "", description: str = "") -> EnvironmentSpec:
    """Build the spec of a composite environment; the specs in the order of their names.

    Args:
        specs: Specs of the parts.
        name: Name of all together; their names joined if left out.
        description: What all are for; their descriptions one after the other if left out.
    """
    name = name or NAME_SEPARATOR.join(spec.name for spec in specs)
    tools = tuple(
        tool.model_copy(update={"name": compose_tool_name(spec.name, tool.name), "server": name})
        for spec in specs
        for tool in spec.tools
    )
    schemas = {spec.name: spec.state_schema for spec in specs}
    return EnvironmentSpec(
        name=name,
        version=content_hash({spec.name: spec.version for spec in specs}),
        description=description or " ".join(spec.description for spec in specs if spec.description),
        policy="\n\n".join(f"## {spec.name}\n\n{spec.policy}" for spec in specs if spec.policy),
        tools=tools,
        state_schema={"type": "object", "properties": schemas, "required": list(schemas)},
        source=f"{_JOINED}{name}",
        can_restore=all(spec.can_restore for spec in specs),
    )


def find_homes(spec: EnvironmentSpec) -> dict[str, str]:
    """Return the environment of each tool of a composite; nothing where the spec is none."""
    parts = spec.state_schema.get("properties", {}) if spec.source == f"{_JOINED}{spec.name}" else {}
    prefixes = {compose_tool_name(part, ""): part for part in sorted(parts, key=len)}
    return {tool.name: part for tool in spec.tools for prefix, part in prefixes.items() if tool.name.startswith(prefix)}


class CompositeSource:
    """Source of sessions over several environments."""

    def __init__(
        self,
        parts: Sequence[CompositePart],
        name: str = "",
        description: str = "",
        words: Mapping[str, str] | None = None,
    ) -> None:
        """Parts are taken in the order of their names, so that the same ones are the same environment.

        Args:
            parts: The environments.
            name: Name of all together; their names joined if left out.
            description: As of `compose_spec`.
            words: Thing ("room_id") to the environment whose words it has, where several speak of one.

        Raises:
            InputError: Two tools would get one name, or one too long for endpoints; or the name of all is too long.
        """
        self.parts = sorted(parts, key=lambda part: part.spec.name)
        self.name = name or NAME_SEPARATOR.join(part.spec.name for part in self.parts)
        if len(self.name) > LONGEST_NAME:
            raise InputError(
                f"chains across {truncate_text(self.name, LONGEST_NAME)}: the name is longer than {LONGEST_NAME} "
                "characters: shorten the environments' names, or lower sample.servers"
            )
        self.words = words or {}
        self.homes: dict[str, tuple[str, str]] = {}
        """Tool to its environment and its name there."""
        for part in self.parts:
            for tool in part.spec.tools:
                name = compose_tool_name(part.spec.name, tool.name)
                if name in self.homes or len(name) > _LONGEST:
                    why = "is there twice" if name in self.homes else f"is longer than {_LONGEST} characters"
                    raise InputError(
                        f"chains across {self.name}: the tool {name} {why}: shorten the environments' names, or set "
                        "sample.servers to 1"
                    )
                self.homes[name] = part.spec.name, tool.name
        self.joined = compose_spec([part.spec for part in self.parts], self.name, description)
        """The spec of all together."""

    @property
    def isolation(self) -> str:
        return ", ".join(dict.fromkeys(part.source.isolation for part in self.parts))

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for part in self.parts for note in part.source.notes)

    @property
    def phrasebook(self) -> Phrasebook:
        return compose_phrasebook([(part.spec, part.source.phrasebook) for part in self.parts], self.words)

    @property
    def scenarios(self) -> ScenarioBook:
        """None: a scenario is the story of one environment."""
        return ScenarioBook()

    async def spec(self) -> EnvironmentSpec:
        return self.joined

    async def states(self, seed: int) -> list[JsonObject]:
        by_name = {part.spec.name: await part.source.states(seed) for part in self.parts}
        most = max(map(len, by_name.values()))
        return [{name: states[number % len(states)] for name, states in by_name.items()} for number in range(most)]

    async def open(self) -> Session:
        async with AsyncExitStack() as stack:
            sessions = {}
            for part in self.parts:
                session = sessions[part.spec.name] = await part.source.open()
                stack.push_async_callback(session.close)
            return CompositeSession(self.joined, sessions, self.homes, stack.pop_all())


class CompositeSession:
    """Episode over several environments; it can go back even if one of them cannot."""

    def __init__(
        self,
        spec: EnvironmentSpec,
        sessions: dict[str, Session],
        homes: dict[str, tuple[str, str]],
        stack: AsyncExitStack,
    ) -> None:
        self.spec = spec
        self._homes = homes
        self._sessions: dict[str, Any] = {
            name: session if isinstance(session, Checkpointed) else ReplayingSession(session)
            for name, session in sessions.items()
        }
        self._stack = stack

    @property
    def parts(self) -> list[Session]:
        """The sessions of the environments, each with checkpoints."""
        return list(self._sessions.values())

    async def reset(self, state: JsonObject) -> None:
        for name, session in self._sessions.items():
            await session.reset(state[name])

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        if tool not in self._homes:
            return ToolResult.refusal("unknown_tool", f"unknown tool: {tool}")
        environment, name = self._homes[tool]
        result: ToolResult = await self._sessions[environment].call(name, arguments, actor)
        return result

    async def snapshot(self) -> JsonObject:
        return {name: await session.snapshot() for name, session in self._sessions.items()}

    async def state_hash(self) -> str:
        return content_hash(await self.snapshot())

    async def checkpoint(self) -> dict[str, Any]:
        return {name: await session.checkpoint() for name, session in self._sessions.items()}

    async def rollback(self, checkpoint: dict[str, Any]) -> None:
        for name, session in self._sessions.items():
            await session.rollback(checkpoint[name])

    async def close(self) -> None:
        await self._stack.aclose()


def compose_phrasebook(
    books: Sequence[tuple[EnvironmentSpec, Phrasebook]], chosen: Mapping[str, str] | None = None
) -> Phrasebook:
    """Join the words of the environments of a composite.

    Where two speak differently of one parameter or thing, each tool keeps its own words for its parameters; the thing
    has the words of the environment that `chosen` names, or is called by its name.
    """
    chosen = chosen or {}
    tools: dict[str, ToolPhrases] = {}
    parameters: dict[str, ParameterPhrases] = {}
    entities: dict[str, EntityPhrases] = {}
    clash: set[str] = set()
    for spec, book in books:
        tools.update({compose_tool_name(spec.name, name): words for name, words in book.tools.items()})
        parameters.update(_parameters(spec, book))
        for name, words in book.entities.items():
            if chosen.get(name, spec.name) != spec.name:
                continue
            if entities.setdefault(name, words) != words:
                clash.add(name)
    return Phrasebook(
        roles=tuple(dict.fromkeys(role for _, book in books for role in book.roles)),
        scenarios=tuple(text for _, book in books for text in book.scenarios),
        name_from=tuple(f"{spec.name}.{path}" for spec, book in books for path in book.name_from),
        tools=tools,
        parameters=parameters,
        entities={name: words for name, words in entities.items() if name not in clash},
    )


def _parameters(spec: EnvironmentSpec, book: Phrasebook) -> dict[str, ParameterPhrases]:
    """Words by "tool.parameter", so that environments keep theirs; those of fields of results by their plain name."""
    phrases = {}
    for tool in spec.tools:
        for name in tool.parameters:
            words = book.parameters.get(f"{tool.name}.{name}") or book.parameters.get(name)
            if words is not None:
                phrases[f"{compose_tool_name(spec.name, tool.name)}.{name}"] = words
    return phrases | {name: words for name, words in book.parameters.items() if "." not in name}
