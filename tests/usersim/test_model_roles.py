"""Models as agent and user: what they are sent, what becomes of what they say, and every mix with scripted roles."""

import json

import pytest
from playing import Replies, Stage, StandIn, call

from trajsmith.export import build_row
from trajsmith.records import ModelFault
from trajsmith.usersim import render_system_prompt
from trajsmith.usersim.model_user import STOP


@pytest.fixture(scope="module")
def helpdesk(tmp_path_factory):
    return Stage("helpdesk", tmp_path_factory.mktemp("helpdesk"))


@pytest.fixture(scope="module")
def mobile(tmp_path_factory):
    return Stage("mobile_care", tmp_path_factory.mktemp("mobile_care"))


@pytest.fixture
async def task(helpdesk):
    return (await helpdesk.tasks(1, direct=0.0))[0]


# The agent


async def test_the_agent_is_shown_the_policy_and_the_exposed_tools(helpdesk, task):
    agent = Replies("Well.")
    played = await helpdesk.play(task, agent)
    (request, *_) = agent.requests
    assert task.policy in request.messages[0].content
    assert [tool["function"]["name"] for tool in request.tools] == list(task.exposed_tools)
    assert played.models == {"agent": "replies", "user": "scripted"}
    assert list(played.prompts) == ["usersim/agent_system"]


async def test_the_agent_is_told_what_the_user_can_do_on_their_own_devices(mobile, helpdesk, task):
    (call_centre,) = await mobile.tasks(1, direct=0.0)
    agent = Replies("Well.")
    await mobile.play(call_centre, agent)
    told = agent.requests[0].messages[0].content
    assert "You cannot reach the user's own devices." in told
    assert "\n- Read the serial number of the SIM in the phone's tray from the phone's settings.\n" in told
    assert told.count("\n- ") >= len(call_centre.user_tools) > 0
    direct = call_centre.model_copy(update={"mode": "direct"})
    assert "own devices" not in render_system_prompt(mobile.spec, direct, {})
    assert "own devices" not in render_system_prompt(helpdesk.spec, task, {})


async def test_parallel_calls_are_all_made_and_answered_in_order(helpdesk, task):
    agent = Replies(
        {"content": "", "tool_calls": [call("list_rooms", number=1), call("list_nothing", number=2)]}, "Done."
    )
    played = await helpdesk.play(task, agent)
    assert [message.tool_call_id for message in played.messages[3:5]] == ["c1", "c2"]
    assert [event.tool for event in played.events[:2]] == ["list_rooms", "list_nothing"]


async def test_reasoning_is_kept_in_the_record_and_only_this_turns_is_sent_again(helpdesk, task):
    first = {"content": "", "reasoning_content": "first I look", "tool_calls": [call("no_such_tool")]}
    agent = Replies(first, {"content": "Done.", "reasoning_content": "that was it"}, "Done again.")
    played = await helpdesk.play(task, agent)
    assert [m.reasoning_content for m in played.messages if m.reasoning_content] == ["first I look", "that was it"]
    sent = [[m.reasoning_content for m in request.messages if m.reasoning_content] for request in agent.requests]
    assert sent[1] == ["first I look"]
    assert sent[2] == []


async def test_candidates_have_their_own_temperature_and_seed(helpdesk, task):
    requests = []
    for candidate in range(3):
        agent = Replies("Well.")
        await helpdesk.play(task, agent, candidate=candidate, temperatures=(0.2, 0.9))
        requests.append(agent.requests[0])
    assert [request.temperature for request in requests] == [0.2, 0.9, 0.2]
    assert len({request.seed for request in requests}) == 3


async def test_a_malformed_call_is_told_to_the_model_and_recorded(helpdesk, task):
    agent = Replies({"content": "", "tool_calls": [call("find_employee_by_email", '{"email": ')]}, "Sorry.")
    played = await helpdesk.play(task, agent)
    (event, *_) = played.events
    assert (event.tool, event.ok, event.error, event.reached) == ("find_employee_by_email", False, "malformed", False)
    said = json.loads(played.messages[3].content)["error"]
    assert "no JSON" in said
    assert 'You wrote: {"email": ' in said
    assert (await helpdesk.verdict(task, played)).replay_match is True


