"""Session logs in the form of Claude Code, of plays of ours: an event for each block of a message and each result."""

import uuid
from datetime import UTC, datetime, timedelta

import orjson

STARTED = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
USAGE = {"input_tokens": 4, "cache_creation_input_tokens": 120, "cache_read_input_tokens": 900, "output_tokens": 30}


def write_claude_code_log(trajectory, folder, server):
    """Write the log of a play in which the tools came from an MCP server."""
    session = str(uuid.uuid5(uuid.NAMESPACE_OID, trajectory.id))
    results = [message for message in trajectory.messages if message.role == "tool"]
    calls = [event for event in trajectory.events if event.actor == "assistant"]
    refused = {result.tool_call_id for result, call in zip(results, calls, strict=True) if not call.ok}
    events = [{"type": "file-history-snapshot", "messageId": session, "snapshot": {}, "isSnapshotUpdate": False}]
    for number, message in enumerate(trajectory.messages):
        for kind, body, more in build_messages(number, message, server, refused):
            before = events[-1].get("uuid")
            events.append(
                {"parentUuid": before, "isSidechain": False, "userType": "external", "cwd": "/root/desk",
                 "sessionId": session, "version": "2.1.0", "gitBranch": "", "type": kind, "message": body,
                 "uuid": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{session} {len(events)}")),
                 "timestamp": (STARTED + timedelta(seconds=len(events))).isoformat(timespec="milliseconds")} | more
            )  # fmt: skip
    folder.mkdir(parents=True)
    (folder / f"{session}.jsonl").write_bytes(b"".join(orjson.dumps(event) + b"\n" for event in events))


def build_messages(number, message, server, refused):
    """Yield type, message and further fields of the events of a message; there are none of the system's."""
    if message.role == "user":
        yield "user", {"role": "user", "content": message.content}, {}
    elif message.role == "tool":
        blocks = [{"type": "text", "text": message.content}]
        result = {"tool_use_id": message.tool_call_id, "type": "tool_result", "content": blocks}
        shown = blocks
        if message.tool_call_id in refused:
            result |= {"content": message.content, "is_error": True}
            shown = f"Error: {message.content}"
        yield "user", {"role": "user", "content": [result]}, {"toolUseResult": shown}
    elif message.role == "assistant":
        blocks = [{"type": "text", "text": message.content}] if message.content else []
        for call in message.tool_calls or ():
            name = f"mcp__{server}__{call.function.name}"
            blocks.append({"type": "tool_use", "id": call.id, "name": name, "input": call.function.arguments})
        for block in blocks:
            body = {"model": "claude-sonnet-4-6", "id": f"msg_{number}", "type": "message", "role": "assistant"}
            yield (
                "assistant",
                body | {"content": [block], "stop_reason": None, "usage": USAGE},
                {"requestId": f"req_{number}"},
            )
