"""Records made by hand: a small shop with awkward data, and conversations of any number of turns."""

from collections.abc import Iterator

import orjson

from trajsmith.records import (
    CallEvent,
    CheckOutcome,
    EnvironmentSpec,
    FromUser,
    FunctionCall,
    GoldCall,
    Message,
    Persona,
    StageSummary,
    StateCheck,
    Summary,
    Task,
    ToolCall,
    ToolSpec,
    Trajectory,
    Turn,
    TurnSpan,
    UserFact,
    Verdict,
)  # fmt: skip

HOSTILE = '{"note": "</script><script>throw Error(1)</script><img src=x onerror=throw(2)>", "é": "日本 \u2028"}'

TOOLS = ("find_order", "list_orders", "cancel_order", "ping", "never_used", "tag_order")

SCHEMAS = {
    "find_order": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
    "list_orders": {
        "type": "object",
        "properties": {"limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}},
    },
    "cancel_order": {
        "type": "object",
        "properties": {"order_id": {"type": "string"}, "reason": {"$ref": "#/$defs/Reason"}},
        "$defs": {"Reason": {"type": "string", "enum": ["late", "wrong"]}},
    },
    "ping": {"type": "object", "properties": {}},
    "never_used": {"type": "object", "properties": {"x": {"type": "number"}}},
    "tag_order": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "object"}}}},
}  # fmt: skip


def make_spec(name: str = "shop") -> EnvironmentSpec:
    tools = tuple(
        ToolSpec(server=name, name=tool, description=f"Does {tool}.", input_schema=SCHEMAS[tool]) for tool in TOOLS
    )
    return EnvironmentSpec(
        name=name, version="v1", description="A shop | for tests.", domain="commerce/test", policy="Be kind.",
        tools=tools, source="library",
    )  # fmt: skip


def call(id: str, name: str, **arguments: object) -> ToolCall:
    return ToolCall(id=id, function=FunctionCall(name=name, arguments=arguments))


def answer(id: str, name: str, content: str) -> Message:
    return Message(role="tool", tool_call_id=id, name=name, content=content)


def turn_messages(index: int, order: str) -> list[Message]:
    """Content beside calls, two calls at once, empty and nested arguments, a result with markup, a refusal."""
    a, b, c, d = (f"call_{index}_{letter}" for letter in "abcd")
    order_json = orjson.dumps({"order_id": order, "total": 1.84, "lines": [{"sku": "A-1", "note": None}]}).decode()
    tags = [{"key": "größe", "value": {"n": 3.28, "none": None, "empty": {}, "list": []}}]
    return [
        Message(role="user", content=f"Please cancel my order {order} — it is late 😀"),
        Message(
            role="assistant",
            content="Let me look.",
            tool_calls=(call(a, "find_order", order_id=order), call(b, "ping")),
        ),
        answer(a, "find_order", order_json),
        answer(b, "ping", HOSTILE),
        Message(role="assistant", tool_calls=(call(c, "cancel_order", order_id=order, reason="late"),)),
        answer(c, "cancel_order", '{"status": "cancelled"}'),
        Message(role="assistant", reasoning_content="Tag it too.", tool_calls=(call(d, "tag_order", tags=tags),)),
        answer(d, "tag_order", "Error: tags are closed"),
        Message(role="assistant", content=f"Order {order} is cancelled. You get 1.84 £ back.\n\nAnything else?"),
    ]


def make_item(number: int = 0, turns: int = 2, environment: str = "shop", accepted: bool = True,
              outcome: str = "completed") -> tuple[Task, Trajectory, Verdict]:  # fmt: skip
    """A task, a trajectory that plays it and the verdict."""
    task = make_task(number, turns, environment)
    trajectory = make_trajectory(task, number, turns)
    reasons = () if accepted else ("state_mismatch", f"check_failed_{number % 2}")
    checks = (
        CheckOutcome(says="the order is cancelled", kind="state", passed=accepted, detail="" if accepted else "open"),
        CheckOutcome(says="nothing else changed", kind="untouched", passed=None if number % 5 == 4 else True),
    )
    verdict = Verdict(
        trajectory_id=trajectory.id, task_id=task.id, environment=environment, outcome=outcome, checks=checks,
        state_match=accepted, replay_match=None if number % 3 == 2 else True, trajectory_match=1 / 3,
        rewards={"composite": 0.9693574667769436, "checks": 1.0}, accepted=accepted, reasons=reasons,
    )  # fmt: skip
    return task, trajectory, verdict


