"""A request that no tool of the environment serves, between the others: the agent must say so and call nothing.

Proof: none of the words that a tool for it would speak of stands in a name, description or parameter of any tool, or
in what the environment says of itself.
"""

from functools import cache
from importlib import resources

import yaml

from trajsmith.grounding.names import split_name
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import EnvironmentSpec, FrozenModel, Perturbation, RecordDropped

NONE = (
    "I have no access to anything like that",
    "that's outside what I have access to here",
    "I have no tool for it here",
    "it's not something that I have been set up for",
)
OPENINGS = ("", "", "One more thing.", "Something else.")


class IrrelevantRequest(FrozenModel):
    """One request, and the words that a tool for it would speak of."""

    ask: str
    about: tuple[str, ...]


@cache
def load_errands() -> tuple[IrrelevantRequest, ...]:
    text = resources.files("trajsmith.querygen.vary").joinpath("errands.yaml").read_text(encoding="utf-8")
    return tuple(IrrelevantRequest.model_validate(entry) for entry in yaml.safe_load(text))


def collect_vocabulary(spec: EnvironmentSpec) -> set[str]:
    """Collect all words of an environment's tools, parameters and description."""
    texts = [spec.name, spec.description, spec.domain, spec.policy]
    for tool in spec.tools:
        texts += [tool.name, tool.description, *tool.parameters]
        texts += [str(schema.get("description", "")) for schema in tool.parameters.values()]
    return {word for text in texts for word in split_name(text)}


@VARIANTS.register("irrelevant_request")
async def vary(case: VariantCase) -> VariantResult:
    """The task with one more turn somewhere after its first.

    Raises:
        RecordDropped: The environment speaks of everything that could be asked.
    """
    spoken = collect_vocabulary(case.spec)
    options = [each for each in load_errands() if not any(set(split_name(about)) <= spoken for about in each.about)]
    if not options:
        raise RecordDropped("everything_matches")
    errand = case.rng.choice(options)
    place = case.rng.randint(1, len(case.spans))
    base = case.words()
    pieces = case.unchanged(base, range(len(case.spans)))
    query = f"{case.rng.choice(OPENINGS)} {errand.ask}".strip()
    pieces.insert(place, TurnDraft(query, "Something that no tool here is for", (), ()))
    perturbation = Perturbation(
        base=case.base.id,
        turn=place,
        act="decline",
        because=case.rng.choice(NONE),
        proof=f"no tool speaks of {', '.join(errand.about)}",
    )
    return VariantResult(await case.finish(pieces, perturbation))
