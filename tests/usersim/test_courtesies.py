"""A word on why the user came, before anything else, and a good wish at the end."""

from types import SimpleNamespace

import pytest

from trajsmith.phrasing import Scenario, ScenarioBook, ScenarioStep
from trajsmith.phrasing.voices import get_agent_voice
from trajsmith.usersim import courtesies
from trajsmith.usersim.courtesies import Courtesies, draw_courtesies

MOTIVE = "My father is moving house, and I have to drop everything."
GRAVE = "My father is in hospital, and I have to drop everything."
STORY = Scenario(
    id="busy_father", motives=(MOTIVE,), steps=(ScenarioStep(tool="list_events"),),
    reactions=("I'm sorry to hear that.",), closings=("I wish him all the best.",),
)  # fmt: skip


def draw(
    query: str, twist: object = None, scenario_id: str = STORY.id, mode: str = "conversation", story: Scenario = STORY
) -> Courtesies:
    wording = SimpleNamespace(scenarios=ScenarioBook(scenarios=(story,)))
    turns = (SimpleNamespace(query=query),)
    task = SimpleNamespace(seed=1, scenario_id=scenario_id, motive=MOTIVE, turns=turns, twist=twist, mode=mode)
    return draw_courtesies(task, wording, get_agent_voice("plain"), 0)


@pytest.fixture(autouse=True)
def certain(monkeypatch):
    for share, value in (("REACTIONS", 1), ("CLOSINGS", 1), ("OFFERS", 0)):
        monkeypatch.setattr(courtesies, share, value)


def test_who_tells_the_motive_hears_a_word_on_it():
    assert draw(f"hi, {MOTIVE.lower()} please cancel it") == Courtesies(STORY.reactions[0], STORY.closings[0])
    assert draw("Please cancel all my events.") == Courtesies(), "another request than the story's"
    assert draw(MOTIVE, scenario_id="") == Courtesies()


def test_trouble_always_gets_a_word(monkeypatch):
    monkeypatch.setattr(courtesies, "REACTIONS", 0)
    assert draw(MOTIVE).reaction == ""
    assert draw(MOTIVE, story=STORY.model_copy(update={"trouble": True})).reaction == STORY.reactions[0]


def test_a_variant_has_no_good_wish():
    assert draw(MOTIVE, twist=object()) == Courtesies(STORY.reactions[0], "")


def test_an_offer_of_more_help_gives_way_to_a_good_wish(monkeypatch):
    monkeypatch.setattr(courtesies, "OFFERS", 1)
    assert draw(MOTIVE).closing == STORY.closings[0]
    assert draw("Please cancel it.").closing.endswith((".", "?"))


def test_nobody_passes_over_an_illness_whatever_is_asked_for():
    for scenario in ("", STORY.id):
        said = draw(f"{GRAVE} Please cancel all my events.", scenario_id=scenario)
        reaction = said.reaction
        assert "sorry" in reaction and said.add_to("I can't do that.") == f"{reaction} I can't do that."
    assert draw("The batteries died, and my phone is out of hospital.").reaction == ""


def test_who_answers_no_questions_is_asked_none(monkeypatch):
    monkeypatch.setattr(courtesies, "OFFERS", 1)
    assert draw("Please cancel it.", mode="direct").closing == ""


def test_the_reaction_comes_once_and_not_before_a_refusal():
    said = Courtesies("Oh dear.")
    assert said.add_to("") == "", "a call without a word"
    assert said.add_to("Let me look.") == "Oh dear. Let me look."
    assert said.add_to("It's done.") == "It's done."
    assert Courtesies("Oh dear.").add_to("Sure, I'll look.") == "Oh dear. I'll look.", "nobody is eager about bad news"
    assert Courtesies("Oh dear.").add_to("I can't do that, because it is over.").startswith("I can't")
