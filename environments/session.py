"""Interfaces that every environment offers to the other packages, wherever its code comes from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, runtime_checkable

import orjson

from trajsmith.records import Actor, EnvironmentSpec, JsonObject, JsonValue, content_hash

if TYPE_CHECKING:  # sandboxed workers import this module, and speak no language
    from trajsmith.phrasing import Phrasebook, ScenarioBook

RefusalKind = Literal["refused", "invalid_arguments", "unknown_tool"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of a call. A refusal is a result too; only faults of the environment are exceptions.

    Attributes:
        content: Structured result (a JSON object), or text where the tool gives only text.
        error: Kind of refusal, or None if the call succeeded.
    """

    content: JsonValue
    error: RefusalKind | None = None

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def text(self) -> str:
        """Text that the agent sees: a JSON string, or the text itself."""
        return self.content if isinstance(self.content, str) else orjson.dumps(self.content).decode()

    @property
    def hash(self) -> str:
        return content_hash(self.content, 16)

    @classmethod
    def refusal(cls, kind: RefusalKind, message: str) -> "ToolResult":
        return cls({"error": message}, kind)


class Session(Protocol):
    """Isolated episode of one environment. Faults are raised as `EnvironmentFault`."""

    spec: EnvironmentSpec

    async def reset(self, state: JsonObject) -> None:
        """Start from this state, whatever happened before."""

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Call a tool as `actor`; only tools of that actor exist for it. A refused call leaves the state as it was."""

    async def snapshot(self) -> JsonObject:
        """The state as JSON: all of it, or what can be observed of a live server."""

    async def state_hash(self) -> str:
        """Hash of the snapshot."""

    async def close(self) -> None:
        """Free what the session holds."""


@runtime_checkable
class Checkpointed(Protocol):
    """Session that can go back to earlier states; `trajsmith.environments.replaying` makes one of any session."""

    async def checkpoint(self) -> Any:
        """An opaque point to roll back to; cheaper than a snapshot."""

    async def rollback(self, checkpoint: Any) -> None:
        """Go back to a checkpoint of any session of this environment."""


class InitialAction(TypedDict):
    """Something that is done to a state before the dialogue of a task begins."""

    tool: str
    """A tool, or, where the environment's form allows it, another method of the toolkit."""
    arguments: JsonObject
    actor: Actor


@runtime_checkable
class Preparable(Protocol):
    """Sessions of environments whose tasks may start with more than tool calls."""

    async def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        """Run the initial actions of a task; returns why one was refused, or None. Never for calls of an agent."""


class EnvironmentSource(Protocol):
    """Source of sessions of one environment."""

    @property
    def name(self) -> str:
        """The environment's name; of foreign code only its file's name, until its spec was asked for."""

    @property
    def isolation(self) -> str:
        """Short description of where the code runs; written into the run and the dataset card."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the loader on the environment's files; available with the spec."""

    @property
    def phrasebook(self) -> "Phrasebook":
        """Phrasebook of the environment; empty where there is none."""

    @property
    def scenarios(self) -> "ScenarioBook":
        """Scenarios of the environment; empty where there are none."""

    async def spec(self) -> EnvironmentSpec:
        """Describe the environment; starts it once if it must be asked."""

    async def states(self, seed: int) -> list[JsonObject]:
        """The initial states that a run uses; the same seed gives the same states."""

    async def open(self) -> Session:
        """A new session; `reset` it before use."""
