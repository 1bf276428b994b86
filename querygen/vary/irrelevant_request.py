"""A request that no tool of the environment serves, after others or between: the agent must say so and call nothing.

Proof: none of the words that a tool for it would speak of stands in a name, description or parameter of any tool, or
in what the environment says of itself.
"""

import re
from functools import cache
from importlib import resources

import yaml

from trajsmith.grounding import split_name
from trajsmith.phrasing import fill_pattern, find_clock_date, get_user_voice
from trajsmith.phrasing.languages import get_language
from trajsmith.querygen.persona import draw_turn_opening, find_outcome, render_query
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import EnvironmentSpec, FrozenModel, Perturbation, RecordDropped

NONE = (
    "I can't help with that here",
    "that's not something I can do from here",
    "that's not something I can help with",
    "I can't help you with that one",
)
COVERED = (
    "I can't help with that here, only with {}",
    "that's not something I can do from here. What I can help with is {}",
    "I can't do that here. What I can help with is {}",
    "I can't help you with that one, just with {}",
)
"""The same where the phrasebook says what the agent is there for."""
LAST = 0.7
"""Share of requests that come when everything else is done, since few people change the subject in the middle."""
NEAR = 3
"""Requests near to what the environment is for from which on others are left out."""
_WAITING = re.compile(r"\b(?:done|have that|after|then|next|following|afterwards)\b", re.IGNORECASE)
"""Words that lead from one wish of a message to the next, when nothing is left to be done first."""
_POINTS_BACK = re.compile(
    r"\b(it|its|this|that|these|those|them|they|there|then|one|ones|same|him|her|too|as well)\b", re.IGNORECASE
)
"""Words of a request that mean something of the turn before."""


class IrrelevantRequest(FrozenModel):
    """One request, and the words that a tool for it would speak of."""

    ask: str
    """What the user wants, as a verb phrase."""
    about: tuple[str, ...]
    near: tuple[str, ...] = ()
    """Words of which an environment uses one, to whose desk people would bring it; empty: any."""


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
    """The task with one more turn: the last one, or one between two where nothing after it points back across it.

    Raises:
        RecordDropped: The environment speaks of everything that could be asked.
    """
    errand = case.rng.choice(list_fitting_errands(collect_vocabulary(case.spec)))
    place = len(case.spans) if case.rng.random() < LAST else case.rng.randint(1, len(case.spans))
    base = case.words(after_refusal=place)
    if place < len(case.spans) and _POINTS_BACK.search(base.queries[place]):
        place = len(case.spans)
        base = case.words()
    pieces = case.unchanged(base, range(len(case.spans)))
    pieces.insert(place, TurnDraft(_write_query(case, place, errand), "Something that no tool here is for", (), ()))
    perturbation = Perturbation(
        base=case.base.id,
        turn=place,
        act="decline",
        because=_render_reason(case),
        proof=f"no tool speaks of {', '.join(errand.about)}",
    )
    return VariantResult(await case.finish(pieces, perturbation))


def list_fitting_errands(spoken: set[str]) -> list[IrrelevantRequest]:
    """List the requests of which an environment with these words does nothing, those near to it where there are some.

    Raises:
        RecordDropped: It speaks of everything that could be asked.
    """
    foreign = [each for each in load_errands() if not any(set(split_name(about)) <= spoken for about in each.about)]
    near = [each for each in foreign if each.near and spoken.issuperset(each.near)]
    options = near if len(near) >= NEAR else [each for each in foreign if not each.near]
    if not options:
        raise RecordDropped("everything_matches")
    return options


def _render_reason(case: VariantCase) -> str:
    covers = case.wording.phrasebook.covers
    return case.rng.choice(COVERED).format(covers) if covers else case.rng.choice(NONE)


def _write_query(case: VariantCase, place: int, errand: IrrelevantRequest) -> str:
    """Write the request as this user speaks."""
    persona, voice = case.retold.persona, get_user_voice(case.retold.persona.style)
    outcome = find_outcome(case.calls[case.spans[place - 1][1] - 1])
    frames = [frame for frame in voice.further if not _WAITING.search(frame)] or voice.further
    wish = get_language().grammar.ask_for_oneself(fill_pattern(frames, errand.ask, case.rng))
    opening = draw_turn_opening(persona, outcome, case.rng)
    return render_query(opening, wish, persona, (), find_clock_date(case.state), case.rng)
