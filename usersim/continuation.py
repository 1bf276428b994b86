"""Going on from the middle of a play: the expert follows what another agent did, and plays the rest rightly."""

import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from trajsmith.environments import ToolResult
from trajsmith.environments.injected_faults import open_turn
from trajsmith.grounding import ReferenceNotResolved
from trajsmith.phrasing import Wording, draw_pattern, get_language
from trajsmith.phrasing.agreement_detection import accepts_call, find_confirmation_requests
from trajsmith.phrasing.fact_detection import is_fact_stated
from trajsmith.records import (
    SEARCH_TOOLS,
    CallEvent,
    FunctionCall,
    Message,
    RecordDropped,
    ToolCall,
    Trajectory,
    canonical_json,
    derive_seed,
)
from trajsmith.usersim.call_resolution import read_found_tools
from trajsmith.usersim.dialogue import Dialogue
from trajsmith.usersim.reasoning import ReasoningAgent
from trajsmith.usersim.roles import AgentAct, AgentRole
from trajsmith.usersim.scripted_agent import ScriptedAgent
from trajsmith.usersim.tool_search import SearchingAgent


class FollowingAgent:
    """Scripted agent that first follows the messages of another agent.

    Where it would have said and called the same, it stands where it would stand in a play of its own. Where the other
    agent did something else, it takes over what that came to: calls that are gold calls, facts that the user stated in
    answer, and the yes to a question.

    Args:
        make: Builds the scripted agent, the same each time.
        wording: How people say the values of the environment.
    """

    def __init__(self, make: Callable[[], AgentRole], wording: Wording) -> None:
        self.make = make
        self.wording = wording
        self.agent = make()
        self.name, self.prompts = self.agent.name, self.agent.prompts
        self.steps: list[Callable[[AgentRole], Awaitable[object]]] = []
        """What brought the agent to where it stands, to bring a new one there."""
        self.strayed: Message | None = None
        """Last message, if it was another than the agent's own."""
        self.undoing: FunctionCall | None = None
        """Call with which it begins its own part, to undo what the last message changed."""

    async def follow(self, messages: Sequence[Message], message: Message) -> AgentAct:
        """Follow the next message of the other agent; return what is known of its meaning."""
        await self._listen(messages)
        history = list(messages)
        act = await self.agent.act(history)
        if _describe(act.message) == _describe(message):
            self.strayed = None
            self.steps.append(partial(_act, history))
            return act
        self.strayed, self.agent = message, self.make()
        for step in self.steps:
            await step(self.agent)
        await self._take_step(partial(_stray, history))
        return AgentAct(message, hinted=False)

    async def take_results(self, events: Sequence[CallEvent], results: Sequence[ToolResult], by_user: bool) -> None:
        """Take the results of calls that were followed."""
        tools = [event.tool for event in events]
        if self.strayed is None or by_user:
            await self._take_step(partial(_observe, tools, list(results), by_user))
        else:
            await self._take_step(partial(_adopt_calls, list(events), list(results)))

    async def act(self, messages: list[Message]) -> AgentAct:
        """Return the next step of its own."""
        await self._listen(messages)
        if self.undoing is not None:
            text = draw_pattern(get_language().agent.undoes, random.Random(derive_seed("undo", messages[-1].content)))
            call = ToolCall(id="undo", function=self.undoing)
            return AgentAct(Message(role="assistant", content=text, tool_calls=(call,)))
        return await self.agent.act(messages)

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Receive the results of its own step."""
        if self.undoing is not None:
            self.undoing = None
            return
        self.agent.observe(tools, results, by_user)

    async def _listen(self, messages: Sequence[Message]) -> None:
        """Read the answer to a message that was not its own."""
        asked, self.strayed = self.strayed, None
        if asked is not None and not asked.tool_calls and messages[-1].role == "user":
            await self._take_step(partial(_adopt_answer, asked.content, list(messages), self.wording))

    async def _take_step(self, step: Callable[[AgentRole], Awaitable[object]]) -> None:
        self.steps.append(step)
        await step(self.agent)


class ContinuedDialogue(Dialogue):
    """Episode that begins with the first messages of another one.

    Attributes:
        earlier: The other episode.
        upto: First of its messages that is not kept; one of the agent.
    """

    earlier: Trajectory
    upto: int

    def keep(self, earlier: Trajectory, upto: int) -> "ContinuedDialogue":
        """Begin with the messages of `earlier` before `upto`; the agent must be a `FollowingAgent`."""
        self.earlier, self.upto = earlier, upto
        self.messages = list(earlier.messages[:1])
        return self

    @property
    def follower(self) -> FollowingAgent:
        """The agent."""
        assert isinstance(self.agent, FollowingAgent)
        return self.agent

    async def _repeat_kept_part(self) -> int:
        for number, span in enumerate(self.earlier.turns):
            if span.start >= self.upto:
                return number
            open_turn(self.session, number)
            self.start = span.start
            await self.user.open(number)
            for index in range(span.start, min(span.stop, self.upto)):
                await self._repeat_message(index)
            if span.stop <= self.upto:
                self._close_turn()
        return len(self.earlier.turns)

    async def _repeat_message(self, index: int) -> None:
        """Repeat a message and what came of it."""
        message = self.earlier.messages[index]
        if message.role == "tool":
            return  # appended with its call
        if message.role == "user":
            self.messages.append(message)
            return
        act = await self.follower.follow(self.messages, message)
        self.messages.append(message)
        if message.tool_calls:
            await self._repeat_calls(index, message)
        elif index + 1 < self.upto and not act.gave_up:
            reply = await self.user.reply(self.messages, act)
            events = [event for event in self.earlier.events if event.message == index and event.actor == "user"]
            results = [await self._call("user", event.tool, event.arguments, index) for event in events]
            if events:
                await self.follower.take_results(events, results, by_user=True)
            if events and len(reply.calls) == len(events):
                await self.user.report(self.messages, results)

    async def _repeat_calls(self, index: int, message: Message) -> None:
        """Make the calls of a message again.

        Raises:
            RecordDropped: A result is another one than in the play.
        """
        calls = message.tool_calls or ()
        events = [event for event in self.earlier.events if event.message == index and event.actor == "assistant"]
        shown = self.earlier.messages[index + 1 : index + 1 + len(calls)]
        results: list[ToolResult] = []
        for event, goal, text in zip(events, self.access.resolve_message(calls), shown, strict=True):
            if event.reached:
                result = await self._call("assistant", event.tool, event.arguments, index)
                if result.text != text.content:
                    raise RecordDropped("not_repeatable", f"{event.tool} returns something else")
            else:
                result = goal.result or ToolResult.refusal("invalid_arguments", text.content)
                self.events.append(event)
            self.messages.append(text)
            results.append(result)
        await self.follower.take_results(events, results, by_user=False)


def find_scripted_agent(agent: AgentRole) -> ScriptedAgent:
    """Return the scripted agent inside of those that add reasoning or searches."""
    while isinstance(agent, ReasoningAgent | SearchingAgent):
        agent = agent.agent
    assert isinstance(agent, ScriptedAgent)
    return agent


def _describe(message: Message) -> bytes:
    """Return what a step is compared by: its calls, or its text if it has none."""
    calls = [[call.function.name, call.function.arguments] for call in message.tool_calls or ()]
    return canonical_json(calls or message.content)


async def _act(messages: list[Message], agent: AgentRole) -> None:
    await agent.act(messages)


async def _observe(tools: list[str], results: list[ToolResult], by_user: bool, agent: AgentRole) -> None:
    agent.observe(tools, results, by_user)


async def _stray(messages: list[Message], agent: AgentRole) -> None:
    """Give up the step that was to come, and open all turns that the user has opened."""
    scripted = find_scripted_agent(agent)
    scripted.pending = []
    if isinstance(agent, SearchingAgent):
        agent.waiting = None
    for turn in range(scripted.turn + 1, len(scripted._openings(messages))):
        scripted.open_turn(turn)


async def _adopt_calls(events: list[CallEvent], results: list[ToolResult], agent: AgentRole) -> None:
    """Take over the calls that are gold calls, and what searches have shown."""
    scripted = find_scripted_agent(agent)
    scripted.made += len(events)
    for event, result in zip(events, results, strict=True):
        if isinstance(agent, SearchingAgent) and event.tool == SEARCH_TOOLS:
            agent.found |= read_found_tools(result.content)
        index = _find_gold_call(scripted, event) if result.ok else None
        if index is not None:
            scripted._take(index, result)


def _find_gold_call(agent: ScriptedAgent, event: CallEvent) -> int | None:
    """Return the first open gold call of the turns so far that this call makes."""
    for index in range(len(agent.results), agent.stop):
        call = agent.calls[index]
        if agent._has_result(index) or (call.actor, call.tool) != (event.actor, event.tool):
            continue
        if not agent._has_sources(call):
            continue
        try:
            wanted = agent._arguments(call)
        except ReferenceNotResolved:
            continue
        names = (wanted.keys() | event.arguments.keys()) - set(call.mask)
        if all(name in wanted and wanted[name] == event.arguments.get(name) for name in names):
            return index
    return None


async def _adopt_answer(asked: str, messages: list[Message], wording: Wording, agent: AgentRole) -> None:
    """Take over what the user states in answer to a message, and the yes to the next call that needs one."""
    scripted, answer = find_scripted_agent(agent), messages[-1].content
    facts = [fact for turn in scripted.task.turns[: scripted.turn + 1] for fact in turn.known]
    scripted.said |= {fact.key for fact in facts if is_fact_stated(answer, fact, wording)}
    for index in range(len(scripted.results), scripted.stop if find_confirmation_requests(asked) else 0):
        call = scripted.calls[index]
        if not scripted._has_result(index) and scripted._has_sources(call) and scripted._needs_yes(call):
            scripted.confirmed |= {index} if accepts_call(answer, call.arguments) else set()
            return
