"""The dialogue loop, whoever plays in it: what is recorded, and how it ends."""

import pytest

from trajsmith.environments import NativeSession, ToolResult
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.phrasing import Phrasebook, Wording, render_clock
from trajsmith.querygen import TaskWriter, WriteSettings
from trajsmith.records import EnvironmentFault, FunctionCall, Message, RecordDropped, ToolCall, content_hash
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains
from trajsmith.usersim import (
    AgentAct,
    Dialogue,
    PlaySettings,
    ScriptedAgent,
    ScriptedUser,
    UserAct,
    UserCall,
    render_system_prompt,
)


class Bank:
    """A task on the bank, and what its dialogue needs."""

    def __init__(self, spec, state, task, wording):
        self.spec, self.state, self.task, self.wording = spec, state, task, wording

    def dialogue(self, agent=None, user=None, session=None, **settings):
        return Dialogue(
            self.spec,
            self.task,
            self.state,
            session or NativeSession(ENVIRONMENTS.get("bank"), self.spec),
            agent or ScriptedAgent(self.task, self.wording, 0),
            user or ScriptedUser(self.task, self.wording, 0),
            PlaySettings(**settings),
            0,
        )


@pytest.fixture
async def bank():
    cls = ENVIRONMENTS.get("bank")
    spec, state = cls.describe(), cls.seed_state("small", 1).model_dump(mode="json")
    settings = SampleSettings(count=20, length=(5, 6))
    sampler = Sampler(GraphIndex(build_graph(spec.tools), "bank"), settings)
    wording = Wording(Phrasebook(), spec.tools)
    grounder = Grounder(spec, state, Phrasebook(), GroundSettings())
    for chain in sample_chains({"bank": sampler}, {"bank": [content_hash(state)]}, settings, 4):
        try:
            grounded = await grounder.ground(chain, NativeSession(cls, spec))
            writer = TaskWriter(spec, wording, WriteSettings(direct=0.0))
            task = await writer.write(grounded, state, NativeSession(cls, spec))
        except RecordDropped:
            continue
        if len(task.turns) > 1:
            return Bank(spec, state, task, wording)
    raise AssertionError("no task of two turns")


class Agent:
    """Plays acts in order; the last one for ever."""

    name = "fake"
    prompts = {}

    def __init__(self, *acts):
        self.acts = list(acts)
        self.seen = []

    async def act(self, messages):
        return self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]

    def observe(self, tools, results, by_user):
        self.seen.append(results)


class User:
    name = "fake"
    prompts = {}

    def __init__(self, *replies):
        self.replies = list(replies)

    async def open(self, turn):
        return f"request {turn}"

    async def reply(self, messages, act):
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    async def report(self, messages, results):
        return "it shows: " + results[0].text


def says(text="Well.", **hints):
    return AgentAct(Message(role="assistant", content=text), **hints)


def calls(*names, **arguments):
    made = [ToolCall(id=f"c{n}", function=FunctionCall(name=name, arguments=arguments)) for n, name in enumerate(names)]
    return AgentAct(Message(role="assistant", tool_calls=tuple(made)))


DONE = UserAct(done=True)


async def test_the_scripted_roles_reach_the_gold_state(bank):
    played = await bank.dialogue().play()
    assert played.stop_reason == "user_stop"
    assert [span.state_hash for span in played.turns] == [turn.state_hash for turn in bank.task.turns]
    assert [(event.tool, event.arguments) for event in played.events] == [
        (call.tool, call.arguments) for call in bank.task.gold_calls
    ]


async def test_the_same_roles_say_the_same(bank):
    assert await bank.dialogue().play() == await bank.dialogue().play()


async def test_turns_cover_all_messages_but_the_first(bank):
    played = await bank.dialogue().play()
    assert played.turns[0].start == 1
    assert [span.stop for span in played.turns[:-1]] == [span.start for span in played.turns[1:]]
    assert played.turns[-1].stop == len(played.messages)
    assert all(played.messages[span.start].role == "user" for span in played.turns)


async def test_events_point_at_the_message_that_called(bank):
    played = await bank.dialogue().play()
    for event in played.events:
        called = played.messages[event.message].tool_calls or ()
        assert (event.tool, event.arguments) in [(call.function.name, call.function.arguments) for call in called]


async def test_an_agent_that_only_talks_runs_into_the_step_limit(bank):
    played = await bank.dialogue(Agent(says()), User(UserAct("And?")), max_steps=3).play()
    assert played.stop_reason == "step_limit"
    assert len(played.turns) == 1
    assert [message.role for message in played.messages] == ["system", "user", *["assistant", "user"] * 3]


async def test_an_agent_that_gives_up_ends_the_dialogue(bank):
    played = await bank.dialogue(Agent(says(gave_up=True)), User(DONE)).play()
    assert (played.stop_reason, len(played.turns)) == ("agent_gave_up", 1)


