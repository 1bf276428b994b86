"""The user wants the same done for every row of a list that fits a condition: all of them, and no others.

The rows are read from the executed list, which may be made longer with rows like those that are there. Proof: the list
is not cut, since one more row makes it longer (or it has fewer rows than its tool shows at most); the call succeeds for
each row; and the checks want all calls and no other.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trajsmith.grounding import iterate_leaves, leads_to, list_needed_keys
from trajsmith.phrasing import BatchRequest, pick_text
from trajsmith.phrasing.value_formatting import find_clock_date, format_value
from trajsmith.phrasing.voices import get_user_voice
from trajsmith.querygen.partition import find_producers
from trajsmith.querygen.persona import draw_greeting, render_query
from trajsmith.querygen.request import RequestWriter
from trajsmith.querygen.requested_info import build_general_info
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.querygen.vary._siblings import build_adopted_rows, find_listed_rows
from trajsmith.querygen.vary.long_context import normalize_key_order
from trajsmith.records import (
    EnvironmentFault,
    FromOutput,
    FromUser,
    GoldCall,
    JsonObject,
    JsonValue,
    Perturbation,
    RecordDropped,
    Selector,
    ToolSpec,
    UserFact,
    canonical_json,
)

FEWEST = 3
"""Rows from which on a request is one for many things."""
MOST = 12
WANTED = (4, 9)
"""Rows that a list is made to hold, where the environment shows as many."""
ROUNDS = 4
_LIMIT = re.compile(r"\bat most (\d+)\b")


@dataclass(frozen=True)
class _Batch:
    """One batch on one state.

    Attributes:
        state: The initial state.
        calls: The calls up to the list.
        members: The calls for the rows.
    """

    request: BatchRequest
    state: JsonObject
    calls: tuple[GoldCall, ...]
    members: tuple[GoldCall, ...]
    facts: tuple[UserFact, ...]
    others: int
    """Rows of the list that are not meant."""


@VARIANTS.register("batch_request")
async def vary(case: VariantCase) -> VariantResult:
    """A request for all rows of a list that fit, with which the dialogue opens.

    Raises:
        RecordDropped: No list of the task has enough rows that a request of the environment is about.
    """
    requests = case.wording.scenarios.batches
    for request in case.rng.sample(requests, len(requests)):
        calls = _find_calls(case, request)
        if calls is None:
            continue
        batch = await _enlarge(case, request, calls)
        if batch is not None:
            return await _build_variant(case, batch)
    raise RecordDropped("no_batch")


def _find_calls(case: VariantCase, request: BatchRequest) -> tuple[GoldCall, ...] | None:
    """Return the calls that lead to the batch's list, and nothing else of the task; None if it has no such list.

    The batch opens its dialogue and has a motive of its own: it would not fit in the middle of another story.
    """
    tool = case.tools[request.list]
    for call in case.calls:
        if call.tool == request.list:
            listing = _drop_optional(call, tool.required)
            needed = _collect_producers(case.calls, listing)
            if all(
                case.calls[number].effect == "read" and case.calls[number].actor == "assistant" for number in needed
            ):
                places = {number: place for place, number in enumerate(needed)}
                return tuple(_move_sources(each, places) for each in (*(case.calls[n] for n in needed), listing))
    return None if tool.required else (GoldCall(tool=request.list, arguments={}, provenance={}, effect="read"),)


def _collect_producers(calls: Sequence[GoldCall], call: GoldCall) -> list[int]:
    """Return the calls whose results lead to a call, in order."""
    needed, open_calls = set[int](), [call]
    while open_calls:
        for number in find_producers(open_calls.pop()) - needed:
            needed.add(number)
            open_calls.append(calls[number])
    return sorted(needed)


def _move_sources(call: GoldCall, places: Mapping[int, int]) -> GoldCall:
    """Return a call whose values come from calls at other places."""
    provenance = {
        name: source.model_copy(update={"call": places[source.call]}) if isinstance(source, FromOutput) else source
        for name, source in call.provenance.items()
    }
    return call.model_copy(update={"provenance": provenance, "result": None})


def _drop_optional(call: GoldCall, required: Sequence[str]) -> GoldCall:
    """Return the call with its required arguments only, so that it lists everything."""
    arguments = {name: value for name, value in call.arguments.items() if name in required}
    provenance = {name: source for name, source in call.provenance.items() if name in required}
    return call.model_copy(update={"arguments": arguments, "provenance": provenance, "result": None})


async def _enlarge(case: VariantCase, request: BatchRequest, calls: tuple[GoldCall, ...]) -> _Batch | None:
    """Return the batch on a state whose list has as many rows as the environment shows; None if there are too few."""
    state = normalize_key_order(case.state)
    rows = await _list_rows(case, state, calls)
    fitting = [row for row in rows or () if _fits(row, request)]
    if rows is None or not fitting:
        return None
    arguments = {name: case.rng.choice(values) for name, values in request.arguments.items()}
    table, own = _find_table(state, rows, fitting, request.parameter) if request.grow else ("", [])
    listed = [str(row[request.parameter]) for row in rows]
    table = table if set(state.get(table, ())) - set(listed) else ""
    wanted = case.rng.randint(*WANTED) - len(fitting)
    for number in range(ROUNDS if table else 1):
        count = max(0, wanted // 2**number)
        more = build_adopted_rows(state[table], listed, own[0], request.where, count + 1, case.rng) if table else {}
        *keys, spare = list(more) or [""]
        tried = {**state, table: {**state[table], **{key: more[key] for key in keys}}} if table else state
        batch = await _try(case, request, tried, calls, arguments)
        if batch is None or not FEWEST <= len(batch.members) <= MOST:
            continue
        if not table:
            return batch if _is_complete(case.tools[request.list], len(rows)) else None
        longer = {**tried, table: {**tried[table], spare: more[spare]}}
        now, then = await _list_rows(case, tried, calls), await _list_rows(case, longer, calls)
        if now is not None and then is not None and len(then) == len(now) + 1:
            return batch
    return None


def _is_complete(tool: ToolSpec, rows: int) -> bool:
    """Return True if a list has fewer rows than its tool says that it shows at most."""
    limit = _LIMIT.search(tool.description)
    return limit is None or rows < int(limit[1])


def _find_table(
    state: JsonObject, rows: Sequence[JsonObject], fitting: Sequence[JsonObject], parameter: str
) -> tuple[str, list[str]]:
    """Return the table that the list is made of, and the ids of the rows that fit; empty texts if there is none."""
    own = [str(row[parameter]) for row in fitting]
    listed = find_listed_rows(state, [list(rows)]) if len(rows) > 1 else {}
    table = next((name for name in listed if all(key in state[name] for key in own)), "")
    return table, own


async def _list_rows(case: VariantCase, state: JsonObject, calls: Sequence[GoldCall]) -> list[JsonObject] | None:
    """Return the rows of the last call; None where the calls do not lead there on this state."""
    results: list[JsonValue] = []
    try:
        await case.session.reset(state)
        for call in calls:
            for _, source, value in iterate_leaves(call):
                if isinstance(source, FromOutput) and not leads_to(source, results[source.call], value):
                    return None
            result = await case.session.call(call.tool, call.arguments, call.actor)
            if not result.ok:
                return None
            results.append(result.content)
    except EnvironmentFault:
        return None  # a state that the environment cannot work with is none
    content = results[-1]
    rows = content.get("result") if isinstance(content, dict) else content
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else None


def _fits(row: JsonObject, request: BatchRequest) -> bool:
    return request.parameter in row and all(row.get(field) in values for field, values in request.where.items())


async def _try(
    case: VariantCase,
    request: BatchRequest,
    state: JsonObject,
    calls: tuple[GoldCall, ...],
    arguments: JsonObject,
) -> _Batch | None:
    """Return the batch if the call succeeds for each row that fits, one after the other."""
    rows = await _list_rows(case, state, calls)
    if rows is None:
        return None
    fitting = [row for row in rows if _fits(row, request)]
    if len({str(row[request.parameter]) for row in fitting}) < len(fitting):
        return None
    facts = tuple(_describe_argument(case, request.tool, name, value) for name, value in arguments.items())
    members: list[GoldCall] = []
    for row in fitting:
        value = row[request.parameter]
        each = Selector(rows="$.result", how="each", field=request.parameter, value=value)
        source = FromOutput(call=len(calls) - 1, path=f"$.result[*].{request.parameter}", selectors=(each,))
        unchanged = await case.session.state_hash()
        result = await case.session.call(request.tool, {request.parameter: value, **arguments})
        if not result.ok:
            return None
        members.append(
            GoldCall(
                tool=request.tool,
                arguments={request.parameter: value, **arguments},
                provenance={request.parameter: source, **{name: FromUser(known=f"each.{name}") for name in arguments}},
                effect="read" if await case.session.state_hash() == unchanged else "write",
                result=result.content,
            )
        )
    return _Batch(request, state, calls, tuple(members), facts, len(rows) - len(fitting))


def _describe_argument(case: VariantCase, tool: str, name: str, value: JsonValue) -> UserFact:
    label = case.wording.parameter(tool, name).label
    spoken = format_value(case.wording.value(tool, name, value, case.rng))
    return UserFact(key=f"each.{name}", label=label, value=value, said=spoken, slot=name)


async def _build_variant(case: VariantCase, batch: _Batch) -> VariantResult:
    count, request = len(batch.members), batch.request
    perturbation = Perturbation(
        base=case.base.id,
        turn=0,
        act="batch",
        tool=request.tool,
        tempting=(batch.members[0],),
        proof=(
            f"{count} rows of {request.list} fit, {batch.others} do not; the list is not cut; "
            f"{request.tool} succeeds for each of them"
        ),
    )
    task = await case.finish([_draft_turn(case, batch)], perturbation, state=batch.state)
    return VariantResult(task, batch.state)


def _draft_turn(case: VariantCase, batch: _Batch) -> TurnDraft:
    """Write the turn: what leads to the list, in the words of the task, and the request for all of it."""
    calls = batch.calls
    writer = RequestWriter(
        case.wording,
        calls,
        case.known,
        canonical_json(case.state).decode(),
        case.rng,
        voice=get_user_voice(case.base.persona.style),
    )
    needed = list(dict.fromkeys(key for call in calls for key in list_needed_keys(call)))
    sentences = writer.tell_facts(range(len(calls)), needed)
    values = {fact.slot: fact.said for fact in batch.facts}
    request = pick_text(batch.request.ask, values, case.rng)
    if request is None:
        raise RecordDropped("no_words", batch.request.tool)
    persona = case.base.persona
    opening = draw_greeting(persona, case.state, case.rng)
    known = [case.known[key].model_copy(update={"stated": True}) for key in needed]
    known += [fact.model_copy(update={"stated": True}) for fact in batch.facts]
    text = " ".join([*sentences, request])
    query = render_query(opening, text, persona, known, find_clock_date(case.state), case.rng)
    asked = tuple(
        build_general_info(len(calls) + number, member, request, "", case.wording)
        for number, member in enumerate(batch.members)
    )
    return TurnDraft(query, request, tuple(known), (*calls, *batch.members), asked=asked)
