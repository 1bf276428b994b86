"""State, answer and policy checks: deriving them from a gold run, and running them.

Checks look at states in the form of `trajsmith.verify.normalized_state`: what the environment gives out itself has
names there that do not depend on the order or the time of the run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.environments.diff import diff
from trajsmith.phrasing import is_answer_stated, render_fact
from trajsmith.phrasing.value_formatting import format_value, humanize
from trajsmith.records import (
    AnswerCheck,
    AnswerFact,
    Check,
    CheckOutcome,
    CodeCheck,
    InstalledCheck,
    JsonObject,
    JsonValue,
    PolicyCheck,
    PolicyRule,
    Registry,
    StateCheck,
    UntouchedCheck,
)
from trajsmith.verify.normalized_state import NormalizedState

MISSING = object()
MAX_CHECKS = 200
"""State checks per turn; of a larger diff the first ones are checked, and the state hash covers the rest."""
CheckedCall = tuple[str, JsonObject, bool]
"""Tool, arguments, and whether the call succeeded."""


def resolve_pointer(document: JsonValue, path: str) -> Any:
    """Value at a JSON Pointer (RFC 6901), or `MISSING`."""
    node: Any = document
    for raw in path.split("/")[1:]:
        part = _unescape(raw)
        if isinstance(node, dict) and part in node:
            node = node[part]
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        else:
            return MISSING
    return node


def build_checks(
    forms: Sequence[NormalizedState],
    facts: Sequence[Sequence[AnswerFact | JsonValue]],
    rules: Sequence[PolicyRule],
    calls: Sequence[CheckedCall],
) -> list[tuple[Check, ...]]:
    """Build the checks of all turns of a task.

    Args:
        forms: The gold state after each turn, in the form that checks see.
        facts: What the answers must tell, per turn.
        rules: Rules of the environment; those that the gold run has to do with and keeps are checked at the end.
        calls: The calls of the gold run.
    """
    called_tools = {tool for tool, _, _ in calls}
    obeyed_rules = [rule for rule in rules if called_tools & {*rule.tools} and find_rule_breach(rule, calls) is None]
    checks, last = [], len(forms) - 1
    for turn, (form, turn_facts) in enumerate(zip(forms, facts, strict=True)):
        before = forms[turn - 1].document if turn else form.initial
        checks.append(
            derive_checks(
                form.initial, before, form.document, turn_facts, turn, form.changes, form.generated_values,
                obeyed_rules if turn == last else (), turn == last,
            )
        )  # fmt: skip
    return checks


def derive_checks(
    initial: JsonObject,
    before: JsonObject,
    after: JsonObject,
    facts: Sequence[AnswerFact | JsonValue],
    turn: int,
    changes: Sequence[JsonObject] | None = None,
    generated_values: Mapping[str, JsonValue] | None = None,
    rules: Sequence[PolicyRule] = (),
    last: bool = False,
) -> tuple[Check, ...]:
    """Checks of one turn: what the gold run changed, that nothing else changed so far, and what the answer must tell.

    Args:
        initial: State before the task.
        before: State before the turn.
        after: Gold state after the turn.
        facts: Values that the answer must tell.
        turn: Number of the turn.
        changes: Diff from `initial` to `after`, from a caller that has it.
        given: Where values that the environment gave out stand in `after`: another run has to tell its own.
        rules: Rules of the policy that the gold run keeps.
        last: True for the last turn: what earlier turns changed must still be there at the end.
    """
    changes = diff(initial, after) if changes is None else changes
    turn_changes = changes if last or before is initial else diff(before, after)
    checks: dict[str, Check] = {}
    for operation in turn_changes[:MAX_CHECKS]:
        check = _state_check(operation, after)
        checks.setdefault(check.path, check)
    changed = tuple(dict.fromkeys(cut_at_list(operation["path"], after) for operation in changes))
    summary = ", ".join(changed[:3]) + (" ..." if len(changed) > 3 else "")
    says = f"nothing changes but {summary}" if changed else "nothing in the state changes"
    derived: list[Check] = [*checks.values(), UntouchedCheck(says=says, allowed=changed)]
    places = {repr(value): path for path, value in (generated_values or {}).items()}
    for fact in map(as_answer_fact, facts):
        place = places.get(repr(fact.value), "") if isinstance(fact.value, str | float) else ""
        spoken = "the " + _describe_path(place.rsplit("/", 1)[-1]) if place else render_fact(fact)
        derived.append(
            AnswerCheck(
                says=f"the answer tells {spoken}", value=fact.value, turn=turn, at=place, label=fact.label,
                words=fact.words, question=fact.question,
            )
        )  # fmt: skip
    return (*derived, *(PolicyCheck(says=rule.says, rule=rule) for rule in rules))


def as_answer_fact(fact: AnswerFact | JsonValue) -> AnswerFact:
    """Return a fact of an answer, also where only its value is known."""
    return fact if isinstance(fact, AnswerFact) else AnswerFact(value=fact)


def cut_at_list(path: str, document: JsonObject) -> str:
    """A path up to the first list on it: lists are compared as a whole."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        if isinstance(resolve_pointer(document, "/".join(parts[:depth])), list):
            return "/".join(parts[:depth])
    return path


