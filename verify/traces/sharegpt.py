"""ShareGPT and LLaMA-Factory: `conversations` of `from` and `value`, calls and results as JSON in the text."""

from collections.abc import Iterator
from typing import Any

import orjson

from trajsmith.records import RecordDropped, TraceCall, TraceDialogue
from trajsmith.verify.traces.messages import Transcript, parse_arguments

NAME = "sharegpt"
ROLES = {"system": "system", "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant"}
CALLS = ("function_call", "tool_call")
RESULTS = ("observation", "tool", "tool_response", "function_response")


def fits(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("conversations"), list)


def split(document: Any) -> Iterator[Any]:
    """One value per dialogue of a file."""
    yield from [document] if fits(document) else document


def read(value: Any, file: str, number: int) -> TraceDialogue:
    """One dialogue; several calls in one text have their results in the same order.

    Raises:
        RecordDropped: It is none; the reason says why.
    """
    if not fits(value) or not value["conversations"]:
        raise RecordDropped("no_messages", "")
    transcript = Transcript()
    if isinstance(value.get("system"), str) and value["system"]:
        transcript.say("system", value["system"])
    for entry in value["conversations"]:
        if not isinstance(entry, dict):
            raise RecordDropped("not_a_message", type(entry).__name__)
        who, text = entry.get("from"), entry.get("value")
        if who in CALLS:
            transcript.say("assistant", "", [_call(call) for call in _as_list(text)])
        elif who in RESULTS:
            transcript.result(None, text)
        else:
            transcript.say(ROLES.get(str(who), str(who)), text)
    return TraceDialogue(
        file=file,
        format=NAME,
        dialogue=str(value.get("id", number)),
        messages=tuple(transcript.messages),
        calls=tuple(transcript.calls),
    )


def _as_list(text: Any) -> list[Any]:
    try:
        calls = orjson.loads(text) if isinstance(text, str) else text
    except orjson.JSONDecodeError as error:
        raise RecordDropped("call_not_json", error.msg) from error
    return calls if isinstance(calls, list) else [calls]


def _call(call: Any) -> TraceCall:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise RecordDropped("call_without_name", str(call)[:80])
    arguments = call.get("arguments", call.get("parameters"))
    return TraceCall(tool=call["name"], arguments=parse_arguments(arguments or {}, call["name"]))
