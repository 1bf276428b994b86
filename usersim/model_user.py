"""The simulated user, played by a model that knows what the task lets the user know, and no more."""

from collections.abc import Sequence

from trajsmith.environments import ToolResult
from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.phrasing import Wording, render_clock
from trajsmith.records import EnvironmentSpec, JsonObject, Message, ModelFault, Task, UserFact, derive_seed
from trajsmith.usersim.roles import AgentAct, UserAct, UserCall

STOP = "###STOP###"

USER = PromptSpec(
    "usersim/user",
    {
        "description": "A shop.",
        "name": "Ann",
        "role": "customer",
        "style": "briskly",
        "scenario": "A parcel is late.",
        "clock": "2026-03-03 09:00",
        "wishes": ["Find the parcel"],
        "facts": [{"label": "email", "said": "a@b.org"}],
        "tools": True,
        "direction": "You are in a hurry.",
        "stop": STOP,
    },
)


class ModelUser:
    """Plays the user of one task. Requests are the task's own; in between the model reacts."""

    def __init__(
        self,
        model: ChatModel,
        spec: EnvironmentSpec,
        wording: Wording,
        task: Task,
        state: JsonObject,
        candidate: int,
        prompts: Prompts,
    ) -> None:
        self.model = model
        self.name = model.name
        self.task = task
        self.turn = 0
        self.seed = derive_seed(task.seed, "user", candidate) % (1 << 31)
        self.tools = tuple(spec.tool(name).as_function() for name in task.user_tools)
        prompt = prompts.get(USER)
        self.prompts = {prompt.name: prompt.version}
        known: dict[str, UserFact] = {entry.key: entry for turn in task.turns for entry in turn.known}
        if task.twist is not None and task.twist.ignorant:
            known = {key: entry for key, entry in known.items() if key not in task.twist.keys}
        facts = [{"label": wording.name_of(entry), "said": entry.said} for entry in known.values()]
        self.briefing = prompt.messages(
            description=spec.description,
            name=task.persona.name,
            role=task.persona.role,
            style=task.persona.style,
            scenario=task.scenario,
            clock=render_clock(state),
            wishes=[turn.intent for turn in task.turns],
            facts=facts,
            tools=bool(self.tools),
            direction=_build_direction(task, wording),
            stop=STOP,
        )
        self.device: dict[int, list[Message]] = {}
        """Own calls with their results, by the number of messages after which they were made."""

    async def open(self, turn: int) -> str:
        self.turn = turn
        return self.task.turns[turn].query

    async def reply(self, messages: list[Message], act: AgentAct) -> UserAct:
        mine = any(call.actor == "user" for call in self.task.turns[self.turn].gold_calls)
        if self.task.mode == "direct" and not mine:
            return UserAct(done=True)
        reply = await self.model.complete(self._request(messages, "auto" if self.tools else "none"))
        calls = tuple(UserCall(call.function.name, call.function.arguments) for call in reply.message.tool_calls or ())
        if calls:
            self.device[len(messages)] = [reply.message]
            return UserAct(text="", calls=calls)
        return self._parse_reply(reply.message.content)

    async def report(self, messages: list[Message], results: Sequence[ToolResult]) -> str:
        device_calls = self.device[len(messages)]
        for call, result in zip(device_calls[0].tool_calls or (), results, strict=True):
            device_calls.append(
                Message(role="tool", content=result.text, tool_call_id=call.id, name=call.function.name)
            )
        reply = await self.model.complete(self._request(messages, "none"))
        text = _strip_markup(reply.message.content)
        if not text:
            raise ModelFault("bad_reply", self.name, "the user said nothing after using their own device")
        return text

    def _parse_reply(self, content: str) -> UserAct:
        if STOP in content:
            return UserAct(done=True)
        if not content.strip():
            raise ModelFault("bad_reply", self.name, "the user said nothing")
        return UserAct(text=_strip_markup(content))

    def _request(self, messages: list[Message], choice: str) -> ChatRequest:
        return ChatRequest(
            messages=(*self.briefing, *self._heard(messages)),
            tools=self.tools,
            tool_choice="auto" if choice == "auto" else "none",
            seed=self.seed,
            purpose="user",
            record=self.task.id,
        )

    def _heard(self, messages: list[Message]) -> list[Message]:
        """The conversation from the user's side: what was said to them and by them, and their own device."""
        seen: list[Message] = []
        for index, message in enumerate(messages):
            if message.role == "user":
                seen.append(Message(role="assistant", content=message.content))
            elif message.role == "assistant" and not message.tool_calls:
                seen.append(Message(role="user", content=message.content))
            seen += self.device.get(index + 1, [])
        return seen


def _strip_markup(content: str) -> str:
    return content.replace(STOP, "").strip()


def _build_direction(task: Task, wording: Wording) -> str:
    """Return extra instructions for a model that plays the user of a variant; empty if there are none."""
    perturbation = task.twist
    if perturbation is None:
        return ""
    known = {entry.key: entry for turn in task.turns for entry in turn.known}
    if perturbation.first is not None:
        final = known[perturbation.first.key]
        return (
            f"for the {wording.name_of(final)} you first say {perturbation.first.said!r}. When the assistant comes "
            f"back to you before it does anything, you change your mind: you want {final.said!r} instead, and say so. "
            "You agree when the assistant tells you that it will do it like this."
        )
    if perturbation.act == "offer" and perturbation.offer is not None:
        if perturbation.accepted:
            return "when the assistant says that it cannot be done and offers something else, you take that."
        return (
            "when the assistant says that it cannot be done and offers something else, you say no: leave it as it is."
        )
    if perturbation.ignorant:
        unknown = wording.name_of(known[perturbation.keys[0]])
        return f"you do not know the {unknown}. Asked for it, say so, and do not guess."
    return ""
