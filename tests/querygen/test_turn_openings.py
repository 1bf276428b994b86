"""Words at the beginning of a later turn: they fit what came of the turn before, and often there are none."""

import random
from datetime import date

import pytest

from trajsmith.phrasing import Phrasebook, Scenario, ScenarioBook, ScenarioStep, Wording
from trajsmith.phrasing.voices import Outcome, draw_pattern, get_user_voice
from trajsmith.querygen.persona import add_sentence, draw_greeting, draw_turn_opening, find_outcome, render_query
from trajsmith.querygen.vary._case import _retell
from trajsmith.records import FrozenModel, GoldCall, Persona

PERSONA = Persona(name="Ann", role="clerk", style="chatty")


def build_call(effect: str, result: object) -> GoldCall:
    return GoldCall(tool="act", arguments={}, provenance={}, effect=effect, result=result)


@pytest.mark.parametrize(
    ("effect", "result", "outcome"),
    [
        ("write", {"id": 1}, "done"),
        ("write", {}, "done"),
        ("read", {"result": [{"id": 1}]}, "answered"),
        ("read", {"name": "Ann"}, "answered"),
        ("read", {"result": []}, "refused"),
        ("read", [], "refused"),
    ],
)
def test_a_reaction_is_drawn_by_what_the_turn_before_came_to(effect: str, result: object, outcome: Outcome) -> None:
    call = build_call(effect, result)
    assert find_outcome(call) == outcome
    rng = random.Random(5)
    patterns = getattr(get_user_voice("chatty").reactions, outcome)
    fitting = {draw_pattern([pattern], rng) for pattern in patterns for _ in range(300)}
    drawn = [draw_turn_opening(PERSONA, find_outcome(call), random.Random(seed)) for seed in range(100)]
    assert set(drawn) <= fitting
    assert drawn.count("") > 40
    assert len(set(drawn)) > 3


def test_what_users_do_on_a_device_may_be_bad_news():
    restart = build_call("write", {"status_light": "blinking_red"})
    assert find_outcome(restart) == "done"
    assert find_outcome(restart.model_copy(update={"actor": "user"})) == "answered"


def test_nobody_cheers_about_a_card_that_is_blocked():
    drawn = [draw_turn_opening(PERSONA, "done", random.Random(seed), trouble=True) for seed in range(100)]
    assert not any("!" in opening or "Great" in opening for opening in drawn)
    assert any("!" in draw_turn_opening(PERSONA, "done", random.Random(seed)) for seed in range(100))


class _Told(FrozenModel):
    """What a variant takes over from its base and tells anew."""

    persona: Persona
    motive: str
    seed: int = 5
    scenario_id: str = "s"
    turns: tuple[()] = ()
    gold_calls: tuple[()] = ()


def test_a_variant_is_told_for_another_reason():
    step = ScenarioStep(tool="list_cards", say=("Which cards do I have?",))
    story = Scenario(id="s", motives=("I moved.", "I married."), steps=(step,))
    wording = Wording(Phrasebook(), [], ScenarioBook(scenarios=(story,)))
    for motive, other in (("I moved.", "I married."), ("I married.", "I moved.")):
        assert _retell(_Told(persona=PERSONA, motive=motive), wording, "batch_request").motive == other
    styles = {_retell(_Told(persona=PERSONA, motive="", seed=seed), wording, "v").persona.style for seed in range(40)}
    assert len(styles) > 3, "and by people of another register"


def test_a_further_sentence_is_typed_as_the_message_is():
    casual = PERSONA.model_copy(update={"style": "casual"})
    text = add_sentence("a code until 3 april", "Ask me once more, please.", casual, random.Random(1))
    assert text.startswith("a code until 3 april. ")
    assert text.removeprefix("a code until 3 april. ").islower()


@pytest.mark.parametrize(
    ("style", "said"),
    [
        ("plain", 'There are 4 of us. That connection, please, as in "yes. the fast one".'),
        ("casual", "there are 4 of us. that"),
    ],
)
def test_a_sentence_that_begins_with_what_a_thing_is_called_has_a_capital(style: str, said: str) -> None:
    persona = Persona(name="Ann", role="clerk", style=style)
    text = 'There are 4 of us. that connection, please, as in "yes. the fast one".'
    query = render_query("", text, persona, (), date(2026, 1, 1), random.Random(3), slipped={"all"})
    assert query.startswith(said)


def test_amounts_are_typed_without_pence_where_there_are_none() -> None:
    text = 'Please pay £1,200.00 to Ann and £12.50 to Bo, marked "rest of £40.00 in cash".'
    typed = render_query("", text, PERSONA, (), date(2026, 5, 1), random.Random(1))
    assert "£1,200 to" in typed and "£12.50" in typed and '"rest of £40.00 in cash"' in typed


def test_nobody_says_their_name_to_their_own_calendar() -> None:
    for seed in range(40):
        greeting = draw_greeting(PERSONA, {}, random.Random(seed), Phrasebook(introductions=False))
        assert "Ann" not in greeting
    named = [draw_greeting(PERSONA, {}, random.Random(seed), Phrasebook()) for seed in range(40)]
    assert any("Ann" in greeting for greeting in named)
