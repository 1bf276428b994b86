"""The first wrong step of an episode, by execution: what was called, against what the task's gold calls are."""

from collections.abc import Iterator, Sequence
from typing import Any

from trajsmith.records import (
    CALL_TOOL,
    SEARCH_TOOLS,
    CallEvent,
    FromOutput,
    FromUser,
    FrozenModel,
    GoldCall,
    Task,
    Trajectory,
    Verdict,
)
from trajsmith.records.trajectory import NOT_SHOWN
from trajsmith.verify.batch_checks import CONDUCT
from trajsmith.verify.claim_support import CLAIMS
from trajsmith.verify.confirmation import MISSING, NEEDLESS
from trajsmith.verify.matching import match_calls

KINDS = {
    "wrong_entity": "a call is made for another thing than the one that is meant",
    "invented_value": "an argument has a value that the user has not said",
    "wrong_value": "an argument has another value of what the user said",
    "wrong_argument": "an argument differs from gold",
    "skipped_confirmation": "a call that needs the user's yes is made without it",
    "needless_confirmation": "the user is asked for a yes that no rule wants",
    "missing_call": "a call that the task needs is never made",
    "needless_write": "something is changed that nobody asked for",
    "repeated_read": "a look-up is made twice",
    "needless_read": "a look-up is made that the task does not need",
    "unrecovered_error": "a call is refused, and never made rightly",
    "unsearched_call": "a tool is called that was not searched for",
    "wrong_search": "a tool is called after a search that did not show it",
    "ignored_variant": "what is different in a variant is not noticed",
    "wrong_report": "the answer lacks a value, or tells a wrong one",
    "no_tool": "no tool is called",
    "wrong_tool": "another tool is called than the one that is needed",
    "needless_call": "a tool is called where none fits",
}
"""Kind of a wrong step to what it says."""
HARMLESS = frozenset({"repeated_read", "needless_read"})
"""Steps that come first only where nothing else is wrong."""
WEAKER = frozenset({"skipped_confirmation", "wrong_report"})
"""Steps that another one of the same message explains: a yes for another thing, values that no call has shown."""
OF_CALLS = frozenset(
    {
        "the agent looks at the thing that was meant",
        "the agent calls no tool of another environment",
        "the agent calls only tools that a search has shown",
    }
)
"""Checks of conduct whose failure a wrong call shows already."""


class WrongStep(FrozenModel):
    """The step of an episode that went wrong first."""

    kind: str
    """One of `KINDS`."""
    message: int
    """Index of the message with which it was made."""
    tool: str = ""
    detail: str = ""


def find_first_wrong_step(task: Task, trajectory: Trajectory, verdict: Verdict) -> WrongStep | None:
    """Return the first wrong step, also of an episode that passed; None if there is none.

    Steps of a turn stand in the order of their messages; what is missing in a turn is wrong at its end. Look-ups that
    are not needed count only where nothing else is wrong.
    """
    steps = sorted(_iter_steps(task, trajectory, verdict), key=lambda step: (step.message, step.kind in WEAKER))
    return next((step for step in steps if step.kind not in HARMLESS), steps[0] if steps else None)


def _iter_steps(task: Task, trajectory: Trajectory, verdict: Verdict) -> Iterator[WrongStep]:
    gold, events = task.gold_calls, trajectory.events
    complete = bool(verdict.state_match)
    pairs = match_calls(gold, events, task.masks.names, task.masks.names, complete)
    taken = set(pairs.values())
    yield from _iter_failed_conduct(task, trajectory, verdict)
    start = 0
    for number, span in enumerate(trajectory.turns):
        turn = task.turns[number].gold_calls if number < len(task.turns) else ()
        indices = range(start, start + len(turn))
        start += len(turn)
        open_calls = [gold[index] for index in indices if index not in pairs]
        calls = [(index, event) for index, event in enumerate(events) if span.start <= event.message < span.stop]
        named: list[GoldCall] = []
        for index, event in calls:
            if index in taken or event.actor == "user" or event.tool in (SEARCH_TOOLS, CALL_TOOL):
                continue
            step, about = _judge_event(index, event, events, open_calls, task, trajectory)
            if about is not None:
                named.append(about)
            if step is not None:
                yield step
        missing = [call for call in open_calls if call not in named and call.actor == "assistant"]
        if missing and not (complete and verdict.outcome == "completed"):
            tool = missing[0].tool
            yield WrongStep(
                kind="missing_call" if events else "no_tool", message=span.stop - 1, tool=tool, detail=f"no {tool}"
            )
    if task.gold_calls and not events and not trajectory.turns:
        yield WrongStep(kind="no_tool", message=len(trajectory.messages) - 1)


