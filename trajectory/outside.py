"""Dialogues that somebody else recorded, in one form whatever file they came from."""

from typing import ClassVar

from trajectory.canonical import JsonObject, JsonValue
from trajectory.message import Message
from trajectory.record import Frozen, Record
from trajectory.tool import Actor


class OutsideCall(Frozen):
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


class OutsideTask(Frozen):
    """The task that a recorded dialogue belongs to, as far as its file tells."""

    name: str
    """The file's own id of the task."""
    scenario: str = ""
    """What the user was told."""
    gold: tuple[OutsideCall, ...] | None = None
    """Calls that fulfil the task, or None if nobody said so."""
    facts: tuple[JsonValue, ...] = ()
    """Values that the agent had to tell."""
    start: tuple[OutsideCall, ...] = ()
    """Calls that were made before the dialogue began."""


class Outside(Record):
    """One recorded dialogue."""

    PREFIX: ClassVar[str] = "outside"

    file: str
    """Name of the file that it came from."""
    format: str
    dialogue: str
    """The file's own id of the dialogue, or its number."""
    messages: tuple[Message, ...]
    """Without the tool results: these stand with the calls."""
    calls: tuple[OutsideCall, ...] = ()
    task: OutsideTask | None = None
    recorded: JsonObject = {}
    """Verdicts of the recording: "reward", "state_match"."""
    models: dict[str, str] = {}
    """Role to model name, where the file tells."""
