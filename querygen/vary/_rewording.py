"""The queries of a task said anew, with something left out, left open, or different from what is done in the end."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.grounding import build_selector_key, list_needed_keys
from trajsmith.phrasing import ScenarioStep, Wording, find_clock_date, get_user_voice
from trajsmith.querygen.entity_references import ReferenceTracker
from trajsmith.querygen.partition import find_goals
from trajsmith.querygen.persona import draw_greeting, draw_turn_opening, find_outcome, render_query
from trajsmith.querygen.request import RequestWriter
from trajsmith.querygen.story import read_story
from trajsmith.records import FromOutput, GoldCall, JsonObject, RequestedInfo, Task, UserFact, canonical_json


@dataclass(frozen=True)
class TurnDraft:
    """One turn of a task that is being put together."""

    query: str
    intent: str
    known: tuple[UserFact, ...]
    calls: tuple[GoldCall, ...]
    names_tools: bool = False
    """The query may name a tool: it brings one."""
    asked: tuple[RequestedInfo, ...] = ()
    """What the query asks for; calls are counted from the first of the turn; -1 is the last call before it."""


class _AmbiguousReferences(ReferenceTracker):
    """References in which one thing is called by something that does not pick it out."""

    open_key = ""
    open_words = ""

    def refer(
        self, name: str, value: Any, source: FromOutput, held: set[str], alone: bool = False
    ) -> tuple[str, list[str]]:
        picks = [build_selector_key(source.call, pick) for pick in source.selectors if pick.how != "only"]
        if self.open_words and self.open_key in held and self.open_key in picks:
            return self.open_words, [key for key in picks if key not in held]
        return super().refer(name, value, source, held, alone)


class _WithholdingWriter(RequestWriter):
    """A writer that leaves exactly one entry out, and nothing else."""

    hold = ""

    def _required(self, start: int, stop: int, steps: Mapping[int, ScenarioStep | None]) -> set[str]:
        return {self.hold}

    def _find_mentioned(self, keys: Sequence[str], text: str) -> set[str]:
        return super()._find_mentioned(keys, text) - {self.hold}


class RewordedQueries:
    """All queries of a task in new words.

    Args:
        calls: The calls as the queries speak of them.
        hold: Key of the entry that no query says.
        vague: How the thing that the held entry picks out is called instead.
        known: Entries in place of the base task's own.
        after_refusal: Number of the turn before which something was refused: nobody gives thanks for that.
        narrow_from: Number of the turn from which on reads are asked for by narrow questions alone.
    """

    def __init__(
        self,
        base: Task,
        state: JsonObject,
        wording: Wording,
        calls: Sequence[GoldCall],
        base_known: Mapping[str, UserFact],
        rng: random.Random,
        hold: str = "",
        vague: str = "",
        known: Mapping[str, UserFact] | None = None,
        after_refusal: int = -1,
        narrow_from: int | None = None,
    ) -> None:
        self.known = {**base_known, **(known or {})}
        initial = canonical_json(state).decode()
        now, voice = find_clock_date(state), get_user_voice(base.persona.style)
        writer = _WithholdingWriter(wording, calls, self.known, initial, rng, now, voice)
        writer.hold = hold
        references = _AmbiguousReferences(wording, calls, self.known, initial, rng, writer.check.model)
        references.open_key, references.open_words = hold, vague
        writer.references = references
        self.queries: list[str] = []
        self.intents: list[str] = []
        self.keys: list[list[str]] = []
        self.stated: list[set[str]] = []
        self.asked: list[tuple[RequestedInfo, ...]] = []
        """What each query asks for; calls are counted from the first of the turn."""
        story = read_story(base, wording.scenarios)
        slipped: set[str] = set()
        start = 0
        for number, turn in enumerate(base.turns):
            stop = start + len(turn.gold_calls)
            goals = find_goals(calls, start, stop, steps=story.names if story else ())
            steps = story.list_steps(goals) if story else ()
            if number == narrow_from:
                writer.goal_wordings.questions = 1.0
            motive = story.motive if story and not number else ""
            request = writer.write(start, stop, goals, bool(hold), steps, motive)
            trouble = story is not None and story.scenario.trouble
            outcome = "refused" if number == after_refusal else find_outcome(calls[start - 1]) if start else None
            opening = (
                draw_turn_opening(base.persona, outcome, rng, trouble=trouble)
                if outcome
                else draw_greeting(base.persona, state, rng, wording.phrasebook)
            )
            query = render_query(opening, request.text, base.persona, self.known.values(), now, rng, slipped)
            self.queries.append(query)
            self.intents.append(request.intent)
            self.asked.append(tuple(info.model_copy(update={"call": info.call - start}) for info in request.asked))
            self.known.update((key, fact) for key, fact in writer.row_facts.items() if key not in self.known)
            keys = [key for call in calls[start:stop] for key in list_needed_keys(call)]
            keys += [info.known for info in request.asked if info.known]
            self.keys.append(list(dict.fromkeys(keys)))
            self.stated.append(set(writer.stated))
            start = stop

    def entries(self, turn: int) -> tuple[UserFact, ...]:
        """Return the user's facts in a turn, marked by whether the queries so far state them."""
        stated = self.stated[turn]
        return tuple(self.known[key].model_copy(update={"stated": key in stated}) for key in self.keys[turn])

    def piece(self, turn: int, calls: Sequence[GoldCall]) -> TurnDraft:
        """A turn with these calls, in its new words."""
        return TurnDraft(
            self.queries[turn], self.intents[turn], self.entries(turn), tuple(calls), asked=self.asked[turn]
        )
