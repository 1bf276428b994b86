"""Voices of the scripted roles: registers of users and styles of agents, as data, composed from parts."""

import functools
import random
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.value_formatting import QUOTED, drop_second_stop
from trajsmith.phrasing.yaml_files import find_language_file, load_yaml_model
from trajsmith.records import FrozenModel

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_WORD = re.compile(r"(?<![\w'’.-])[a-z]{5,}(?![\w'’.-])")
_NAME = r"[A-Z]\w*(?: [A-Z\d]\w*)*"
_EXACT = rf"{QUOTED}|(?:{_NAME}, )+{_NAME} and {_NAME}|\S*[@\d_]\S*"
"""Quotations, addresses, amounts and codes stay letter by letter in any case, and so do lists of names: in small
letters nobody could tell where they end."""
_FRESH_START = re.compile(r"(?:So|Well|Right|Now|Look|Next|Basically|Here's|The thing|Long story|Quick)\b")
"""Beginnings that stand for themselves: "Oh good. The thing is, ..."."""
_REACTION = re.compile(
    r"(?:OK|Okay|Good|Great|Fine|Thanks|Thank you|All right|Ah|Oh|Right|That helps|That's clear)\b(?=,|\.|!| thanks)"
)
"""Beginnings of a request that react to what was said before."""
_SETBACK = re.compile(r"(?:No|Wait|Hang on|Sorry|Oh|Actually|Stop|But|Instead|On second thoughts|That's not)\b")
"""Beginnings of a request that takes back what came before: nobody says "Very good, no, wait, ..."."""
_EXCLAIMED = re.compile(r"[^.!?]{1,60}!")
"""A first sentence that is a reaction itself: "There it is!"."""
_GREETING = re.compile(r"(?:hi|hiya|hello|hey|heya|yo|look|good (?:day|morning|afternoon|evening))\b", re.IGNORECASE)
_LOWERED = re.compile(r"[^\W\d_][\w'’-]*")


class Reactions(FrozenModel):
    """First words of a later turn, by what came of the turn before. Answers may be bad news: no cheers for them."""

    answered: tuple[str, ...] = Field(min_length=1)
    """After an answer."""
    done: tuple[str, ...] = Field(min_length=1)
    """After something was done."""
    refused: tuple[str, ...] = Field(min_length=1)
    """After something could not be done, or nothing was there."""


Outcome = Literal["answered", "done", "refused"]
"""What came of a turn for the user."""


class UserVoice(FrozenModel):
    """One register of users. Patterns may hold choices: "[Could|Can] you {}?"."""

    weight: float = Field(1.0, gt=0)
    lower_case: bool = False
    """Messages are written in lower case and without a full stop at the end, but for what must be exact."""
    typos: float = Field(0.0, ge=0, le=1)
    """Probability that a message has a slip of the keyboard."""
    greetings: tuple[str, ...] = Field(min_length=1)
    introductions: tuple[str, ...] = Field(min_length=1)
    """How the user says their name."""
    openers: tuple[str, ...] = ()
    """Frames of the first request of a dialogue, beside `wants`: nobody goes on in so many words."""
    wants: tuple[str, ...] = Field(min_length=1)
    """Frames of the first request of a message."""
    further: tuple[str, ...] = Field(min_length=1)
    """Frames of further requests of the same message."""
    reactions: Reactions
    """First words of a later turn."""
    picks: tuple[str, ...] = Field(min_length=1)
    """Frames of an answer to "which one?"."""
    mentions: tuple[str, ...] = Field(min_length=1)
    """Sentences of a request that say which thing is meant, where the request itself does not."""
    links: tuple[str, ...] = Field(min_length=1)
    """What leads over to a further wish that is a sentence of its own: "Also, {}"."""
    agreements: tuple[str, ...] = Field(min_length=1)
    """Answers to a question for a yes."""
    leads: tuple[str, ...] = Field(min_length=1)
    """First words of an answer to a question."""


class AgentVoice(FrozenModel):
    """One style of agents."""

    weight: float = Field(1.0, gt=0)
    reports: Literal["short", "plain", "explanatory"] = "plain"
    """How it reports results: by `ToolPhrases.brief`, `done` or `detailed` first of all."""
    silent: float = Field(0.4, ge=0, le=1)
    """Probability that calls are made without a word."""
    starts: tuple[str, ...] = Field(min_length=1)
    """Frames of the look-up that the agent makes first in a turn."""
    acts: tuple[str, ...] = Field(min_length=1)
    """Frames of a write with which a turn begins."""
    continues: tuple[str, ...] = Field(min_length=1)
    """Frames of what it does next."""
    answered: tuple[str, ...] = Field(min_length=1)
    """Frames of what it does after the user's answer."""
    confirms: tuple[str, ...] = Field(min_length=1)
    """Frames in which it asks for a yes."""
    asks_user: tuple[str, ...] = Field(min_length=1)
    """Frames in which it asks the user to do something on their own device; `{purpose}` is what a tool says of it."""
    chooses: tuple[str, ...] = Field(min_length=1)
    """Questions for one of several things; slots are `count`, `noun`, `plural`, `rows` ("A, B and C") and `choice` ("A,
    B or C")."""
    endings: tuple[str, ...] = Field(min_length=1)
    """Last words of some turns: offers of more help."""