def make_task(number: int, turns: int, environment: str) -> Task:
    planned = []
    for index in range(turns):
        order = f"W{100 * number + index}"
        known = (
            UserFact(key=f"c{index}.order_id", label="order number", value=order, said=order),
            UserFact(key=f"c{index}.reason", label="reason", value="late", said="it is <b>late</b>", stated=False),
        )
        gold = GoldCall(
            tool="cancel_order", arguments={"order_id": order, "reason": "late"}, effect="write",
            provenance={"order_id": FromUser(known=known[0].key), "reason": FromUser(known=known[1].key)},
        )  # fmt: skip
        check = StateCheck(says="the order is cancelled", path=f"/orders/{order}/status", value="cancelled")
        planned.append(Turn(intent=f"Cancel the order {order}.", query=f"Please cancel {order}.", known=known,
                            gold_calls=(gold,), checks=(check,), state_hash="s1", answer_facts=(1.84,)))  # fmt: skip
    return Task(
        grounded_id=f"ground_{number}", environments=(environment,), initial_state="s0",
        scenario="A parcel never came.", policy="Be kind.", exposed_tools=TOOLS, mode="conversation",
        persona=Persona(name="Zoë Müller", role="customer", style="brisk"), difficulty=number % 10 / 10,
        variant="base" if number % 4 else "missing_parameter",
        language="scripted", turns=tuple(planned), seed=2**62 + number,
    )  # fmt: skip


def make_trajectory(task: Task, number: int, turns: int) -> Trajectory:
    messages = [Message(role="system", content="You help the customers of a shop.\n\nBe kind.")]
    spans, events, diff = [], [], []
    for index in range(turns):
        order, start = f"W{100 * number + index}", len(messages)
        messages += turn_messages(index, order)
        spans.append(TurnSpan(start=start, stop=len(messages), state_hash=f"s{index + 1}"))
        effect = [
            {"op": "replace", "path": f"/orders/{order}/status", "value": "cancelled"},
            {"op": "add", "path": f"/refunds/R{index}", "value": {"order": order, "amount": 1.84, "a~1b": None}},
            {"op": "remove", "path": "/queue/a~1b"},
        ]
        diff += effect
        for offset, tool in ((1, "find_order"), (1, "ping"), (4, "cancel_order"), (6, "tag_order")):
            refused = tool == "tag_order"
            events.append(CallEvent(
                actor="assistant", tool=tool, arguments={}, ok=not refused, error="refused" if refused else None,
                result_hash="h", message=start + offset, effect=effect if tool == "cancel_order" else None,
            ))  # fmt: skip
    return Trajectory(
        task_id=task.id, environment=task.environments[0], candidate=0, messages=tuple(messages), tools=TOOLS,
        events=tuple(events), turns=tuple(spans), initial_state="s0", final_state=f"s{turns}", diff=tuple(diff),
        models={"agent": "scripted", "user": "scripted"}, stop_reason="user_stop",
    )  # fmt: skip


ENVIRONMENTS = ("shop", "airline_booking", "clinic")


def make_items(count: int) -> Iterator[tuple[Task, Trajectory, Verdict]]:
    """Items over three environments; every fourth is not accepted."""
    outcomes = ("partial", "agent_error", "undecided")
    for number in range(count):
        bad = number % 4 == 3
        yield make_item(number, 1 + number % 3, ENVIRONMENTS[number * 7 % 5 % 3], not bad,
                        outcomes[number // 4 % 3] if bad else "completed")  # fmt: skip


def make_summary(**changes: object) -> Summary:
    stages = (
        StageSummary(name="sample", read=1, written=220),
        StageSummary(name="ground", read=220, written=180, dropped={"no_arguments_found": 31, "environment_fault": 9}),
        StageSummary(name="write", read=180, written=160, dropped={"weak_checks": 12, "query_names_a_tool": 8}),
        StageSummary(name="play", read=160, written=320),
        StageSummary(name="verify", read=320, written=318, dropped={"replay_differs": 2}),
        StageSummary(name="export", read=141, written=140, dropped={"last_message_not_assistant": 1}),
    )
    steps = ("sampled", "grounded", "written", "played", "verified", "accepted", "exported")
    funnel = dict(zip(steps, (220, 180, 160, 320, 318, 141, 140), strict=True))
    fields = {
        "name": "quick<start>", "seed": 7, "language": "scripted", "stages": stages, "funnel": funnel,
        "rejected": {"state_mismatch": 92, "check_failed": 41, "not_the_best_candidate": 44},
        "environments": {"shop": 80, "airline_booking": 40, "clinic": 21}, "mean_turns": 2.1,
        "mean_calls_per_turn": 3.4, "tokens_per_accepted": 5321.7, "cost_per_accepted": 0.0123, "wall_seconds": 754.2,
    }  # fmt: skip
    return Summary(**{**fields, **changes})
