"""One accepted trajectory as one training row: TRL's conversational form, with the verdict beside it."""

from collections.abc import Mapping, Sequence

from trajsmith.records import (
    TOOL_SEARCH,
    TWO_LEVEL,
    EnvironmentSpec,
    InputError,
    JsonObject,
    Message,
    RecordDropped,
    RepairOrigin,
    Task,
    TaskHeader,
    ToolCall,
    ToolSpec,
    Trajectory,
    Verdict,
    find_chat_token,
)
from trajsmith.verify import prune_trajectory

CHAT_TOKEN_REASON = "chat_template_token"
ToolSchemaCache = dict[tuple[str, tuple[str, ...]], list[JsonObject]]
"""Environment and shown tools to their schemas; rows that show the same share one list, which nobody may change."""


def build_row(
    task: Task | TaskHeader,
    trajectory: Trajectory,
    verdict: Verdict,
    spec: EnvironmentSpec,
    shown: ToolSchemaCache | None = None,
    pass_rates: Mapping[str, float] | None = None,
) -> JsonObject:
    """The row of one trajectory, without the calls that the verdict takes out and without trailing user messages.

    Keys that have no value are absent, never null: a chat template prints a null key, and the model learns it.
    `pass_rates` are those of the solvers that played the task.

    Raises:
        RecordDropped: A chat template or a trainer would damage the row without a word; the reason says how.
        InputError: The records do not belong together.
    """
    _check_parents(task, trajectory, verdict, spec)
    messages = _messages(_answered(prune_trajectory(trajectory, verdict.pruned).messages))
    repair = trajectory.repair
    _refuse_chat_tokens(messages)
    calls = sum(len(message.get("tool_calls", ())) for message in messages)
    return {
        "id": trajectory.id,
        "task_id": task.id,
        "environment": trajectory.environment,
        "mode": task.mode,
        "variant": task.variant,
        "source": task.source or "chain",
        "language": task.language,
        "difficulty": task.difficulty,
        "pass_rates": dict(pass_rates or {}),
        "turns": len(trajectory.turns),
        "tool_calls": calls,
        "messages": messages,
        "learnt_from": repair.message if repair is not None else 0,
        "repair": _describe_repair(repair),
        "tools": _shared_tools(task, trajectory, spec, {} if shown is None else shown),
        "step_labels": _list_step_labels(trajectory, verdict),
        "rubric": _list_criteria(verdict),
        "verdict": _verdict(verdict),
        "initial_state": trajectory.initial_state,
        "final_state": trajectory.final_state,
        "seed": task.seed,
    }


def _describe_repair(repair: RepairOrigin | None) -> JsonObject:
    """Describe the failed play that a repaired one goes on from; empty for any other play."""
    if repair is None:
        return {}
    return {"of": repair.of, "kind": repair.kind, "mistake": repair.mistake, "beyond": list(repair.beyond)}


def _list_step_labels(trajectory: Trajectory, verdict: Verdict) -> list[JsonObject]:
    """List the labels of the calls that the row has, in the order of its calls; empty without labels."""
    gone = {call.event for call in verdict.pruned}
    return [
        {"tool": trajectory.events[step.event].tool, "label": step.label, "why": step.why}
        for step in verdict.step_labels or ()
        if step.event not in gone
    ]


def _list_criteria(verdict: Verdict) -> list[JsonObject]:
    """List the criteria of the rubric with their outcomes; `met` stays null where nobody could tell."""
    return [
        {
            "says": each.says,
            "about": each.about,
            "weight": each.weight,
            "required": each.required,
            "met": each.met,
            "left_out": each.left_out,
            "detail": each.detail,
        }
        for each in verdict.rubric
    ]


def _shared_tools(
    task: Task | TaskHeader, trajectory: Trajectory, spec: EnvironmentSpec, shown: ToolSchemaCache
) -> list[JsonObject]:
    if task.distractors and task.search is None:  # hardly two tasks have the same
        return _tools(trajectory, (*spec.tools, *task.distractors), spec.name)
    key = spec.name, trajectory.tools
    if key not in shown:
        shown[key] = _tools(trajectory, spec.tools, spec.name)
    return shown[key]


def _check_parents(task: Task | TaskHeader, trajectory: Trajectory, verdict: Verdict, spec: EnvironmentSpec) -> None:
    pairs = (
        ("task", trajectory.task_id, task.id),
        ("trajectory", verdict.trajectory_id, trajectory.id),
        ("environment", trajectory.environment, spec.name),
    )
    for label, wanted, actual in pairs:
        if wanted != actual:
            raise InputError(f"{trajectory.id}: belongs to {label} {wanted}, was given {actual}")


