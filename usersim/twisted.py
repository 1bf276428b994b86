"""The scripted roles for variants: an agent that does what is right about the twist, and a user who plays it.

`NaiveAgent` is their counterpart: it does not notice. A variant is worth something only if it is turned down.
"""

from datetime import date

from chatmodel import Wording, capital, pick_text
from chatmodel.surface import human
from environments import Session, ToolResult
from environments.staged import Staged
from grounding import Unresolved
from trajectory import FunctionCall, Known, Message, Task, ToolCall, Twist
from usersim.roles import AgentAct, UserAct
from usersim.scripted_agent import ScriptedAgent
from usersim.scripted_user import ScriptedUser

SORRY = (
    "I'm sorry, but I can't do this: {}.",
    "I'm afraid that this is not possible: {}.",
    "Unfortunately I cannot help with this: {}.",
    "I'm sorry, I'm not able to do that: {}.",
)
FURTHER = ("", "", " Is there anything else that I can do for you?", " Is there something else?")
AGAIN = (
    "That did not go through, so I'll try it once more.",
    "That failed for the moment. Let me try again.",
    "There was a hiccup; I'm trying it again.",
    "",
)
NO_IDEA = (
    "I'm afraid I don't know the {}.",
    "I have no idea, sorry. Nobody told me the {}.",
    "I don't have the {}, sorry.",
)
CHANGED = (
    "Actually, wait. {}",
    "Hold on, I've changed my mind. {}",
    "Thanks for asking. On second thoughts: {}",
    "Oh, I need to correct that. {}",
)


class TwistedAgent(ScriptedAgent):
    """Plays the agent of one variant as it should be played."""

    def __init__(self, task: Task, wording: Wording, candidate: int) -> None:
        super().__init__(task, wording, candidate)
        self.twist = _twist(task)
        self.asked = self.attempted = self.stumbled = False
        self.tries = self.rng.random() < 0.5
        """Whether it tries what is forbidden before it says so."""
        self.told_no = ""

    async def act(self, messages: list[Message]) -> AgentAct:
        turn = len(self._openings(messages)) - 1
        if turn != self.turn:
            self.open_turn(turn)
        if self.stumbled:
            self.stumbled = False
            act = await super().act(messages)
            return act if not act.message.tool_calls else _say(act, self.rng.choice(AGAIN))
        if self.twist.act != "decline" or turn != self.twist.turn or len(self.results) < self.stop:
            return await super().act(messages)
        return self._declining()

    def observe(self, results: list[ToolResult]) -> None:
        """A failure that was staged is tried again; a forbidden call that was tried has its answer now."""
        refused = next((number for number, result in enumerate(results) if not result.ok), None)
        if refused is not None and self.attempted:
            self.told_no = _reason(results[refused])
        elif refused is not None and self.twist.refusal and results[refused].text.find(self.twist.refusal) >= 0:
            self.results += results[:refused]
            self.stumbled = True
        else:
            super().observe(results)

    def _declining(self) -> AgentAct:
        if self.twist.ignorant and not self.asked:
            self.asked = True
            missing = list(self.twist.keys)
            call = self.twist.tempting[-1]
            return AgentAct(Message(role="assistant", content=self._questions(call, missing)), asks=tuple(missing))
        forbidden = self.twist.tempting[-1] if self.twist.tempting else None
        if forbidden and not self.twist.hidden and not self.twist.ignorant and self.tries and not self.attempted:
            self.attempted = True
            try:
                arguments = self._arguments(forbidden)
            except Unresolved as fault:
                return AgentAct(Message(role="assistant", content=f"I'm sorry: {fault}."), gave_up=True)
            self.made += 1
            call_made = ToolCall(
                id=f"call_{self.made}", function=FunctionCall(name=forbidden.tool, arguments=arguments)
            )
            text = self._phrase(forbidden, "narrate")
            return AgentAct(Message(role="assistant", content=f"Let me {text}.", tool_calls=(call_made,)))
        because = self.told_no or self.twist.because
        text = self.rng.choice(SORRY).format(because.rstrip("."))
        return AgentAct(Message(role="assistant", content=text + self.rng.choice(FURTHER)))

    def _asks_first(self, index: int) -> bool:
        """A user who asked to be told before is told before."""
        if self.twist.act == "check" and self._twisted(index) and index not in self.confirmed:
            self.confirmed.add(index)
            return True
        return super()._asks_first(index)

    def _confirmation(self, index: int) -> str:
        if self.twist.act != "check" or not self._twisted(index) or not self.twist.tempting:
            return super()._confirmation(index)
        call = self.twist.tempting[-1]
        phrases = self.wording.tool(call.tool)
        values = {name: self._spoken(call, name) for name in call.arguments}
        phrase = pick_text(phrases.confirm, values, self.rng) or pick_text(phrases.narrate, values, self.rng)
        return f"Before I change anything: shall I {phrase or f'use {human(call.tool)}'}?"

    def _twisted(self, index: int) -> bool:
        """True for the call that the twist is about."""
        return self.turn == self.twist.turn and self.calls[index].tool == self.twist.tool


