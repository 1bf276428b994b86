"""tau2-bench simulations: tasks with gold actions, and dialogues of an agent and a user who may both call tools."""

from collections.abc import Iterator
from typing import Any

from trajsmith.records import JsonObject, RecordDropped, TraceCall, TraceDialogue, TraceTask
from trajsmith.verify.traces.messages import Transcript, parse_arguments

NAME = "tau2"


def fits(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("simulations"), list) and "tasks" in value


def split(document: Any) -> Iterator[Any]:
    """A simulation with its task and what the file says of all of them."""
    info = document.get("info") if isinstance(document.get("info"), dict) else {}
    tasks = {str(task.get("id")): task for task in document["tasks"] or () if isinstance(task, dict)}
    for simulation in document["simulations"]:
        name = str(simulation.get("task_id")) if isinstance(simulation, dict) else ""
        yield {"simulation": simulation, "task": tasks.get(name), "info": info}


def read(value: Any, file: str, number: int) -> TraceDialogue:
    """One simulation.

    Raises:
        RecordDropped: It is none, or its task is not in the file; the reason says why.
    """
    simulation, task = value["simulation"], value["task"]
    if not isinstance(simulation, dict) or not isinstance(simulation.get("messages"), list):
        raise RecordDropped("no_messages", "")
    if task is None:
        raise RecordDropped("unknown_task", f"task {simulation.get('task_id')} is not in the file")
    transcript = _transcript(simulation["messages"], value["info"])
    return TraceDialogue(
        file=file,
        format=NAME,
        dialogue=str(simulation.get("id", number)),
        messages=tuple(transcript.messages),
        calls=tuple(transcript.calls),
        task=_task(task),
        recorded=_read_recorded_result(simulation.get("reward_info")),
        models=_read_models(value["info"]),
    )


def _transcript(messages: list[Any], info: JsonObject) -> Transcript:
    transcript = Transcript()
    policy = (info.get("environment_info") or {}).get("policy")
    if isinstance(policy, str) and policy:
        transcript.say("system", policy)
    for message in messages:
        if not isinstance(message, dict):
            raise RecordDropped("not_a_message", type(message).__name__)
        role, calls = message.get("role"), message.get("tool_calls") or ()
        if role == "tool":
            transcript.result(message.get("id"), message.get("content"), bool(message.get("error")))
        elif role == "user" and calls:
            for call in calls:
                transcript.user_call(_call(call, "user"))
        else:
            transcript.say(str(role), message.get("content"), [_call(call, "assistant") for call in calls])
    return transcript


def _call(call: Any, actor: str) -> TraceCall:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise RecordDropped("call_without_name", str(call)[:80])
    arguments = parse_arguments(call.get("arguments"), call["name"])
    actor = str(call.get("requestor") or actor)
    if actor not in ("assistant", "user"):
        raise RecordDropped("unknown_role", actor)
    return TraceCall(actor=actor, tool=call["name"], arguments=arguments, id=str(call.get("id") or ""))


def _task(task: JsonObject) -> TraceTask:
    criteria = task.get("evaluation_criteria") or {}
    initial = task.get("initial_state") or {}
    if initial.get("initialization_data"):
        raise RecordDropped("own_initial_data", f"task {task.get('id')} sets its own initial data")
    scenario = (task.get("user_scenario") or {}).get("instructions")
    actions = criteria.get("actions")
    return TraceTask(
        name=str(task.get("id")),
        scenario=_join_scenario_text(scenario),
        gold=None if actions is None else tuple(_call(action, "assistant") for action in actions),
        facts=tuple(criteria.get("communicate_info") or ()),
        start=tuple(_start(action) for action in initial.get("initialization_actions") or ()),
    )


def _start(action: JsonObject) -> TraceCall:
    actor = action.get("env_type", "assistant")
    return _call(
        {"name": action.get("func_name"), "arguments": action.get("arguments"), "requestor": actor}, "assistant"
    )


def _join_scenario_text(scenario: Any) -> str:
    parts = scenario.values() if isinstance(scenario, dict) else [scenario]
    return "\n".join(str(part) for part in parts if part)


def _read_recorded_result(rewards: Any) -> JsonObject:
    if not isinstance(rewards, dict):
        return {}
    match = (rewards.get("db_check") or {}).get("db_match")
    recorded = {"reward": rewards.get("reward"), "state_match": match}
    return {name: value for name, value in recorded.items() if value is not None}


def _read_models(info: JsonObject) -> dict[str, str]:
    names = {"agent": (info.get("agent_info") or {}).get("llm"), "user": (info.get("user_info") or {}).get("llm")}
    return {role: str(name) for role, name in names.items() if name}
