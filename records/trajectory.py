"""Trajectories: messages and calls of one episode of a task."""

from typing import ClassVar, Literal

from trajsmith.records.canonical import JsonObject, JsonValue
from trajsmith.records.directory_tools import DIRECTORY_TOOLS
from trajsmith.records.message import Message
from trajsmith.records.record import FrozenModel, Record
from trajsmith.records.tool import Actor

StopReason = Literal[
    "user_stop", "step_limit", "turn_limit", "agent_gave_up", "bad_calls", "environment_fault", "model_fault"
]
MALFORMED = "malformed"
"""Error of a call whose arguments are no JSON object: it never reached the environment."""
NOT_SHOWN = "not_shown"
"""Error of a call of a tool that no search has shown yet: it never reached the environment."""


class CallEvent(FrozenModel):
    """One call, by the agent or by the user on their own device; `call_tool` stands as the tool that it called."""

    actor: Actor
    tool: str
    arguments: JsonObject
    ok: bool
    error: str | None = None
    """Kind of refusal: "refused", "invalid_arguments", "unknown_tool", "malformed", or "not_shown"."""
    result_hash: str
    """Hash of the structured result, compared on replay where the environment is deterministic."""
    message: int
    """Index of the message that made the call, or after which the user made it."""
    effect: JsonValue = None
    """State diff of this call (RFC 6902), or None if it changed nothing."""
    agrees: bool | None = None
    """Of an imported trajectory: whether the recording shows the same result; None if it shows none."""

    @property
    def reached(self) -> bool:
        """Return True if the call reached the environment."""
        return self.error not in (MALFORMED, NOT_SHOWN) and self.tool not in DIRECTORY_TOOLS


class TurnSpan(FrozenModel):
    """Messages `start` to `stop` (exclusive) belong to one turn of the task."""

    start: int
    stop: int
    state_hash: str
    """State hash after the turn."""


class InjectedFault(FrozenModel):
    """A mistake that the agent made on purpose."""

    kind: str
    """Kind of the mistake: "wrong_entity", "skipped_confirmation", ..."""
    message: int
    """Index of the message with which it was made."""


class RepairOrigin(FrozenModel):
    """Origin of a play that goes on rightly from a failed one."""

    of: str
    """Id of the failed play."""
    kind: Literal["cut", "recover"]
    """`cut`: everything before the correction is right. `recover`: the step before it is wrong, and stays."""
    message: int
    """Index of the first message of the correction; all before it are those of the failed play, and are not learnt."""
    mistake: str
    """Kind of the mistake of the failed play: the injected one, or the first wrong step."""
    beyond: tuple[str, ...]
    """Why the play could not be kept for one step more: reasons of the verdict on its best continuation."""


class Trajectory(Record):
    """One episode of a task."""

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
    prompts: dict[str, str] = {}
    """Prompts that the roles were given: name to hash of the file."""
    stop_reason: StopReason
    fault: str = ""
    """Kind of the fault that ended the play, where one did: "timeout", "content_filter"."""
    injected: tuple[InjectedFault, ...] | None = None
    """Mistakes that were injected to test verification; None if there are none."""
    recorded: JsonObject | None = None
    """Of an imported trajectory: its file, its id there, and the verdicts that the file holds."""
    repair: RepairOrigin | None = None
    """Of a repaired play: the failed play, and from where on it is learnt."""
