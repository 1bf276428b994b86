"""The Responses API over the test server: its requests as those of chat completions, and answers back.

What OpenAI's server refuses is refused: parameters of the other API, calls without results, reasoning without what
followed it or in another place than it was given. Encrypted reasoning is a hash of the conversation before it.
"""

import hashlib
import json

PARAMETERS = {
    "model", "input", "store", "include", "tools", "tool_choice", "text", "temperature", "top_p", "max_output_tokens",
    "reasoning", "parallel_tool_calls", "instructions", "stream",
}  # fmt: skip
ENCRYPTED = "reasoning.encrypted_content"


class Refused(Exception):
    """What is wrong with a request."""


def read_request(body):
    """Return the request as one of chat completions, and how many reasoning items it brought."""
    unknown = sorted(body.keys() - PARAMETERS)
    if unknown:
        raise Refused(f"Unsupported parameter: '{unknown[0]}'. In the Responses API, it is not there.")
    if body.get("store") is not False:
        raise Refused("this server stores nothing")
    messages, reasoning = read_items(body["input"])
    request = {"model": body["model"], "messages": messages}
    for name in ("temperature", "top_p"):
        if name in body:
            request[name] = body[name]
    if "max_output_tokens" in body:
        request["max_tokens"] = body["max_output_tokens"]
    if "tools" in body:
        request["tools"] = [read_tool(tool) for tool in body["tools"]]
    form = body.get("text", {}).get("format", {})
    if form:
        request["response_format"] = {"type": form["type"], "json_schema": {**form, "type": None}}
    return request, reasoning


def read_tool(tool):
    if tool.get("type") != "function" or "name" not in tool or tool.get("strict") is not False:
        raise Refused(f"Invalid tool: {tool}")
    return {"type": "function", "function": {key: tool[key] for key in ("name", "description", "parameters")}}


def read_items(items):
    messages, open_calls, reasoning = [], set(), 0
    thought = None
    before = 0
    for item in items:
        kind = item.get("type", "message")
        if kind == "reasoning":
            if item.get("encrypted_content") != encrypt(messages):
                raise Refused("The encrypted content could not be verified.")
            thought, reasoning, before = item, reasoning + 1, len(messages)
        elif kind == "function_call":
            last = messages[-1] if messages else {}
            if last.get("role") != "assistant" or len(messages) == before:
                last = {"role": "assistant", "content": ""}
                messages.append(last)
            function = {"name": item["name"], "arguments": item["arguments"]}
            last.setdefault("tool_calls", []).append({"id": item["call_id"], "type": "function", "function": function})
            open_calls.add(item["call_id"])
            thought = None
        elif kind == "function_call_output":
            if item["call_id"] not in open_calls:
                raise Refused(f"No tool call found for function call output with call_id {item['call_id']}.")
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
            open_calls.discard(item["call_id"])
        elif kind == "message":
            content = item["content"]
            text = content if isinstance(content, str) else "".join(part["text"] for part in content)
            messages.append({"role": item["role"], "content": text})
            thought = None
        else:
            raise Refused(f"Invalid value: '{kind}'.")
    if thought is not None:
        raise Refused("Item of type 'reasoning' was provided without its required following item.")
    if open_calls:
        raise Refused(f"No tool output found for function call {min(open_calls)}.")
    return messages, reasoning


def encrypt(messages):
    return "enc:" + hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()


def build_response(asked, messages, completion):
    """Return the answer of chat completions as one of this API."""
    choice, usage = completion["choices"][0] if completion["choices"] else None, completion["usage"]
    response = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": completion["model"], "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
        "temperature": 1.0, "top_p": 1.0, "tool_choice": "auto", "tools": asked.get("tools", []),
        "status": "completed",
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {**usage["prompt_tokens_details"], "cache_write_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
    }  # fmt: skip
    if choice is None:
        return response
    ends = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(choice["finish_reason"])
    if ends:
        response |= {"status": "incomplete", "incomplete_details": {"reason": ends}}
    return response | {"output": list(build_items(asked, messages, choice["message"], bool(ends)))}


def build_items(asked, messages, message, cut):
    status = "incomplete" if cut else "completed"
    if message.get("reasoning_content"):
        summary = [{"type": "summary_text", "text": message["reasoning_content"]}]
        item = {"type": "reasoning", "id": "rs_1", "summary": summary}
        if ENCRYPTED in asked.get("include", []):
            item["encrypted_content"] = encrypt(messages)
        yield item
    calls = message.get("tool_calls", [])
    if message.get("content") or not calls:
        part = {"type": "output_text", "text": message.get("content") or "", "annotations": [], "logprobs": []}
        if message.get("refusal"):
            part = {"type": "refusal", "refusal": message["refusal"]}
        yield {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": [part]}
    for call in calls:
        yield {
            "type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"], "status": status,
            **call["function"],
        }  # fmt: skip
