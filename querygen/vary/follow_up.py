"""Further questions about results that the agent has already seen: it answers from them and needs no other call.

Proof: at the end of the task each look-up still gives what it gave then, by execution, and nothing that is asked was
asked before.
"""

import re
from collections.abc import Iterator, Sequence

from trajsmith.grounding import iterate_leaves
from trajsmith.querygen.requested_info import fill_facts
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import AnswerFact, FromOutput, JsonValue, Perturbation, RecordDropped, RequestedInfo
from trajsmith.verify.normalized_state import iter_leaves

MOST = 3
"""Further questions of one task, at most."""
REWORDINGS = 6
"""Attempts at questions that ask for something new each."""
_WORD = re.compile(r"\w+")
_ROWS = re.compile(r"rows\('(\w+)'")
"""The kind of things of which a template tells the rows."""


@VARIANTS.register("follow_up")
async def vary(case: VariantCase) -> VariantResult:
    """The task, with one to three more turns that ask what an earlier result shows.

    Raises:
        RecordDropped: No result of the task answers a question that was not asked before.
    """
    reads = await _list_lasting_reads(case)
    if not reads:
        raise RecordDropped("nothing_to_ask")
    wanted = case.rng.randint(1, MOST)
    for count in range(wanted, 0, -1):
        for _ in range(REWORDINGS):
            drafts = _write_turns(case, sorted(case.rng.choices(reads, k=count), key=reads.index))
            if drafts is None:
                continue
            tools = ", ".join(sorted({case.calls[read].tool for read in reads}))
            proof = f"made again at the end, {tools} gives the same"
            perturbation = Perturbation(base=case.base.id, turn=len(case.spans), act="plain", proof=proof)
            return VariantResult(await case.finish(drafts, perturbation))
    raise RecordDropped("nothing_new_to_ask")


async def _list_lasting_reads(case: VariantCase) -> list[int]:
    """List the agent's look-ups for which there are questions and which give at the end what they gave, last first."""
    session = await case.at(len(case.calls))
    lasting = []
    for index, call in reversed(list(enumerate(case.calls))):
        if call.effect == "read" and call.actor == "assistant" and case.wording.tool(call.tool).questions:
            result = await session.call(call.tool, call.arguments, call.actor)
            if result.ok and result.content == call.result:
                lasting.append(index)
    return lasting


def _write_turns(case: VariantCase, reads: Sequence[int]) -> list[TurnDraft] | None:
    """Write the task and a turn for each of these look-ups; None if a question of them asks for nothing new.

    The words are found as if the look-up were made again. What is asked is then told from the first result.
    """
    longer = case
    for read in reads:
        longer = longer.append_turn(len(longer.spans) - 1, case.calls[read])
    words = longer.words(questions=1.0)
    first, end = len(case.spans), len(case.calls)
    drafts = case.unchanged(words, range(first))
    told_leaves = {
        leaf
        for turn, (start, _) in enumerate(case.spans)
        for info in words.asked[turn]
        for leaf in _list_told(case, info.model_copy(update={"call": start + info.call}))
    }
    for turn, read in enumerate(reads, start=first):
        asked = [info.model_copy(update={"call": read}) for info in words.asked[turn]]
        facts = [fact for info in asked for fact in fill_facts(info, case.calls[read], case.wording).facts]
        fits = all(info.narrow and (info.row or not _is_row_chosen(case, read)) for info in asked)
        if not facts or not fits or any(fact.value == [] or _get_leaf(fact) in told_leaves for fact in facts):
            return None
        told_leaves.update(leaf for info in asked for leaf in _list_told(case, info))
        relative = tuple(info.model_copy(update={"call": read - end}) for info in asked)
        drafts.append(TurnDraft(words.queries[turn], words.intents[turn], words.entries(turn), (), asked=relative))
    return drafts


def _is_row_chosen(case: VariantCase, read: int) -> bool:
    """Return True if the task goes on with one row of a list: a question about all of them would lead away from it."""
    return any(
        source.call == read and source.selectors
        for call in case.calls
        for _, source, _ in iterate_leaves(call)
        if isinstance(source, FromOutput)
    )


def _get_leaf(fact: AnswerFact) -> tuple[str, JsonValue]:
    """Return the field of a value, and the value."""
    return next(part for part in reversed(fact.place) if not part.isdigit()), fact.value


def _list_told(case: VariantCase, info: RequestedInfo) -> Iterator[tuple[str, JsonValue]]:
    """Yield fields and values of a result that an answer to a request may tell: those of which its templates speak."""
    call, phrases = case.calls[info.call], case.wording.tool(case.calls[info.call].tool)
    templates = info.answer or (*phrases.done, *phrases.brief, *phrases.detailed)
    texts = [
        *templates,
        *(text for kind in _ROWS.findall(" ".join(templates)) for text in case.wording.rows.get(kind, ())),
    ]
    words = set(_WORD.findall(" ".join(texts))) | {fact_path.rpartition(".")[2] for fact_path in info.fields}
    for place, value in iter_leaves(call.result, ()):
        names = [part for part in place if not part.isdigit()]
        if names and isinstance(value, str | int | float) and (names[-1] in words or not templates):
            yield names[-1], value
