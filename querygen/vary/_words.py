"""The queries of a task said anew, with something left out, left open, or different from what is done in the end."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatmodel import Wording
from chatmodel.surface import clock_of, drop_near_years
from grounding import needed, selector_key
from querygen.partition import goals_of
from querygen.persona import later_turn, open_conversation
from querygen.reference import References
from querygen.request import RequestWriter
from querygen.write import join_opening
from trajectory import FromOutput, GoldCall, JsonObject, Known, Task, canonical_json


@dataclass(frozen=True)
class Piece:
    """One turn of a task that is being put together."""

    query: str
    intent: str
    known: tuple[Known, ...]
    calls: tuple[GoldCall, ...]
    names_tools: bool = False
    """The query may name a tool: it brings one."""


class _Open(References):
    """References in which one thing is called by something that does not pick it out."""

    open_key = ""
    open_words = ""

    def refer(self, name: str, value: Any, source: FromOutput, held: set[str]) -> tuple[str, list[str]]:
        picks = [selector_key(source.call, pick) for pick in source.selectors if pick.how != "only"]
        if self.open_words and self.open_key in held and self.open_key in picks:
            self.latest[self.wording.entity(name).noun] = str(value)
            return self.open_words, [key for key in picks if key not in held]
        return super().refer(name, value, source, held)


class _Holding(RequestWriter):
    """A writer that leaves exactly one entry out, and nothing else."""

    hold = ""

    def _required(self, start: int, stop: int) -> set[str]:
        return {self.hold}


class Words:
    """All queries of a task in new words.

    Args:
        calls: The calls as the queries speak of them.
        hold: Key of the entry that no query says.
        vague: How the thing that the held entry picks out is called instead.
        known: Entries in place of the base task's own.
    """

    def __init__(
        self,
        base: Task,
        state: JsonObject,
        wording: Wording,
        calls: Sequence[GoldCall],
        base_known: Mapping[str, Known],
        rng: random.Random,
        hold: str = "",
        vague: str = "",
        known: Mapping[str, Known] | None = None,
    ) -> None:
        self.known = {**base_known, **(known or {})}
        initial = canonical_json(state).decode()
        writer = _Holding(wording, calls, self.known, initial, rng)
        writer.hold = hold
        references = _Open(wording, calls, self.known, initial, rng)
        references.open_key, references.open_words = hold, vague
        writer.references = references
        self.queries: list[str] = []
        self.intents: list[str] = []
        self.keys: list[list[str]] = []
        self.said: list[set[str]] = []
        start = 0
        for number, turn in enumerate(base.turns):
            stop = start + len(turn.gold_calls)
            request = writer.write(start, stop, goals_of(calls, start, stop), bool(hold))
            opening = later_turn(base.persona, rng) if number else open_conversation(base.persona, rng)
            self.queries.append(drop_near_years(join_opening(opening, request.text), clock_of(state)))
            self.intents.append(request.intent)
            self.keys.append(list(dict.fromkeys(key for call in calls[start:stop] for key in needed(call))))
            self.said.append(set(writer.said))
            start = stop

    def entries(self, turn: int) -> tuple[Known, ...]:
        """What the user knows in a turn, marked by whether the queries so far say it."""
        said = self.said[turn]
        return tuple(self.known[key].model_copy(update={"stated": key in said}) for key in self.keys[turn])

    def piece(self, turn: int, calls: Sequence[GoldCall]) -> Piece:
        """A turn with these calls, in its new words."""
        return Piece(self.queries[turn], self.intents[turn], self.entries(turn), tuple(calls))
