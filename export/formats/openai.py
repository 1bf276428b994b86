"""OpenAI's fine-tuning JSON Lines: arguments are JSON strings, an absent text is left out, reasoning has no place.

Messages of the assistant that are context have the weight 0.
"""

import re
from collections.abc import Iterator, Sequence

import orjson

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import find_context_messages
from trajsmith.records import JsonObject, RecordDropped

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_TOOLS = 128


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    tools = item.row["tools"]
    check_tools(tools)
    messages = [build_openai_message(message) for message in item.row["messages"]]
    for index in find_context_messages(item.row):
        messages[index]["weight"] = 0
    line: JsonObject = {"messages": messages}
    yield {**line, "tools": tools} if tools else line


def check_tools(tools: Sequence[JsonObject]) -> None:
    """Refuse tools that the service refuses.

    Raises:
        RecordDropped: A name is not allowed, or there are too many.
    """
    for tool in tools:
        name = tool["function"]["name"]
        if not NAME.fullmatch(name):
            raise RecordDropped("openai_tool_name", f"{name}: OpenAI takes 1 to 64 letters, digits, _ and -")
    if len(tools) > MAX_TOOLS:
        raise RecordDropped("openai_too_many_tools", f"{len(tools)}; OpenAI takes {MAX_TOOLS}")


def build_openai_message(message: JsonObject) -> JsonObject:
    """A message of a row as OpenAI's service takes it."""
    if message["role"] == "tool":
        return {"role": "tool", "tool_call_id": message["tool_call_id"], "content": message["content"]}
    if message["role"] != "assistant":
        return {"role": message["role"], "content": message["content"]}
    serialized: JsonObject = {"role": "assistant"}
    if message["content"] or "tool_calls" not in message:
        serialized["content"] = message["content"]
    if "tool_calls" in message:
        serialized["tool_calls"] = [_build_openai_call(call) for call in message["tool_calls"]]
    return serialized


def _build_openai_call(call: JsonObject) -> JsonObject:
    function = call["function"]
    arguments = orjson.dumps(function["arguments"]).decode()
    return {"id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": arguments}}


FORMATS.register("openai")(Format("OpenAI fine-tuning JSON Lines: arguments as strings, no reasoning", rows, None))
