"""The user has not said a value that a call requires, and knows it: the agent must ask, not guess.

Proof: the call is refused without the value, and neither what was said before nor any earlier result has it.
"""

from trajsmith.phrasing import is_value_mentioned
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._omission import find_omittable_arguments, is_refused_without, list_value_wordings
from trajsmith.records import Perturbation, RecordDropped

TRIES = 6


@VARIANTS.register("missing_parameter")
async def vary(case: VariantCase) -> VariantResult:
    """The task with one value held back until the agent asks.

    Raises:
        RecordDropped: No value can be held back so that only asking helps.
    """
    tried = 0
    for turn in case.rng.sample(range(len(case.spans)), len(case.spans)):
        for index in range(*case.spans[turn]):
            for argument, key in find_omittable_arguments(case, turn, index):
                if (
                    case.calls[index].effect == "read"
                    and "enum" in case.tools[case.calls[index].tool].parameters[argument]
                ):
                    continue  # a look-up can be made with every choice
                tried += 1
                if tried > TRIES:
                    raise RecordDropped("no_value_to_hold_back", f"{TRIES} tried")
                if await is_refused_without(case, index, argument):
                    variant = await _build_variant(case, turn, index, key)
                    if variant:
                        return variant
    raise RecordDropped("no_value_to_hold_back")


async def _build_variant(case: VariantCase, turn: int, index: int, key: str) -> VariantResult | None:
    call, words = case.calls[index], case.words(hold=key)
    answers = list_value_wordings(case, call, case.known[key])
    if any(is_value_mentioned(query, value) for query in words.queries[: turn + 1] for value in answers):
        return None
    perturbation = Perturbation(
        base=case.base.id,
        turn=turn,
        act="ask",
        tool=call.tool,
        keys=(key,),
        told=answers,
        tempting=(call.model_copy(update={"result": None}),),
        proof=f"{call.tool} is refused without it, and nothing that was said or returned before tells it",
    )
    return VariantResult(await case.finish(case.unchanged(words, range(len(case.spans))), perturbation))
