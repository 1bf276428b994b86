"""The mechanical audit of dialogues: faults of language that a careful reader would find, counted by kind.

It reads records only, so it works on any run, scripted, written by models or imported.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trajsmith.phrasing import Wording
from trajsmith.records import EnvironmentSpec, FrozenModel, Task, Trajectory
from trajsmith.verify.claim_support import find_unsupported_claims


class DialogueFault(FrozenModel):
    """One fault of language in one dialogue."""

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


FaultFinder = Callable[[AuditContext], Iterable[DialogueFault]]


def _find_claims(context: AuditContext) -> Iterable[DialogueFault]:
    for claim in find_unsupported_claims(context.trajectory.messages, context.wording.phrasebook):
        yield DialogueFault(kind="unsupported_claim", message=claim.message, detail=claim.value)


FINDERS: tuple[tuple[tuple[str, ...], FaultFinder], ...] = ((("unsupported_claim",), _find_claims),)
"""Kinds of faults with the function that finds them."""
FAULT_KINDS = tuple(kind for kinds, _ in FINDERS for kind in kinds)


def find_dialogue_faults(context: AuditContext) -> list[DialogueFault]:
    """Return all faults of one dialogue, in the order of the kinds."""
    return [fault for _, find in FINDERS for fault in find(context)]
