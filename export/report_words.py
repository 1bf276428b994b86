"""Plain words of the report for kinds of faults, reasons of verdicts and checks."""

from collections.abc import Iterable

from trajsmith.records import CheckOutcome

FAULTS: dict[str, tuple[str, str]] = {
    "wrong_entity": ("wrong thing", "The agent calls a tool for another thing than the one that was meant."),
    "skipped_confirmation": ("confirmation skipped", "The agent does not ask for the yes that this call needs."),
    "needless_confirmation": ("needless confirmation", "The agent asks for a yes that no rule wants."),
    "premature_answer": ("claims it is done", "The agent says that it is done and has not made the call."),
    "needless_write": ("needless change", "The agent changes something else, of which nobody spoke."),
    "needless_read": ("needless look-up", "The agent looks up again what it has just looked up."),
    "invented_value": ("invented value", "The agent makes up a value that the user has not given."),
    "missed_error": ("error overlooked", "A call is refused, and the agent goes on as if it had succeeded."),
    "wrong_report": ("wrong answer", "The agent tells the user a wrong value."),
    "ignored_variant": ("variant overlooked", "The agent does not notice what is different in this task."),
    "unsearched_call": ("tool not searched for", "The agent calls a tool that no search has shown it."),
    "wrong_search": ("wrong search", "The agent searches for something else, and calls a tool that was not shown."),
}
"""Kind of injected mistake to its short name and what happens in it."""

REASONS: dict[str, str] = {
    "the final state is not the gold state": "the data at the end is not right",
    "check failed: state": "a change that was asked for is missing or wrong",
    "check failed: untouched": "something else was changed as well",
    "check failed: answer": "the user is not told what was asked",
    "check failed: claim": "the agent states what no tool showed",
    "check failed: policy": "a rule of the policy is broken",
    "check failed: conduct": "the agent acts in a way that it must not",
    "check failed: user": "the user acts out of role",
    "stopped: agent_gave_up": "the agent gave up",
    "stopped: step_limit": "too many steps",
    "stopped: turn_limit": "too many turns",
    "stopped: bad_calls": "too many calls that cannot be read",
    "stopped: environment_fault": "the environment broke",
    "stopped: model_fault": "the model gave no usable answer",
    "user_invented_a_value": "the user made up a value",
}
"""Reason of a verdict to plain words."""

FAILED: dict[str, str] = {
    "state": "not true at the end: {}",
    "untouched": "changed as well: {}",
    "answer": "not in the answer: {}",
    "claim": "no tool showed this: {}",
}
"""Kind of check to what it means that it failed."""
_ANSWER = "the answer tells "
MOST_TEXTS = 2
"""Failed checks of one kind that are told; the others are counted."""


def describe_fault(kind: str) -> tuple[str, str]:
    """Return the short name of a kind of mistake and a sentence about it."""
    return FAULTS.get(kind, (kind.replace("_", " "), ""))


def describe_reason(reason: str) -> str:
    """Return the reason of a verdict in plain words; an unknown one as it stands, with spaces."""
    if reason in REASONS:
        return REASONS[reason]
    head, _, rest = reason.partition(": ")
    _, _, rule = rest.partition(": ")
    if head == "check failed" and rule:
        return f"not so: {rule}"
    return reason.replace("_", " ")


def describe_failed_checks(checks: Iterable[CheckOutcome]) -> list[str]:
    """Return what the failed checks mean, a text for each kind."""
    by_kind: dict[str, list[str]] = {}
    for check in checks:
        if check.passed is False:
            by_kind.setdefault(check.kind, []).extend(_name_failed(check))
    return [
        FAILED.get(kind, "not so: {}").format(_join_some(list(dict.fromkeys(texts)))) for kind, texts in by_kind.items()
    ]


def _name_failed(check: CheckOutcome) -> list[str]:
    """Return what a failed check is about: values, changed places, or what should be true."""
    if check.kind == "untouched":
        return [_name_path(path) for path in check.detail.split(",") if path.strip()] or ["something"]
    if check.kind == "claim":
        return [check.detail or check.says]
    return [check.says.removeprefix(_ANSWER)]


def _join_some(texts: list[str]) -> str:
    rest = len(texts) - MOST_TEXTS
    return ", ".join(texts[:MOST_TEXTS]) + (f" and {rest} more" if rest > 0 else "")


def _name_path(path: str) -> str:
    """Return a path of the state as words, without the ids of new rows: "bookings (new)"."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in path.strip().split("/") if part]
    return " › ".join("(new)" if part.startswith("new:") else part for part in parts)
