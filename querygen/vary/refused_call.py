"""The user asks for something that the state refuses, and only the call shows it: tell why, offer what works, do that.

Found by trying rows and values that the user may say in place of those of the base task. Proof: the environment refuses
the call, nothing that was shown before tells the reason, and the alternative succeeds, or all that were tried fail.
"""

from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._refusals import RefusedRequest, find_refused_requests, take_distinct
from trajsmith.querygen.vary._refused_task import build_refused_variant, is_used_up, is_visible
from trajsmith.records import RecordDropped

TURNS = 3


@VARIANTS.register("refused_call")
async def vary(case: VariantCase) -> VariantResult:
    """The task up to the turn in which something is refused.

    Raises:
        RecordDropped: Nothing is refused that could not be seen before.
    """
    requests = [request for turn in case.single_writes()[:TURNS] for request in await find_refused_requests(case, turn)]
    hidden = [request for request in requests if not is_visible(case, request, "") and not _is_used_up(case, request)]
    if not hidden:
        raise RecordDropped("nothing_refused")
    return await build_refused_variant(
        case,
        take_distinct(case.rng.sample(hidden, len(hidden)), 8),
        lambda request: f"the environment refuses it ({request.refusal})",
        hidden=True,
    )


def _is_used_up(case: VariantCase, request: RefusedRequest) -> bool:
    shown = [call.result for call in (*case.calls[: case.spans[request.turn][0]], *request.calls[:-1])]
    return is_used_up(request.refusal, shown, request.calls[-1].arguments[request.argument])
