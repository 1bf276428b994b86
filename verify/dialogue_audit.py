"""The mechanical audit of dialogues: faults that a careful reader would find, counted by kind.

It reads records only, so it works on any run, scripted, written by models or imported.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from trajsmith.grounding.contradictions import ExecutedWrite, find_contradiction, list_changes
from trajsmith.phrasing import Wording, find_clock_date
from trajsmith.records import (
    EnvironmentSpec,
    FrozenModel,
    JsonObject,
    Task,
    Trajectory,
    canonical_json,
)
from trajsmith.verify.claim_support import find_play_claims
from trajsmith.verify.confirmation import find_confirmation_faults
from trajsmith.verify.reference_faults import find_reference_faults
from trajsmith.verify.unanswered_questions import find_unanswered_questions


class DialogueFault(FrozenModel):
    """One fault in one dialogue."""

    kind: str
    message: int
    """Index of the message in which it shows."""
    detail: str
    """The words or the value that are wrong."""


@dataclass(frozen=True)
class AuditContext:
    """Ingredients of the audit of one dialogue."""

    task: Task
    trajectory: Trajectory
    spec: EnvironmentSpec
    wording: Wording
    state: JsonObject | None = None
    """Initial state, where the run has it."""

    @property
    def now(self) -> date | None:
        """Return the day of the environment's clock."""
        return None if self.state is None else find_clock_date(self.state)

    def get_opening(self, turn: int) -> int:
        """Return the index of the message that opens a turn."""
        return self.trajectory.turns[turn].start


FaultFinder = Callable[[AuditContext], Iterable[DialogueFault]]


def _find_references(context: AuditContext) -> Iterator[DialogueFault]:
    perturbation = context.task.twist
    skipped = perturbation.turn if perturbation is not None and perturbation.act in ("batch", "offer") else None
    initial = None if context.state is None else canonical_json(context.state).decode()
    for fault in find_reference_faults(context.trajectory, context.task, context.wording, initial, context.now):
        if fault.turn != skipped:  # its words name a whole group, or what is refused and so in no call
            yield DialogueFault(kind=fault.kind, message=context.get_opening(fault.turn), detail=fault.words)


def _find_questions(context: AuditContext) -> Iterator[DialogueFault]:
    for question in find_unanswered_questions(context.task, context.trajectory):
        yield DialogueFault(
            kind="unanswered_question", message=context.get_opening(question.turn), detail=question.question
        )


def _find_confirmations(context: AuditContext) -> Iterator[DialogueFault]:
    report = find_confirmation_faults(context.task, context.trajectory, context.spec, context.wording)
    for kind, faults in (("missing_confirmation", report.missing), ("needless_confirmation", report.needless)):
        for fault in faults:
            start = context.get_opening(fault.turn)
            message = start if fault.event is None else context.trajectory.events[fault.event].message
            yield DialogueFault(kind=kind, message=message, detail=fault.tool)


def _find_contradictions(context: AuditContext) -> Iterator[DialogueFault]:
    """Writes that take an earlier one back or clash with it, unless the story is a change of mind."""
    scenarios = {scenario.id: scenario for scenario in context.wording.scenarios.scenarios}
    scenario = scenarios.get(context.task.scenario_id)
    if context.state is None or context.task.twist is not None or (scenario and scenario.change_of_mind):
        return
    tools = {tool.name: tool for tool in context.spec.tools}
    gold = [call for call in context.task.gold_calls if call.effect == "write"]
    writes = [event for event in context.trajectory.events if event.effect]
    if [call.tool for call in gold] != [event.tool for event in writes]:
        return  # changed otherwise than in the gold run: its verdict says so
    now = find_clock_date(context.state)
    today = date(now.year, now.month, now.day)
    earlier: list[ExecutedWrite] = []
    before = context.state
    for call, event in zip(gold, writes, strict=True):
        after = _apply_patch(before, event.effect)
        write = ExecutedWrite(call, list_changes(before, after))
        destructive = tools[call.tool].annotations.destructive_hint is True
        kind = find_contradiction(write, earlier, scenario is not None, destructive, today)
        if kind is not None:
            yield DialogueFault(kind=kind, message=event.message, detail=call.tool)
        earlier.append(write)
        before = after


def _apply_patch(document: JsonObject, patch: Any) -> JsonObject:
    """Return a document with the operations of an RFC 6902 patch (add, remove, replace)."""
    patched = copy.deepcopy(document)
    for operation in patch:
        *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:])
        node: Any = patched
        for part in parents:
            node = node[int(part)] if isinstance(node, list) else node[part]
        if operation["op"] == "remove":
            del node[int(last) if isinstance(node, list) else last]
        elif isinstance(node, list) and operation["op"] == "add":
            node.insert(len(node) if last == "-" else int(last), operation["value"])
        else:
            node[int(last) if isinstance(node, list) else last] = operation["value"]
    return patched


def _find_claims(context: AuditContext) -> Iterator[DialogueFault]:
    for claim in find_play_claims(context.task, context.trajectory, context.wording.phrasebook):
        yield DialogueFault(kind="unsupported_claim", message=claim.message, detail=claim.value)


FINDERS: tuple[tuple[tuple[str, ...], FaultFinder], ...] = (
    (("wrong_referent", "unresolved_reference", "superlative_on_cut_list", "unnamed_value"), _find_references),
    (("unanswered_question",), _find_questions),
    (("missing_confirmation", "needless_confirmation"), _find_confirmations),
    (("undone", "repeated_goal", "clash"), _find_contradictions),
    (("unsupported_claim",), _find_claims),
)
"""Kinds of faults with the function that finds them."""
FAULT_KINDS = tuple(kind for kinds, _ in FINDERS for kind in kinds)


def find_dialogue_faults(context: AuditContext) -> list[DialogueFault]:
    """Return all faults of one dialogue, in the order of the kinds."""
    return [fault for _, find in FINDERS for fault in find(context)]
