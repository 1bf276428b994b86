"""What the user asks about is on a later page of a list: go on until it is found, and tell it from there.

Proof: the tool takes a page and shows that much on one; executed page by page, the row that the question is about is on
none before the last one read; the user's words for it fit no other row of all pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trajsmith.grounding import list_needed_keys
from trajsmith.grounding.list_limits import find_page_size
from trajsmith.phrasing import capitalize_first, draw_pattern, find_clock_date, get_user_voice, join_opening
from trajsmith.querygen.persona import draw_greeting, draw_turn_opening, find_outcome, render_query
from trajsmith.querygen.questions import AskableQuestion, list_askable_questions, pick_question_text
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._lists import find_list, read_rows
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import Constant, GoldCall, JsonObject, JsonValue, Perturbation, RecordDropped, canonical_json

PAGE = "page"
"""Parameter that counts pages from 1."""
MOST = 4
"""Pages that are read."""


@dataclass(frozen=True)
class _Place:
    """A row on a later page.

    Attributes:
        turn: The turn that makes way for the question.
        calls: Its calls: what leads to the list, and every page up to that of the row.
    """

    turn: int
    calls: tuple[GoldCall, ...]
    question: AskableQuestion


@VARIANTS.register("later_page")
async def vary(case: VariantCase) -> VariantResult:
    """The task up to a list, and then a question about a row that its first page does not show.

    Raises:
        RecordDropped: No list of the task has pages, or nothing on a later one can be asked about.
    """
    tools = [tool for tool in case.spec.tools if PAGE in tool.parameters and PAGE not in tool.required]
    for tool in case.rng.sample(tools, len(tools)):
        size, place = find_page_size(tool), find_list(case, tool)
        if size is None or place is None:
            continue
        place_of_row = await _find_row(case, *place, size)
        if place_of_row is not None:
            return await _build_variant(case, place_of_row)
    raise RecordDropped("no_later_page")


async def _find_row(case: VariantCase, turn: int, calls: tuple[GoldCall, ...], size: int) -> _Place | None:
    """Return a row that only a later page shows, with a question about it; None if there is none."""
    start = case.spans[turn][0] if turn < len(case.spans) else len(case.calls)
    before = (*case.calls[:start], *calls)
    pages = [await read_rows(case, case.state, before)]
    listing = calls[-1]
    sequence = list(calls)
    while pages[-1] is not None and len(pages[-1]) == size and len(pages) < MOST:
        number = len(pages) + 1
        following = listing.model_copy(
            update={
                "arguments": {**listing.arguments, PAGE: number},
                "provenance": {**listing.provenance, PAGE: Constant()},
            }
        )
        pages.append(await read_rows(case, case.state, (*before, following)))
        sequence.append(following)
    rows = [page or [] for page in pages]
    later = range(1, len(rows))
    for number in case.rng.sample(later, len(later)):
        index = start + len(calls) - 1 + number
        question = _find_question(case, listing.tool, index, rows, number)
        if question is not None:
            return _Place(turn, tuple(sequence[: len(calls) + number]), question)
    return None


def _find_question(
    case: VariantCase, tool: str, index: int, pages: Sequence[list[JsonObject]], number: int
) -> AskableQuestion | None:
    """Return a question about a row of one page, which a name or a day tells apart from the rows of all pages."""
    everything: JsonValue = {"result": [row for page in pages for row in page]}
    own = {canonical_json(row) for row in pages[number]}
    questions = [question for question in case.wording.tool(tool).questions if question.row]
    for _ in range(len(own)):
        for askable in list_askable_questions(questions, index, everything, case.wording, case.rng):
            if askable.row is not None and isinstance(askable.row.selector.value, str):
                selector = askable.row.selector
                chosen = next(row for row in everything["result"] if row.get(selector.field) == selector.value)
                if canonical_json(chosen) in own:
                    return askable
    return None


async def _build_variant(case: VariantCase, place: _Place) -> VariantResult:
    words = case.words()
    pieces = [*case.unchanged(words, range(place.turn)), _draft_turn(case, place, words.stated[: place.turn])]
    tool = place.calls[-1].tool
    count = sum(call.tool == tool for call in place.calls)
    row = place.question.row
    perturbation = Perturbation(
        base=case.base.id,
        turn=place.turn,
        act="page",
        tool=tool,
        told=(row.selector.value,) if row else (),
        proof=f"what is asked about is on page {count} of {tool}, on none before, and its words fit no other row",
    )
    return VariantResult(await case.finish(pieces, perturbation))


def _draft_turn(case: VariantCase, place: _Place, stated: Sequence[set[str]]) -> TurnDraft:
    start = case.spans[place.turn][0] if place.turn < len(case.spans) else len(case.calls)
    calls = [*case.calls[:start], *place.calls]
    needed = list(dict.fromkeys(key for call in place.calls for key in list_needed_keys(call)))
    unsaid = [key for key in needed if not stated or key not in stated[-1]]
    sentences = case.open_request_writer(calls).tell_facts(range(start, len(calls)), unsaid)
    question = place.question
    picked = pick_question_text(question.question.say, {}, question.row, case.rng)
    if picked is None or question.row is None:
        raise RecordDropped("no_words", place.calls[-1].tool)
    persona = case.retold.persona
    opening = (
        draw_turn_opening(persona, find_outcome(calls[start - 1]), case.rng)
        if start
        else draw_greeting(persona, case.state, case.rng, case.wording.phrasebook)
    )
    known = [case.known[key].model_copy(update={"stated": True}) for key in needed]
    known.append(question.row.fact.model_copy(update={"stated": True}))
    text = " ".join([picked[1], *sentences] if start else [*sentences, picked[1]])
    if start:  # another subject than that of the story
        link = draw_pattern(get_user_voice(persona.style).links, case.rng)
        text = capitalize_first(join_opening(link.removesuffix("{}").strip(), text, small=True))
    query = render_query(opening, text, persona, known, find_clock_date(case.state), case.rng)
    asked = (question.build_info(len(place.calls) - 1, picked[1]),)
    return TurnDraft(query, picked[1], tuple(known), place.calls, asked=asked)