async def test_a_malformed_call_does_not_stop_the_good_one_beside_it(helpdesk, task):
    calls = [call("find_employee_by_email", "[]", 1), call("no_such_tool", "{}", 2)]
    played = await helpdesk.play(task, Replies({"content": "", "tool_calls": calls}, "Sorry."))
    assert {event.error for event in played.events[:2]} == {"malformed", "unknown_tool"}
    assert {message.tool_call_id for message in played.messages[3:5]} == {"c1", "c2"}


@pytest.mark.parametrize(
    "bad", [call("x", "{"), call("no_such_tool"), call("", "{}")], ids=["malformed", "unknown", "nameless"]
)
async def test_bad_calls_end_the_play_after_a_few(helpdesk, task, bad):
    played = await helpdesk.play(task, Replies({"content": "", "tool_calls": [bad]}), bad_calls=2)
    assert played.stop_reason == "bad_calls"
    assert len(played.events) == 3
    verdict = await helpdesk.verdict(task, played)
    assert verdict.outcome in ("agent_error", "partial")
    assert "stopped: bad_calls" in verdict.reasons


async def test_a_silent_model_leaves_the_play_undecided_and_nothing_is_lost(helpdesk, task):
    agent = Replies({"content": "", "tool_calls": [call("list_rooms")]}, ModelFault("timeout", "m", "too slow"))
    played = await helpdesk.play(task, agent)
    assert (played.stop_reason, played.fault, len(played.events)) == ("model_fault", "timeout", 1)
    assert played.turns[0].stop == len(played.messages)
    verdict = await helpdesk.verdict(task, played)
    assert (verdict.outcome, verdict.accepted, verdict.reasons) == ("undecided", False, ("model_fault:timeout",))


async def test_two_levels_show_two_tools_and_record_the_inner_call(helpdesk):
    accepted = 0
    for task in await helpdesk.tasks(4, direct=0.0, withhold=0.0):
        agent = StandIn()
        played = await helpdesk.play(task, agent, tools="two_level")
        assert [tool["function"]["name"] for tool in agent.requests[0].tools] == ["list_tools", "call_tool"]
        assert "list_tools" in agent.requests[0].messages[0].content
        assert played.tools == ("list_tools", "call_tool")
        assert played.events[0].tool == "list_tools"
        assert {event.tool for event in played.events[1:]} <= set(task.exposed_tools)
        verdict = await helpdesk.verdict(task, played)
        accepted += verdict.accepted
        if verdict.accepted:
            row = build_row(task, played, verdict, helpdesk.spec)
            assert [tool["function"]["name"] for tool in row["tools"]] == ["list_tools", "call_tool"]
    assert accepted >= 3


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (call("list_rooms"), "call it through call_tool"),
        (call("call_tool", {"tool_name": "list_rooms", "arguments": "{"}), "arguments are not JSON"),
        (call("call_tool", {"arguments": "{}"}), "tool_name is missing"),
        (call("call_tool", {"tool_name": "list_rooms", "arguments": "[]"}), "must be a JSON object"),
    ],
    ids=["native", "no json", "no name", "no object"],
)
async def test_two_levels_wrong_calls(helpdesk, task, bad, says):
    played = await helpdesk.play(task, Replies({"content": "", "tool_calls": [bad]}, "Sorry."), tools="two_level")
    assert says in played.messages[3].content
    assert played.events[0].error == "malformed"
    assert (await helpdesk.verdict(task, played)).replay_match is True


# The user


async def test_the_user_knows_what_the_task_lets_them_know_and_no_more(helpdesk, task):
    user = Replies(STOP)
    played = await helpdesk.play(task, user=user)
    said = "\n".join(message.content for message in user.requests[0].messages[:2])
    assert all(entry.said in said for turn in task.turns for entry in turn.known)
    known = {str(entry.value) for turn in task.turns for entry in turn.known}
    internal = {
        str(call.arguments[name]) for call in task.gold_calls for name in call.arguments if name.endswith("_id")
    }
    assert internal
    assert not any(value in said for value in internal - known)
    assert list(played.prompts) == ["usersim/agent_system", "usersim/user"]


async def test_the_user_sees_no_tool_results(helpdesk):
    (task,) = await helpdesk.tasks(1, direct=0.0, withhold=0.0)
    user = Replies(STOP)
    played = await helpdesk.play(task, user=user)
    results = [message.content for message in played.messages if message.role == "tool"]
    heard = "\n".join(message.content for request in user.requests for message in request.messages)
    assert results
    assert not any(result in heard for result in results if len(result) > 20)


