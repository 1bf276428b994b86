"""Checks of a task, what they overlook because the environment gives it out, and what became of their test."""

from typing import Annotated, Literal

from pydantic import Field

from trajectory.canonical import JsonValue
from trajectory.environment import PolicyRule
from trajectory.record import Frozen


class StateCheck(Frozen):
    """The final state must hold `value` at `path` (RFC 6901), or hold nothing there if `absent`."""

    kind: Literal["state"] = "state"
    says: str
    path: str
    value: JsonValue = None
    absent: bool = False


class UntouchedCheck(Frozen):
    """Nothing may differ from the initial state outside `allowed` (RFC 6901 prefixes)."""

    kind: Literal["untouched"] = "untouched"
    says: str
    allowed: tuple[str, ...]


class AnswerCheck(Frozen):
    """The agent's answer must tell `value`, in any of the usual ways to write it."""

    kind: Literal["answer"] = "answer"
    says: str
    value: JsonValue
    turn: int
    at: str = ""
    """Where the value stands in the masked state (RFC 6901), if the environment gave it out."""


class PolicyCheck(Frozen):
    """The calls made so far must obey a rule of the environment."""

    kind: Literal["policy"] = "policy"
    says: str
    rule: PolicyRule


class CodeCheck(Frozen):
    """A function of `(initial_state, final_state, answer) -> bool` that somebody wrote; it runs in the sandbox."""

    kind: Literal["code"] = "code"
    says: str
    source: str
    """Python text that defines the function."""
    function: str = "check"


Check = Annotated[StateCheck | UntouchedCheck | AnswerCheck | PolicyCheck | CodeCheck, Field(discriminator="kind")]

Origin = Literal["id", "clock", "chance"]


class Masks(Frozen):
    """What the environment gave out in the gold run, as found by running it again with other counters, a later clock
    and another seed. Patterns are paths in the state with `*` for keys of tables and places in lists."""

    counters: str = ""
    """Part of the state that counts ids, where an environment declares one; no check looks at it."""
    clock: str = ""
    """Part of the state that is the clock, where an environment declares one."""
    tables: tuple[str, ...] = ()
    """Parts whose new entries have keys that the environment gave out."""
    leaves: dict[str, Origin] = {}
    """Pattern of a leaf to what it was made of."""
    names: dict[str, str] = {}
    """Id in the gold run to the name that stands for it: one made of the content of what it identifies."""


class Audit(Frozen):
    """What became of the checks of a task when they were tested (design section 6)."""

    made: dict[str, int] = {}
    """Kind of mutant to how many were executed; one that comes to the same as gold is none."""
    caught: dict[str, int] = {}
    """Kind of mutant to how many fail at least one check."""
    escaped: tuple[str, ...] = ()
    """What was done in mutants that no check noticed, the first few."""
    equivalent: int = 0
    """Equivalent runs that were executed."""
    accepted: int = 0
    """How many of them pass all checks."""
    refused: tuple[str, ...] = ()
    """How the equivalent runs that fail were made, and the check that they fail, the first few."""
    dropped: tuple[str, ...] = ()
    """Checks that were no good and left out: what they say, and why."""

    @property
    def discrimination(self) -> float | None:
        """Share of mutants caught; None if there were none."""
        made = sum(self.made.values())
        return round(sum(self.caught.values()) / made, 4) if made else None
