"""How a user refers to things whose ids they do not know: by what picks them out, by name, or as "that order"."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chatmodel import EntityPhrases, Wording
from grounding import selector_key
from trajectory import FromOutput, FromUser, GoldCall, Known, Selector


class References:
    """What was talked about so far in one conversation, and the words for the next thing."""

    def __init__(
        self, wording: Wording, calls: Sequence[GoldCall], known: Mapping[str, Known], initial: str, rng: random.Random
    ) -> None:
        self.wording = wording
        self.calls = calls
        self.known = known
        self.initial = initial
        self.rng = rng
        self.turn = 0
        self.turn_start = 0
        """Index of the first call of this turn."""
        self.things: dict[tuple[str, str], int] = {}
        """(parameter, value) to the turn in which it was last talked about."""
        self.latest: dict[str, str] = {}
        """Noun to the value that it stands for when nothing else is said."""

    def refer(self, name: str, value: Any, source: FromOutput, held: set[str]) -> tuple[str, list[str]]:
        """A noun phrase for the thing with this id, and the keys of the known entries that it says.

        Args:
            held: Keys that must not be said yet.
        """
        entity = self.wording.entity(name)
        picks = [selector for selector in source.selectors if selector.how != "only"]
        keys = [selector_key(source.call, selector) for selector in picks]
        told = [key for key in keys if key not in held]  # pointing back at what was left open does not tell it
        last = self.things.get((name, str(value)), self.turn)
        if self.latest.get(entity.noun) == str(value) and self.turn - last <= 1:
            words = (f"that {entity.noun}", f"the same {entity.noun}")
            return self.rng.choice(words if last < self.turn else words[:1]), told
        self.latest[entity.noun] = str(value)
        if self._changed_since(source.call, name, value):
            return f"the {entity.noun} from before", told
        if picks and held & set(keys):
            return one_of(entity), told
        if picks:
            inner = self.wording.describe(name, self.known[keys[-1]], self.rng)
            return inner + self._outer(picks[:-1], source), keys
        named = self._named_by_lookup(name, source, held) or self._in_another(entity, source, held)
        return named or (self._only(entity, value, source), [])

    def spoke_of(self, call: GoldCall, names: Iterable[str], before: Mapping[str, str]) -> None:
        """What was said of a call: only the things that were really spoken of are what "that order" may mean.

        Args:
            names: Arguments that the sentence has.
            before: What was spoken of before it.
        """
        told = set(names)
        self.latest = dict(before) | {
            self.wording.entity(name).noun: str(call.arguments[name])
            for name, source in call.provenance.items()
            if name in told and isinstance(source, FromOutput)
        }

    def _changed_since(self, call: int, name: str, value: Any) -> bool:
        """True if a write has touched the thing after the list was read: what the list says of it may be wrong now."""
        later = self.calls[call + 1 : self.turn_start]
        return any(made.effect == "write" and made.arguments.get(name) == value for made in later)

    def _named_by_lookup(self, name: str, source: FromOutput, held: set[str]) -> tuple[str, list[str]] | None:
        """A thing that was looked up by its name is called by it: the look-up itself goes without saying."""
        entity, lookup = self.wording.entity(name), self.calls[source.call]
        for parameter, origin in lookup.provenance.items():
            if parameter in entity.by and isinstance(origin, FromUser) and origin.known not in held:
                known = self.known[origin.known].model_copy(update={"slot": f"{name}|{parameter}"})
                return self.wording.describe(name, known, self.rng), [known.key]
        return None

    def _in_another(self, entity: EntityPhrases, source: FromOutput, held: set[str]) -> tuple[str, list[str]] | None:
        """The only thing of its kind in another that nobody has spoken of: "the product in the order from 3 March"."""
        producer = self.calls[source.call]
        if producer.effect == "write" or source.call < self.turn_start:
            return None
        for name, origin in producer.provenance.items():
            picks = [pick for pick in origin.selectors if pick.how != "only"] if isinstance(origin, FromOutput) else []
            owner = self.wording.entity(name).noun
            new = (name, str(producer.arguments[name])) not in self.things and owner not in self.latest
            if len(picks) == 1 and isinstance(origin, FromOutput) and new and self._apart(entity, owner):
                key = selector_key(origin.call, picks[0])
                if key not in held and not self._changed_since(origin.call, name, producer.arguments[name]):
                    return f"the {entity.noun} in {self.wording.describe(name, self.known[key], self.rng)}", [key]
        return None

    @staticmethod
    def _apart(entity: EntityPhrases, owner: str) -> bool:
        """True if the one is no part of the other's name: an order and an order line are not spoken of so."""
        return entity.noun not in owner and owner not in entity.noun

    def _only(self, entity: EntityPhrases, value: Any, source: FromOutput) -> str:
        """A thing that needs no picking out: what was just made, what belongs to another thing, or the user's own."""
        producer = self.calls[source.call]
        if producer.effect == "write" and str(value) not in self.initial:
            return self.rng.choice((f"the new {entity.noun}", f"the {entity.noun} from just now"))
        for name, origin in producer.provenance.items() if producer.effect == "read" else ():
            owner = self.wording.entity(name)
            picked = isinstance(origin, FromOutput) and any(pick.how != "only" for pick in origin.selectors)
            if picked and self._apart(entity, owner.noun) and (name, str(producer.arguments[name])) in self.things:
                return f"the {entity.noun} in that {owner.noun}"
        if source.call < self.turn_start and entity.own:
            return self.rng.choice(entity.own)
        unmentioned = [phrase for phrase in entity.own if not phrase.startswith(("that ", "it", "this "))]
        return self.rng.choice(unmentioned or [f"the {entity.noun}"])

    def _outer(self, picks: Sequence[Selector], source: FromOutput) -> str:
        """What picks out the things around it: "... (the one with the order date 3 March)"."""
        parts = []
        for selector in reversed(picks):
            known = self.known[selector_key(source.call, selector)]
            parts.append(f" (the one with the {known.label} {known.said})")
        return "".join(parts)

    def notice_goal(self, goal: int) -> None:
        """The user asks for this call: a list of things leaves open which one "that" means from then on."""
        result = self.calls[goal].result
        rows = result.get("result") if isinstance(result, dict) else None
        for row in rows[:1] if isinstance(rows, list) else ():
            for name in row if isinstance(row, dict) else ():
                if name in self.wording.phrasebook.entities:
                    self.latest.pop(self.wording.entity(name).noun, None)
        self._notice(goal)

    def _notice(self, index: int) -> None:
        """What a call is about, or has just made, is what "that order" means from now on."""
        result = self.calls[index].result
        for name, value in result.items() if isinstance(result, dict) else ():
            if name in self.wording.phrasebook.entities and isinstance(value, str):
                self.latest[self.wording.entity(name).noun] = value

    def remember(self, start: int, stop: int) -> None:
        """A turn is over."""
        for call in self.calls[start:stop]:
            for name, source in call.provenance.items():
                if isinstance(source, FromOutput):
                    value = str(call.arguments[name])
                    self.things[name, value] = self.turn
                    self.latest.setdefault(self.wording.entity(name).noun, value)
        self.turn += 1
        self.turn_start = stop


def one_of(entity: EntityPhrases) -> str:
    """A thing that is left open: "one of my orders", or "one of the rooms" where they are not the user's own."""
    own = any(phrase.startswith("my ") for phrase in entity.own)
    return f"one of {'my' if own else 'the'} {entity.plural or entity.noun + 's'}"
