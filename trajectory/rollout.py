"""Trajectories: what was said and done in one play of a task."""

from typing import ClassVar, Literal

from trajectory.canonical import JsonObject, JsonValue
from trajectory.message import Message
from trajectory.record import Frozen, Record
from trajectory.tool import Actor

StopReason = Literal["user_stop", "step_limit", "turn_limit", "agent_gave_up", "environment_fault"]


class CallEvent(Frozen):
    """One call that reached the environment, by the agent or by the user on their own device."""

    actor: Actor
    tool: str
    arguments: JsonObject
    ok: bool
    error: str | None = None
    """Kind of refusal: "refused", "invalid_arguments", "unknown_tool"."""
    result_hash: str
    """Hash of the structured result, compared on replay where the environment is deterministic."""
    message: int
    """Index of the message that made the call, or after which the user made it."""
    effect: JsonValue = None
    """State diff of this call (RFC 6902), or None if it changed nothing."""
    agrees: bool | None = None
    """Of an imported trajectory: whether the recording shows the same result; None if it shows none."""


class TurnSpan(Frozen):
    """Messages `start` to `stop` (exclusive) belong to one turn of the task."""

    start: int
    stop: int
    state_hash: str
    """State hash after the turn."""


class Trajectory(Record):
    """One play of a task."""

    PREFIX: ClassVar[str] = "traj"

    task_id: str
    environment: str
    candidate: int
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    """Plain names of the tools as shown, in the order of showing; their schemas are in the environment spec."""
    events: tuple[CallEvent, ...]
    turns: tuple[TurnSpan, ...]
    initial_state: str
    final_state: str
    """State hash at the end."""
    diff: tuple[JsonObject, ...]
    """RFC 6902 from the initial to the final state."""
    models: dict[str, str]
    """Role to model name, "scripted" where no model spoke."""
    stop_reason: StopReason
    recorded: JsonObject | None = None
    """Of an imported trajectory: its file, its id there, and the verdicts that the file holds."""
