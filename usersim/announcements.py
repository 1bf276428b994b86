"""Words on what an agent does next: only such as fit what was asked for, and what comes after it."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from trajsmith.phrasing import (
    AgentVoice,
    Wording,
    get_language,
    humanize,
    list_slots,
    pick_text,
    singularize,
    split_identifier,
    word_set,
)
from trajsmith.records import FromOutput, GoldCall, Task, Turn
from trajsmith.usersim.reporting import list_field_names

_OPENS = re.compile(r"\b(?:first|First|zuerst|Zuerst)\b")
_EVERYDAY = word_set("name number status kind date day time type list detail until on at up by in to of")
"""Words of fields that say nothing of what somebody wants to know."""


MOST_ANNOUNCED = 2
"""Calls of one tool at once that are announced."""


def announce_call(call: GoldCall, turn: Turn, wording: Wording, rng: Random) -> str:
    """Return a verb phrase for a call that comes; empty if none fits what was asked for."""
    narrate = wording.tool(call.tool).narrate
    if call.effect == "write" or not narrate:
        return render_call_phrase(call, "narrate", wording, rng)
    spoken_text = " ".join((turn.query, *(info.question for info in turn.asked)))
    values = {name: render_argument(call, name, wording, rng) for name in call.arguments}
    return pick_text(list_fitting_phrases(narrate, call, spoken_text, wording), values, rng) or ""


def is_loop(task: Task, turn: int, tools: Sequence[str]) -> bool:
    """Return True for calls of a loop over rows: words about one thing would not fit all of them.

    Args:
        task: The task.
        turn: Number of the turn.
        tools: Tools that are called at once.
    """
    calls = task.turns[turn].gold_calls if task.solution is not None else ()
    looped = [call.tool for call in calls]
    return any(tools.count(tool) > MOST_ANNOUNCED or looped.count(tool) > 1 for tool in tools)


def list_fitting_phrases(phrases: Sequence[str], call: GoldCall, spoken_text: str, wording: Wording) -> list[str]:
    """Return the verb phrases for a look-up that name no field of its result which nobody has asked for.

    "Read the temperatures" stands for a look-up of rooms, and fits only where a temperature is asked for.

    Args:
        phrases: Verb phrases of the tool.
        call: The look-up with its result.
        spoken_text: What the user asks for.
        wording: Words of the environment.
    """
    spoken = {singularize(word) for word in split_identifier(spoken_text.lower())}
    aside = _list_field_words(call, wording) - spoken
    return [text for text in phrases if aside.isdisjoint(singularize(word) for word in text.lower().split())]


def render_call_phrase(call: GoldCall, kind: str, wording: Wording, rng: Random) -> str:
    """Return a verb phrase for a call, of the kind "confirm", "request" or "narrate"; a plain one where none fits.

    A request without phrases of its own is put as a user would ask for it.
    """
    phrases = wording.tool(call.tool)
    values = {name: render_argument(call, name, wording, rng) for name in call.arguments}
    requests = phrases.request or _list_fullest_phrases(phrases.ask, values)
    options = phrases.confirm if kind == "confirm" else requests if kind == "request" else phrases.narrate
    text = pick_text(options, values, rng) or pick_text(phrases.narrate, values, rng)
    return text or f"use {humanize(call.tool)}"


def _list_fullest_phrases(phrases: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """Return the phrases that name most of the values, of those that name nothing else."""
    slots = {phrase: list_slots(phrase) for phrase in phrases if list_slots(phrase) <= values.keys()}
    most = max(map(len, slots.values()), default=0)
    return [phrase for phrase, names in slots.items() if len(names) == most]


def render_argument(call: GoldCall, name: str, wording: Wording, rng: Random) -> Any:
    """Return an argument as it is spoken of: "that order" for what a result gave, else the value in words."""
    if isinstance(call.provenance.get(name), FromOutput):
        return get_language().grammar.that(wording.entity(name))
    return wording.mention(call.tool, name, call.arguments[name], rng)


def choose_frames(voice: AgentVoice, answered: bool, goes_on: bool, effect: str | None, last: bool) -> Sequence[str]:
    """Return the frames in which an agent says what comes.

    Args:
        voice: Its style.
        answered: The user has just told something.
        goes_on: It has said in this turn what it does.
        effect: Whether the call reads or writes.
        last: Nothing comes after it, so that it is not the first of anything.
    """
    opening = voice.acts if effect == "write" else voice.starts
    frames = voice.answered if answered else voice.continues if goes_on else opening
    return [frame for frame in frames if not _OPENS.search(frame)] or frames if last else frames


def _list_field_words(call: GoldCall, wording: Wording) -> set[str]:
    """Return the words of fields in a result that are no part of what its rows are called."""
    kinds = {
        word
        for name, entity in wording.phrasebook.entities.items()
        for word in (*split_identifier(name), *entity.noun.lower().split())
    }
    fields = {singularize(word) for name in list_field_names(call.result) for word in split_identifier(name)}
    return fields - kinds - _EVERYDAY