def _state_check(operation: JsonObject, after: JsonObject) -> StateCheck:
    """A check that the change is there; what is in a list is checked as the whole list."""
    path = str(operation["path"])
    whole = cut_at_list(path, after)
    if whole != path:
        grown = "has the new entry" if operation["op"] == "add" else "is as requested"
        return StateCheck(says=f"{_describe_path(whole)} {grown}", path=whole, value=resolve_pointer(after, whole))
    if operation["op"] == "remove":
        return StateCheck(says=f"{_describe_path(path)} is gone", path=path, absent=True)
    value = operation["value"]
    if "/new:" in path:
        return StateCheck(says=f"{_describe_path(path.split('/new:')[0])} has the new entry", path=path, value=value)
    spoken_value = format_value(value) if not isinstance(value, dict | list) else "as requested"
    return StateCheck(says=f"{_describe_path(path)} is {spoken_value}", path=path, value=value)


def _describe_path(path: str) -> str:
    return " ".join(humanize(_unescape(part)) for part in path.split("/") if part)


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


@dataclass(frozen=True)
class CheckInput:
    """Input of a check after a turn."""

    initial: JsonObject
    """State before the task, in the form of `trajsmith.verify.normalized_state`."""
    state: JsonObject
    """State after the turn, in the same form."""
    answer: str
    """What the agent said in the turn."""
    calls: Sequence[CheckedCall] = ()
    """All calls until the end of the turn."""
    changes: Sequence[JsonObject] | None = None
    """Diff from `initial` to `state`, from a caller that has it."""
    generated_values: Mapping[str, JsonValue] | None = None
    """Where values that the environment gave out stand in `state` to what they are."""


KINDS = ("answer", "code", "policy", "state", "untouched")
"""Kinds of checks that tasks hold."""
CheckResult = bool | tuple[bool | None, str] | None
"""Passed or not, None if the check could not tell; or that with a detail."""
CHECKS: Registry[Callable[[Any, CheckInput], CheckResult]] = Registry(
    "checks", {**dict.fromkeys(KINDS, "trajsmith.verify.checks"), "solution": "trajsmith.verify.solution_check"}
)
"""Kind of a check, or name of an installed one, to its function of the check and of what it looks at."""


def run_check(
    check: Check,
    initial: JsonObject,
    state: JsonObject,
    answer: str,
    changes: Sequence[JsonObject] | None = None,
    generated_values: Mapping[str, JsonValue] | None = None,
    calls: Sequence[CheckedCall] = (),
) -> CheckOutcome:
    """Run one check that needs no sandbox; the arguments are those of `CheckInput`.

    Raises:
        InputError: The check is not installed.
    """
    seen = CheckInput(initial, state, answer, calls, changes, generated_values)
    if isinstance(check, InstalledCheck):
        return _run_installed(check, seen)
    return _build_outcome(check, CHECKS.get(check.kind)(check, seen))


