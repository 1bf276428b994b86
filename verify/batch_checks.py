"""Checks of the agent's behaviour where a request is for all rows of a list, some of which may be refused."""

from collections.abc import Sequence

from trajsmith.phrasing import is_refusal_told, is_value_mentioned
from trajsmith.records import CallEvent, CheckOutcome, GoldCall, Message, Perturbation, RefusedMember, canonical_json

CONDUCT = "conduct"
"""Kind of the outcomes of variants."""


def build_conduct_outcome(says: str, passed: bool, detail: str = "") -> CheckOutcome:
    """Build one outcome; `says` is what is right."""
    return CheckOutcome(says=says, kind=CONDUCT, passed=passed, detail=detail)


def build_batch_checks(
    messages: Sequence[Message], events: Sequence[CallEvent], perturbation: Perturbation, gold: Sequence[GoldCall]
) -> list[CheckOutcome]:
    """Build the checks of the turn of a batch.

    Args:
        messages: Messages of the turn.
        events: Calls of the turn.
        gold: Gold calls of the turn.
    """
    outcomes = [_check_members(events, perturbation, gold)]
    if perturbation.refused:
        outcomes += [_check_attempts(events, perturbation), _check_left_out(messages, perturbation)]
    return outcomes


def _check_members(events: Sequence[CallEvent], perturbation: Perturbation, gold: Sequence[GoldCall]) -> CheckOutcome:
    """Check that the call is made for every row that is meant, once, and tried for no other."""
    wanted = [canonical_json(call.arguments) for call in gold if call.tool == perturbation.tool]
    refused = [canonical_json(member.call.arguments) for member in perturbation.refused]
    tried = [(canonical_json(event.arguments), event.ok) for event in events if event.tool == perturbation.tool]
    calls = [arguments for arguments, ok in tried if ok]
    missing = len(set(wanted) - set(calls))
    others = len([arguments for arguments, ok in tried if arguments not in wanted and (ok or arguments not in refused)])
    twice = len([arguments for arguments, _ in tried if arguments in wanted]) - len(set(wanted) & set(calls))
    detail = f"{missing} missing, {others} not meant, {twice} twice" if missing or others or twice > 0 else ""
    return build_conduct_outcome("the agent does it for all that are meant and for no others", not detail, detail)


def _check_attempts(events: Sequence[CallEvent], perturbation: Perturbation) -> CheckOutcome:
    """Check that what is refused is tried once; not at all where policy and results tell that it cannot be done."""
    allowed = 0 if perturbation.visible else 1
    for member in perturbation.refused:
        wanted = canonical_json(member.call.arguments)
        tried = sum(event.tool == member.call.tool and canonical_json(event.arguments) == wanted for event in events)
        if tried != allowed:
            detail = f"{member.call.tool} was called {tried} times for one of them"
            break
    else:
        detail = ""
    says = (
        "the agent reads the rule and does not try it" if perturbation.visible else "the agent tries each of them once"
    )
    return build_conduct_outcome(says, not detail, detail)


def _check_left_out(messages: Sequence[Message], perturbation: Perturbation) -> CheckOutcome:
    """Check that everything that was not done is named with the reason, in the answer or before: once is enough."""
    texts = [message.content for message in messages if message.role == "assistant" and not message.tool_calls]
    untold = [member for member in perturbation.refused if not any(_is_told(member, text) for text in texts)]
    detail = "; ".join(member.because for member in untold)
    return build_conduct_outcome("the agent says what was not done, and why", not untold, detail)


def _is_told(member: RefusedMember, text: str) -> bool:
    return is_refusal_told(member.because, text) and any(is_value_mentioned(text, value) for value in member.told)