@pytest.mark.parametrize(
    ("act", "kind"),
    [(calls("__init__"), "unknown_tool"), (calls("rob_the_bank"), "unknown_tool")],
    ids=["method that is no tool", "no such name"],
)
async def test_a_wrong_call_is_a_result_that_the_agent_sees(bank, act, kind):
    agent = Agent(act, says())
    played = await bank.dialogue(agent, User(DONE)).play()
    (event,) = played.events[:1]
    assert (event.ok, event.error, event.effect) == (False, kind, None)
    assert played.messages[3].role == "tool"
    assert "error" in played.messages[3].content
    assert played.final_state == played.initial_state
    assert [result.ok for result in agent.seen[0]] == [False]


async def test_every_call_of_a_message_is_answered_in_order(bank):
    played = await bank.dialogue(Agent(calls("nothing", "no_more"), says()), User(DONE)).play()
    assert [message.tool_call_id for message in played.messages[3:5]] == ["c0", "c1"]
    assert [event.message for event in played.events[:2]] == [2, 2]


async def test_a_call_of_the_user_is_an_event_and_is_reported(bank):
    agent = Agent(says(wants_user_call=True), says())
    played = await bank.dialogue(agent, User(UserAct("Wait.", calls=(UserCall("reboot", {}),)), DONE)).play()
    assert (played.events[0].actor, played.events[0].tool, played.events[0].ok) == ("user", "reboot", False)
    assert played.messages[3].content.startswith("Wait. it shows: ")
    assert len(agent.seen[0]) == 1


class Breaking:
    """A session that breaks at a call, or before anything."""

    def __init__(self, inner, at):
        self.inner, self.at, self.made = inner, at, 0
        self.spec = inner.spec

    def __getattr__(self, name):
        return getattr(self.inner, name)

    async def reset(self, state):
        if self.at == 0:
            raise EnvironmentFault("start", "bank", "no coffee")
        await self.inner.reset(state)

    async def call(self, tool, arguments, actor="assistant"):
        self.made += 1
        if self.made == self.at:
            raise EnvironmentFault("crash", "bank", "out of money", tool)
        return await self.inner.call(tool, arguments, actor)


async def test_a_fault_ends_the_play_and_keeps_what_was_said(bank):
    session = Breaking(NativeSession(ENVIRONMENTS.get("bank"), bank.spec), 3)
    played = await bank.dialogue(session=session).play()
    assert played.stop_reason == "environment_fault"
    assert len(played.events) == 2
    assert all(event.ok for event in played.events)


async def test_an_environment_that_does_not_start_is_no_dialogue(bank):
    session = Breaking(NativeSession(ENVIRONMENTS.get("bank"), bank.spec), 0)
    with pytest.raises(EnvironmentFault, match="no coffee"):
        await bank.dialogue(session=session).play()


async def test_a_refused_gold_call_makes_the_agent_give_up(bank):
    """The scripted teacher tells the user and stops; it never makes results up."""
    session = NativeSession(ENVIRONMENTS.get("bank"), bank.spec)

    async def refuse(tool, arguments, actor="assistant"):
        return ToolResult.refusal("refused", "closed today")

    session.call = refuse
    played = await bank.dialogue(session=session).play()
    assert played.stop_reason == "agent_gave_up"
    assert "closed today" in played.messages[-1].content
    assert played.final_state == played.initial_state


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"now": "2026-02-02T13:10:00", "rooms": {}}, "2026-02-02 13:10"),
        (
            {"bank": {"now": "2026-02-02T13:10:00"}, "shop": {"now": "2026-02-02T13:10:00"}, "notes": {}},
            "2026-02-02 13:10",
        ),
        ({"bank": {"now": "2026-02-02T13:10:00"}, "shop": {"now": "2026-05-09T08:00:00"}}, ""),
        ({"rooms": {}, "limit": 3}, ""),
    ],
    ids=["one environment", "several with one clock", "clocks that differ", "no clock"],
)
def test_the_time_is_told_that_all_environments_agree_on(state, told):
    assert render_clock(state) == told


async def test_every_agent_is_told_when_to_ask_with_and_without_the_policy(bank):
    cancel = "stop a standing order for good"
    bare = bank.task.model_copy(update={"policy": ""})
    assert cancel in render_system_prompt(bank.spec, bare, bank.state)
    whole = render_system_prompt(bank.spec, bank.task, bank.state)
    assert whole.index(bank.spec.policy[:40]) < whole.index(cancel) < whole.index("without asking back")
    hidden = bare.model_copy(update={"exposed_tools": ("list_cards", "freeze_card")})
    assert cancel not in render_system_prompt(bank.spec, hidden, bank.state)
    direct = render_system_prompt(bank.spec, bare.model_copy(update={"mode": "direct"}), bank.state)
    assert "has already agreed" in direct and "wait for the user's yes" not in direct
