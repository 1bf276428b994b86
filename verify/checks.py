"""State and answer checks: deriving them from a gold run, and running them. Design section 6."""

from collections.abc import Sequence
from typing import Any

from chatmodel.surface import human, mentions, say
from environments.diff import diff
from trajectory import AnswerCheck, Check, CheckOutcome, JsonObject, JsonValue, StateCheck, UntouchedCheck

MISSING = object()
MOST_CHECKS = 40
"""State checks per turn; of a larger diff the first ones are checked, and the state hash covers the rest."""


def pointer(document: JsonValue, path: str) -> Any:
    """Value at a JSON Pointer (RFC 6901), or `MISSING`."""
    node: Any = document
    for raw in path.split("/")[1:]:
        part = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and part in node:
            node = node[part]
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        else:
            return MISSING
    return node


def derive_checks(
    initial: JsonObject,
    before: JsonObject,
    after: JsonObject,
    facts: Sequence[JsonValue],
    turn: int,
    changes: Sequence[JsonObject] | None = None,
) -> tuple[Check, ...]:
    """Checks of one turn: what the gold run changed, that nothing else changed so far, and what the answer must tell.

    Args:
        initial: State before the task.
        before: State before the turn.
        after: Gold state after the turn.
        facts: Values that the answer must tell.
        changes: Diff from `initial` to `after`, from a caller that has it.
    """
    changes = diff(initial, after) if changes is None else changes
    made = changes if before is initial else diff(before, after)
    checks: list[Check] = [_state_check(operation, after) for operation in made[:MOST_CHECKS]]
    changed = tuple(dict.fromkeys(_root(operation["path"]) for operation in changes))
    what = ", ".join(changed[:3]) + (" ..." if len(changed) > 3 else "")
    says = f"nothing changes but {what}" if changed else "nothing in the state changes"
    checks.append(UntouchedCheck(says=says, allowed=changed))
    checks += [AnswerCheck(says=f"the answer tells {say(fact)}", value=fact, turn=turn) for fact in facts]
    return tuple(checks)


def _root(path: str) -> str:
    """The entity that a change belongs to: two levels of a path, or all of it if it is shorter."""
    return path.removesuffix("/-") if path.count("/") <= 2 else "/".join(path.split("/")[:3])


def _state_check(operation: JsonObject, after: JsonObject) -> StateCheck:
    """A check that the change is there. Appending to a list is checked as the whole list."""
    path = str(operation["path"])
    if path.endswith("/-"):
        path = path.removesuffix("/-")
        return StateCheck(says=f"{_words(path)} has the new entry", path=path, value=pointer(after, path))
    if operation["op"] == "remove":
        found = pointer(after, path)
        if found is MISSING:
            return StateCheck(says=f"{_words(path)} is gone", path=path, absent=True)
        parent = path.rsplit("/", 1)[0]
        return StateCheck(says=f"{_words(parent)} has lost an entry", path=parent, value=pointer(after, parent))
    value = operation["value"]
    said = say(value) if not isinstance(value, dict | list) else "as requested"
    return StateCheck(says=f"{_words(path)} is {said}", path=path, value=value)


def _words(path: str) -> str:
    return " ".join(human(part.replace("~1", "/").replace("~0", "~")) for part in path.split("/")[1:])


def run_check(
    check: Check, initial: JsonObject, state: JsonObject, answer: str, changes: Sequence[JsonObject] | None = None
) -> CheckOutcome:
    """Run one check.

    Args:
        initial: State before the task.
        state: State after the check's turn.
        answer: What the agent said in the turn.
        changes: Diff from `initial` to `state`, from a caller that has it.
    """
    if isinstance(check, StateCheck):
        found = pointer(state, check.path)
        passed = found is MISSING if check.absent else found is not MISSING and not diff(found, check.value)
        return CheckOutcome(says=check.says, kind=check.kind, passed=passed)
    if isinstance(check, UntouchedCheck):
        paths = [operation["path"] for operation in (diff(initial, state) if changes is None else changes)]
        outside = [path for path in paths if not _allowed(path, check.allowed)]
        return CheckOutcome(says=check.says, kind=check.kind, passed=not outside, detail=", ".join(outside[:3]))
    return CheckOutcome(says=check.says, kind=check.kind, passed=mentions(answer, check.value))


def _allowed(path: str, allowed: Sequence[str]) -> bool:
    return any(path == prefix or path.startswith(prefix + "/") for prefix in allowed)


def audit(
    checks: Sequence[Sequence[Check]],
    initial: JsonObject,
    states: Sequence[JsonObject],
    changes: Sequence[Sequence[JsonObject]] | None = None,
) -> str | None:
    """Test the checks of a task before it is used (design section 6): the gold run must pass, doing nothing must fail.

    Answers are tested when a trajectory has some; here a silent agent must fail every answer check.

    Args:
        checks: Checks per turn.
        states: Gold state after each turn.
        changes: Diff from `initial` to each of them, from a caller that has them.

    Returns:
        Why the checks are no good, or None.
    """
    caught = False
    changes = [diff(initial, state) for state in states] if changes is None else changes
    for turn, state, changed in zip(checks, states, changes, strict=True):
        for check in turn:
            if not isinstance(check, AnswerCheck) and not run_check(check, initial, state, "", changed).passed:
                return f"the gold run fails: {check.says}"
            caught = caught or run_check(check, initial, initial, "", ()).passed is False
    return None if caught else "doing nothing passes all checks"
