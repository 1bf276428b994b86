"""Recorded calls with their results, in order, dialogue by dialogue: what a clone is inferred from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from trajsmith.records import DEEPEST_JSON, JsonObject, TraceDialogue, is_too_deep

LONGEST_RESULT = 200_000
"""Characters of a result; a longer one is left out with a reason."""
FAULT_KEYS = frozenset({"error", "errors", "error_message"})
FAULT_WORDS = ("error:", "error executing tool", "error -", "traceback (most recent")


@dataclass(frozen=True)
class TracedCall:
    """A call with its result.

    Attributes:
        result: JSON of the result; text where it is none.
        failed: True if the recording says that it was refused, or its result reads so.
    """

    tool: str
    arguments: JsonObject
    result: Any
    failed: bool = False


@dataclass
class RecordedDialogue:
    """Calls of one dialogue, from one initial state."""

    name: str
    calls: list[TracedCall]
    task: str = ""
    reward: float | None = None
    messages: list[JsonObject] = field(default_factory=list)
    """The whole dialogue as chat messages, where its recorded agent failed."""


@dataclass
class ToolDefinition:
    """Facts that a recording states of a tool beside its calls."""

    description: str = ""
    input_schema: JsonObject | None = None
    reads: bool | None = None
    """True if the protocol says that it changes nothing (GET of HTTP); None if nothing says so."""


@dataclass
class CallRecording:
    dialogues: list[RecordedDialogue]
    tools: dict[str, ToolDefinition] = field(default_factory=dict)
    policy: str = ""
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """What was left out, and why."""

    @property
    def calls(self) -> Iterable[tuple[int, int, TracedCall]]:
        """Every call with the numbers of its dialogue and within it."""
        for number, dialogue in enumerate(self.dialogues):
            for place, call in enumerate(dialogue.calls):
                yield number, place, call

    def select(self, numbers: Sequence[int]) -> "CallRecording":
        return CallRecording([self.dialogues[n] for n in numbers], self.tools, self.policy, self.left_out)


def parse_result(text: str | None) -> Any:
    """Return the JSON of a result, or its text."""
    if text is None:
        return None
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"') or stripped in ("true", "false", "null") or _reads_as_number(stripped):
        try:
            return orjson.loads(stripped)
        except orjson.JSONDecodeError:
            return stripped
    return stripped


def _reads_as_number(text: str) -> bool:
    return len(text) < 24 and text[:1] in "-0123456789" and not (text[:1] == "0" and text[1:2].isdigit())


def is_refusal(result: Any) -> bool:
    """Return True if a result reads like a refusal."""
    if isinstance(result, str):
        return result.strip().lower().startswith(FAULT_WORDS)
    return (
        isinstance(result, dict)
        and bool(result)
        and set(result) <= {*FAULT_KEYS, "status", "code"}
        and bool(FAULT_KEYS & set(result))
    )


def extract_fault(result: Any) -> Any:
    """Return the text of a refusal."""
    if isinstance(result, dict):
        texts = [value for name, value in result.items() if name in FAULT_KEYS]
        text = texts[0] if texts else result
        if isinstance(text, dict) and isinstance(text.get("message"), str):
            text = text["message"]
        return text if isinstance(text, str) else orjson.dumps(text).decode()
    return result


def convert_dialogue(dialogue: TraceDialogue, left_out: list[tuple[str, str]]) -> RecordedDialogue:
    """Return the calls of a dialogue that have results; what has none or too much of one is left out."""
    calls = []
    for number, call in enumerate(dialogue.calls):
        where = f"{dialogue.file}:{dialogue.dialogue}: call {number}"
        if call.output is not None and len(call.output) > LONGEST_RESULT:
            left_out.append((where, f"its result has more than {LONGEST_RESULT} characters"))
            continue
        result = parse_result(call.output)
        if is_too_deep(result) or is_too_deep(call.arguments):
            left_out.append((where, f"nested deeper than {DEEPEST_JSON} levels"))
            continue
        failed = call.failed or is_refusal(result)
        calls.append(TracedCall(call.tool, call.arguments, extract_fault(result) if failed else result, failed))
    reward = dialogue.recorded.get("reward")
    failed = isinstance(reward, int | float) and reward < 1
    return RecordedDialogue(
        name=f"{dialogue.file}:{dialogue.dialogue}",
        calls=calls,
        task=dialogue.task.name if dialogue.task else "",
        reward=float(reward) if isinstance(reward, int | float) else None,
        messages=build_chat_messages(dialogue) if failed else [],
    )


def build_chat_messages(dialogue: TraceDialogue) -> list[JsonObject]:
    """Return a dialogue as chat messages, each result after the message that made its call."""
    messages: list[JsonObject] = []
    for place, message in enumerate(dialogue.messages):
        calls = [call for call in dialogue.calls if call.message == place and call.id]
        row: JsonObject = {"role": message.role, "content": message.content}
        if calls:
            row["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
                for call in calls
            ]
        messages.append(row)
        messages += [{"role": "tool", "tool_call_id": call.id, "content": call.output or ""} for call in calls]
    return messages


def freeze(value: Any) -> Any:
    """Return a value that compares and hashes as JSON does: 1 equals 1.0 and not True."""
    if isinstance(value, dict):
        return ("{", tuple(sorted((key, freeze(inner)) for key, inner in value.items())))
    if isinstance(value, list):
        return ("[", tuple(freeze(inner) for inner in value))
    if isinstance(value, bool):
        return ("b", value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 6)
    return value
