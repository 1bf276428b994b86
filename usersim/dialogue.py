"""The dialogue loop: a task is played by a user and an agent on a live session."""

from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, field_validator, model_validator

from trajsmith.environments import Session, ToolResult, diff
from trajsmith.environments.injected_faults import open_turn
from trajsmith.models.prompts import Prompts, PromptSpec, load_builtin_prompts
from trajsmith.phrasing import humanize, load_voices, render_clock, render_confirmation_policy
from trajsmith.records import (
    Actor,
    CallEvent,
    EnvironmentFault,
    EnvironmentSpec,
    FrozenModel,
    InjectedFault,
    JsonObject,
    Message,
    ModelFault,
    SpanAttributes,
    Task,
    Trajectory,
    TurnSpan,
    canonical_json,
    trace_operation,
)
from trajsmith.records.trajectory import MALFORMED, NOT_SHOWN, StopReason
from trajsmith.usersim.call_resolution import ToolAccess
from trajsmith.usersim.faulty_agent import FaultSettings
from trajsmith.usersim.roles import AgentAct, AgentRole, UserRole

AGENT = PromptSpec(
    "usersim/agent_system",
    {"description": "A shop.", "policy": "Be kind.", "confirmation": "Ask before you pay.", "now": "2026-03-03 09:00",
     "mode": "direct", "two_level": True, "search": True, "user_actions": ["Restart the router."]},
)  # fmt: skip


class PlaySettings(FrozenModel):
    """Settings of the dialogue loop."""

    candidates: PositiveInt = 1
    """Trajectories per task."""
    faulty: int = Field(0, ge=0)
    """How many of them a scripted agent plays that makes mistakes on purpose, so that checks are seen to reject."""
    faults: FaultSettings = FaultSettings()
    """How often it makes which mistake."""
    reasoning: Literal["off", "grounded"] = "off"
    """`grounded` gives the scripted agent's messages reasoning that is true by the provenance of its calls."""
    reasoning_share: float = Field(1.0, ge=0, le=1)
    """Share of tasks whose rows have it."""
    parallel: float = Field(0.9, ge=0, le=1)
    """Probability that the scripted agent makes calls that commute in one message."""
    voice: str = ""
    """Voice of every scripted agent, by its name in `phrasing/voices.yaml`: plain, brief, explanatory or warm; empty
    draws one for each dialogue. With a name, agents also report alike: by the first phrase that fits, with no word of
    courtesy or on a call that comes next. What a variant adds (refusals, offers, reading on) keeps its own phrases.
    Rows then teach what to tell rather than how, which takes fewer of them."""
    max_steps: PositiveInt = 30
    """Agent messages per turn."""
    temperatures: tuple[float, ...] = ()
    """Sampling temperature of each candidate of a model agent, in turn; empty for the model's own setting."""
    tools: Literal["native", "two_level"] = "native"
    """`native` shows the agent all tools; `two_level` only list_tools and call_tool (AWM A.4). Tasks whose tools are
    searched for (`write.tools.search`) show search_tools and call_tool in both."""
    bad_calls: int = Field(3, ge=0)
    """Messages in a row with nothing but malformed or unknown calls that end a play."""

    @field_validator("voice")
    @classmethod
    def _check_voice(cls, voice: str) -> str:
        names = load_voices().agents
        if voice and voice not in names:
            raise ValueError(f"there is no voice {voice!r}; there are: {', '.join(names)}")
        return voice

    @model_validator(mode="after")
    def _check_faulty(self) -> Self:
        if self.faulty >= self.candidates:
            raise ValueError(
                f"faulty: {self.faulty} of {self.candidates} candidates; at least one must be played as it should be, "
                f"so set candidates to {self.faulty + 1} or more"
            )
        return self


