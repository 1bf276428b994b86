"""One of several things that are asked for in one message is refused, the others are done: the answer says both.

Two requests of the base task become one message where no message has several. Proof: as for `refused_call`; the gold
run does the others.
"""

from collections.abc import Iterator

from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._refusals import find_refused_requests, take_distinct
from trajsmith.querygen.vary._refused_task import build_refused_variant
from trajsmith.records import RecordDropped, Task

MOST = 3
"""Things asked for in one message."""
TRIES = 3


@VARIANTS.register("partial_success")
async def vary(case: VariantCase) -> VariantResult:
    """The task up to a message that asks for several things, the last of which is refused.

    Raises:
        RecordDropped: No message can ask for several things, or nothing of it is refused.
    """
    drop = RecordDropped("no_several_goals")
    for joined, turn in list(_iterate_joined(case))[:TRIES]:
        requests = await find_refused_requests(joined, turn)
        if not requests:
            drop = RecordDropped("nothing_refused")
            continue
        try:
            return await build_refused_variant(
                joined,
                take_distinct(requests, 8),
                lambda request: f"the environment refuses one part ({request.refusal}) and accepts the others",
            )
        except RecordDropped as fault:
            drop = fault
    raise drop


def _iterate_joined(case: VariantCase) -> Iterator[tuple[VariantCase, int]]:
    """Yield cases with a message that asks for two or three things and ends with a write, with its turn."""
    turns = range(len(case.spans))
    for turn in case.rng.sample(turns, len(turns)):
        if _fits(case, turn):
            yield case, turn
        if turn:
            joined = VariantCase(
                _join_turns(case.base, turn - 1), case.state, case.session, case.spec, case.wording, case.variant,
                case.entities, case.audit,
            )  # fmt: skip
            if _fits(joined, turn - 1):
                yield joined, turn - 1


def _fits(case: VariantCase, turn: int) -> bool:
    start, stop = case.spans[turn]
    goals = case.goals(turn) if stop > start else []
    last = case.calls[stop - 1] if stop > start else None
    return (
        1 < len(goals) <= MOST
        and last is not None
        and goals[-1] == stop - 1
        and (last.effect, last.actor) == ("write", "assistant")
        and all(call.actor == "assistant" for call in case.calls[start:stop])
        and any(case.calls[goal].effect == "write" for goal in goals[:-1])
    )


def _join_turns(base: Task, turn: int) -> Task:
    """Return the task with a turn and the next one in one message; its words are made again."""
    first, second = base.turns[turn : turn + 2]
    known = {entry.key: entry for entry in (*second.known, *first.known)}
    steps = (*first.steps, *second.steps)
    calls = (*first.gold_calls, *second.gold_calls)
    joined = first.model_copy(
        update={
            "known": tuple(known.values()),
            "gold_calls": calls,
            "steps": steps if len(steps) == len(calls) else (),
        }
    )
    return base.model_copy(update={"turns": (*base.turns[:turn], joined, *base.turns[turn + 2 :])})