def _tools(trajectory: Trajectory, tools: Sequence[ToolSpec], environment: str) -> list[JsonObject]:
    known = {tool.name: tool for tool in (*TWO_LEVEL, *TOOL_SEARCH, *tools)}
    for name in trajectory.tools:
        if name not in known:
            raise RecordDropped("tool_without_schema", f"{environment} has no tool {name}")
    shown = [known[name].as_function() for name in trajectory.tools]
    token = find_chat_token(shown)
    if token is not None:
        raise RecordDropped(CHAT_TOKEN_REASON, f"a tool of {environment} has {token}")
    return shown


def _refuse_chat_tokens(messages: list[JsonObject]) -> None:
    """Refuse text that a tokenizer takes for the end of a message and the beginning of another one."""
    if find_chat_token(messages) is None:
        return
    for index, message in enumerate(messages):
        token = find_chat_token(message)
        if token is not None:
            raise RecordDropped(CHAT_TOKEN_REASON, f"message {index} ({message['role']}) has {token}")


def _answered(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Cut trailing user messages: a stop message of a recorded user has no answer to train on."""
    end = len(messages)
    while end and messages[end - 1].role == "user":
        end -= 1
    return messages[:end]


def _messages(messages: tuple[Message, ...]) -> list[JsonObject]:
    if not messages:
        raise RecordDropped("no_messages")
    if messages[-1].role != "assistant":
        raise RecordDropped("last_message_not_assistant", messages[-1].role)
    rows = build_message_rows(messages)
    if calls := rows[-1].get("tool_calls"):
        open_calls = ", ".join(call["id"] for call in calls)
        raise RecordDropped("call_without_result", f"the conversation ends before {open_calls} is answered")
    return rows


def build_message_rows(messages: Sequence[Message]) -> list[JsonObject]:
    """Build the rows of messages; the last one may be a call.

    Raises:
        RecordDropped: Calls and results do not belong together; the reason says how.
    """
    rows: list[JsonObject] = []
    open_calls: dict[str, str] = {}
    for index, message in enumerate(messages):
        where = f"message {index}"
        if message.role == "system" and index > 0:
            raise RecordDropped("system_message_not_first", where)
        if open_calls and message.role != "tool":
            raise RecordDropped("call_without_result", f"{where}: {', '.join(open_calls)} not answered before it")
        if message.role == "tool":
            rows.append(_tool_row(message, open_calls, where))
        elif message.role == "assistant":
            rows.append(_assistant_row(message, where))
            open_calls = {call.id: call.function.name for call in message.tool_calls or ()}
        else:
            rows.append({"role": message.role, "content": message.content})
    return rows


def _tool_row(message: Message, open_calls: dict[str, str], where: str) -> JsonObject:
    """A tool message; takes its call out of `open_calls`, since a call has one result."""
    called = open_calls.pop(message.tool_call_id or "", None)
    if called is None:
        raise RecordDropped("result_without_call", f"{where}: no open call has the id {message.tool_call_id!r}")
    name = message.name or called
    if name != called:
        raise RecordDropped("result_of_another_tool", f"{where}: {name} answers a call of {called}")
    return {"role": "tool", "tool_call_id": message.tool_call_id, "name": name, "content": message.content}


def _assistant_row(message: Message, where: str) -> JsonObject:
    row: JsonObject = {"role": "assistant", "content": message.content}
    if message.reasoning_content is not None:
        row["reasoning_content"] = message.reasoning_content
    if message.tool_calls:
        ids = [call.id for call in message.tool_calls]
        if len(set(ids)) < len(ids):
            raise RecordDropped("call_ids_not_unique", f"{where}: {', '.join(ids)}")
        row["tool_calls"] = [_call_row(call, where) for call in message.tool_calls]
    return row


def _call_row(call: ToolCall, where: str) -> JsonObject:
    arguments = call.function.arguments
    if not isinstance(arguments, dict):  # records that were built without validation
        raise RecordDropped("arguments_not_an_object", f"{where}: {call.function.name} got {type(arguments).__name__}")
    return {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": arguments}}


def _verdict(verdict: Verdict) -> JsonObject:
    """The verdict without what the row says already. `passed` stays null where a check could not tell."""
    return {
        "outcome": verdict.outcome,
        "checks": [
            {"says": check.says, "kind": check.kind, "passed": check.passed, "detail": check.detail}
            for check in verdict.checks
        ],
        "rewards": dict(verdict.rewards),
    }
