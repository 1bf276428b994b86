"""A user who says only what the task lets them know, and only when asked."""

import random
from collections.abc import Sequence
from datetime import date

from trajsmith.environments import ToolResult
from trajsmith.grounding import find_values, iterate_leaves
from trajsmith.phrasing import (
    Wording,
    apply_surface,
    capitalize_first,
    draw_pattern,
    fill_pattern,
    format_value,
    get_language,
    get_user_voice,
    is_value_mentioned,
    join_opening,
    pick_text,
    shorten_values,
)
from trajsmith.phrasing.question_detection import (
    find_questions,
    find_requests,
    has_yes_or_no_question,
    is_announcement,
)
from trajsmith.records import FromOutput, FromUser, GoldCall, Message, Task, UserFact, derive_seed
from trajsmith.usersim import request_matching
from trajsmith.usersim.roles import AgentAct, UserAct, UserCall

PATIENCE = 2
"""Messages of a turn to which there is no answer before the user gives up waiting."""


class ScriptedUser:
    """Plays the user of one task."""

    name = "scripted"

    def __init__(self, task: Task, wording: Wording, candidate: int, now: date = date.min) -> None:
        """`now` is the environment's clock: the user says near dates without their year."""
        self.now = now
        self.task = task
        self.wording = wording
        self.rng = random.Random(derive_seed(task.seed, "user", candidate))
        self.known = {entry.key: entry for turn in task.turns for entry in turn.known}
        self.turn = 0
        self.calls_made = 0
        self.last_calls: list[GoldCall] = []
        self.patience = PATIENCE
        self.told: set[str] = set()
        """Keys told in answer to a model."""
        self.slipped: set[str] = set()
        """Words in which it made a slip of the keyboard."""
        self.prompts: dict[str, str] = {}
        self.voice = get_user_voice(task.persona.style)
        self.agreements: set[str] = set()
        """Patterns in which it has said yes."""

    async def open(self, turn: int) -> str:
        self.turn = turn
        self.calls_made = 0
        self.patience = PATIENCE
        return self.task.turns[turn].query

    async def reply(self, messages: list[Message], act: AgentAct) -> UserAct:
        if not act.hinted:
            return self._read(act.message.content, messages)
        if act.wants_user_call:
            return self._use_device()
        if act.asks:
            return self._answer([self.known[key] for key in act.asks if key in self.known])
        if act.confirms:
            return UserAct(self._type(draw_pattern(self.voice.agreements, self.rng, self.agreements)))
        return UserAct(done=True)

    def _use_device(self) -> UserAct:
        self.last_calls = self._pending()[:1]
        self.calls_made += 1
        return UserAct(calls=tuple(UserCall(call.tool, call.arguments) for call in self.last_calls))

    def _pending(self) -> list[GoldCall]:
        mine = [call for call in self.task.turns[self.turn].gold_calls if call.actor == "user"]
        return mine[self.calls_made :]

    def _answer(self, entries: Sequence[UserFact]) -> UserAct:
        sentences = [self._tell(entry) for entry in entries]
        exact = [str(entry.value) for entry in entries if isinstance(entry.value, str) and entry.value]
        text = join_opening(draw_pattern(self.voice.leads, self.rng), " ".join(sentences), exact)
        return UserAct(self._type(shorten_values(text, self.now)))

    def _type(self, text: str) -> str:
        """A message as this user types it, with every value letter by letter."""
        exact = {str(fact.value) for fact in self.known.values() if isinstance(fact.value, str)}
        return apply_surface(text, self.voice, exact, self.rng, self.slipped)

    def _read(self, text: str, messages: list[Message]) -> UserAct:
        """The reaction to a model's words, which say nothing of what they mean.

        What cannot be answered, and what only announces something, is borne a few times a turn; then the turn is over.
        """
        if sum(message.role == "assistant" and message.content == text for message in messages) > PATIENCE:
            return UserAct(done=True)
        asked = find_questions(text)
        pending = self._pending()
        if pending and request_matching.is_device_request(find_requests(text), pending[0], self.wording):
            return self._use_device()
        if self.task.mode == "direct":
            return UserAct(done=True)
        requested = self._asked_for(asked)
        if requested:
            self.told |= {entry.key for entry in requested}
            return UserAct(" ".join(self._plainly(entry) for entry in requested))
        if has_yes_or_no_question(asked):
            about = request_matching.is_about_request(" ".join(asked), self.task.turns[self.turn], self.wording)
            return UserAct(
                draw_pattern(self.voice.agreements, self.rng) if about else self.rng.choice(get_language().user.no)
            )
        if self.patience > 0 and (asked or is_announcement(text)):
            self.patience -= 1
            return UserAct(self.rng.choice(get_language().user.shrugs if asked else get_language().user.waiting))
        return UserAct(done=True)

    def _asked_for(self, asked: Sequence[str]) -> list[UserFact]:
        """Return the requested facts: first unstated ones of this turn, then others of this turn, then earlier ones."""
        now = self.task.turns[self.turn].known
        before = {entry.key: entry for turn in self.task.turns[: self.turn] for entry in turn.known}
        open_now = [entry for entry in now if not entry.stated and entry.key not in self.told]
        for entries in (open_now, now, tuple(before.values())):
            requested = request_matching.find_requested_facts(asked, entries, self.wording)
            if requested:
                return requested
        return []

    def _plainly(self, known: UserFact) -> str:
        """An entry in the words that stand in the task, so that whoever listens can know it again."""
        if known.how == "value":
            return self.wording.tell(self._tool_of(known), known, self.rng)
        first, second = get_language().user.means
        return self.rng.choice((first.format(known.said), second.format(capitalize_first(known.said))))

    async def report(self, messages: list[Message], results: Sequence[ToolResult]) -> str:
        parts = [self.rng.choice(get_language().user.switches)]
        for call, result in zip(self.last_calls, results, strict=True):
            parts.append(self._report(call, result))
        return self._type(" ".join(part for part in parts if part))

    def _tell(self, known: UserFact) -> str:
        tool = self._tool_of(known)
        if known.how == "value":
            return self.wording.tell(tool, known, self.rng)
        description = self.wording.describe(known.slot.split("|")[0].split(".")[-1], known, self.rng)
        return capitalize_first(fill_pattern(self.voice.picks, description, self.rng))

    def _tool_of(self, known: UserFact) -> str:
        for call in self.task.gold_calls:
            if any(isinstance(source, FromUser) and source.known == known.key for _, source, _ in iterate_leaves(call)):
                return call.tool
        return ""

    def _report(self, call: GoldCall, result: ToolResult) -> str:
        """Report a result, with every value that the agent will need from it."""
        if not result.ok:
            return f"That did not work, it says: {result.text}"
        text = self.wording.results(self.wording.tool(call.tool).report, result.content, call.arguments, self.rng)
        text = text or f"Done. It shows: {format_value(result.content)}."
        index = self.task.gold_calls.index(call)
        for later in self.task.gold_calls:
            for path, source, _ in iterate_leaves(later):
                if isinstance(source, FromOutput) and source.call == index:
                    value = next((match.value for match in find_values(result.content, source.path)), None)
                    if value is not None and not is_value_mentioned(text, value):
                        text += f" The {self.wording.parameter(later.tool, path).label} is {format_value(value)}."
        return pick_text([text.replace("{", "(").replace("}", ")")], {}, self.rng) or text
