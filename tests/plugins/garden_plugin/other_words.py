"""A variant."""

from trajsmith.querygen.vary import VARIANTS, VariantResult
from trajsmith.records import Perturbation


@VARIANTS.register("other_words")
async def other_words(case):
    drafts = case.unchanged(case.words(), range(len(case.spans)))
    change = Perturbation(base=case.base.id, turn=0, act="plain", proof="the same calls succeed again")
    return VariantResult(await case.finish(drafts, change))
