"""Turns of a dialogue as a reader sees them: what the user says, the calls that follow, the entities they take."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trajsmith.grounding import (
    build_selector_key,
    find_rows,
    get_leaf_name,
    is_identifier,
    iterate_leaves,
    list_needed_keys,
)
from trajsmith.records import FromOutput, FromUser, GoldCall, JsonValue, RequestedInfo, Selector, Task
from trajsmith.verify.discourse import get_entity_kind, is_named_apart


@dataclass(slots=True)
class EntityNeed:
    """An entity that a call takes."""

    call: int
    name: str
    kind: str
    value: str
    selector: Selector | None = None
    """The last selection on the way to it, if there was a choice."""
    source: tuple[int, str] | None = None
    """Call and path of the list that it was selected in."""
    given_by: int = -1
    """Call whose result gave the value; -1 if that is not known."""
    foreign: bool = False
    """The field that gave it has the name of another kind than the row: no "id" or "code" of the row itself."""
    asked: bool = False
    """The agent asks for it, or for what leads to it."""
    must_be_named: bool = False
    looked_up: bool = False
    """It was found in this turn by what the user says."""
    is_topic: bool = False
    """A question is about it: "that" means it from then on, although a list was shown."""
    identified: bool = False


@dataclass(slots=True)
class SpokenCall:
    """A call with its result, as a reader sees it."""

    index: int
    tool: str
    arguments: Mapping[str, Any]
    result: JsonValue
    effect: Literal["read", "write"]
    ok: bool = True


@dataclass(slots=True)
class SpokenTurn:
    """Words of the user in one turn, and the calls that follow."""

    text: str
    calls: list[SpokenCall]
    needs: list[EntityNeed] = field(default_factory=list)
    requested: frozenset[int] = frozenset()
    """Calls whose results are told: all writes, and reads that nothing else in the turn uses."""
    replies: str = ""
    """What the user says later in the turn."""


def build_gold_turns(task: Task) -> Iterator[SpokenTurn]:
    """Yield the turns of a task with their gold calls."""
    everything, start = task.gold_calls, 0
    asked: set[str] = set()
    for turn in task.turns:
        open_keys = {known.key for known in turn.known if not known.stated} - asked
        yield build_gold_turn(turn.query, turn.gold_calls, start, everything, open_keys, turn.asked)
        asked |= open_keys
        start += len(turn.gold_calls)


def build_gold_turn(
    text: str,
    calls: Sequence[GoldCall],
    start: int,
    everything: Sequence[GoldCall],
    open_keys: Collection[str],
    asked: Sequence[RequestedInfo] = (),
) -> SpokenTurn:
    """Return a turn with its gold calls.

    Args:
        text: What the user says.
        calls: Gold calls of the turn.
        start: Index of the first of them in the task.
        everything: All gold calls of the task up to here.
        open_keys: Keys of the facts that the user tells in this turn only when the agent asks.
        asked: What the turn asks for: questions may be about one row of a result.
    """
    spoken = [
        SpokenCall(start + number, call.tool, call.arguments, call.result, call.effect)
        for number, call in enumerate(calls)
    ]
    sources = [[source for _, source, _ in iterate_leaves(call)] for call in calls]
    used = {source.call for of_call in sources for source in of_call if isinstance(source, FromOutput)}
    requested = frozenset(call.index for call in spoken if call.effect == "write" or call.index not in used)
    needs = [
        _build_need(start + number, path, source, value, everything, open_keys, start, start + number in requested)
        for number, call in enumerate(calls)
        for path, source, value in iterate_leaves(call)
        if isinstance(source, FromOutput) and isinstance(value, str | int) and not isinstance(value, bool)
    ]
    needs += [need for info in asked for need in _build_row_need(info, everything)]
    return SpokenTurn(text, spoken, needs, requested)


def _build_row_need(info: RequestedInfo, everything: Sequence[GoldCall]) -> Iterator[EntityNeed]:
    """Yield the row of a result that a question is about; the call that shows it is there when it is looked for."""
    rows = list(find_rows(everything[info.call].result, info.row)) if info.row else []
    for name, value in rows[0].items() if len(rows) == 1 and isinstance(rows[0], dict) else ():
        if is_identifier(name) and isinstance(value, str | int) and info.row is not None:
            source = (info.call, info.row.rows)
            yield EntityNeed(info.call + 1, name, name, str(value), info.row, source, is_topic=True)
            return


def _build_need(
    index: int,
    path: str,
    source: FromOutput,
    value: Any,
    everything: Sequence[GoldCall],
    open_keys: Collection[str],
    start: int,
    requested: bool,
) -> EntityNeed:
    name = get_leaf_name(path)
    chain = _list_chain(source, everything)
    asked = any(key in open_keys for key in chain)
    picks = [selector for selector in source.selectors if selector.how not in ("only", "each")]
    finder = everything[source.call]
    asks = any(isinstance(origin, FromUser) for _, origin, _ in iterate_leaves(finder))
    return EntityNeed(
        call=index,
        name=name,
        kind=get_entity_kind(name, source),
        value=str(value),
        selector=picks[-1] if picks else None,
        source=(source.call, source.selectors[-1].rows) if source.selectors else None,
        given_by=source.call,
        foreign=is_named_apart(source),
        asked=asked,
        must_be_named=requested or everything[index].effect == "read",
        looked_up=asks and not picks and source.call >= start,
    )


def _list_chain(source: FromOutput, everything: Sequence[GoldCall]) -> list[str]:
    """Keys of the facts that lead to a value: its selections, and those of the calls that found it."""
    keys = [
        build_selector_key(source.call, selector)
        for selector in source.selectors
        if selector.how not in ("only", "each")
    ]
    return [*keys, *list_needed_keys(everything[source.call])]