def _judge_event(
    index: int,
    event: CallEvent,
    events: Sequence[CallEvent],
    open_calls: Sequence[GoldCall],
    task: Task,
    trajectory: Trajectory,
) -> tuple[WrongStep | None, GoldCall | None]:
    """Return the wrong step that a call is which no gold call matches, and the gold call that it stands for."""

    def build(kind: str, detail: str = "") -> WrongStep:
        return WrongStep(kind=kind, message=event.message, tool=event.tool, detail=detail)

    meant = next((call for call in open_calls if call.tool == event.tool), None)
    if event.error == NOT_SHOWN:
        before = events[index - 1] if index else None
        searched = before is not None and before.tool == SEARCH_TOOLS and before.message >= event.message - 2
        fresh = searched and not any(one.tool == event.tool for one in events[:index])
        return build("wrong_search" if fresh else "unsearched_call"), meant
    if not event.ok:
        later = any(one.ok and one.tool == event.tool for one in events[index + 1 :])
        expected = task.twist is not None and task.twist.tool == event.tool
        if later or expected:
            return None, None
        if meant is not None and meant.arguments.keys() <= event.arguments.keys():
            kind, detail = _compare_arguments(meant, event, trajectory)
            if detail:
                return build(kind, detail), meant
        if meant is None and any(call.tool == event.tool and call.effect == "write" for call in task.gold_calls):
            return build("needless_write", event.error or ""), None
        return build("unrecovered_error", event.error or ""), meant
    if meant is not None:
        kind, detail = _compare_arguments(meant, event, trajectory)
        return build(kind, detail), meant
    if event.effect:
        return build("needless_write"), None
    same = any((one.tool, one.arguments) == (event.tool, event.arguments) for one in events[:index])
    return build("repeated_read" if same else "needless_read"), None


def _compare_arguments(gold: GoldCall, event: CallEvent, trajectory: Trajectory) -> tuple[str, str]:
    """Return how the arguments of a call differ from those of gold, by where gold has its values from."""
    missing = object()
    names = [name for name in dict.fromkeys((*gold.arguments, *event.arguments)) if name not in gold.mask]
    wrong: dict[str, Any] = {
        name: event.arguments.get(name)
        for name in names
        if event.arguments.get(name, missing) != gold.arguments.get(name, missing)
    }
    by_source = sorted(wrong, key=lambda name: not isinstance(gold.provenance.get(name), FromOutput))
    for name in by_source:
        source, detail = gold.provenance.get(name), f"{name}: {wrong[name]!r} for {gold.arguments.get(name)!r}"[:200]
        if isinstance(source, FromOutput):
            return "wrong_entity", detail
        if isinstance(source, FromUser):
            texts = " ".join(one.content for one in trajectory.messages[: event.message] if one.role == "user")
            return "wrong_value" if str(wrong[name]).casefold() in texts.casefold() else "invented_value", detail
    name = next(iter(wrong), "")
    return "wrong_argument", f"{name}: {wrong[name]!r} for {gold.arguments.get(name)!r}"[:200] if name else ""


def _iter_failed_conduct(task: Task, trajectory: Trajectory, verdict: Verdict) -> Iterator[WrongStep]:
    """Yield what failed checks show that no call does: questions, answers, and what a variant asks for."""
    perturbation = task.twist
    for check in verdict.checks:
        if check.passed is not False:
            continue
        tool = check.detail.partition(":")[0]
        if check.says in (MISSING, NEEDLESS):
            at = next((one.message for one in trajectory.events if one.tool == tool), 0)
            kind = "skipped_confirmation" if check.says == MISSING else "needless_confirmation"
            yield WrongStep(kind=kind, message=at, tool=tool, detail=check.detail[:200])
        elif check.kind in ("answer", CLAIMS):
            yield WrongStep(
                kind="wrong_report", message=len(trajectory.messages) - 1, detail=f"{check.says}: {check.detail}"[:200]
            )
        elif (
            check.kind == CONDUCT
            and check.says not in OF_CALLS
            and perturbation is not None
            and perturbation.turn < len(trajectory.turns)
        ):
            span = trajectory.turns[perturbation.turn]
            yield WrongStep(kind="ignored_variant", message=span.start, tool=perturbation.tool, detail=check.says)
