"""State, answer and policy checks: deriving them from a gold run, and running them. Design section 6.

Checks look at states in the form of `verify.form`: what the environment gives out itself has names there that do not
depend on the order or the time of the run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from chatmodel.surface import human, mentions, say
from environments.diff import diff
from trajectory import (
    AnswerCheck,
    Check,
    CheckOutcome,
    CodeCheck,
    JsonObject,
    JsonValue,
    PolicyCheck,
    PolicyRule,
    StateCheck,
    UntouchedCheck,
)
from verify.form import Form

MISSING = object()
MOST_CHECKS = 200
"""State checks per turn; of a larger diff the first ones are checked, and the state hash covers the rest."""
Called = tuple[str, JsonObject, bool]
"""Tool, arguments, and whether the call succeeded."""


def pointer(document: JsonValue, path: str) -> Any:
    """Value at a JSON Pointer (RFC 6901), or `MISSING`."""
    node: Any = document
    for raw in path.split("/")[1:]:
        part = _unescaped(raw)
        if isinstance(node, dict) and part in node:
            node = node[part]
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        else:
            return MISSING
    return node


def checks_of(
    forms: Sequence[Form], facts: Sequence[Sequence[JsonValue]], rules: Sequence[PolicyRule], calls: Sequence[Called]
) -> list[tuple[Check, ...]]:
    """Checks of all turns of a task.

    Args:
        forms: The gold state after each turn, in the form that checks see.
        facts: What the answers must tell, per turn.
        rules: Rules of the environment; those that the gold run has to do with and keeps are checked at the end.
        calls: The calls of the gold run.
    """
    made = {tool for tool, _, _ in calls}
    kept = [rule for rule in rules if made & {*rule.tools} and breach(rule, calls) is None]
    found, last = [], len(forms) - 1
    for turn, (form, told) in enumerate(zip(forms, facts, strict=True)):
        before = forms[turn - 1].document if turn else form.initial
        found.append(
            derive_checks(
                form.initial, before, form.document, told, turn, form.changes, form.given,
                kept if turn == last else (), turn == last,
            )
        )  # fmt: skip
    return found


def derive_checks(
    initial: JsonObject,
    before: JsonObject,
    after: JsonObject,
    facts: Sequence[JsonValue],
    turn: int,
    changes: Sequence[JsonObject] | None = None,
    given: Mapping[str, JsonValue] | None = None,
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
    made = changes if last or before is initial else diff(before, after)
    checks: dict[str, Check] = {}
    for operation in made[:MOST_CHECKS]:
        check = _state_check(operation, after)
        checks.setdefault(check.path, check)
    changed = tuple(dict.fromkeys(_listless(operation["path"], after) for operation in changes))
    what = ", ".join(changed[:3]) + (" ..." if len(changed) > 3 else "")
    says = f"nothing changes but {what}" if changed else "nothing in the state changes"
    found: list[Check] = [*checks.values(), UntouchedCheck(says=says, allowed=changed)]
    places = {repr(value): path for path, value in (given or {}).items()}
    for fact in facts:
        place = places.get(repr(fact), "")
        told = f"the answer tells {'the ' + _words(place.rsplit('/', 1)[-1]) if place else say(fact)}"
        found.append(AnswerCheck(says=told, value=fact, turn=turn, at=place))
    return (*found, *(PolicyCheck(says=rule.says, rule=rule) for rule in rules))


def _listless(path: str, document: JsonObject) -> str:
    """A path up to the first list on it: lists are compared as a whole."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        if isinstance(pointer(document, "/".join(parts[:depth])), list):
            return "/".join(parts[:depth])
    return path


def _state_check(operation: JsonObject, after: JsonObject) -> StateCheck:
    """A check that the change is there; what is in a list is checked as the whole list."""
    path = str(operation["path"])
    whole = _listless(path, after)
    if whole != path:
        grown = "has the new entry" if operation["op"] == "add" else "is as requested"
        return StateCheck(says=f"{_words(whole)} {grown}", path=whole, value=pointer(after, whole))
    if operation["op"] == "remove":
        return StateCheck(says=f"{_words(path)} is gone", path=path, absent=True)
    value = operation["value"]
    if "/new:" in path:
        return StateCheck(says=f"{_words(path.split('/new:')[0])} has the new entry", path=path, value=value)
    said = say(value) if not isinstance(value, dict | list) else "as requested"
    return StateCheck(says=f"{_words(path)} is {said}", path=path, value=value)


def _words(path: str) -> str:
    return " ".join(human(_unescaped(part)) for part in path.split("/") if part)


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def run_check(
    check: Check,
    initial: JsonObject,
    state: JsonObject,
    answer: str,
    changes: Sequence[JsonObject] | None = None,
    given: Mapping[str, JsonValue] | None = None,
    calls: Sequence[Called] = (),
) -> CheckOutcome:
    """Run one check that needs no sandbox; of a `CodeCheck` it says that it could not tell.

    Args:
        check: The check.
        initial: State before the task.
        state: State after the check's turn.
        answer: What the agent said in the turn.
        changes: Diff from `initial` to `state`, from a caller that has it.
        given: Where values that the environment gave out stand in `state` to what they are.
        calls: All calls until the end of the turn.
    """
    if isinstance(check, CodeCheck):
        return CheckOutcome(says=check.says, kind=check.kind, passed=None, detail="needs the sandbox")
    if isinstance(check, PolicyCheck):
        broken = breach(check.rule, calls)
        return CheckOutcome(says=check.says, kind=check.kind, passed=broken is None, detail=broken or "")
    if isinstance(check, StateCheck):
        found = pointer(state, check.path)
        passed = found is MISSING if check.absent else found is not MISSING and not diff(found, check.value)
        return CheckOutcome(says=check.says, kind=check.kind, passed=passed)
    if isinstance(check, UntouchedCheck):
        paths = [operation["path"] for operation in (diff(initial, state) if changes is None else changes)]
        outside = [path for path in paths if not _allowed(path, check.allowed)]
        return CheckOutcome(says=check.says, kind=check.kind, passed=not outside, detail=", ".join(outside[:3]))
    value = check.value
    if check.at:
        if given is None or check.at not in given:
            return CheckOutcome(says=check.says, kind=check.kind, passed=False, detail=f"there is no {check.at}")
        value = given[check.at]
    return CheckOutcome(says=check.says, kind=check.kind, passed=mentions(answer, value))


def _allowed(path: str, allowed: Sequence[str]) -> bool:
    return any(path == prefix or path.startswith(prefix + "/") for prefix in allowed)


def breach(rule: PolicyRule, calls: Sequence[Called]) -> str | None:
    """How the calls break a rule, or None if they keep it."""
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
                    return f"{tool} with another {human(name)} than before"
        opened = opened or tool in rule.after
    return None


def audit(
    checks: Sequence[Sequence[Check]],
    initial: JsonObject,
    states: Sequence[JsonObject],
    changes: Sequence[Sequence[JsonObject]] | None = None,
) -> str | None:
    """The least that checks must do: the gold run must pass, doing nothing must fail. `verify.auditing` asks for more.

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
            if isinstance(check, CodeCheck | PolicyCheck):
                continue
            if not isinstance(check, AnswerCheck) and not run_check(check, initial, state, "", changed).passed:
                return f"the gold run fails: {check.says}"
            caught = caught or run_check(check, initial, initial, "", ()).passed is False
    return None if caught else "doing nothing passes all checks"
