"""OpenAI's reinforcement fine-tuning JSON Lines: a prompt that ends with the user, and the calls that come next.

A row has no episode: the service samples one message and asks `grader.json` beside the data for its grade. So there is
a row for every message of the agent that answers the user by calls. The system prompt is a developer's message.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

import orjson

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.formats.openai import build_openai_message, check_tools
from trajsmith.export.history import find_context_messages
from trajsmith.records import JsonObject

GRADER = Path(__file__).parents[1] / "templates" / "openai_rft_grader.py.txt"


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    tools, messages = item.row["tools"], item.row["messages"]
    check_tools(tools)
    prompt = [build_openai_message(message) for message in messages]
    for message in prompt:
        if message["role"] == "system":
            message["role"] = "developer"
    context = find_context_messages(item.row)
    for index, message in enumerate(messages):
        calls = message.get("tool_calls")
        if not calls or index in context or messages[index - 1]["role"] != "user":
            continue
        expected = [call["function"] for call in prompt[index]["tool_calls"]]
        about = {"task_id": item.task.id, "environment": item.row["environment"], "expected_calls": expected}
        yield {"messages": prompt[:index], "tools": tools, **about}


def files(splits: Collection[str]) -> dict[str, str]:
    grader = {"type": "python", "name": "trajsmith_calls", "source": GRADER.read_text("utf-8")}
    return {"grader.json": orjson.dumps(grader, option=orjson.OPT_INDENT_2).decode()}


FORMATS.register("openai_rft")(
    Format(
        "OpenAI reinforcement fine-tuning: prompts and the calls that come next, with a grader", rows, None, files=files
    )
)
