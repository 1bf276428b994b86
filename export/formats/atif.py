"""ATIF 1.8, the agent trajectory interchange format of Harbor: one document per accepted trajectory, as JSON Lines."""

from collections.abc import Iterator, Sequence
from importlib.metadata import version

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.records import JsonObject

SCHEMA = "ATIF-v1.8"
SCRIPTED = "scripted"


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    row, model = item.row, item.trajectory.models.get("agent", SCRIPTED)
    agent: JsonObject = {"name": "trajsmith", "version": version("trajsmith"), "tool_definitions": row["tools"]}
    if model != SCRIPTED:
        agent["model_name"] = model
    steps = build_steps(row["messages"], scripted=model == SCRIPTED)
    facts = {key: value for key, value in row.items() if key not in ("id", "messages", "tools")}
    yield {
        "schema_version": SCHEMA,
        "session_id": row["id"],
        "trajectory_id": row["id"],
        "agent": agent,
        "steps": steps,
        "final_metrics": {"total_steps": len(steps)},
        "extra": {"trajsmith": facts},
    }


def build_steps(messages: Sequence[JsonObject], scripted: bool) -> list[JsonObject]:
    """Return messages as steps: a message of the agent, its calls and their results are one.

    Args:
        messages: Messages of a row; each call has one result after it.
        scripted: No model wrote the messages of the agent: zero inferences, which ATIF refuses beside reasoning.
    """
    steps: list[JsonObject] = []
    for message in messages:
        if message["role"] == "tool":
            results = steps[-1].setdefault("observation", {"results": []})["results"]
            results.append({"source_call_id": message["tool_call_id"], "content": message["content"]})
            continue
        agent = message["role"] == "assistant"
        step = {
            "step_id": len(steps) + 1,
            "source": "agent" if agent else message["role"],
            "message": message["content"],
        }
        if "reasoning_content" in message:
            step["reasoning_content"] = message["reasoning_content"]
        elif agent and scripted:
            step["llm_call_count"] = 0
        if calls := message.get("tool_calls"):
            step["tool_calls"] = [_build_call(call) for call in calls]
        steps.append(step)
    return steps


def _build_call(call: JsonObject) -> JsonObject:
    function = call["function"]
    return {"tool_call_id": call["id"], "function_name": function["name"], "arguments": function["arguments"]}


FORMATS.register("atif")(
    Format("ATIF 1.8 documents, one per line: Harbor, and tools that read its trajectories", rows, None)
)
