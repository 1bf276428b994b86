"""A user who says only what the task lets them know, and only when asked."""

import random
from datetime import date

from chatmodel import Wording, capital, pick_text
from chatmodel.surface import drop_near_years, mentions, say
from environments import ToolResult
from grounding import leaves
from grounding.paths import find
from trajectory import FromOutput, FromUser, GoldCall, Known, Task, derive_seed
from usersim.roles import AgentAct, UserAct, UserCall

YES = (
    "Yes, please.",
    "Yes, go ahead.",
    "That's right, please do.",
    "Yes, that's fine.",
    "Sure, go ahead.",
    "Please do.",
    "Yes.",
    "Correct, thank you.",
    "Go for it.",
    "Yes, do that please.",
)
LEAD = ("", "", "", "Sure.", "Of course.", "Right.", "Oh, sorry.")
SWITCHES = ("One moment.", "Hold on.", "Just a second.", "OK, wait.", "")


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

    async def open(self, turn: int) -> str:
        self.turn = turn
        self.calls_made = 0
        return self.task.turns[turn].query

    async def reply(self, messages: list, act: AgentAct) -> UserAct:  # type: ignore[type-arg]
        if act.wants_user_call:
            mine = [call for call in self.task.turns[self.turn].gold_calls if call.actor == "user"]
            self.last_calls = mine[self.calls_made : self.calls_made + 1]
            self.calls_made += 1
            return UserAct(calls=tuple(UserCall(call.tool, call.arguments) for call in self.last_calls))
        if act.asks:
            sentences = [self._tell(self.known[key]) for key in act.asks if key in self.known]
            text = " ".join([self.rng.choice(LEAD), *sentences]).strip()
            return UserAct(drop_near_years(text, self.now))
        if act.confirms:
            return UserAct(self.rng.choice(YES))
        return UserAct(done=True)

    async def report(self, results: list[ToolResult]) -> str:
        parts = [self.rng.choice(SWITCHES)]
        for call, result in zip(self.last_calls, results, strict=True):
            parts.append(self._report(call, result))
        return " ".join(part for part in parts if part)

    def _tell(self, known: Known) -> str:
        tool = self._tool_of(known)
        if known.how == "value":
            return self.wording.tell(tool, known, self.rng)
        thing = self.wording.describe(known.slot.split("|")[0].split(".")[-1], known, self.rng)
        return self.rng.choice(
            (f"I mean {thing}.", f"{capital(thing)}.", f"It's {thing}.", f"{capital(thing)}, please.")
        )

    def _tool_of(self, known: Known) -> str:
        for call in self.task.gold_calls:
            if any(isinstance(source, FromUser) and source.known == known.key for _, source, _ in leaves(call)):
                return call.tool
        return ""

    def _report(self, call: GoldCall, result: ToolResult) -> str:
        """What they see, with every value that the agent will need from it."""
        if not result.ok:
            return f"That did not work, it says: {result.text}"
        text = self.wording.results(self.wording.tool(call.tool).report, result.content, call.arguments, self.rng)
        text = text or f"Done. It shows: {say(result.content)}."
        index = self.task.gold_calls.index(call)
        for later in self.task.gold_calls:
            for path, source, _ in leaves(later):
                if isinstance(source, FromOutput) and source.call == index:
                    value = next((match.value for match in find(result.content, source.path)), None)
                    if value is not None and not mentions(text, value):
                        text += f" The {self.wording.parameter(later.tool, path).label} is {say(value)}."
        return pick_text([text.replace("{", "(").replace("}", ")")], {}, self.rng) or text
