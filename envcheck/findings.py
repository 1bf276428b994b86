"""Findings, and the smallest sequence of calls that reproduces each of them."""

from typing import Literal

from trajsmith.records import Actor, FrozenModel, JsonObject, content_hash

Severity = Literal["error", "warning", "note"]
"""Error: the environment is broken there. Warning: it contradicts itself. Note: worth a look, costs no score."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class CaseStep(FrozenModel):
    """One step of a case: a tool call, or a save and reload."""

    do: Literal["call", "reload"] = "call"
    """`reload` saves the state and goes on from it in a new session."""
    tool: str = ""
    arguments: JsonObject = {}
    actor: Actor = "assistant"
    session: int = 0
    """Which session; others than 0 play beside it, from their own initial state."""


class StartState(FrozenModel):
    """An initial state: `states(seed)[index]` of the environment."""

    seed: int
    index: int


class CheckCase(FrozenModel):
    """A sequence of steps from an initial state, and what the check must know to judge it again."""

    start: StartState
    steps: tuple[CaseStep, ...] = ()
    about: JsonObject = {}


class CaseEvidence(FrozenModel):
    """Observed and expected behaviour when a check ran a case."""

    seen: str
    expected: str


class Finding(FrozenModel):
    """One confirmed fault or likely fault of an environment."""

    id: str
    """Hash of check, tool and what it is about: the same fault has the same id in every examination."""
    check: str
    severity: Severity
    tool: str | None
    message: str
    """One line in plain words."""
    case: CheckCase | None
    """None where no call is needed to see it (a faulty schema)."""
    seen: str
    expected: str


def build_finding_id(check: str, tool: str | None, topic: str) -> str:
    """Return the stable id of a finding; `topic` separates findings of one check on one tool."""
    return content_hash([check, tool, topic], 8)
