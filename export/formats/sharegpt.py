"""ShareGPT as LLaMA-Factory reads it, with the dataset_info.json that names the files.

LLaMA-Factory wants the two sides to alternate strictly: parallel calls are one `function_call`, a JSON list, and their
results one `observation`, joined as its own converter joins them. Text beside calls stands before
`<tool_call>[...]</tool_call>` in the same value, which its formatter takes since 0.9.5; reasoning stands in
`<think>` before everything.
"""

from collections.abc import Collection, Iterator

import orjson

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import refuse_context
from trajsmith.records import JsonObject, RecordDropped

BETWEEN_RESULTS = "\n</tool_response>\n<tool_response>\n"
CALLS = ("<tool_call>", "</tool_call>")
THINK = ("<think>\n", "\n</think>\n\n")


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    refuse_context(item.row)
    messages = item.row["messages"]
    system = messages[0]["content"] if messages[0]["role"] == "system" else ""
    spoken = messages[1:] if messages[0]["role"] == "system" else messages
    conversations = list(_merge_messages(spoken))
    _check_alternating(conversations)
    functions = [tool["function"] for tool in item.row["tools"]]
    yield {
        "conversations": conversations,
        "system": system,
        "tools": orjson.dumps(functions).decode(),
        "id": item.row["id"],
    }


def _merge_messages(messages: list[JsonObject]) -> Iterator[JsonObject]:
    results: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            results.append(_result(message["content"]))
            continue
        if results:
            yield {"from": "observation", "value": BETWEEN_RESULTS.join(results)}
            results = []
        if message["role"] == "user":
            yield {"from": "human", "value": message["content"]}
        else:
            yield _assistant(message)
    if results:
        yield {"from": "observation", "value": BETWEEN_RESULTS.join(results)}


def _result(content: str) -> str:
    if BETWEEN_RESULTS in content:
        raise RecordDropped("sharegpt_ambiguous_result", "a result holds the text that separates parallel results")
    return content


def _assistant(message: JsonObject) -> JsonObject:
    thought = message.get("reasoning_content")
    reasoning_text = f"{THINK[0]}{thought}{THINK[1]}" if thought is not None else ""
    if "tool_calls" not in message:
        return {"from": "gpt", "value": reasoning_text + message["content"]}
    calls = [call["function"] for call in message["tool_calls"]]
    text = orjson.dumps(calls[0] if len(calls) == 1 else calls).decode()
    if any(marker in reasoning_text + message["content"] + text for marker in CALLS):
        raise RecordDropped("sharegpt_marker_in_text", "a text holds the marker of tool calls")
    if message["content"]:
        return {"from": "function_call", "value": f"{reasoning_text}{message['content']}\n{CALLS[0]}{text}{CALLS[1]}"}
    return {"from": "function_call", "value": reasoning_text + text}


def _check_alternating(conversations: list[JsonObject]) -> None:
    for index, turn in enumerate(conversations):
        if (turn["from"] in ("human", "observation")) is not (index % 2 == 0):
            raise RecordDropped("sharegpt_sides_do_not_alternate", f"message {index} is from {turn['from']}")


def files(splits: Collection[str]) -> dict[str, str]:
    """dataset_info.json: one entry per split; `--dataset trajsmith_train --dataset_dir` of this folder."""
    entries = {
        f"trajsmith_{split}": {
            "file_name": f"data/{split}.jsonl",
            "formatting": "sharegpt",
            "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
            "tags": {
                "role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt",
                "observation_tag": "observation", "function_tag": "function_call",
            },
        }
        for split in splits
    }  # fmt: skip
    return {"dataset_info.json": orjson.dumps(entries, option=orjson.OPT_INDENT_2).decode()}


FORMATS.register("sharegpt")(Format("ShareGPT for LLaMA-Factory, with its dataset_info.json", rows, None, files=files))
