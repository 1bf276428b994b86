"""Requests for all rows of a list: the list on a state that may be made longer, the calls for its rows, the words."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trajsmith.grounding import list_needed_keys
from trajsmith.phrasing import BatchRequest, find_clock_date, format_value, list_slots, pick_text
from trajsmith.querygen.persona import draw_greeting, render_query
from trajsmith.querygen.requested_info import build_general_info
from trajsmith.querygen.vary._alternatives import read_today
from trajsmith.querygen.vary._case import VariantCase, VariantResult
from trajsmith.querygen.vary._lists import find_opening_calls, get_rows, read_rows, run_calls
from trajsmith.querygen.vary._refusals import LOST
from trajsmith.querygen.vary._refused_task import can_be_known, collect_state_words
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.querygen.vary._siblings import build_adopted_rows, find_listed_rows, list_choice_columns
from trajsmith.querygen.vary.long_context import normalize_key_order
from trajsmith.records import (
    FromOutput,
    FromUser,
    GoldCall,
    JsonObject,
    JsonValue,
    Perturbation,
    RecordDropped,
    RefusedMember,
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
FEW = (3, 6)
"""The same for a list of which some rows are refused."""
LEAST_ADDED = 2
"""Rows that such a list gets at least where no row of it is refused."""
MOST_REFUSED = 3
"""Rows of a partial batch for which the call is refused."""
ROUNDS = 4
_ARTICLE = re.compile(r"^(?:an?|the) ")
"""What a fact loses where it stands after "every"."""
_EVERY = re.compile(r"\b(?:every|each|single) \{(\w+)\}")
_LIMIT = re.compile(r"\bat most (\d+)\b")
REQUEST_FIRST = 0.6
"""Probability that who the user is comes after what they want."""


@dataclass(frozen=True)
class _Batch:
    """One batch on one state.

    Attributes:
        state: The initial state.
        calls: The calls up to the list.
        members: The calls for the rows.
        refused: Those that the environment refuses, before the members and after them.
        shown: Results before the members.
    """

    request: BatchRequest
    state: JsonObject
    calls: tuple[GoldCall, ...]
    members: tuple[GoldCall, ...]
    facts: tuple[UserFact, ...]
    refused: tuple[RefusedMember, ...]
    shown: tuple[JsonValue, ...]
    others: int
    """Rows of the list that are not meant."""


async def build_batch_variant(case: VariantCase, partial: bool = False) -> VariantResult:
    """Return a request for all rows of a list that fit, with which the dialogue opens.

    Args:
        partial: The call is refused for some of the rows; else for none.

    Raises:
        RecordDropped: No list of the task has enough rows that a request of the environment is about.
    """
    requests = case.wording.scenarios.batches
    for request in case.rng.sample(requests, len(requests)):
        opening = find_opening_calls(case, case.tools[request.list], request.owner)
        if opening is None:
            continue
        calls, facts = opening
        batch = await _enlarge(case, request, calls, partial)
        if batch is not None:
            case.known = {**case.known, **facts}
            return await _build_variant(case, batch)
    raise RecordDropped("no_batch")


async def _enlarge(
    case: VariantCase, request: BatchRequest, calls: tuple[GoldCall, ...], partial: bool
) -> _Batch | None:
    """Return the batch on a state whose list has as many rows as the environment shows; None if there are too few.

    The list of a partial batch gets a few more only where it is too short: like those for which the call succeeds, or
    as others have them where it succeeds for all.
    """
    state = normalize_key_order(case.state)
    rows = await read_rows(case, state, calls)
    fitting = [row for row in rows or () if _fits(row, request)]
    if rows is None or not fitting:
        return None
    arguments = {name: case.rng.choice(values) for name, values in request.arguments.items()}
    wanted = case.rng.randint(*(FEW if partial else WANTED)) - len(fitting)
    alike, first = False, await _try(case, request, state, calls, arguments)
    if partial:
        if first is None:
            return None
        if not first.refused:
            wanted = max(wanted, LEAST_ADDED)
        elif _has_fitting_size(first, partial):
            wanted = 0
        alike = bool(first.refused)
        accepted = {str(call.arguments[request.parameter]) for call in first.members}
        fitting = [row for row in fitting if str(row[request.parameter]) in accepted]
    wanted = min(wanted, request.most - len(rows))
    table, own = _find_table(state, rows, fitting, request.parameter) if request.grow and fitting else ("", [])
    listed = [str(row[request.parameter]) for row in rows]
    table = table if set(state.get(table, ())) - set(listed) else ""
    fits = _list_fitting_values(request, state[table], own if alike else ()) if table else {}
    for number in range(ROUNDS if table else 1):
        count, more = max(0, wanted // 2**number), {}
        if table:
            more = build_adopted_rows(state[table], listed, own[0], fits, count + 1, case.rng, request.apart)
        *keys, spare = list(more) or [""]
        tried = {**state, table: {**state[table], **{key: more[key] for key in keys}}} if keys else state
        batch = await _try(case, request, tried, calls, arguments) if keys else first
        if batch is None or not _has_fitting_size(batch, partial):
            if not count:
                return None  # no further round has fewer rows
            continue
        if not more:
            return batch if _is_complete(case.tools[request.list], len(rows)) else None
        longer = {**tried, table: {**tried[table], spare: more[spare]}}
        now, then = await read_rows(case, tried, calls), await read_rows(case, longer, calls)
        if now is not None and then is not None and len(then) == len(now) + 1:
            return batch
    return None


def _list_fitting_values(
    request: BatchRequest, table: JsonObject, own: Sequence[str]
) -> dict[str, Collection[JsonValue]]:
    """Return column to the values that added rows may have: those that are asked for, or those of rows like them."""
    columns = {name for row in table.values() for name in row}
    values: dict[str, Collection[JsonValue]] = {name: request.where[name] for name in request.where if name in columns}
    for name in list_choice_columns(table) if own else ():
        values[name] = [table[key].get(name) for key in own]
    return values


def _has_fitting_size(batch: _Batch, partial: bool) -> bool:
    """Return True if there are enough rows, and refused ones where some must be: fewer than the others."""
    refused, done = len(batch.refused), len(batch.members)
    fits = 0 < refused <= min(MOST_REFUSED, done - 1) if partial else not refused
    return fits and FEWEST <= done + refused <= MOST


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


def _fits(row: JsonObject, request: BatchRequest) -> bool:
    return request.parameter in row and all(row.get(field) in values for field, values in request.where.items())


async def _try(
    case: VariantCase,
    request: BatchRequest,
    state: JsonObject,
    calls: tuple[GoldCall, ...],
    arguments: JsonObject,
) -> _Batch | None:
    """Return the batch: the calls that succeed, one after the other, and those that are refused before and after."""
    results = await run_calls(case, state, calls)
    rows = None if results is None else get_rows(results[-1])
    if rows is None or results is None:
        return None
    fitting = [row for row in rows if _fits(row, request)]
    if len({str(row[request.parameter]) for row in fitting}) < len(fitting):
        return None
    facts = tuple(_describe_argument(case, request.tool, name, value) for name, value in arguments.items())
    members: list[GoldCall] = []
    refused: list[tuple[GoldCall, JsonObject]] = []
    for row in fitting:
        value = row[request.parameter]
        each = Selector(rows="$.result", how="each", field=request.parameter, value=value)
        source = FromOutput(call=len(calls) - 1, path=f"$.result[*].{request.parameter}", selectors=(each,))
        unchanged = await case.session.state_hash()
        result = await case.session.call(request.tool, {request.parameter: value, **arguments})
        call = GoldCall(
            tool=request.tool,
            arguments={request.parameter: value, **arguments},
            provenance={request.parameter: source, **{name: FromUser(known=f"each.{name}") for name in arguments}},
            effect="read" if await case.session.state_hash() == unchanged else "write",
            result=result.content,
        )
        if result.ok:
            members.append(call)
        elif result.error == "refused" and call.effect == "read" and not LOST.search(_get_reason(call)):
            refused.append((call, row))
        else:
            return None
    if not await _are_refused_anyway(case, state, calls, [call for call, _ in refused]):
        return None
    left_out = tuple(
        RefusedMember(call=call, because=_get_reason(call), told=_list_names(row, rows)) for call, row in refused
    )
    return _Batch(request, state, calls, tuple(members), facts, left_out, tuple(results), len(rows) - len(fitting))


async def _are_refused_anyway(
    case: VariantCase, state: JsonObject, before: Sequence[GoldCall], refused: Sequence[GoldCall]
) -> bool:
    """Return True if calls are refused in the same words as long as none of the others is made."""
    if refused and await run_calls(case, state, before) is None:
        return False
    for call in refused:
        result = await case.session.call(call.tool, call.arguments)
        if result.ok or result.content != call.result:
            return False
    return True


def _get_reason(call: GoldCall) -> str:
    content = call.result
    return str(content.get("error", "")) if isinstance(content, dict) else str(content)


def _list_names(row: JsonObject, rows: Sequence[JsonObject]) -> tuple[JsonValue, ...]:
    """List the values of a row that no other row has: an answer can name it by any of them."""
    return tuple(
        value
        for field, value in row.items()
        if isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and [other.get(field) for other in rows].count(value) == 1
    )


def _describe_argument(case: VariantCase, tool: str, name: str, value: JsonValue) -> UserFact:
    label = case.wording.parameter(tool, name).label
    spoken = format_value(case.wording.value(tool, name, value, case.rng))
    return UserFact(key=f"each.{name}", label=label, value=value, said=spoken, slot=name)


async def _build_variant(case: VariantCase, batch: _Batch) -> VariantResult:
    draft = _draft_turn(case, batch)
    count, request = len(batch.members) + len(batch.refused), batch.request
    shown = [canonical_json(result).decode() for result in batch.shown]
    words_of_state = collect_state_words(batch.state)
    visible = {
        can_be_known(
            member.because,
            case.base.policy,
            [*shown, canonical_json(member.call.arguments).decode(), draft.query],
            words_of_state,
            read_today(batch.state),
        )
        for member in batch.refused
    }
    if len(visible) > 1:
        raise RecordDropped("some_can_be_read", request.tool)
    proof = f"{count} rows of {request.list} fit, {batch.others} do not; the list is not cut; {request.tool} "
    proof += f"succeeds for {len(batch.members)} of them"
    if batch.refused:
        proof += f", and is refused for {len(batch.refused)}, before and after the others; "
        proof += "policy and results tell it before" if True in visible else "nothing that is shown before tells it"
    perturbation = Perturbation(
        base=case.base.id,
        turn=0,
        act="batch",
        tool=request.tool,
        visible=True in visible,
        refused=batch.refused,
        tempting=(batch.members[0],),
        proof=proof,
    )
    task = await case.finish([draft], perturbation, state=batch.state)
    return VariantResult(task, batch.state)


def _draft_turn(case: VariantCase, batch: _Batch) -> TurnDraft:
    """Write the turn: what leads to the list, in the words of the task, and the request for all of it."""
    needed = list(dict.fromkeys(key for call in batch.calls for key in list_needed_keys(call)))
    values = {fact.slot: fact.said for fact in batch.facts}
    facts = {case.known[key].slot.partition("|")[0]: case.known[key] for key in needed}
    asks = [ask for ask in batch.request.ask if list_slots(ask) <= values.keys() | facts.keys()]
    most = max((len(list_slots(ask)) for ask in asks), default=0)
    asks = [ask for ask in asks if len(list_slots(ask)) == most]
    ask = case.rng.choice(asks) if asks else ""
    plain = set(_EVERY.findall(ask))
    named = {name: _ARTICLE.sub("", fact.said) if name in plain else fact.said for name, fact in facts.items()}
    request = pick_text([ask], {**named, **values}, case.rng) if ask else None
    if request is None:
        raise RecordDropped("no_words", batch.request.tool)
    unsaid = [key for key in needed if case.known[key].slot.partition("|")[0] not in list_slots(ask)]
    sentences = case.open_request_writer(batch.calls).tell_facts(range(len(batch.calls)), unsaid)
    persona = case.retold.persona
    opening = draw_greeting(persona, case.state, case.rng, case.wording.phrasebook)
    known = [case.known[key].model_copy(update={"stated": True}) for key in needed]
    known += [fact.model_copy(update={"stated": True}) for fact in batch.facts]
    text = " ".join([request, *sentences] if case.rng.random() < REQUEST_FIRST else [*sentences, request])
    query = render_query(opening, text, persona, known, find_clock_date(case.state), case.rng)
    asked = tuple(
        build_general_info(len(batch.calls) + number, member, request, "", case.wording)
        for number, member in enumerate(batch.members)
    )
    return TurnDraft(query, request, tuple(known), (*batch.calls, *batch.members), asked=asked)
