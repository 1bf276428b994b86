"""Further questions about a result that the user was told of: the agent answers from it and needs no other call.

Proof: at the end of the task the look-up still gives what it gave then, by execution. What is asked was not told
before, and is about nothing that the task has changed or made.
"""

import re
from collections.abc import Iterator
from contextlib import suppress

from trajsmith.grounding import build_selector_key, find_rows, is_identifier, iterate_leaves, iterate_nodes
from trajsmith.querygen.requested_info import fill_facts
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._rewording import RewordedQueries, TurnDraft
from trajsmith.records import AnswerFact, FromOutput, JsonValue, Perturbation, RecordDropped, RequestedInfo

MOST_QUESTIONS = 2
"""Further questions of one task, at most: more would be a quiz."""
REWORDINGS = 6
"""Attempts at questions that ask for something new each."""
_WORD = re.compile(r"\w+")
_ROWS = re.compile(r"rows\('(\w+)'")
"""The kind of things of which a template tells the rows."""
_FRESH = re.compile(
    r"\b(?:check|right now|by now|currently|at the moment|still|already|yet|make sure|see whether|look up)\b",
    re.IGNORECASE,
)
"""Words that ask to look again."""


@VARIANTS.register("follow_up")
async def vary(case: VariantCase) -> VariantResult:
    """The task, with one or two more turns that ask what a result shows, of the last look-up that leaves something.

    Raises:
        RecordDropped: No result that the user asked for answers a question that was not asked before, in clear words.
    """
    reads = await _list_lasting_reads(case)
    if not reads:
        raise RecordDropped("nothing_to_ask")
    wanted = case.rng.randint(1, MOST_QUESTIONS)
    for read in reads:
        proof = f"made again at the end, {case.calls[read].tool} gives the same"
        perturbation = Perturbation(base=case.base.id, turn=len(case.spans), act="plain", proof=proof)
        for count in range(wanted, 0, -1):
            longer = case
            for _ in range(count):
                longer = longer.append_turn(len(longer.spans) - 1, case.calls[read])
            for _ in range(REWORDINGS):
                with suppress(RecordDropped):
                    drafts = _write_turns(case, longer.words(narrow_from=len(case.spans)), read, count)
                    if drafts is not None:
                        return VariantResult(await case.finish(drafts, perturbation))
    raise RecordDropped("nothing_new_to_ask")


async def _list_lasting_reads(case: VariantCase) -> list[int]:
    """List the look-ups that the user asked for, of which there are questions and which give at the end what they
    gave, the last one first."""
    session = await case.at(len(case.calls))
    goals = [goal for turn in range(len(case.spans)) for goal in case.goals(turn)]
    lasting = []
    for index in reversed(goals):
        call = case.calls[index]
        if call.effect == "read" and call.actor == "assistant" and case.wording.tool(call.tool).questions:
            result = await session.call(call.tool, call.arguments, call.actor)
            if result.ok and result.content == call.result:
                lasting.append(index)
    return lasting


def _write_turns(case: VariantCase, words: RewordedQueries, read: int, count: int) -> list[TurnDraft] | None:
    """Write the task and so many turns that ask about a look-up; None if one of them asks for nothing new.

    Args:
        case: The task.
        words: Words of the task in which the look-up is made again in each of these turns. What is asked is told from
            the first result.
        read: The look-up.
        count: Turns.
    """
    call, first, end = case.calls[read], len(case.spans), len(case.calls)
    drafts = case.unchanged(words, range(first))
    told_values = {
        (field.rpartition(".")[2], entry.value)
        for turn in range(first)
        for entry in words.entries(turn)
        for field in (entry.key.partition(".")[0], entry.slot.rpartition("|")[2])
        if isinstance(entry.value, str | int | float)
    }
    for turn, (start, _) in enumerate(case.spans):
        for info in words.asked[turn]:
            told_values.update(_list_told(case, info.model_copy(update={"call": start + info.call})))
    for turn in range(first, first + count):
        keys = {info.known: build_selector_key(read, info.row) for info in words.asked[turn] if info.row}
        asked = [
            info.model_copy(update={"call": read, "known": keys.get(info.known, info.known)})
            for info in words.asked[turn]
        ]
        facts = [fact for info in asked for fact in fill_facts(info, call, case.wording).facts]
        fits = all(_is_fitting(case, info) for info in asked) and not _FRESH.search(words.queries[turn])
        if (
            not facts
            or not fits
            or any(fact.value == [] or _get_field_and_value(fact) in told_values for fact in facts)
        ):
            return None
        for info in asked:
            told_values.update(_list_told(case, info))
        known = tuple(entry.model_copy(update={"key": keys.get(entry.key, entry.key)}) for entry in words.entries(turn))
        relative = tuple(info.model_copy(update={"call": read - end}) for info in asked)
        drafts.append(TurnDraft(words.queries[turn], words.intents[turn], known, (), asked=relative))
    return drafts


def _is_fitting(case: VariantCase, info: RequestedInfo) -> bool:
    """Return True for a narrow question that stays with the task: not about all rows of a list of which the task has
    taken one, nor about what the task has changed or made, of which the user knows."""
    call = case.calls[info.call]
    chosen = any(
        source.call == info.call and source.selectors
        for later in case.calls
        for _, source, _ in iterate_leaves(later)
        if isinstance(source, FromOutput)
    )
    writes = [each for each in case.calls if each.effect == "write"]
    spoken = _WORD.findall(" ".join(text for each in writes for text in case.wording.tool(each.tool).confirm))
    if not info.narrow or (chosen and not info.row) or any(path.rpartition(".")[2] in spoken for path in info.fields):
        return False
    about = next(find_rows(call.result, info.row), None) if info.row else call.result
    changed = {value for each in writes for value in (*_list_ids(each.arguments), *_list_ids(each.result))}
    shared = set(_list_ids(call.arguments)) if info.row or isinstance(call.result, list) else set()
    return changed.isdisjoint(set(_list_ids(about)) - shared)


def _list_ids(value: JsonValue) -> Iterator[str | int]:
    """Yield the identifiers in arguments or in a result."""
    for place, leaf in iterate_nodes(value):
        if isinstance(leaf, str | int) and not isinstance(leaf, bool) and any(is_identifier(part) for part in place):
            yield leaf


def _get_field_and_value(fact: AnswerFact) -> tuple[str, JsonValue]:
    """Return the field of a value, and the value."""
    return next((part for part in reversed(fact.place) if not part.isdigit()), ""), fact.value


def _list_told(case: VariantCase, info: RequestedInfo) -> Iterator[tuple[str, JsonValue]]:
    """Yield fields and values of a result that an answer to a request may tell: those of which its templates speak."""
    call, phrases = case.calls[info.call], case.wording.tool(case.calls[info.call].tool)
    templates = info.answer or (*phrases.done, *phrases.brief, *phrases.detailed)
    texts = [
        *templates,
        *(text for kind in _ROWS.findall(" ".join(templates)) for text in case.wording.rows.get(kind, ())),
    ]
    words = set(_WORD.findall(" ".join(texts))) | {fact_path.rpartition(".")[2] for fact_path in info.fields}
    about = next(find_rows(call.result, info.row), None) if info.row else call.result
    for place, value in iterate_nodes(about):
        names = [part for part in place if part != "*"]
        if names and isinstance(value, str | int | float) and (names[-1] in words or not templates):
            yield names[-1], value
