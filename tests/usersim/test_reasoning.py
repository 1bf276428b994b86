"""Grounded reasoning: written for every step, true at that point, and never the hidden gold."""

import random
from types import SimpleNamespace

import pytest
from playing import Stage

from trajsmith.phrasing.value_formatting import is_value_mentioned
from trajsmith.records import FromOutput, Message, Selector
from trajsmith.usersim import Dialogue, PlaySettings, ScriptedAgent, ScriptedUser, add_reasoning
from trajsmith.usersim.reasoning import ReasoningAgent
from trajsmith.verify.claim_support import SupportTracker

EACH = Selector(rows="$.result", how="each", field="booking_id", value="B0")
ON = PlaySettings(reasoning="grounded")


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    return Stage("travel", tmp_path_factory.mktemp("travel"))


async def play(stage, task, settings):
    agent = add_reasoning(ScriptedAgent(task, stage.wording, 0), task, stage.wording, 0, settings)
    user = ScriptedUser(task, stage.wording, 0)
    return await Dialogue(stage.spec, task, stage.state, stage.session(), agent, user, settings, 0).play()


async def test_reasoning_is_supported_by_what_was_visible(stage):
    thoughts, missing = set(), 0
    for task in await stage.tasks(20):
        trajectory = await play(stage, task, ON)
        tracker = SupportTracker()
        for message in trajectory.messages:
            if message.role != "assistant":
                tracker.read(message)
                continue
            if not message.reasoning_content:  # it would have told a value that nobody has shown
                missing += 1
                continue
            assert tracker.find_unsupported(message.reasoning_content) == []
            thoughts.add(message.reasoning_content)
    assert len(thoughts) > 100
    assert missing < 0.03 * len(thoughts)


async def test_a_value_that_was_not_said_yet_is_not_in_the_reasoning(stage):
    asked = 0
    for task in await stage.tasks(20):
        hidden = [entry for turn in task.turns for entry in turn.known if not entry.stated and entry.how == "value"]
        trajectory = await play(stage, task, ON)
        for index, message in enumerate(trajectory.messages):
            before = " ".join(each.content for each in trajectory.messages[:index])
            for entry in hidden:
                if message.reasoning_content and not is_value_mentioned(before, entry.value):
                    asked += 1
                    assert not is_value_mentioned(message.reasoning_content, entry.value)
    assert asked


async def test_words_and_calls_are_the_same_with_and_without(stage):
    for task in (await stage.tasks(20))[:5]:
        plain = await play(stage, task, PlaySettings())
        thinking = await play(stage, task, ON)
        bare = [message.model_copy(update={"reasoning_content": None}) for message in thinking.messages]
        assert bare == list(plain.messages)


async def test_a_share_of_the_tasks_has_it(stage):
    half = PlaySettings(reasoning="grounded", reasoning_share=0.5)
    tasks = await stage.tasks(20)
    with_it = [has_reasoning(await play(stage, task, half)) for task in tasks]
    assert 3 < sum(with_it) < 17


def has_reasoning(trajectory):
    messages: list[Message] = [each for each in trajectory.messages if each.role == "assistant"]
    return all(each.reasoning_content for each in messages)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_result_of_several_rows_is_not_called_a_single_one(stage, rows):
    """A batch takes one row after the other from a list, without a choice."""
    source = FromOutput(call=0, path="$.result[*].booking_id", selectors=(EACH,))
    agent = object.__new__(ReasoningAgent)
    result = SimpleNamespace(content={"result": [{"booking_id": f"B{number}"} for number in range(rows)]})
    calls = [SimpleNamespace(tool="list_trips", actor="assistant")]
    agent.agent = SimpleNamespace(calls=calls, results=[result], known={})
    agent.wording, agent.rng, agent.start = stage.wording, random.Random(0), 0
    thoughts = list(agent._describe_choice("booking_id", source))
    assert [("list_trips" in thought) for thought in thoughts] == [True] * (rows == 1)
