"""Writing what the user asks for in one turn: goals as a person would put them, and what they say of themselves."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatmodel import Wording, capital, pick_text
from chatmodel.templates import slots
from chatmodel.wording import as_request
from grounding import leaves, needed, selector_key
from grounding.paths import find
from querygen.partition import producers_of
from querygen.reference import References
from trajectory import FromOutput, FromUser, GoldCall, Known

WANTS = (
    "I'd like to {}.",
    "Could you {}?",
    "Can you {}?",
    "I need to {}.",
    "Please {}.",
    "I want to {}.",
    "Would you {}?",
    "Could you help me {}?",
    "I'd like you to {}.",
    "I was hoping to {}.",
    "Can you help me {}?",
    "I'm trying to {}.",
)
FURTHER = (
    "After that, please {}.",
    "And could you also {}?",
    "I'd also like to {}.",
    "Then {}, please.",
    "Also, can you {}?",
    "While you're at it, please {}.",
    "Once that's done, could you {}?",
)


@dataclass(frozen=True)
class Request:
    """The words for one turn, and which known entries they say."""

    text: str
    intent: str
    said: frozenset[str]


class RequestWriter:
    """Writes the queries of one task, turn by turn."""

    def __init__(
        self, wording: Wording, calls: Sequence[GoldCall], known: Mapping[str, Known], initial: str, rng: random.Random
    ) -> None:
        """`initial` is the text of the initial state: an id that does not stand in it was made on the way."""
        self.references = References(wording, calls, known, initial, rng)
        self.said: set[str] = set()
        """Keys of known entries that the user has said."""
        self.wording = wording
        self.calls = calls
        self.known = known
        self.rng = rng

    def write(self, start: int, stop: int, goals: Sequence[int], withhold: bool) -> Request:
        """The request for one turn.

        Args:
            withhold: Leave something out that the agent must ask for.
        """
        keys = list(dict.fromkeys(key for index in range(start, stop) for key in needed(self.calls[index])))
        open_keys = [key for key in keys if key not in self.said]
        askable = [key for key in open_keys if key in self._required(start, stop)]
        held = {self.rng.choice(askable)} if withhold and askable else set()
        said: set[str] = set()
        sentences: list[str] = []
        for number, goal in enumerate(goals):
            want = self._goal(goal, number, held, said)
            told = [key for key in open_keys if key not in held and key not in said]
            tells = [self._tells(index, told, said) for index in _serving(self.calls, start, goal, goals[:number])]
            self.references.notice_goal(goal)
            first = (
                start == 0 and number == 0 and goal != start and self._is_identity(start) and self.rng.random() < 0.6
            )
            about_user = tells[0] if first else []
            rest = tells[1:] if about_user else tells
            sentences += [*about_user, want, *(sentence for found in rest for sentence in found)]
        self.said |= said
        self.references.remember(start, stop)
        return Request(" ".join(sentences), capital("; ".join(map(self._intent, goals))), frozenset(said))

    def _is_identity(self, index: int) -> bool:
        """True if a call is made with what a person says of themselves: required, and no choice from a list."""
        tool, call = self.wording.tools[self.calls[index].tool], self.calls[index]
        about = call.result if isinstance(call.result, dict) else {}
        if any(self.wording.entity(name).by for name in about if name in self.wording.phrasebook.entities):
            return False  # a thing that was looked up, and not the user
        return len(call.arguments) == 1 and all(
            name in tool.required and "enum" not in tool.parameters[name] for name in call.arguments
        )

    def _required(self, start: int, stop: int) -> set[str]:
        """Keys that an agent would have to ask for: nobody asks for an optional filter."""
        found: set[str] = set()
        for call in self.calls[start:stop]:
            required = set(self.wording.tools[call.tool].required)
            for path, source, _ in leaves(call):
                if isinstance(source, FromUser) and path.split(".")[0].split("[")[0] in required:
                    found.add(source.known)
                elif isinstance(source, FromOutput):
                    rows = {selector.rows: selector for selector in source.selectors}
                    found |= {selector_key(source.call, rows[path]) for path in rows if self._has_choice(source, path)}
        return found

    def _has_choice(self, source: FromOutput, rows: str) -> bool:
        """True if a list has more than one row, so that an agent would have to ask which one is meant."""
        return any(len(match.value) > 1 for match in find(self.calls[source.call].result, rows))

    def _goal(self, goal: int, number: int, held: set[str], said: set[str]) -> str:
        """One goal as a sentence; marks the known entries that it says."""
        call = self.calls[goal]
        phrases = self.wording.tool(call.tool)
        spoken = dict(self.references.latest)
        values, sources = self._slots(goal, held)
        for kind in self._kinds(phrases.ask, phrases.say):
            templates = phrases.say if kind == "say" else phrases.ask
            for template in self.rng.sample(templates, len(templates)):
                text = pick_text([template], values, self.rng)
                if text is not None:
                    for slot in slots(template):
                        said.update(sources.get(slot, ()))
                    self.references.spoke_of(call, slots(template), spoken)
                    return capital(text) if kind == "say" else self._want(text, number)
        self.references.spoke_of(call, (), spoken)
        return self._want(as_request(self.wording.tools[call.tool]), number)

    def _kinds(self, ask: Sequence[str], say: Sequence[str]) -> list[str]:
        kinds = ["ask"] * bool(ask) + ["say"] * bool(say)
        return kinds if len(kinds) < 2 or self.rng.random() < 0.65 else kinds[::-1]

    def _want(self, phrase: str, number: int) -> str:
        return capital(self.rng.choice(WANTS if number == 0 else FURTHER).format(phrase))

    def _slots(self, goal: int, held: set[str]) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """Template values of a call's arguments, and the known keys that each of them says."""
        call = self.calls[goal]
        values: dict[str, Any] = {}
        sources: dict[str, list[str]] = {}
        for name, source in call.provenance.items():
            if isinstance(source, FromUser) and source.known not in held:
                values[name] = self.wording.value(call.tool, name, call.arguments[name], self.rng)
                sources[name] = [source.known]
            elif isinstance(source, FromOutput):
                values[name], sources[name] = self.references.refer(name, call.arguments[name], source, held)
        return values, sources

    def _tells(self, index: int, keys: Sequence[str], said: set[str]) -> list[str]:
        """Sentences for what one call needs and no goal has said."""
        sentences: list[str] = []
        call = self.calls[index]
        for path, source, value in leaves(call):
            if isinstance(source, FromUser) and source.known in keys and source.known not in said:
                sentences.append(self.wording.tell(call.tool, self.known[source.known], self.rng))
                said.add(source.known)
            elif isinstance(source, FromOutput) and (path, str(value)) not in self.references.things:
                told = self._tell_pick(path, source, keys, said)
                if told:
                    self.references.spoke_of(call, (path,), self.references.latest)
                sentences += told
        return sentences

    def _tell_pick(self, path: str, source: FromOutput, keys: Sequence[str], said: set[str]) -> list[str]:
        sentences = []
        for selector in source.selectors:
            key = selector_key(source.call, selector)
            if key in keys and key not in said:
                said.add(key)
                thing = self.wording.describe(path.split(".")[-1], self.known[key], self.rng)
                sentences.append(self.rng.choice((f"I mean {thing}.", f"It's about {thing}.", f"That's {thing}.")))
        return sentences

    def _intent(self, goal: int) -> str:
        phrases = self.wording.tool(self.calls[goal].tool)
        return (phrases.narrate or phrases.ask)[0]


def _serving(calls: Sequence[GoldCall], start: int, goal: int, earlier: Sequence[int]) -> list[int]:
    """The calls of the turn that lead to a goal, in order, without those that an earlier goal already needed."""
    taken = {index for other in earlier for index in _closure(calls, start, other)}
    return [index for index in sorted(_closure(calls, start, goal)) if index not in taken]


def _closure(calls: Sequence[GoldCall], start: int, goal: int) -> set[int]:
    found = {goal}
    for index in range(goal, start - 1, -1):
        if index in found:
            found |= {producer for producer in producers_of(calls[index]) if producer >= start}
    return found
