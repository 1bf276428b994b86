"""The user asks for something that a rule of the policy forbids: the agent must say no, and write nothing.

Found by trying: the write that the base task makes is tried on the other rows of the same list. Proof: the environment
refuses it, accepts the base task's own, and the refusal speaks of what a rule of the policy speaks of.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from grounding import Unresolved, leaves, resolve, selector_key
from grounding.known import label_of
from grounding.names import words
from grounding.references import pick
from querygen.vary._case import Case, Varied, replaced
from querygen.vary._words import Piece
from trajectory import Dropped, FromOutput, GoldCall, JsonValue, Known, Selector, Twist

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
    known: Known
    refusal: str
    rule: str


async def vary(case: Case) -> Varied:
    """The task up to the turn in which the forbidden thing is asked for.

    Raises:
        Dropped: The policy has no rules, or nothing that was tried is refused because of one.
    """
    rules = [" ".join(rule.split()) for rule in _RULE.split(case.spec.policy)[1:]]
    if not rules:
        raise Dropped("no_policy")
    for turn in case.single_writes():
        start, stop = case.spans[turn]
        if any(call.effect == "write" or call.actor == "user" for call in case.calls[start : stop - 1]):
            continue
        for calls, known in list(_others(case, turn))[:TRIES]:
            refusal = await _refusal(case, start, calls)
            rule = _rule_for(refusal, calls[-1].tool, rules) if refusal else ""
            if rule:
                return await _forbid(case, _Forbidden(turn, calls, known, refusal, rule))
    raise Dropped("nothing_forbidden")


def _others(case: Case, turn: int) -> Iterator[tuple[tuple[GoldCall, ...], Known]]:
    """The calls of a turn, about another row of a list, and what the user knows of that row."""
    start, stop = case.spans[turn]
    write = case.calls[stop - 1]
    for name, source, value in leaves(write):
        if not isinstance(source, FromOutput) or name not in write.arguments or source.pattern is not None:
            continue
        entity = case.wording.phrasebook.entities.get(name)
        rows = pick(case.calls[source.call].result, source.path, case.rng, tuple(entity.by) if entity else (), 1.0)
        for other, selectors in rows:
            picks = [selector for selector in selectors if selector.how != "only"]
            if other == value or len(picks) != 1:
                continue
            new = FromOutput(call=source.call, path=source.path, selectors=selectors)
            calls = tuple(
                replaced(call, {name: (other, new)}) if call.arguments.get(name) == value else call
                for call in case.calls[start:stop]
            )
            yield calls, _known(case, name, write.tool, source.call, picks[0])


def _known(case: Case, name: str, tool: str, call: int, selector: Selector) -> Known:
    field = selector.field.split(".")[-1]
    entry = Known(
        key=selector_key(call, selector),
        label=label_of(field, tool, case.wording.phrasebook),
        value=selector.value,
        said="",
        slot=f"{name}|{field}",
        how="value" if selector.how == "only" else selector.how,
    )
    return entry.model_copy(update={"said": case.wording.describe(name, entry, case.rng)})


async def _refusal(case: Case, start: int, calls: tuple[GoldCall, ...]) -> str:
    """What the environment says to the last call, if it refuses only that one, and not for want of the thing."""
    session = await case.at(start)
    before = await session.state_hash()
    results: dict[int, JsonValue] = {}
    for number, call in enumerate(calls, start):
        if not _leads(call, results):
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


def _leads(call: GoldCall, results: dict[int, JsonValue]) -> bool:
    """True if the call's references into this turn's results still lead to its arguments."""
    try:
        return all(
            resolve(source, results[source.call]) == value
            for _, source, value in leaves(call)
            if isinstance(source, FromOutput) and source.call in results
        )
    except Unresolved:
        return False


def _rule_for(refusal: str, tool: str, rules: list[str]) -> str:
    """The rule that shares most words with a refusal and its tool, rare words counting most; none if under three."""
    said = (set(words(refusal)) | set(words(tool))) - _COMMON
    speaks = {rule: set(words(rule)) - _COMMON for rule in rules}
    spread = Counter(word for found in speaks.values() for word in found)
    best = max(rules, key=lambda rule: sum(1 / spread[word] for word in said & speaks[rule]))
    return best if len(said & speaks[best]) >= 3 else ""


async def _forbid(case: Case, found: _Forbidden) -> Varied:
    start, stop = case.spans[found.turn]
    calls = [*case.calls[:start], *found.calls, *case.calls[stop:]]
    words_ = case.words(calls=calls, known={found.known.key: found.known})
    pieces = case.unchanged(words_, range(found.turn))
    entries = words_.entries(found.turn)
    pieces.append(Piece(words_.queries[found.turn], words_.intents[found.turn], entries, found.calls[:-1]))
    twist = Twist(
        base=case.base.id,
        turn=found.turn,
        act="decline",
        tool=found.calls[-1].tool,
        because=found.refusal,
        tempting=found.calls[-1:],
        proof=f"the environment refuses it ({found.refusal}); the rule: {found.rule}",
    )
    return Varied(await case.finish(pieces, twist))