async def test_the_stop_token_ends_the_turn_and_is_never_said(helpdesk, task):
    played = await helpdesk.play(task, Replies("Is that all?"), Replies("Wait a moment.", f"Thanks! {STOP}"))
    assert played.stop_reason == "user_stop"
    assert len(played.turns) == len(task.turns)
    assert not any(STOP in message.content for message in played.messages)


async def test_in_direct_mode_the_user_answers_nothing_and_costs_nothing(helpdesk):
    (task, *_) = await helpdesk.tasks(1, direct=1.0)
    user = Replies("I should not be asked")
    played = await helpdesk.play(task, Replies("Which one?"), user)
    assert user.requests == []
    assert len(played.turns) == len(task.turns)


async def test_a_user_who_must_act_on_a_device_can_be_asked(mobile):
    tasks = await mobile.tasks(30, direct=1.0)
    acting = {task.id for task in tasks if any(call.actor == "user" for call in task.gold_calls)}
    assert 0 < len(acting) < len(tasks)
    assert {task.id for task in tasks if task.mode == "conversation"} == acting


async def test_a_user_who_falls_silent_is_nobodys_fault(helpdesk, task):
    played = await helpdesk.play(task, Replies("Which one?"), Replies(ModelFault("server", "m", "down")))
    assert (played.stop_reason, played.fault) == ("model_fault", "server")
    assert played.messages[-1].content == "Which one?"


async def test_the_user_uses_their_own_device_and_tells_what_it_shows(mobile):
    for task in await mobile.tasks(25, direct=0.0):
        if any(call.actor == "user" for call in task.turns[0].gold_calls):
            break
    else:
        raise AssertionError("no user tool in a first turn")
    tool = next(call for call in task.turns[0].gold_calls if call.actor == "user").tool
    user = Replies({"content": "", "tool_calls": [call(tool)]}, "It is blinking.", STOP)
    played = await mobile.play(task, Replies("Could you look at it?", "Thanks."), user)
    assert {tool["function"]["name"] for tool in user.requests[0].tools} == set(task.user_tools)
    event = played.events[0]
    assert (event.actor, event.tool) == ("user", tool)
    assert user.requests[1].messages[-1].role == "tool"
    assert played.messages[3].content == "It is blinking."


# Mixes


@pytest.mark.parametrize(
    ("agent", "user"), [(True, False), (False, True), (True, True)], ids=["model agent", "model user", "both"]
)
@pytest.mark.parametrize("name", ["helpdesk", "mobile_care"])
async def test_every_mix_reaches_the_gold(helpdesk, mobile, name, agent, user):
    """With texts that say what the scripted roles say, a role that has to read loses next to nothing."""
    stage = helpdesk if name == "helpdesk" else mobile
    tasks = await stage.tasks(12, seed=9)
    verdicts = []
    for task in tasks:
        played = await stage.play(task, StandIn() if agent else None, StandIn() if user else None)
        verdicts.append(await stage.verdict(task, played))
    accepted = sum(verdict.accepted for verdict in verdicts)
    assert accepted >= 10, [verdict.reasons for verdict in verdicts if not verdict.accepted]


async def test_a_scripted_user_says_no_to_what_was_not_asked_for(helpdesk, task):
    agent = Replies("Would you like me to paint your garden fence in yellow?", "Fine.")
    played = await helpdesk.play(task, agent)
    assert played.messages[3].content.startswith("No")


async def test_a_scripted_user_waits_a_little_and_then_gives_up(helpdesk, task):
    played = await helpdesk.play(task, Replies("Let me see what I can do."))
    assert [message.role for message in played.messages[1:7]] == ["user", "assistant"] * 3
    assert len(played.turns) == len(task.turns)


async def test_a_scripted_agent_takes_nothing_for_said_that_was_not(helpdesk):
    for task in await helpdesk.tasks(20, direct=0.0, withhold=1.0):
        if any(not entry.stated for entry in task.turns[0].known):
            break
    else:
        raise AssertionError("nothing is held back")
    played = await helpdesk.play(task, user=Replies("I would rather not say."))
    assert played.stop_reason == "agent_gave_up"
    assert "cannot go on without that" in played.messages[-1].content
