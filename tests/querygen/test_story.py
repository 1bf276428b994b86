"""Tasks that tell a scenario: one step per turn, the words of the step, the motive first."""

import json
import random

import pytest
from writing_desk import Place, Told

from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.phrasing import Scenario, ScenarioBook, Wording
from trajsmith.querygen.partition import LONGEST_TURN, find_goals, partition_scenario, raise_joins
from trajsmith.querygen.story import Story, find_story, list_motives, read_story
from trajsmith.records import FromOutput, GoldCall, Task, content_hash
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains

MOTIVE = "I left my wallet on the tram."
STORY = Scenario.model_validate({
    "id": "wallet", "motives": [MOTIVE], "summary": "{name} lost a wallet.", "roles": ["tram passenger"],
    "steps": [
        {"tool": "freeze_card", "arguments": {"reason": ["lost"]}, "where": {"status": ["active"]},
         "say": ["It had {card_id} in it, so block that one."]},
        {"tool": "list_transactions", "arguments": {"direction": ["out"]},
         "question": {"asks": ["$.result[*].amount"], "say": ["Did anybody spend from {account_id}?"],
                      "answer": ["{out.result[0].amount|money}"]}},
    ],
})  # fmt: skip


class StoryPlace(Place):
    """The bank with one scenario."""

    def __init__(self, **settings):
        super().__init__("bank", withhold=0.0, **settings)
        self.wording = Wording(self.wording.phrasebook, self.spec.tools, ScenarioBook(scenarios=(STORY,)))

    async def grounded_story(self, seed=4):
        settings = SampleSettings(count=1, scenarios=1.0)
        book = self.wording.scenarios
        sampler = Sampler(GraphIndex(build_graph(self.spec.tools), "bank"), settings, book)
        (chain,) = sample_chains({"bank": sampler}, {"bank": [content_hash(self.state)]}, settings, seed)
        grounder = Grounder(self.spec, self.state, self.wording.phrasebook, GroundSettings(), scenarios=book)
        return await grounder.ground(chain, self.session())


@pytest.mark.parametrize("seed", range(4))
async def test_a_task_tells_its_scenario(seed: int) -> None:
    place = StoryPlace()
    task = await place.task(await place.grounded_story(seed))
    assert (task.scenario_id, task.motive) == ("wallet", MOTIVE)
    assert task.scenario == f"{task.persona.name} lost a wallet."
    assert task.persona.role == "tram passenger"
    first, second = task.turns
    assert MOTIVE[1:] in first.query
    assert MOTIVE[1:] not in second.query
    assert first.query.index(MOTIVE[1:]) < first.query.index(" in it, so block that one.")
    assert "id anybody spend from" in second.query
    assert [turn.steps[-1] for turn in task.turns] == ["freeze_card", "list_transactions"]
    assert read_story(task, place.wording.scenarios).names == tuple(name for turn in task.turns for name in turn.steps)
    assert Task.from_line(task.to_line()) == task


async def test_a_model_author_is_shown_the_scenario() -> None:
    place = StoryPlace()
    grounded = await place.grounded_story()
    scripted = await place.task(grounded)
    model = Told({"turns": [{"subgoals": ["x"], "query": turn.query} for turn in scripted.turns]})
    await place.task(grounded, place.author(model))
    prompt = json.dumps([message.content for message in model.requests[0].messages])
    assert f"motive: {MOTIVE}" in prompt
    assert f"Situation: {scripted.persona.name} lost a wallet." in prompt
    assert "story: freeze card" in prompt


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_a_turn_with_its_look_ups_or_joins_the_one_before(seed: int) -> None:
    steps = ("", "", "pay", "look", "", "freeze", "", "", "", "", "stop")
    apart = partition_scenario(steps, {}, random.Random(seed))
    assert apart == [(0, 3), (3, 4), (4, 6), (6, 11)]
    joined = partition_scenario(steps, dict.fromkeys(("look", "freeze", "stop"), 1.0), random.Random(seed))
    assert joined == [(0, 4), (4, 6), (6, 11)]
    assert all(stop - start <= LONGEST_TURN for start, stop in joined)


async def test_a_joined_read_stays_a_goal() -> None:
    grounded = await StoryPlace().grounded_story()
    stop = len(grounded.calls)
    goals = find_goals(grounded.calls, 0, stop, steps=grounded.steps)
    assert [grounded.calls[goal].tool for goal in goals] == ["freeze_card", "list_transactions"]