class TwistedUser(ScriptedUser):
    """Plays the user of one variant."""

    def __init__(self, task: Task, wording: Wording, candidate: int, now: date, session: Session) -> None:
        """`session` is the staged one: a tool that arrives is let go when the turn of its arrival opens."""
        super().__init__(task, wording, candidate, now)
        self.twist = _twist(task)
        self.session = session
        self.changed = False

    async def open(self, turn: int) -> str:
        if turn == self.twist.arrives and isinstance(self.session, Staged):
            self.session.let_go()
        return await super().open(turn)

    async def reply(self, messages: list[Message], act: AgentAct) -> UserAct:
        here = self.turn == self.twist.turn
        if here and self.twist.ignorant and act.asks:
            label = self.known[self.twist.keys[0]].label if self.twist.keys[0] in self.known else "value"
            return UserAct(self.rng.choice(NO_IDEA).format(label))
        if here and self.twist.first is not None and not self.changed and (act.asks or act.confirms):
            self.changed = True
            return UserAct(self.rng.choice(CHANGED).format(self._correction(self.known[self.twist.first.key])))
        return await super().reply(messages, act)

    def _correction(self, known: Known) -> str:
        return capital(self.wording.tell(self.twist.tool, known, self.rng))


class NaiveAgent(ScriptedAgent):
    """Plays a variant as if nothing were the matter: no question, no second try, and in the end it claims success."""

    name = "naive"

    def __init__(self, task: Task, wording: Wording, candidate: int) -> None:
        super().__init__(task, wording, candidate)
        self.twist = _twist(task)
        self.said |= set(self.known)
        self.tempted = False

    async def act(self, messages: list[Message]) -> AgentAct:
        turn = len(self._openings(messages)) - 1
        if turn != self.turn:
            self.open_turn(turn)
        if not self._blunders(turn):
            return await super().act(messages)
        if not self.tempted and self.twist.tempting:
            self.tempted = True
            call = self.twist.tempting[-1]
            self.made += 1
            made = ToolCall(id=f"call_{self.made}", function=FunctionCall(name=call.tool, arguments=call.arguments))
            return AgentAct(Message(role="assistant", tool_calls=(made,)))
        return AgentAct(Message(role="assistant", content="That's done. Everything is as you wanted."))

    def observe(self, results: list[ToolResult]) -> None:
        if not self._blunders(self.turn):
            super().observe(results)

    def _blunders(self, turn: int) -> bool:
        """True where it makes the tempting call at once; elsewhere it does what it always does."""
        return turn == self.twist.turn and self.twist.act not in ("recover", "ask")


def _twist(task: Task) -> Twist:
    if task.twist is None:
        raise ValueError(f"{task.id} is no variant")
    return task.twist


def _say(act: AgentAct, text: str) -> AgentAct:
    return AgentAct(act.message.model_copy(update={"content": text}))


def _reason(result: ToolResult) -> str:
    """The words of a refusal."""
    content = result.content
    return str(content["error"]) if isinstance(content, dict) and "error" in content else result.text
