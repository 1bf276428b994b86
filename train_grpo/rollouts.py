"""Episodes that run beside the trainer: the same dialogue and verdict as in evaluation, asked for one step at a time.

The dialogue starts when it is reset, so that its session opens while the trainer generates the first message. It waits
until the trainer has generated its next message; while the trainer generates, nothing waits, and the calls of all
episodes of a batch are made at the same time. An episode that is over is judged while others go on.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from time import perf_counter

import orjson

from trajsmith.environments.arguments import ArgumentValidator
from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.evals import Episode, EvalContext, play_episode
from trajsmith.models import CallableModel, ChatReply, ChatRequest, MalformedCall
from trajsmith.records import (
    CALL_TOOL,
    EnvironmentFault,
    FunctionCall,
    JsonObject,
    Message,
    ModelFault,
    Task,
    ToolCall,
    Trajectory,
    Verdict,
)
from trajsmith.usersim import PlaySettings, UserFactory, build_scripted_user, resolve_inner_call

Step = list[Message] | None
"""What was said so far when the model is asked, or None when the last message was said."""
EPISODE_OVER = orjson.dumps({"error": "the episode is over"}).decode()
UNREADABLE_CALL = "<tool_call>"
"""Left in the text of a message whose call could not be parsed."""


class Rollout:
    """One episode in the background; it asks by `steps` and is answered by `answers`.

    Args:
        strict: Ends it as a format error also at a call of a tool that is not shown, or with arguments that its schema
            refuses (AWM, appendix A.4, rules 2 and 3); without it only at a call that cannot be read.
    """

    def __init__(
        self,
        task: Task,
        ground: EvalContext,
        play: PlaySettings,
        strict: ArgumentValidator | None = None,
        users: UserFactory = build_scripted_user,
    ) -> None:
        self.task = task
        self.ground = ground
        self.play = play
        self.users = users
        self.strict = strict
        self.steps: asyncio.Queue[Step] = asyncio.Queue()
        self.answers: asyncio.Queue[ChatReply] = asyncio.Queue()
        self.running: Future[None] | None = None
        self.done: tuple[Episode, Trajectory, Verdict] | None = None
        """Result, None until it is judged or if the environment did not start."""
        self.background: BackgroundLoop | None = None
        self.asked: Step = None
        """The step that was asked for last, where calls are made one by one."""
        self.calls = 0
        self.seconds = 0.0
        """Time that was spent waiting for this episode, where calls are made one by one."""

    def start(self, background: BackgroundLoop) -> None:
        """Begin, if it has not begun."""
        if self.running is None:
            self.background = background
            self.running = background.start(self._run())

    def verdict(self) -> tuple[Episode, Trajectory, Verdict] | None:
        """Wait until it is judged. None if the environment did not start: nothing can be said of the model."""
        if self.running is None:
            return None
        start = perf_counter()
        self.running.result()
        self.seconds += perf_counter() - start
        return self.done

    def abandon(self) -> None:
        """Cancel the episode and close its session."""
        if self.running is not None and not self.running.done():
            self.running.cancel()

    def call(self, tool: str, arguments: JsonObject) -> str:
        """Make one call and return the result as the model sees it, for trainers that run their own loop of calls."""
        if self.calls == 0:
            self.asked = self._next()
        if self.asked is None:
            return EPISODE_OVER
        function = FunctionCall(name=tool, arguments=arguments)
        tool_call = ToolCall(id=f"call_{self.calls + 1}", function=function)
        self._say(ChatReply(message=Message(role="assistant", tool_calls=(tool_call,))))
        self.asked = self._next()
        return EPISODE_OVER if self.asked is None else self.asked[-1].content

    def say(self, text: str) -> str | None:
        """Say something to the user and return what they say next; None if the episode is over."""
        if self.calls == 0:
            self.asked = self._next()
        if self.asked is None:
            return None
        self._say(build_text_reply(text))
        self.asked = self._next()
        return None if self.asked is None else self.asked[-1].content

    def finish(self, text: str) -> tuple[Episode, Trajectory, Verdict] | None:
        """Say the last message of an episode whose calls were made one by one, and wait for the verdict."""
        while self.say(text) is not None:
            pass
        return self.verdict()

    def replay(self, replies: Sequence[ChatReply]) -> tuple[Episode, Trajectory, Verdict] | None:
        """Send messages of the model one after the other, the last one until the episode is over, and judge it."""
        self.asked, rest = self._next(), list(replies) or [build_text_reply("")]
        while self.asked is not None:
            self._say(rest.pop(0) if len(rest) > 1 else rest[0])
            self.asked = self._next()
        return self.verdict()

    def _next(self) -> Step:
        if self.background is None:
            raise RuntimeError("the episode was not started")
        start = perf_counter()
        step = collect_next_steps(self.background, [self])[0]
        self.seconds += perf_counter() - start
        return step

    def _say(self, reply: ChatReply) -> None:
        self.calls += 1
        if self.background is not None:
            send_replies(self.background, [(self, reply)])

    async def _run(self) -> None:
        policy = CallableModel("policy", self._complete)
        try:
            self.done = await play_episode(self.task, self.ground, policy, self.play, 0, self.users, self._over)
        except (EnvironmentFault, ModelFault):
            self.done = None
        finally:
            self._over()

    def _over(self) -> None:
        self.steps.put_nowait(None)

    async def _complete(self, request: ChatRequest) -> ChatReply:
        await self.steps.put(list(request.messages))
        reply = await self.answers.get()
        return reply.model_copy(update={"malformed": (*reply.malformed, *self._find_invalid_calls(reply.message))})

    def _find_invalid_calls(self, message: Message) -> list[MalformedCall]:
        """Return the calls of tools that are not shown, or with arguments that the schema refuses."""
        if self.strict is None:
            return []
        invalid = []
        for call in message.tool_calls or ():
            name, arguments = call.function.name, call.function.arguments
            error = self._find_fault(self.strict, name, arguments)
            if error is not None:
                text = orjson.dumps(arguments).decode()
                invalid.append(MalformedCall(id=call.id, name=name, text=text, error=error))
        return invalid

    def _find_fault(self, strict: ArgumentValidator, name: str, arguments: JsonObject) -> str | None:
        """Return what is wrong with a call; of one through call_tool, what is wrong with the call that is meant."""
        if self.task.search is not None:
            if name != CALL_TOOL:
                return None if name in self.task.shown_tools else "the tool is not shown"
            inner = resolve_inner_call(arguments)
            if inner.result is not None:
                return inner.result.text
            name, arguments = inner.tool, inner.arguments
        return strict.fault(name, arguments) if name in self.task.exposed_tools else "the tool is not shown"


def build_text_reply(text: str) -> ChatReply:
    """Build the reply of a message without calls; one that a trainer could not parse is a malformed call."""
    message = Message(role="assistant", content=text)
    if UNREADABLE_CALL not in text:
        return ChatReply(message=message)
    error = "a tool call of the message cannot be read"
    return ChatReply(message=message, malformed=(MalformedCall(id="call_0", name="", text=text, error=error),))


def collect_next_steps(background: BackgroundLoop, rollouts: Sequence[Rollout]) -> list[Step]:
    """Collect the next request of every episode; they reach it concurrently."""

    async def gather() -> list[Step]:
        return list(await asyncio.gather(*(rollout.steps.get() for rollout in rollouts)))

    return background.run(gather())


def send_replies(background: BackgroundLoop, pairs: Sequence[tuple[Rollout, ChatReply]]) -> None:
    """Send the model's replies to the episodes."""

    async def put() -> None:
        for rollout, reply in pairs:
            rollout.answers.put_nowait(reply)

    background.run(put())
