"""The user asks for something that a rule of the policy forbids: the agent must say no, and write nothing.

Found by trying: the write that the base task makes is tried on the other rows of the same list. Proof: the environment
refuses it, accepts the base task's own, and the refusal speaks of what a rule of the policy speaks of.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from trajsmith.grounding import build_selector_key, iterate_leaves, leads_to
from trajsmith.grounding.names import split_name
from trajsmith.grounding.references import pick_values
from trajsmith.grounding.user_facts import get_label
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult, replace_arguments
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import FromOutput, GoldCall, JsonValue, Perturbation, RecordDropped, Selector, UserFact

_RULE = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+", re.MULTILINE)
_LOST = re.compile(r"not found|no such|unknown|does not exist|invalid|must be|required", re.IGNORECASE)
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
TRIES = 40


@dataclass(frozen=True)
class _Forbidden:
    turn: int
    calls: tuple[GoldCall, ...]
    """Calls of the turn, about the other thing; the last one is refused."""
    known: UserFact
    refusal: str
    rule: str


@VARIANTS.register("forbidden_request")
async def vary(case: VariantCase) -> VariantResult:
    """The task up to the turn in which the forbidden thing is asked for.

    Raises:
        RecordDropped: The policy has no rules, or nothing that was tried is refused because of one.
    """
    rules = [" ".join(rule.split()) for rule in _RULE.split(case.spec.policy)[1:]]
    if not rules:
        raise RecordDropped("no_policy")
    for turn in case.single_writes():
        start, stop = case.spans[turn]
        if any(call.effect == "write" or call.actor == "user" for call in case.calls[start : stop - 1]):
            continue
        for calls, known in list(_iter_other_rows(case, turn))[:TRIES]:
            refusal = await _find_refusal(case, start, calls)
            rule = _find_rule(refusal, calls[-1].tool, rules) if refusal else ""
            if rule:
                return await _build_variant(case, _Forbidden(turn, calls, known, refusal, rule))
    raise RecordDropped("nothing_forbidden")


def _iter_other_rows(case: VariantCase, turn: int) -> Iterator[tuple[tuple[GoldCall, ...], UserFact]]:
    """The calls of a turn, about another row of a list, and what the user knows of that row."""
    start, stop = case.spans[turn]
    write = case.calls[stop - 1]
    for name, source, value in iterate_leaves(write):
        if not isinstance(source, FromOutput) or name not in write.arguments or source.pattern is not None:
            continue
        entity = case.wording.phrasebook.entities.get(name)
        rows = pick_values(
            case.calls[source.call].result, source.path, case.rng, tuple(entity.by) if entity else (), 1.0
        )
        for other, selectors in rows:
            picks = [selector for selector in selectors if selector.how != "only"]
            if other == value or len(picks) != 1:
                continue
            new = FromOutput(call=source.call, path=source.path, selectors=selectors)
            calls = tuple(
                replace_arguments(call, {name: (other, new)}) if call.arguments.get(name) == value else call
                for call in case.calls[start:stop]
            )
            yield calls, _build_fact(case, name, write.tool, source.call, picks[0])


def _build_fact(case: VariantCase, name: str, tool: str, call: int, selector: Selector) -> UserFact:
    field = selector.field.split(".")[-1]
    entry = UserFact(
        key=build_selector_key(call, selector),
        label=get_label(field, tool, case.wording.phrasebook),
        value=selector.value,
        said="",
        slot=f"{name}|{field}",
        how="value" if selector.how == "only" else selector.how,
    )
    return entry.model_copy(update={"said": case.wording.describe(name, entry, case.rng)})


async def _find_refusal(case: VariantCase, start: int, calls: tuple[GoldCall, ...]) -> str:
    """Return the environment's refusal of the last call, if it refuses only that one, and not as missing."""
    session = await case.at(start)
    before = await session.state_hash()
    results: dict[int, JsonValue] = {}
    for number, call in enumerate(calls, start):
        if not _is_provenance_valid(call, results):
            return ""
        if call is not calls[-1]:
            read = await session.call(call.tool, call.arguments, call.actor)
            if not read.ok:
                return ""
            results[number] = read.content
    result = await session.call(calls[-1].tool, calls[-1].arguments)
    if result.error != "refused" or await session.state_hash() != before:
        return ""
    content: JsonValue = result.content
    text = str(content.get("error", "")) if isinstance(content, dict) else str(content)
    return "" if _LOST.search(text) else text


def _is_provenance_valid(call: GoldCall, results: dict[int, JsonValue]) -> bool:
    """Return True if the call's references into this turn's results still resolve to its arguments."""
    return all(
        leads_to(source, results[source.call], value)
        for _, source, value in iterate_leaves(call)
        if isinstance(source, FromOutput) and source.call in results
    )


def _find_rule(refusal: str, tool: str, rules: list[str]) -> str:
    """The rule that shares most words with a refusal and its tool, rare words counting most; none if under three."""
    refusal_words = (set(split_name(refusal)) | set(split_name(tool))) - _COMMON
    speaks = {rule: set(split_name(rule)) - _COMMON for rule in rules}
    spread = Counter(word for rule_words in speaks.values() for word in rule_words)
    best = max(rules, key=lambda rule: sum(1 / spread[word] for word in refusal_words & speaks[rule]))
    return best if len(refusal_words & speaks[best]) >= 3 else ""


async def _build_variant(case: VariantCase, forbidden: _Forbidden) -> VariantResult:
    start, stop = case.spans[forbidden.turn]
    calls = [*case.calls[:start], *forbidden.calls, *case.calls[stop:]]
    words_ = case.words(calls=calls, known={forbidden.known.key: forbidden.known})
    pieces = case.unchanged(words_, range(forbidden.turn))
    entries = words_.entries(forbidden.turn)
    pieces.append(
        TurnDraft(words_.queries[forbidden.turn], words_.intents[forbidden.turn], entries, forbidden.calls[:-1])
    )
    perturbation = Perturbation(
        base=case.base.id,
        turn=forbidden.turn,
        act="decline",
        tool=forbidden.calls[-1].tool,
        because=forbidden.refusal,
        tempting=forbidden.calls[-1:],
        proof=f"the environment refuses it ({forbidden.refusal}); the rule: {forbidden.rule}",
    )
    return VariantResult(await case.finish(pieces, perturbation))