def render_system_prompt(
    spec: EnvironmentSpec, task: Task, state: JsonObject, two_level: bool = False, prompts: Prompts | None = None
) -> str:
    """Render the system prompt of the agent: with the policy, if the task has one, and always when to ask for a yes.

    What the user can do on their own devices is there, too, since the agent sees no tools of the user.
    """
    names = {*task.exposed_tools, *([task.twist.tool] if task.twist and task.twist.arrives is not None else [])}
    return (
        (prompts or load_builtin_prompts())
        .get(AGENT)
        .text(
            description=spec.description,
            policy=task.policy,
            confirmation=render_confirmation_policy(
                [tool for tool in spec.tools if tool.name in names], task.mode, named=task.search is None
            ),
            now=render_clock(state),
            mode=task.mode,
            two_level=two_level and task.search is None,
            search=task.search is not None,
            user_actions=[" ".join(spec.tool(name).description.split()) or humanize(name) for name in task.user_tools],
        )
    )


class Dialogue:
    """One episode of one task."""

    def __init__(
        self,
        spec: EnvironmentSpec,
        task: Task,
        state: JsonObject,
        session: Session,
        agent: AgentRole,
        user: UserRole,
        settings: PlaySettings,
        candidate: int,
        prompts: Prompts | None = None,
    ) -> None:
        self.spec = spec
        self.task = task
        self.state = state
        self.session = session
        self.agent = agent
        self.user = user
        self.settings = settings
        self.candidate = candidate
        self.access = ToolAccess(task, spec, settings.tools == "two_level")
        self.prompts = prompts or load_builtin_prompts()
        system = render_system_prompt(spec, task, state, self.access.two_level, self.prompts)
        self.messages: list[Message] = [Message(role="system", content=system)]
        self.events: list[CallEvent] = []
        self.injected: list[InjectedFault] = []
        self.turns: list[TurnSpan] = []
        self.before: tuple[str, JsonObject] = ("", {})
        self.start = 0
        """Message that opened the turn that is being played."""

    async def play(self) -> Trajectory:
        """Play all turns. A fault of the environment or of a model ends the play and is kept in the record."""
        with trace_operation("invoke_agent", self.agent.name, self._describe) as span:
            trajectory = await self._play()
            if span is not None:
                span.set({"trajsmith.stop_reason": trajectory.stop_reason})
                if trajectory.fault:
                    span.fail(trajectory.fault)
        return trajectory

    def _describe(self) -> SpanAttributes:
        return {
            "gen_ai.provider.name": "trajsmith",
            "gen_ai.agent.name": self.agent.name,
            "gen_ai.conversation.id": f"{self.task.id}/{self.candidate}",
            "trajsmith.environment": self.spec.name,
        }

    async def _play(self) -> Trajectory:
        stop: StopReason = "user_stop"
        fault = ""
        try:
            await self.session.reset(self.state)
            self.before = (await self.session.state_hash(), await self.session.snapshot())
            initial = self.before
            opened = await self._repeat_kept_part()
            for turn in range(max(0, opened - 1), len(self.task.turns)):
                if turn >= opened:
                    self.start = len(self.messages)
                    open_turn(self.session, turn)
                    self.messages.append(Message(role="user", content=await self.user.open(turn)))
                stop = await self._turn()
                self._close_turn()
                if stop != "user_stop":
                    break
        except EnvironmentFault as broken:
            if not self.events and self.before[0] == "":
                raise
            stop, fault = "environment_fault", broken.kind
        except ModelFault as silent:
            stop, fault = "model_fault", silent.kind
            self._close_turn()
        return Trajectory(
            task_id=self.task.id,
            environment=self.spec.name,
            candidate=self.candidate,
            messages=tuple(self.messages),
            tools=tuple(tool.name for tool in self.access.shown),
            events=tuple(self.events),
            turns=tuple(self.turns),
            initial_state=initial[0],
            final_state=self.before[0],
            diff=tuple(diff(initial[1], self.before[1])),
            models={"agent": self.agent.name, "user": self.user.name},
            prompts={AGENT.name: self.prompts.get(AGENT).version, **self.agent.prompts, **self.user.prompts},
            stop_reason=stop,
            fault=fault,
            injected=tuple(self.injected) or None,
        )

    async def _repeat_kept_part(self) -> int:
        """Repeat what is kept of an earlier play, and return the number of turns that are open then: none here."""
        return 0

    def _close_turn(self) -> None:
        if len(self.messages) > self.start > 0:
            self.turns.append(TurnSpan(start=self.start, stop=len(self.messages), state_hash=self.before[0]))

    async def _turn(self) -> StopReason:
        bad = 0
        for _ in range(self.settings.max_steps):
            act = await self.agent.act(self.messages)
            if act.fault:
                self.injected.append(InjectedFault(kind=act.fault, message=len(self.messages)))
            self.messages.append(act.message)
            if act.message.tool_calls:
                bad = bad + 1 if await self._run_calls(act) else 0
                if bad > self.settings.bad_calls:
                    return "bad_calls"
                continue
            if act.gave_up:
                return "agent_gave_up"
            reply = await self.user.reply(self.messages, act)
            if reply.done:
                return "user_stop"
            text = reply.text
            if reply.calls:
                where = len(self.messages) - 1
                results = [await self._call("user", call.tool, call.arguments, where) for call in reply.calls]
                self.agent.observe([call.tool for call in reply.calls], results, by_user=True)
                text = f"{text} {await self.user.report(self.messages, results)}".strip()
            self.messages.append(Message(role="user", content=text))
        return "step_limit"

    async def _run_calls(self, act: AgentAct) -> bool:
        """Make the calls of a message; return True if none of them could be made at all."""
        tools: list[str] = []
        results: list[ToolResult] = []
        where = len(self.messages) - 1
        calls = act.message.tool_calls or ()
        for call, goal in zip(calls, self.access.resolve_message(calls, act.malformed), strict=True):
            if goal.result is None:
                result = await self._call("assistant", goal.tool, goal.arguments, where, call.id)
            else:
                result = goal.result
                self._note("assistant", goal.tool, goal.arguments, result, where, goal.error)
            self.messages.append(
                Message(role="tool", content=result.text, tool_call_id=call.id, name=call.function.name)
            )
            tools.append(goal.tool)
            results.append(result)
        self.agent.observe(tools, results, by_user=False)
        return all(event.error in (MALFORMED, NOT_SHOWN, "unknown_tool") for event in self.events[-len(results) :])

    async def _call(
        self, actor: Actor, tool: str, arguments: JsonObject, where: int, identity: str | None = None
    ) -> ToolResult:
        def describe() -> SpanAttributes:
            return {
                "gen_ai.tool.name": tool,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": identity,
                "trajsmith.actor": actor,
            }

        with trace_operation("execute_tool", tool, describe) as span:
            result = await self.session.call(tool, arguments, actor)
            if span is not None:
                if result.error is not None:
                    span.fail(result.error)
                if span.with_content:
                    written = canonical_json(arguments).decode()
                    span.set({"gen_ai.tool.call.arguments": written, "gen_ai.tool.call.result": result.text})
        effect: Any = None
        hashed = await self.session.state_hash()
        if hashed != self.before[0]:
            after = await self.session.snapshot()
            effect = diff(self.before[1], after)
            self.before = (hashed, after)
        self._note(actor, tool, arguments, result, where, result.error, effect)
        return result

    def _note(
        self,
        actor: Actor,
        tool: str,
        arguments: JsonObject,
        result: ToolResult,
        where: int,
        error: str | None,
        effect: Any = None,
    ) -> None:
        self.events.append(
            CallEvent(
                actor=actor,
                tool=tool,
                arguments=arguments,
                ok=result.ok,
                error=error,
                result_hash=result.hash,
                message=where,
                effect=effect,
            )
        )
