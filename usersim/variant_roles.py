"""Scripted roles for variants: an agent that handles the perturbation correctly, and a user who acts it out.

`NaiveAgent` is their counterpart: it does not notice. A variant is worth something only if it is turned down.
"""

import re
from collections.abc import Sequence
from datetime import date

from trajsmith.environments import ToolResult
from trajsmith.grounding import ReferenceNotResolved
from trajsmith.phrasing import Wording, capitalize_first
from trajsmith.phrasing.question_detection import find_questions, has_yes_or_no_question
from trajsmith.phrasing.value_formatting import find_clock_date, format_value
from trajsmith.records import (
    EnvironmentSpec,
    FunctionCall,
    GoldCall,
    JsonObject,
    Message,
    Perturbation,
    Task,
    ToolCall,
    UserFact,
)
from trajsmith.usersim.confirmation_questions import ConfirmationWriter
from trajsmith.usersim.roles import AgentAct, UserAct
from trajsmith.usersim.scripted_agent import ScriptedAgent
from trajsmith.usersim.scripted_user import ScriptedUser

SORRY = (
    "I'm sorry, but I can't do this: {}.",
    "I'm afraid that this is not possible: {}.",
    "Unfortunately I cannot help with this: {}.",
    "I'm sorry, I'm not able to do that: {}.",
    "I can't help with that one, sorry: {}.",
    "Sorry, that can't be done here: {}.",
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
    "I don't have the {} at hand, sorry.",
    "I can't remember the {}, sorry.",
)
_WORD = re.compile(r"[\w-]+")
_CODED = re.compile(r"\b\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?\b|\b[a-z]+(?:_[a-z]+)+\b")
CHANGED = (
    "Actually, wait. {}",
    "Hold on, I've changed my mind. {}",
    "Thanks for asking. On second thoughts: {}",
    "Oh, I need to correct that. {}",
)


