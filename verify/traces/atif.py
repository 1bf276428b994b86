"""ATIF, the agent trajectory interchange format: documents as Harbor writes them, and those of `trajsmith export`."""

from collections.abc import Iterator
from typing import Any

import orjson

from trajsmith.records import JsonObject, RecordDropped, TraceCall, TraceDialogue, TraceTask
from trajsmith.verify.traces.messages import Transcript, parse_arguments

NAME = "atif"
ROLES = {"system": "system", "user": "user", "agent": "assistant"}


def fits(value: Any) -> bool:
    """True for a document of this form."""
    return isinstance(value, dict) and str(value.get("schema_version")).startswith("ATIF-")


def split(document: Any) -> Iterator[Any]:
    """One value per document of a file."""
    yield from [document] if fits(document) else document


def read(value: Any, file: str, number: int) -> TraceDialogue:
    """One dialogue.

    Raises:
        RecordDropped: It is none, or its calls are not all in it; the reason says why.
    """
    if not fits(value) or not isinstance(value.get("steps"), list) or not value["steps"]:
        raise RecordDropped("no_messages", "")
    if value.get("continued_trajectory_ref"):
        raise RecordDropped("continued_in_another_file", str(value["continued_trajectory_ref"]))
    transcript = Transcript()
    for step in value["steps"]:
        _add_step(transcript, step)
    agent = value.get("agent") if isinstance(value.get("agent"), dict) else {}
    extra = (value.get("extra") or {}).get("trajsmith") or {}
    return TraceDialogue(
        file=file,
        format=NAME,
        dialogue=str(value.get("trajectory_id") or value.get("session_id") or number),
        messages=tuple(transcript.messages),
        calls=tuple(transcript.calls),
        task=TraceTask(name=str(extra["task_id"])) if "task_id" in extra else None,
        models={"agent": str(agent["model_name"])} if agent.get("model_name") else {},
    )


def _add_step(transcript: Transcript, step: JsonObject) -> None:
    """Add the message of a step, its calls, and their results."""
    if step.get("is_copied_context"):
        raise RecordDropped("copied_context", f"step {step.get('step_id')}: its calls were made in another trajectory")
    source = str(step.get("source"))
    calls = [_read_call(call) for call in step.get("tool_calls") or ()]
    transcript.say(ROLES.get(source, source), step.get("message"), calls, step.get("reasoning_content"))
    results = (step.get("observation") or {}).get("results") or ()
    for result in results:
        if result.get("subagent_trajectory_ref"):
            raise RecordDropped("calls_of_subagents", f"step {step.get('step_id')}")
        call_id = result.get("source_call_id")
        if call_id or (len(calls) == len(results) == 1):
            failed = (result.get("extra") or {}).get("tool_result_is_error")
            output = _unwrap_text(result.get("content"))
            transcript.result(call_id, output, failed if isinstance(failed, bool) else None)


def _unwrap_text(content: Any) -> Any:
    """Return the text of a result of MCP, where Harbor's conversion left the JSON of its text block in place of it."""
    if isinstance(content, str) and content.startswith("{") and content.endswith("}"):
        try:
            block = orjson.loads(content)
        except orjson.JSONDecodeError:
            return content
        if set(block) == {"type", "text"} and block["type"] == "text":
            return block["text"]
    return content


def _read_call(call: Any) -> TraceCall:
    if not isinstance(call, dict) or not isinstance(call.get("function_name"), str):
        raise RecordDropped("call_without_name", str(call)[:80])
    name = call["function_name"]
    return TraceCall(
        tool=name, arguments=parse_arguments(call.get("arguments"), name), id=str(call.get("tool_call_id") or "")
    )
