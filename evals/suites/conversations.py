"""Who speaks in a conversation that a suite plays: scripted agents and users, or models."""

import random
from collections.abc import Callable, Sequence

from trajsmith.evals.suites.players import GOLD, RANDOM, SuitePlayer, draw_call
from trajsmith.evals.suites.suite import CallRecord, ConversationSuite, Responder, SuitePlay, SuiteTask
from trajsmith.models import ChatModel, ChatReply, ChatRequest
from trajsmith.records import FunctionCall, Message, ToolCall, derive_seed

STOP = "###STOP###"
"""What a user says at the end, in τ²-bench as in our own conversations."""
MOST_AGREEMENTS = 8
"""Questions that the scripted user agrees to before it ends the conversation."""

Script = Callable[[SuiteTask, int], Responder]
"""Makes the speakers of one play of a task."""


def build_conversation_player(script: Script, judged: bool) -> SuitePlayer:
    """Return a player of conversations whose speakers are made anew for every play."""

    async def play(suite: ConversationSuite, task: SuiteTask, run: str, trial: int) -> SuitePlay:
        return await suite.converse(task, run, trial, script(task, trial), judged)

    return play


def build_baseline_script(name: str, seed: int = 0) -> Script:
    """Return an agent and a user who play by a script.

    `gold` makes the calls that the suite holds for right, the user's by the user, and says what must be said; `refuse`
    says that it cannot help; `random` makes one call with drawn values.
    """

    def script(task: SuiteTask, trial: int) -> Responder:
        calls: list[CallRecord] = []
        if name == GOLD:
            calls = [call for turn in task.gold or () for step in turn for call in step]
        elif name == RANDOM and task.tools:
            calls = [draw_call(random.Random(derive_seed(seed, task.id, *[trial] * bool(trial))), task.tools)]
        last = " ".join(task.says) if name == GOLD and task.says else "I cannot do more for you."
        state = _ScriptedPlay(calls, last)

        async def respond(role: str, request: ChatRequest) -> ChatReply:
            return state.speak(role)

        return respond

    return script


class _ScriptedPlay:
    """One conversation by a script: the calls in order, each by whom it belongs to."""

    def __init__(self, calls: Sequence[CallRecord], last: str) -> None:
        self._calls = list(calls)
        self._last = last
        self._made = 0
        self._ended = False

    def speak(self, role: str) -> ChatReply:
        actor = "user" if role == "user" else "assistant"
        if self._calls and self._calls[0].actor == actor:
            return self._call(self._calls.pop(0))
        if role == "user":
            return _say(STOP if self._ended else "Please help me.")
        self._ended = not self._calls
        return _say(self._last if self._ended else "Please go on with your device.")

    def _call(self, call: CallRecord) -> ChatReply:
        self._made += 1
        function = FunctionCall(name=call.name, arguments=call.arguments)
        called = ToolCall(id=f"call_{self._made}", function=function)
        return ChatReply(message=Message(role="assistant", tool_calls=(called,)))


def _say(text: str) -> ChatReply:
    return ChatReply(message=Message(role="assistant", content=text))


def build_model_script(
    agent: ChatModel, user: ChatModel | None, judge: ChatModel | None, temperature: float, max_tokens: int
) -> Script:
    """Return a model as agent, with a model or our scripted user (None) as user, and a judge if there is one."""

    def script(task: SuiteTask, trial: int) -> Responder:
        scripted = ScenarioUser(task.scenario)

        async def respond(role: str, request: ChatRequest) -> ChatReply:
            if role == "agent":
                limits = {"temperature": temperature, "max_tokens": max_tokens}
                return await agent.complete(request.model_copy(update=limits))
            if role == "judge" and judge is not None:
                return await judge.complete(request)
            if user is not None:
                return await user.complete(request)
            return _say(scripted.reply(request.messages[-1].content))

        return respond

    return script


class ScenarioUser:
    """Our user for a suite's scenario, without a model.

    It tells its whole scenario at once, agrees to what it is asked, and leaves when it is asked nothing more. It calls
    no tools of its own. A suite's published figures are those of another user.
    """

    def __init__(self, scenario: str) -> None:
        self._scenario = scenario
        self._agreed = 0
        self._told = False

    def reply(self, message: str) -> str:
        """Return what it says to the agent's last message."""
        if not self._told:
            self._told = True
            return f"This is what I come for, and all that I know:\n{self._scenario}"
        if "?" in message and self._agreed < MOST_AGREEMENTS:
            self._agreed += 1
            return "Yes, please."
        return STOP
