"""Acceptance of a grounded scenario: enough of the story must be there, or the reason is that of its first gap."""

from trajsmith.grounding.search import GroundingSearch
from trajsmith.records import RecordDropped

LEAST_STEPS = 2
LEAST_SHARE = 0.6
"""Share of the drawn steps below which a story is not told."""


def list_goals(search: GroundingSearch) -> list[str]:
    """Return the names of the steps that were made."""
    steps = (search.draft.get_step(frame.step) for frame in search.frames)
    return [step.name for step in steps if step is not None]


def check_scenario(search: GroundingSearch) -> None:
    """Check that enough steps were made, in a linked world one that takes a value of another environment among them.

    Raises:
        RecordDropped: Too few, or what the user came for is missing; the reason names the kind of constraint, or of
            contradiction, that the first step failed by, and the detail names scenario, step and cause.
    """
    names = list_goals(search)
    wanted = sum(map(bool, search.chain.steps))
    gaps = [number for number in search.skipped if search.draft.get_step(number) is not None]
    crossing = [
        step.name for step in map(search.draft.get_step, range(len(search.chain.steps))) if step and step.unsaid
    ]
    needed = [number for number in gaps if is_needed(search, number)]
    gaps = needed or gaps
    if not needed and len(names) >= max(min(LEAST_STEPS, wanted), LEAST_SHARE * wanted):
        if not crossing or not set(crossing).isdisjoint(names):
            return
        gaps = [number for number in gaps if search.chain.steps[number] in crossing]
    contradicting = (number for number in gaps if number in search.failures and search.failures[number].contradictions)
    number = next(contradicting, gaps[0])
    reason, cause = explain_gap(search, number)
    where = f"scenario {search.chain.scenario}, step {search.chain.steps[number]}"
    raise RecordDropped(f"scenario_{reason}", f"{where}: {cause}; {len(names)} of {wanted} steps could be made")


def is_needed(search: GroundingSearch, number: int) -> bool:
    """Return True for a step without which its story is not told."""
    step = search.draft.get_step(number)
    return step is not None and step.needed


def explain_gap(search: GroundingSearch, number: int) -> tuple[str, str]:
    """Return (kind, cause) of a step that could not be made."""
    failure = search.failures.get(number)
    if failure is None:
        return "budget", "the budget of calls was spent before it"
    if failure.contradictions:
        return failure.contradictions[-1], f"its call would be {failure.contradictions[-1]}"
    if failure.constraint:
        kind, _, name = failure.constraint.partition(" ")
        return kind, f"no value satisfies {kind} of {name}"
    if failure.repeated:
        return "repeated", "its result was there already"
    if failure.refusals:
        return "refused", failure.refusals[-1]
    if failure.unmet:
        return "unmet", f"nothing gives {', '.join(failure.unmet)}"
    return "fruitless", "its calls returned or changed nothing"