RETURN = {"tool": "unfreeze_card", "same_as": {"card_id": "freeze_card.card_id"}, "ask": ["unfreeze {card_id} again"]}
FOUND = "It was in my coat all the time, so please unfreeze {card_id}."


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ({"say": [FOUND]}, ()),
        ({"say": [FOUND], "reasons": ["It was in my coat."]}, tuple(RETURN["ask"])),
    ],
    ids=["in_its_sentence", "before_it"],
)
def test_who_changes_their_mind_says_why(words: dict, asks: tuple[str, ...]) -> None:
    steps = [{"tool": "freeze_card"}, RETURN | words]
    scenario = Scenario.model_validate({"id": "x", "motives": ["x"], "change_of_mind": True, "steps": steps})
    told = Story(scenario, ("freeze_card", "unfreeze_card"), "x", 0).list_steps([0, 1])
    assert told[0] == scenario.steps[0]
    assert (told[1].ask, told[1].say) == (asks, (FOUND,))


def test_a_step_with_join_0_is_never_raised() -> None:
    steps = [{"tool": "freeze_card"}, {"tool": "unfreeze_card", "join": 0}, {"tool": "list_cards"}]
    scenario = Scenario.model_validate({"id": "x", "motives": ["x"], "steps": steps})
    assert Story(scenario, (), "x", 0).apart == {"unfreeze_card"}
    source = FromOutput(call=0, path="$.card_id")
    calls = [
        GoldCall(tool=name, arguments={"card_id": "K1"}, provenance={"card_id": source}, effect="read")
        for name in ("freeze_card", "unfreeze_card", "list_cards")
    ]
    names = [call.tool for call in calls]
    calls = [GoldCall(tool="find_card", arguments={}, provenance={}, effect="read"), *calls]
    raised = raise_joins(calls, ["", *names], {}, 0.5, None, {"unfreeze_card"})
    assert raised == {"list_cards": 0.5}


GUESTS = {"say": "The guests can't come.", "at_least": {"move.guests": 2}}
CONDITIONS = [
    pytest.param({"where": {"move.kind": ["dinner"]}}, True, id="argument"),
    pytest.param({"where": {"move.room": ["blue"]}}, True, id="result"),
    pytest.param({"where": {"move.owner": ["Ada"]}}, True, id="row_of_the_thing"),
    pytest.param({"where": {"move.owner": ["Bo"]}}, False, id="other_row"),
    pytest.param({"where": {"move.place": ["here"]}}, False, id="no_such_value"),
    pytest.param({"at_least": {"move.guests": 2}}, True, id="long_enough"),
    pytest.param({"at_least": {"move.guests": 3}}, False, id="too_short"),
    pytest.param({"up_to": {"move.price": 50}}, True, id="cheap_enough"),
    pytest.param({"up_to": {"move.price": 49}}, False, id="too_dear"),
    pytest.param({"at_least": {"pay.price": 1}}, False, id="step_that_is_not_there"),
    pytest.param({"with_steps": ["move"]}, True, id="with_step"),
    pytest.param({"with_steps": ["pay"]}, False, id="without_it"),
    pytest.param({"without_steps": ["pay"]}, True, id="step_is_missing"),
    pytest.param({"without_steps": ["move"]}, False, id="step_is_there"),
]


@pytest.mark.parametrize(("condition", "is_told"), CONDITIONS)
def test_a_motive_is_told_where_its_conditions_hold(condition: dict, is_told: bool) -> None:
    steps = [{"tool": "move"}, {"tool": "pay", "share": 0.5}]
    motives = ["Another day suits me better.", {"say": "It does not suit us.", **condition}]
    scenario = Scenario.model_validate({"id": "x", "motives": motives, "steps": steps})
    rows = {"result": [{"event_id": "E1", "owner": "Ada"}, {"event_id": "E2", "owner": "Bo"}]}
    event = FromOutput(call=0, path="$.result[*].event_id")
    shown = GoldCall(tool="list", arguments={}, provenance={}, effect="read", result=rows)
    told = GoldCall(
        tool="move", arguments={"event_id": "E1", "kind": "dinner"}, provenance={"event_id": event}, effect="write",
        result={"room": "blue", "guests": ["Cy", "Di"], "price": 50},
    )  # fmt: skip
    fitting = ["Another day suits me better.", *(["It does not suit us."] if is_told else [])]
    assert list_motives(scenario, ("", "move"), (shown, told)) == fitting


@pytest.mark.parametrize(
    ("motives", "fault"),
    [([GUESTS], "every motive has conditions"), (["Hello.", GUESTS | {"with_steps": ["fly"]}], "speaks of 'fly'")],
    ids=["none_without", "unknown_step"],
)
def test_motives_with_conditions_are_checked(motives: list, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Scenario.model_validate({"id": "x", "motives": motives, "steps": [{"tool": "move"}]})


async def test_a_chain_outside_of_scenarios_has_no_story() -> None:
    place = StoryPlace()
    (grounded,) = await place.grounded()
    assert find_story(grounded, place.wording.scenarios) is None
    assert (await place.task(grounded)).motive == ""
