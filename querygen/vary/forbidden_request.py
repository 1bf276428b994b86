"""The user asks for something that a rule of the policy forbids: the agent must say no, and write nothing.

Found by trying: the write that the base task makes is tried with other rows and values. Proof: the environment refuses
it, accepts the base task's own, and the refusal speaks of what a rule of the policy speaks of. Where policy and results
tell the reason, the rule is read and not tried.
"""

import re
from collections import Counter

from trajsmith.grounding import split_name
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._refusals import find_refused_requests, take_distinct
from trajsmith.querygen.vary._refused_task import build_refused_variant, is_visible
from trajsmith.records import RecordDropped

_RULE = re.compile(r"^[ \t]*(?:\d+[.)]|[-*])\s+", re.MULTILINE)
_COMMON = frozenset(
    [
        "the",
        "a",
        "an",
        "of",
        "to",
        "in",
        "on",
        "at",
        "for",
        "with",
        "by",
        "is",
        "are",
        "be",
        "been",
        "has",
        "have",
        "can",
        "not",
        "no",
        "only",
        "and",
        "or",
        "it",
        "its",
        "this",
        "that",
        "than",
        "then",
        "as",
        "from",
        "one",
        "all",
        "any",
        "each",
        "more",
        "most",
        "before",
        "after",
        "until",
        "while",
        "still",
        "already",
        "must",
        "may",
    ]
)


@VARIANTS.register("forbidden_request")
async def vary(case: VariantCase) -> VariantResult:
    """The task up to the turn in which the forbidden thing is asked for; rules that can be read come first.

    Raises:
        RecordDropped: The policy has no rules, or nothing that was tried is refused because of one.
    """
    rules = [" ".join(rule.split()) for rule in _RULE.split(case.spec.policy)[1:]]
    if not rules:
        raise RecordDropped("no_policy")
    requests = [request for turn in case.single_writes()[:3] for request in await find_refused_requests(case, turn)]
    broken = {
        request.refusal: rule
        for request in requests
        if (rule := _find_rule(request.refusal, request.calls[-1].tool, rules))
    }
    forbidden = [request for request in requests if request.refusal in broken]
    if not forbidden:
        raise RecordDropped("nothing_forbidden")
    readable = [request for request in forbidden if is_visible(case, request, "")]
    return await build_refused_variant(
        case,
        take_distinct(readable or forbidden, 4),
        lambda request: f"the environment refuses it ({request.refusal}); the rule: {broken[request.refusal]}",
    )


def _find_rule(refusal: str, tool: str, rules: list[str]) -> str:
    """The rule that shares most words with a refusal and its tool, rare words counting most; none if under three."""
    refusal_words = (set(split_name(refusal)) | set(split_name(tool))) - _COMMON
    speaks = {rule: set(split_name(rule)) - _COMMON for rule in rules}
    spread = Counter(word for rule_words in speaks.values() for word in rule_words)
    best = max(rules, key=lambda rule: sum(1 / spread[word] for word in refusal_words & speaks[rule]))
    return best if len(refusal_words & speaks[best]) >= 3 else ""
