"""Dialogues recorded by other systems, in one form for all file formats."""

from typing import ClassVar

from trajsmith.records.canonical import JsonObject, JsonValue
from trajsmith.records.message import Message
from trajsmith.records.record import FrozenModel, Record
from trajsmith.records.tool import Actor


class TraceCall(FrozenModel):
    """A call that the recording shows, or that its task holds as gold."""

    actor: Actor = "assistant"
    tool: str
    """Name as recorded; the environment's own plain name may be a part of it."""
    arguments: JsonObject
    message: int = 0
    """Index of the message that made the call, or after which the user made it."""
    id: str = ""
    """Id of the tool call in its message; empty for calls of the user."""
    output: str | None = None
    """What the recording says came back, or None if it does not say."""
    failed: bool = False
    """The recording says that it failed."""


class TraceTask(FrozenModel):
    """The task that a recorded dialogue belongs to, as far as its file tells."""

    name: str
    """The file's own id of the task."""
    scenario: str = ""
    """What the user was told."""
    gold: tuple[TraceCall, ...] | None = None
    """Calls that fulfil the task, or None if nobody said so."""
    facts: tuple[JsonValue, ...] = ()
    """Values that the agent had to tell."""
    start: tuple[TraceCall, ...] = ()
    """Calls that were made before the dialogue began."""


class TraceDialogue(Record):
    """One recorded dialogue."""

    PREFIX: ClassVar[str] = "outside"

    file: str
    """Name of the file that it came from."""
    format: str
    dialogue: str
    """The file's own id of the dialogue, or its number."""
    messages: tuple[Message, ...]
    """Without the tool results: these stand with the calls."""
    calls: tuple[TraceCall, ...] = ()
    task: TraceTask | None = None
    recorded: JsonObject = {}
    """Verdicts of the recording: "reward", "state_match"."""
    models: dict[str, str] = {}
    """Role to model name, where the file tells."""
