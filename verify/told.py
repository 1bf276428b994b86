"""What a run can tell its user: the facts that the gold answers tell, looked up in the results of that run."""

from collections.abc import Mapping, Sequence
from typing import Any

from chatmodel.surface import say
from trajectory import JsonValue
from verify.form import Place, at, is_there, leaves_of
from verify.rerun import GoldRun, Ran

Source = tuple[int, Place]
"""Gold call, and where in its result the fact stands; of a text that is a result, the empty place."""


def locate(facts: Sequence[Sequence[JsonValue]], gold: GoldRun) -> list[list[Source | None]]:
    """Where each fact of each turn comes from: a call of the turn, the last one first; None if no result has it."""
    found: list[list[Source | None]] = []
    for turn, wanted in enumerate(facts):
        calls = [step.index for step in reversed(gold.steps) if step.turn == turn and step.index in gold.ran.results]
        places: dict[str, Source] = {}
        for index in calls:
            result = gold.ran.results[index]
            for place, value in leaves_of(result, ()):
                places.setdefault(repr(value), (index, place))
        texts = [index for index in calls if isinstance(gold.ran.results[index], str)]
        found.append([places.get(repr(fact)) or _in_text(fact, texts, gold) for fact in wanted])
    return found


def _in_text(fact: JsonValue, texts: Sequence[Any], gold: GoldRun) -> Source | None:
    return next(((index, ()) for index in texts if str(fact) in gold.ran.results[index]), None)


def told(
    facts: Sequence[Sequence[JsonValue]],
    sources: Sequence[Sequence[Source | None]],
    ran: Ran,
    instead: Mapping[tuple[int, int], JsonValue],
) -> list[list[JsonValue]]:
    """The facts that this run tells in each turn; what it has not seen it cannot tell.

    Args:
        facts: What gold tells.
        sources: Where each of them comes from.
        ran: The run.
        instead: (turn, number of the fact) to what is told in its place.
    """
    return [
        [
            value
            for number, (fact, source) in enumerate(zip(wanted, places, strict=True))
            for value in _seen(fact, source, ran, instead.get((turn, number)))
        ]
        for turn, (wanted, places) in enumerate(zip(facts, sources, strict=True))
    ]


def _seen(fact: JsonValue, source: Source | None, ran: Ran, instead: JsonValue) -> list[JsonValue]:
    if instead is not None:
        return [instead]
    if source is None:
        return [fact]
    index, place = source
    if index not in ran.results:
        return []
    result = ran.results[index]
    if isinstance(result, str) and not place:
        return [fact] if str(fact) in result else []
    return [at(result, place)] if is_there(result, place) else []


def answer_of(values: Sequence[JsonValue]) -> str:
    """The values as an answer."""
    return "\n".join(say(value) for value in values)
