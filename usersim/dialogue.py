"""The dialogue loop: a task is played by a user and an agent on a live session. Design section 5, stage `play`."""

from functools import cache
from importlib import resources
from typing import Any

import jinja2
from pydantic import PositiveInt

from environments import Session, ToolResult, diff
from trajectory import (
    CallEvent,
    EnvironmentFault,
    EnvironmentSpec,
    Frozen,
    JsonObject,
    Message,
    Task,
    ToolCall,
    Trajectory,
    TurnSpan,
)
from trajectory.rollout import StopReason
from trajectory.tool import Actor
from usersim.roles import AgentRole, UserRole


class PlaySettings(Frozen):
    """How tasks are played."""

    candidates: PositiveInt = 1
    """Trajectories per task."""
    max_steps: PositiveInt = 30
    """Agent messages per turn."""


@cache
def _system_template() -> jinja2.Template:
    text = resources.files("usersim").joinpath("prompts/agent_system.md.j2").read_text(encoding="utf-8")
    return jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False).from_string(text)


def system_prompt(spec: EnvironmentSpec, task: Task, state: JsonObject) -> str:
    """What the agent is told before the first message."""
    now = str(state.get("now", "")).replace("T", " ")[:16]
    return _system_template().render(description=spec.description, policy=task.policy, now=now, mode=task.mode).strip()


class Dialogue:
    """One play of one task."""

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
    ) -> None:
        self.spec = spec
        self.task = task
        self.state = state
        self.session = session
        self.agent = agent
        self.user = user
        self.settings = settings
        self.candidate = candidate
        self.messages: list[Message] = [Message(role="system", content=system_prompt(spec, task, state))]
        self.events: list[CallEvent] = []
        self.turns: list[TurnSpan] = []
        self.before: tuple[str, JsonObject] = ("", {})

    async def play(self) -> Trajectory:
        """Play all turns. A fault of the environment ends the play and is kept in the record."""
        stop: StopReason = "user_stop"
        try:
            await self.session.reset(self.state)
            self.before = (await self.session.state_hash(), await self.session.snapshot())
            initial = self.before
            for turn in range(len(self.task.turns)):
                start = len(self.messages)
                self.messages.append(Message(role="user", content=await self.user.open(turn)))
                reason = await self._turn()
                self.turns.append(TurnSpan(start=start, stop=len(self.messages), state_hash=self.before[0]))
                if reason != "user_stop":
                    stop = reason
                    break
        except EnvironmentFault:
            if not self.events and self.before[0] == "":
                raise
            stop = "environment_fault"
        return Trajectory(
            task_id=self.task.id,
            environment=self.spec.name,
            candidate=self.candidate,
            messages=tuple(self.messages),
            tools=self.task.exposed_tools,
            events=tuple(self.events),
            turns=tuple(self.turns),
            initial_state=initial[0],
            final_state=self.before[0],
            diff=tuple(diff(initial[1], self.before[1])),
            models={"agent": self.agent.name, "user": self.user.name},
            stop_reason=stop,
        )

    async def _turn(self) -> StopReason:
        for _ in range(self.settings.max_steps):
            act = await self.agent.act(self.messages)
            self.messages.append(act.message)
            if act.message.tool_calls:
                await self._run_calls(act.message.tool_calls)
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
                self.agent.observe(results)
                text = f"{text} {await self.user.report(results)}".strip()
            self.messages.append(Message(role="user", content=text))
        return "step_limit"

    async def _run_calls(self, calls: tuple[ToolCall, ...]) -> None:
        results = []
        where = len(self.messages) - 1
        for call in calls:
            result = await self._call("assistant", call.function.name, call.function.arguments, where)
            self.messages.append(
                Message(role="tool", content=result.text, tool_call_id=call.id, name=call.function.name)
            )
            results.append(result)
        self.agent.observe(results)

    async def _call(self, actor: Actor, tool: str, arguments: JsonObject, where: int) -> ToolResult:
        result = await self.session.call(tool, arguments, actor)
        effect: Any = None
        hashed = await self.session.state_hash()
        if hashed != self.before[0]:
            after = await self.session.snapshot()
            effect = diff(self.before[1], after)
            self.before = (hashed, after)
        self.events.append(
            CallEvent(
                actor=actor,
                tool=tool,
                arguments=arguments,
                ok=result.ok,
                error=result.error,
                result_hash=result.hash,
                message=where,
                effect=effect,
            )
        )
        return result