class Voices(FrozenModel):
    """All voices, by name."""

    users: dict[str, UserVoice]
    agents: dict[str, AgentVoice]
    slips: frozenset[str] = frozenset()
    """Ordinary words in which a slip of the keyboard hides nothing."""


def load_voices(path: Path | None = None) -> Voices:
    """Read voices from YAML; without a file, those of the language of the run.

    Raises:
        InputError: The file cannot be read or has unknown keys.
    """
    return _read_voices(path or find_language_file(Path(__file__).with_name("voices.yaml")))


@functools.cache
def _read_voices(path: Path) -> Voices:
    return load_yaml_model(path, Voices, "voices")


def draw_user_voice(rng: random.Random, voices: Voices | None = None) -> str:
    """Return the name of a register, drawn by weight."""
    users = (voices or load_voices()).users
    return rng.choices(list(users), weights=[voice.weight for voice in users.values()])[0]


def draw_agent_voice(rng: random.Random, voices: Voices | None = None) -> str:
    """Return the name of a style of agents, drawn by weight."""
    agents = (voices or load_voices()).agents
    return rng.choices(list(agents), weights=[voice.weight for voice in agents.values()])[0]


def get_agent_voice(name: str) -> AgentVoice:
    """Return the style of this name.

    Raises:
        KeyError: There is none.
    """
    return load_voices().agents[name]


def get_user_voice(style: str) -> UserVoice:
    """Return the register of this name; `plain` for the style of a persona that a model or a recording gave."""
    users = load_voices().users
    return users.get(style) or users["plain"]


def draw_pattern(patterns: Sequence[str], rng: random.Random, used: set[str] | None = None) -> str:
    """Draw one pattern and one of each of its choices, the innermost first.

    Args:
        patterns: What there is to draw from.
        rng: Source of randomness.
        used: Patterns that were drawn before: others come first. The one that is drawn is added.
    """
    text = rng.choice([each for each in patterns if used is None or each not in used] or patterns)
    if used is not None:
        if used.issuperset(patterns):
            used.difference_update(patterns)
        used.add(text)
    while match := _CHOICE.search(text):
        text = text[: match.start()] + rng.choice(match.group(1).split("|")) + text[match.end() :]
    return text


def fill_pattern(patterns: Sequence[str], phrase: str, rng: random.Random, used: set[str] | None = None) -> str:
    """Draw a pattern, as `draw_pattern` does, and put a phrase into its place."""
    return drop_second_stop(draw_pattern(patterns, rng, used).replace("{}", phrase))


def join_opening(opening: str, text: str, exact: Collection[str] = (), small: bool = False) -> str:
    """An opening and a request; after a comma or colon the request goes on in lower case, but for "I" and `exact`.
    Before a fresh start ("Well, ...") the opening is a sentence of its own; a request that begins with a reaction of
    its own ("OK, then ...") has no other one.

    Args:
        opening: Words before the request.
        text: The request.
        exact: Values and names that keep their capital: "Right, Gantry Planner is slow".
        small: It goes on in lower case whatever the opening ends with: "And ...".
    """
    if _REACTION.match(text) and opening and not _GREETING.match(opening):
        return text
    if opening and not _GREETING.match(opening) and (_SETBACK.match(text) or _EXCLAIMED.match(text)):
        return text
    if opening.endswith(",") and _FRESH_START.match(text):
        opening = f"{opening[:-1]}."
    named = any(re.match(rf"{re.escape(value)}(?!\w)", text) for value in exact if value)
    lower = (small or opening.endswith((",", ":"))) and not named
    return f"{opening} {get_language().grammar.lower_first(text) if lower else text}".strip()


def apply_surface(
    text: str, voice: UserVoice, exact: Collection[str], rng: random.Random, slipped: set[str] | None = None
) -> str:
    """Return a message as somebody with this voice types it.

    Args:
        text: The message.
        voice: The register.
        exact: What must stay letter by letter: values that calls take over.
        rng: Draws slips.
        slipped: Words in which this user made one before: nobody makes the same twice. A new one is added.
    """
    slips = bool(voice.typos) and rng.random() < voice.typos
    if not slips and not voice.lower_case:
        return text
    exact_values = sorted((value for value in exact if value and value in text), key=len, reverse=True)
    places = "|".join((*map(re.escape, exact_values), _EXACT))
    parts = re.split(f"({places})", text)
    loose = range(0, len(parts), 2)
    if slips:
        _make_slip(parts, loose, rng, set() if slipped is None else slipped)
    if voice.lower_case:
        for place in loose:
            parts[place] = _LOWERED.sub(lambda match: match.group(0).lower(), parts[place])
        text = "".join(parts)
        return text[:-1] if text.endswith(".") and rng.random() < 0.7 else text
    return "".join(parts)


def _make_slip(parts: list[str], loose: Sequence[int], rng: random.Random, slipped: set[str]) -> None:
    """Swap, drop or double one letter inside an ordinary word; never in what a request is about."""
    slips = load_voices().slips
    places = [(place, match) for place in loose for match in _WORD.finditer(parts[place])]
    words = [(place, match) for place, match in places if match[0] in slips and match[0] not in slipped]
    if not words:
        return
    place, match = rng.choice(words)
    word = match.group(0)
    slipped.add(word)
    at = rng.randrange(1, len(word) - 2)
    broken = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[: at + 1] + word[at] + word[at + 1 :],
    )
    parts[place] = parts[place][: match.start()] + rng.choice(broken) + parts[place][match.end() :]
