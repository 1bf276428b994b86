"""Facts that a run reports to its user: the facts of the gold answers, looked up in the results of that run."""

from collections.abc import Mapping, Sequence
from typing import Any

from trajsmith.phrasing import render_fact
from trajsmith.records import AnswerFact, JsonValue
from trajsmith.verify.gold_run import GoldRun, RunResult
from trajsmith.verify.normalized_state import ValuePath, get_at_place, is_there, iter_leaves

FactSource = tuple[int, ValuePath]
"""Gold call, and where in its result the fact stands; of a text that is a result, the empty place."""


def locate_facts(facts: Sequence[Sequence[AnswerFact]], gold: GoldRun) -> list[list[FactSource | None]]:
    """Locate the source of each fact of each turn: where it was asked for, else in a call of the turn, the last one
    first; None if no result has it.
    """
    sources: list[list[FactSource | None]] = []
    for turn, wanted in enumerate(facts):
        calls = [step.index for step in reversed(gold.steps) if step.turn == turn and step.index in gold.ran.results]
        places: dict[str, FactSource] = {}
        for index in calls:
            result = gold.ran.results[index]
            for place, value in iter_leaves(result, ()):
                places.setdefault(repr(value), (index, place))
        texts = [index for index in calls if isinstance(gold.ran.results[index], str)]
        sources.append(
            [
                (fact.call, fact.place)
                if fact.call is not None
                else places.get(repr(fact.value)) or _find_in_text(fact.value, texts, gold)
                for fact in wanted
            ]
        )
    return sources


def _find_in_text(fact: JsonValue, texts: Sequence[Any], gold: GoldRun) -> FactSource | None:
    return next(((index, ()) for index in texts if str(fact) in gold.ran.results[index]), None)


def collect_reported_facts(
    facts: Sequence[Sequence[AnswerFact]],
    sources: Sequence[Sequence[FactSource | None]],
    ran: RunResult,
    instead: Mapping[tuple[int, int], JsonValue],
) -> list[list[AnswerFact]]:
    """Collect the facts that this run reports in each turn; it cannot report what it has not seen.

    Args:
        facts: What gold tells.
        sources: Where each of them comes from.
        ran: The run.
        instead: (turn, number of the fact) to what is told in its place.
    """
    return [
        [
            fact if value == fact.value else fact.model_copy(update={"value": value})
            for number, (fact, source) in enumerate(zip(wanted, places, strict=True))
            for value in _read_fact(fact.value, source, ran, instead.get((turn, number)))
        ]
        for turn, (wanted, places) in enumerate(zip(facts, sources, strict=True))
    ]


def _read_fact(fact: JsonValue, source: FactSource | None, ran: RunResult, instead: JsonValue) -> list[JsonValue]:
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
    return [get_at_place(result, place)] if is_there(result, place) else []


def render_answer(facts: Sequence[AnswerFact]) -> str:
    """The facts as an answer."""
    return "\n".join(map(render_fact, facts))
