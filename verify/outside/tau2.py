"""tau2-bench simulations: tasks with gold actions, and dialogues of an agent and a user who may both call tools."""

from collections.abc import Iterator
from typing import Any

from trajectory import Dropped, JsonObject
from trajectory.outside import Outside, OutsideCall, OutsideTask
from verify.outside.messages import Transcript, arguments_of

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


def read(value: Any, file: str, number: int) -> Outside:
    """One simulation.

    Raises:
        Dropped: It is none, or its task is not in the file; the reason says why.
    """
    simulation, task = value["simulation"], value["task"]
    if not isinstance(simulation, dict) or not isinstance(simulation.get("messages"), list):
        raise Dropped("no_messages", "")
    if task is None:
        raise Dropped("unknown_task", f"task {simulation.get('task_id')} is not in the file")
    found = _transcript(simulation["messages"], value["info"])
    return Outside(
        file=file,
        format=NAME,
        dialogue=str(simulation.get("id", number)),
        messages=tuple(found.messages),
        calls=tuple(found.calls),
        task=_task(task),
        recorded=_recorded(simulation.get("reward_info")),
        models=_models(value["info"]),
    )


def _transcript(messages: list[Any], info: JsonObject) -> Transcript:
    found = Transcript()
    policy = (info.get("environment_info") or {}).get("policy")
    if isinstance(policy, str) and policy:
        found.say("system", policy)
    for message in messages:
        if not isinstance(message, dict):
            raise Dropped("not_a_message", type(message).__name__)
        role, calls = message.get("role"), message.get("tool_calls") or ()
        if role == "tool":
            found.result(message.get("id"), message.get("content"), bool(message.get("error")))
        elif role == "user" and calls:
            for call in calls:
                found.user_call(_call(call, "user"))
        else:
            found.say(str(role), message.get("content"), [_call(call, "assistant") for call in calls])
    return found


def _call(call: Any, actor: str) -> OutsideCall:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise Dropped("call_without_name", str(call)[:80])
    arguments = arguments_of(call.get("arguments"), call["name"])
    actor = str(call.get("requestor") or actor)
    if actor not in ("assistant", "user"):
        raise Dropped("unknown_role", actor)
    return OutsideCall(actor=actor, tool=call["name"], arguments=arguments, id=str(call.get("id") or ""))


def _task(task: JsonObject) -> OutsideTask:
    criteria = task.get("evaluation_criteria") or {}
    initial = task.get("initial_state") or {}
    if initial.get("initialization_data"):
        raise Dropped("own_initial_data", f"task {task.get('id')} sets its own initial data")
    scenario = (task.get("user_scenario") or {}).get("instructions")
    actions = criteria.get("actions")
    return OutsideTask(
        name=str(task.get("id")),
        scenario=_told(scenario),
        gold=None if actions is None else tuple(_call(action, "assistant") for action in actions),
        facts=tuple(criteria.get("communicate_info") or ()),
        start=tuple(_start(action) for action in initial.get("initialization_actions") or ()),
    )


def _start(action: JsonObject) -> OutsideCall:
    actor = action.get("env_type", "assistant")
    return _call(
        {"name": action.get("func_name"), "arguments": action.get("arguments"), "requestor": actor}, "assistant"
    )


def _told(scenario: Any) -> str:
    parts = scenario.values() if isinstance(scenario, dict) else [scenario]
    return "\n".join(str(part) for part in parts if part)


def _recorded(rewards: Any) -> JsonObject:
    if not isinstance(rewards, dict):
        return {}
    match = (rewards.get("db_check") or {}).get("db_match")
    found = {"reward": rewards.get("reward"), "state_match": match}
    return {name: value for name, value in found.items() if value is not None}


def _models(info: JsonObject) -> dict[str, str]:
    names = {"agent": (info.get("agent_info") or {}).get("llm"), "user": (info.get("user_info") or {}).get("llm")}
    return {role: str(name) for role, name in names.items() if name}
