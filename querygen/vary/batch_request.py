"""The user wants the same done for every row of a list that fits a condition: all of them, and no others.

The rows are read from the executed list, which may be made longer with rows like those that are there. Proof: the list
is not cut, since one more row makes it longer (or it has fewer rows than its tool shows at most); the call succeeds for
each row; and the checks want all calls and no other.
"""

from trajsmith.querygen.vary._batches import build_batch_variant
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult


@VARIANTS.register("batch_request")
async def vary(case: VariantCase) -> VariantResult:
    """A request for all rows of a list that fit, with which the dialogue opens.

    Raises:
        RecordDropped: No list of the task has enough rows that a request of the environment is about.
    """
    return await build_batch_variant(case)