class VariantAgent(ScriptedAgent):
    """Plays the agent of one variant as it should be played."""

    def __init__(self, task: Task, wording: Wording, candidate: int, listens: bool = False) -> None:
        super().__init__(task, wording, candidate, listens)
        self.twist = _get_perturbation(task)
        self.asked = self.agreed = self.attempted = self.stumbled = False
        self.tries = self.rng.random() < 0.5
        """Whether it tries what is forbidden before it says so; it must where nothing that it saw tells that it is."""
        self.told_no = ""

    async def act(self, messages: list[Message]) -> AgentAct:
        turn = len(self._openings(messages)) - 1
        if turn != self.turn:
            self.open_turn(turn)
        if self.stumbled:
            self.stumbled = False
            act = await super().act(messages)
            return act if not act.message.tool_calls else _replace_text(act, self.rng.choice(AGAIN))
        if self.twist.act != "decline" or turn != self.twist.turn or len(self.results) < self.stop:
            return await super().act(messages)
        return self._declining(messages)

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Retry an injected failure; record the answer to a forbidden call that was tried."""
        refused = next((number for number, result in enumerate(results) if not result.ok), None)
        if refused is not None and self.attempted:
            self.told_no = _extract_reason(results[refused])
        elif refused is not None and self.twist.refusal and self.twist.refusal in results[refused].text:
            self.results += results[:refused]
            self.stumbled = True
        else:
            super().observe(tools, results, by_user)

    def _declining(self, messages: list[Message]) -> AgentAct:
        if self.twist.ignorant and not self.asked:
            self.asked = True
            missing = list(self.twist.keys)
            call = next(each for each in self.twist.tempting if each.tool == self.twist.tool)
            return AgentAct(Message(role="assistant", content=self._questions(call, missing)), asks=tuple(missing))
        forbidden = self.twist.tempting[-1] if self.twist.tempting else None
        may_try = forbidden and not (self.twist.hidden or self.twist.ignorant or self.attempted)
        asks_first = forbidden is not None and self.task.mode == "conversation" and self._needs_yes(forbidden)
        tries = (self.tries and not asks_first) or not is_reason_known(messages, self.twist.because)
        if forbidden and may_try and tries:
            if asks_first and not self.agreed:
                self.agreed = True
                return AgentAct(Message(role="assistant", content=self._ask_for_yes(forbidden)), confirms=True)
            self.attempted = True
            try:
                arguments = self._arguments(forbidden)
            except ReferenceNotResolved as fault:
                return AgentAct(Message(role="assistant", content=f"I'm sorry: {fault}."), gave_up=True)
            self.made += 1
            call_made = ToolCall(
                id=f"call_{self.made}", function=FunctionCall(name=forbidden.tool, arguments=arguments)
            )
            text = self._phrase(forbidden, "narrate")
            return AgentAct(Message(role="assistant", content=f"Let me {text}.", tool_calls=(call_made,)))
        because = rephrase_plainly(self.told_no or self.twist.because)
        text = self.rng.choice(SORRY).format(because.rstrip("."))
        return AgentAct(Message(role="assistant", content=text + self.rng.choice(FURTHER)))

    def _asks_first(self, index: int) -> bool:
        """A user who asked to be told before is told before."""
        if self.twist.act == "check" and self._is_perturbed(index) and index not in self.confirmed:
            self.confirmed.add(index)
            self.asking = (index,)
            return True
        return super()._asks_first(index)

    def _confirmation(self, index: int) -> str:
        if self.twist.act != "check" or not self._is_perturbed(index) or not self.twist.tempting:
            return super()._confirmation(index)
        return self._ask_for_yes(self.twist.tempting[-1])

    def _ask_for_yes(self, call: GoldCall) -> str:
        return ConfirmationWriter(self.wording, self.rng, self.voice).write([(call, self._identified_rows(call))])

    def _is_perturbed(self, index: int) -> bool:
        """Return True for the call that the perturbation concerns."""
        return self.turn == self.twist.turn and self.calls[index].tool == self.twist.tool


class VariantUser(ScriptedUser):
    """Plays the user of one variant."""

    def __init__(self, task: Task, wording: Wording, candidate: int, now: date = date.min) -> None:
        super().__init__(task, wording, candidate, now)
        self.twist = _get_perturbation(task)
        self.changed = False

    async def reply(self, messages: list[Message], act: AgentAct) -> UserAct:
        if self.turn == self.twist.turn:
            keys = self._asked(act)
            if self.twist.ignorant and set(self.twist.keys) & set(keys):
                return UserAct(self.rng.choice(NO_IDEA).format(self.known[self.twist.keys[0]].label))
            if self.twist.first is not None and not self.changed and (keys or self._comes_back(act)):
                self.changed = True
                return UserAct(self.rng.choice(CHANGED).format(self._correction(self.known[self.twist.first.key])))
        return await super().reply(messages, act)

    def _asked(self, act: AgentAct) -> Sequence[str]:
        """Keys of the entries that the agent asks for; read from the words where it gives no hints."""
        if act.hinted:
            return act.asks
        return [entry.key for entry in self._asked_for(find_questions(act.message.content))]

    def _comes_back(self, act: AgentAct) -> bool:
        """Return True if the agent asks for a confirmation."""
        return act.confirms if act.hinted else has_yes_or_no_question(find_questions(act.message.content))

    def _correction(self, known: UserFact) -> str:
        return capitalize_first(self.wording.tell(self.twist.tool, known, self.rng))


def build_scripted_agent(task: Task, wording: Wording, candidate: int, listens: bool = False) -> ScriptedAgent:
    """The scripted agent of a task, whether it is a variant or not."""
    kind = ScriptedAgent if task.twist is None else VariantAgent
    return kind(task, wording, candidate, listens)


def build_scripted_user(
    task: Task, spec: EnvironmentSpec, wording: Wording, state: JsonObject, candidate: int
) -> ScriptedUser:
    """Build the scripted user of a task, whether it is a variant or not; see `UserFactory`."""
    kind = ScriptedUser if task.twist is None else VariantUser
    return kind(task, wording, candidate, find_clock_date(state))


class NaiveAgent(ScriptedAgent):
    """Agent that ignores the perturbation: no question, no second try, and a claim of success at the end."""

    name = "naive"

    def __init__(self, task: Task, wording: Wording, candidate: int) -> None:
        super().__init__(task, wording, candidate)
        self.twist = _get_perturbation(task)
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
            tool_call = ToolCall(
                id=f"call_{self.made}", function=FunctionCall(name=call.tool, arguments=call.arguments)
            )
            return AgentAct(Message(role="assistant", tool_calls=(tool_call,)))
        return AgentAct(Message(role="assistant", content="That's done. Everything is as you wanted."))

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        if not self._blunders(self.turn):
            super().observe(tools, results, by_user)

    def _blunders(self, turn: int) -> bool:
        """True where it makes the tempting call at once; elsewhere it does what it always does."""
        return turn == self.twist.turn and self.twist.act not in ("recover", "ask")


def build_user_direction(task: Task, wording: Wording) -> str:
    """Return extra instructions for a model that plays the user of a variant; empty if there are none."""
    perturbation = task.twist
    if perturbation is None:
        return ""
    known = {entry.key: entry for turn in task.turns for entry in turn.known}
    if perturbation.first is not None:
        final = known[perturbation.first.key]
        return (
            f"for the {wording.name_of(final)} you first say {perturbation.first.said!r}. When the assistant comes "
            f"back to you before it does anything, you change your mind: you want {final.said!r} instead, and say so."
        )
    if perturbation.ignorant:
        unknown = wording.name_of(known[perturbation.keys[0]])
        return f"you do not know the {unknown}. Asked for it, say so, and do not guess."
    return ""


def _get_perturbation(task: Task) -> Perturbation:
    if task.twist is None:
        raise ValueError(f"{task.id} is no variant")
    return task.twist


def is_reason_known(messages: Sequence[Message], reason: str) -> bool:
    """Return True if every word of a reason occurs in what the agent was told or shown."""
    seen = {word for message in messages for word in _WORD.findall(message.content.lower())}
    return {word for word in _WORD.findall(reason.lower()) if len(word) > 3} <= seen


def rephrase_plainly(reason: str) -> str:
    """Rephrase a reason in plain language: no ISO dates, no snake_case."""
    return _CODED.sub(lambda match: format_value(match.group(0)), reason)


def _replace_text(act: AgentAct, text: str) -> AgentAct:
    return AgentAct(act.message.model_copy(update={"content": text}))


def _extract_reason(result: ToolResult) -> str:
    """The words of a refusal."""
    content = result.content
    return str(content["error"]) if isinstance(content, dict) and "error" in content else result.text
