"""Selection of the trajectories in the report, and their entries."""

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain, islice, zip_longest
from typing import Any

import orjson

from trajsmith.records import (
    JsonObject,
    JsonValue,
    Message,
    Task,
    TaskHeader,
    Trajectory,
    Verdict,
    content_hash,
    truncate_text,
)

TEXT_LIMIT = 6_000
"""Characters of one message or value that the gallery shows; more would make the file too heavy to open."""

REJECTED_SHARE = 0.25


class Gallery:
    """Keeps at most `limit` trajectories, spread over the environments, a quarter of them not accepted if there are.

    Which ones is decided by a hash of their ids: even, and the same whatever the order of coming.

    Args:
        limit: How many are shown.
        environments: How many environments will come.
    """

    def __init__(self, limit: int, environments: int) -> None:
        self.limit = limit
        self.seen = 0
        self._per_pool = max(4, 2 * -(-limit // max(1, environments)))
        self._pools: dict[tuple[str, bool], list[tuple[int, str, int, Callable[[], bytes]]]] = defaultdict(list)

    def add(self, task: Task | TaskHeader, trajectory: Trajectory, verdict: Verdict) -> None:
        """Add the trajectory if it belongs to the selection so far."""
        entries: list[bytes] = []
        if self.offer(trajectory.environment, verdict.accepted, trajectory.id, lambda: entries[0]):
            entries.append(serialize_entry(task, trajectory, verdict))

    def offer(self, environment: str, accepted: bool, trajectory_id: str, make_entry: Callable[[], bytes]) -> bool:
        """Add a trajectory by its id; its entry is made at the end, if it is still chosen then.

        Returns:
            Whether it belongs to the selection so far.
        """
        self.seen += 1
        pool = self._pools[environment, accepted]
        rank = -int(content_hash(trajectory_id, 15), 16)
        if len(pool) >= self._per_pool and rank <= pool[0][0]:
            return False
        item = (rank, trajectory_id, self.seen, make_entry)
        if len(pool) < self._per_pool:
            heapq.heappush(pool, item)
        else:
            heapq.heapreplace(pool, item)
        return True

    def chosen(self, first: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
        """Return ids with their entries as JSON, environments alternating; those of `first` are taken before others."""
        taken = dict(islice((first or {}).items(), self.limit))
        limit = self.limit - len(taken)
        accepted, rejected = self._alternating(True, taken), self._alternating(False, taken)
        share = min(len(rejected), max(int(limit * REJECTED_SHARE), limit - len(accepted)))
        return taken | {name: make_entry() for name, make_entry in accepted[: limit - share] + rejected[:share]}

    def _alternating(self, accepted: bool, without: Collection[str]) -> list[tuple[str, Callable[[], bytes]]]:
        pools = [sorted(self._pools[key], reverse=True) for key in sorted(self._pools) if key[1] is accepted]
        rounds = zip_longest(*pools)
        return [
            (item[1], item[3]) for item in chain.from_iterable(rounds) if item is not None and item[1] not in without
        ]


def serialize_entry(task: Task | TaskHeader, trajectory: Trajectory, verdict: Verdict) -> bytes:
    """Return the entry of one trajectory as JSON."""
    return orjson.dumps(build_gallery_entry(task.whole(), trajectory, verdict))


def escape_embedded_json(entries: Iterable[bytes]) -> str:
    """A JSON array that is safe inside a script element: it holds no "<", so it can neither end nor open one."""
    return "[" + ",\n".join(entry.decode().replace("<", "\\u003c") for entry in entries) + "]"


def build_gallery_entry(task: Task, trajectory: Trajectory, verdict: Verdict) -> JsonObject:
    """Build the report entry of one trajectory, including the task's hidden fields."""
    return {
        "id": trajectory.id,
        "task": task.id,
        "environment": trajectory.environment,
        "accepted": verdict.accepted,
        "outcome": verdict.outcome,
        "reasons": list(verdict.reasons),
        "facts": {
            "mode": task.mode,
            "variant": task.variant,
            "difficulty": round(task.difficulty, 2),
            "candidate": trajectory.candidate,
            "stop": trajectory.stop_reason,
            "models": ", ".join(f"{role}: {name}" for role, name in sorted(trajectory.models.items())),
        },
        "persona": task.persona.model_dump(mode="json"),
        "scenario": task.scenario,
        "messages": [_message(message) for message in trajectory.messages],
        "tools": list(trajectory.tools),
        "turns": _turns(task, trajectory),
        "checks": [
            {"says": check.says, "kind": check.kind, "passed": check.passed, "detail": check.detail}
            for check in verdict.checks
        ],
        "rubric": [
            {"says": each.says, "about": each.about, "met": each.met, "detail": each.left_out or each.detail}
            for each in verdict.rubric
        ],
        "rewards": dict(verdict.rewards),
        "matches": {
            "state": verdict.state_match,
            "replay": verdict.replay_match,
            "gold calls": round(verdict.trajectory_match, 3),
        },
    }


def _message(message: Message) -> JsonObject:
    shown: JsonObject = {"role": message.role, "content": truncate_text(message.content, TEXT_LIMIT)}
    if message.reasoning_content:
        shown["reasoning"] = truncate_text(message.reasoning_content, TEXT_LIMIT)
    if message.tool_calls:
        shown["calls"] = [
            {"id": call.id, "name": call.function.name, "arguments": _truncate_value(call.function.arguments)}
            for call in message.tool_calls
        ]
    if message.role == "tool":
        shown["name"], shown["call"] = message.name or "", message.tool_call_id or ""
    return shown


def _turns(task: Task, trajectory: Trajectory) -> list[JsonObject]:
    """Turns as played, each with what was planned for it; a turn never reached has no span."""
    turns: list[JsonObject] = []
    for index in range(max(len(task.turns), len(trajectory.turns))):
        turn: JsonObject = {}
        if index < len(trajectory.turns):
            span = trajectory.turns[index]
            turn |= {"start": span.start, "stop": span.stop}
            turn["effects"] = _effects(trajectory, span.start, span.stop)
        if index < len(task.turns):
            plan = task.turns[index]
            turn["intent"] = plan.intent
            turn["known"] = [
                {"label": known.label, "said": known.said, "at_once": known.stated, "how": known.how}
                for known in plan.known
            ]
            turn["gold"] = [
                {
                    "name": call.tool,
                    "actor": call.actor,
                    "arguments": _truncate_value(call.arguments),
                    "effect": call.effect,
                }
                for call in plan.gold_calls
            ]
            turn["facts"] = [_truncate_value(fact) for fact in plan.answer_facts]
        turns.append(turn)
    return turns


def _effects(trajectory: Trajectory, start: int, stop: int) -> list[JsonObject]:
    """Calls of one turn that changed the state or were refused, with what they changed."""
    effects: list[JsonObject] = []
    for event in trajectory.events:
        if start <= event.message < stop and (event.effect or not event.ok or event.actor == "user"):
            effect: list[Any] = event.effect if isinstance(event.effect, list) else []
            changes = [_change(operation) for operation in effect]
            effects.append({"tool": event.tool, "actor": event.actor, "error": event.error, "changes": changes})
    return effects


def _change(operation: JsonObject) -> JsonObject:
    return {**operation, "value": _truncate_value(operation["value"])} if "value" in operation else operation


def _truncate_value(value: JsonValue) -> JsonValue:
    """The value, or the beginning of its JSON text if it is long."""
    text = orjson.dumps(value).decode()
    return value if len(text) <= TEXT_LIMIT else truncate_text(text, TEXT_LIMIT)
