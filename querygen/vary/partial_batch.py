"""The same for every row of a list, and one to three of them are refused: the others are done, the answer says both.

Proof: as for `batch_request`; the call is refused for those rows in the same words before the others are done and after
them, and a refusal changes nothing.
"""

from trajsmith.querygen.vary._batches import build_batch_variant
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult


@VARIANTS.register("partial_batch")
async def vary(case: VariantCase) -> VariantResult:
    """The task up to a list, and then a request for all rows of it that fit, of which some are refused.

    Raises:
        RecordDropped: No list of the task has rows for which a call is refused, and more for which it is not.
    """
    return await build_batch_variant(case, partial=True)
