"""What the doctor says: a finding, and the smallest sequence of calls that shows it."""

from typing import Literal

from trajectory import Actor, Frozen, JsonObject, content_hash

Severity = Literal["error", "warning", "note"]
"""Error: the environment is broken there. Warning: it contradicts itself. Note: worth a look, costs no score."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class Step(Frozen):
    """One thing that is done to a session."""

    do: Literal["call", "reload"] = "call"
    """`reload` saves the state and goes on from it in a new session."""
    tool: str = ""
    arguments: JsonObject = {}
    actor: Actor = "assistant"
    session: int = 0
    """Which session; others than 0 play beside it, from their own initial state."""


class Start(Frozen):
    """An initial state: `states(seed)[index]` of the environment."""

    seed: int
    index: int


class Case(Frozen):
    """A sequence of steps from an initial state, and what the check must know to judge it again."""

    start: Start
    steps: tuple[Step, ...] = ()
    about: JsonObject = {}


class Evidence(Frozen):
    """What a check saw when it ran a case."""

    seen: str
    expected: str


class Finding(Frozen):
    """One thing that is wrong, or looks wrong."""

    id: str
    """Hash of check, tool and what it is about: the same fault has the same id in every examination."""
    check: str
    severity: Severity
    tool: str | None
    message: str
    """One line in plain words."""
    case: Case | None
    """None where no call is needed to see it (a faulty schema)."""
    seen: str
    expected: str


def finding_id(check: str, tool: str | None, topic: str) -> str:
    """The stable id of a finding; `topic` tells findings of one check on one tool apart."""
    return content_hash([check, tool, topic], 8)