def _run_installed(check: InstalledCheck, seen: CheckInput) -> CheckOutcome:
    run = CHECKS.get(check.name)
    try:
        return _build_outcome(check, run(check, seen))
    except Exception as error:  # noqa: BLE001 - a crash of somebody's check is no failure of the agent
        return _build_outcome(check, (None, f"{type(error).__name__}: {error}"))


def _build_outcome(check: Check, result: CheckResult) -> CheckOutcome:
    passed, detail = result if isinstance(result, tuple) else (result, "")
    kind = check.name if isinstance(check, InstalledCheck) else check.kind
    return CheckOutcome(says=check.says, kind=kind, passed=passed, detail=detail)


@CHECKS.register("state")
def run_state_check(check: StateCheck, seen: CheckInput) -> CheckResult:
    """Return True if the state holds the value, or nothing where nothing must be."""
    actual = resolve_pointer(seen.state, check.path)
    return actual is MISSING if check.absent else actual is not MISSING and not diff(actual, check.value)


@CHECKS.register("untouched")
def run_untouched_check(check: UntouchedCheck, seen: CheckInput) -> CheckResult:
    """Return True if nothing differs outside the allowed paths."""
    changes = diff(seen.initial, seen.state) if seen.changes is None else seen.changes
    paths = [operation["path"] for operation in changes]
    outside = [path for path in paths if not _is_allowed(path, check.allowed)]
    return not outside, ", ".join(outside[:3])


@CHECKS.register("answer")
def run_answer_check(check: AnswerCheck, seen: CheckInput) -> CheckResult:
    """Return True if the answer tells the value."""
    value = check.value
    if check.at:
        if seen.generated_values is None or check.at not in seen.generated_values:
            return False, f"there is no {check.at}"
        value = seen.generated_values[check.at]
    return is_answer_stated(seen.answer, value, check.label, check.words, check.question)


@CHECKS.register("policy")
def run_policy_check(check: PolicyCheck, seen: CheckInput) -> CheckResult:
    """Return True if the calls keep the rule."""
    breach = find_rule_breach(check.rule, seen.calls)
    return breach is None, breach or ""


@CHECKS.register("code")
def run_code_check(check: CodeCheck, seen: CheckInput) -> CheckResult:
    """Return that it could not tell: `trajsmith.verify.code_checks` runs it in the sandbox."""
    return None, "needs the sandbox"


def _is_allowed(path: str, allowed: Sequence[str]) -> bool:
    return any(path == prefix or path.startswith(prefix + "/") for prefix in allowed)


def find_rule_breach(rule: PolicyRule, calls: Sequence[CheckedCall]) -> str | None:
    """Return how the calls break a rule, or None if they keep it."""
    seen: dict[str, Any] = {}
    opened = not rule.after
    for tool, arguments, ok in calls:
        if not ok:
            continue
        if tool in rule.tools:
            if not opened:
                return f"{tool} before any of {', '.join(rule.after)}"
            for name in rule.same:
                if seen.setdefault(name, arguments.get(name)) != arguments.get(name):
                    return f"{tool} with another {humanize(name)} than before"
        opened = opened or tool in rule.after
    return None


def check_gold_run(
    checks: Sequence[Sequence[Check]],
    initial: JsonObject,
    states: Sequence[JsonObject],
    changes: Sequence[Sequence[JsonObject]] | None = None,
) -> str | None:
    """Check the minimum: the gold run passes, doing nothing fails. `trajsmith.verify.check_audit` tests more.

    Answers are tested when a trajectory has some; here a silent agent must fail every answer check.

    Args:
        checks: Checks per turn.
        initial: State before the task.
        states: Gold state after each turn.
        changes: Diff from `initial` to each of them, from a caller that has them.

    Returns:
        Why the checks are no good, or None.
    """
    caught = False
    changes = [diff(initial, state) for state in states] if changes is None else changes
    for turn, state, changed in zip(checks, states, changes, strict=True):
        for check in turn:
            if isinstance(check, CodeCheck | InstalledCheck | PolicyCheck):
                continue
            if not isinstance(check, AnswerCheck) and not run_check(check, initial, state, "", changed).passed:
                return f"the gold run fails: {check.says}"
            caught = caught or run_check(check, initial, initial, "", ()).passed is False
    return None if caught else "doing nothing passes all checks"
