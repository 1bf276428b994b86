"""Saying that something cannot be done and what can be done instead: patterns as data, and whether a reason shows."""

import functools
import random
import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from trajsmith.phrasing.plain_sentences import capitalize_first
from trajsmith.phrasing.voices import draw_pattern
from trajsmith.phrasing.words import word_set
from trajsmith.phrasing.yaml_files import load_yaml_model
from trajsmith.records import FrozenModel

REFUSALS = Path(__file__).with_name("refusals.yaml")
_TOKEN = re.compile(r"\d[\d.,:/-]*\d|\d|[^\W\d_]+")
_FILLERS = word_set(
    "now the and for with was were are been has have had can cannot not only than then this that these those its their "
    "more most less least before after until still already any all each such from into will would could must may "
    "again also there here when while where who which what how just yet even either neither both own other one two "
    "needs need get gets left take takes taken without least much very ago old older longer stands close registered"
)
DECLINES = re.compile(
    r"\b(can(no|')t|can not|cannot|unable|not able|not possible|(is|was)n't possible|impossible|"
    r"not allowed|not permitted|"
    r"don't have (a|any|the) (tool|way|means|function|access)|have no (tool|way|means|function|access)|no way (of|to)|"
    r"(don't|doesn't|didn't|does not|do not|did not|won't|will not) (work|allow|permit|go through)|not an option|"
    r"(the )?rules (say no|rule (that|it) out)|rule (for this case|against it)|(have|has) to (say no|decline)|"
    r"(was|were|is|are) (refused|declined|rejected|turned down)|out of the question|against the rules|"
    r"did not work out|"
    r"outside (of )?what|beyond what|nothing (that )?I can do|"
    r"won't be able|couldn't|could not|not something (that )?I|without (it|that))\b",
    re.IGNORECASE,
)
"""Ways to say that something cannot be done."""
REASON = 0.34
"""Share of the numbers and content words of a reason that an answer must have to tell it."""
STEM = 5
"""Letters by which two forms of a word are one: "cancelled", "cancellation"."""


class Refusals(FrozenModel):
    """Patterns of agents and users around something that cannot be done; `{}` is the reason or the phrase."""

    declines: dict[str, tuple[str, ...]]
    """By style of the agent."""
    rules: dict[str, tuple[str, ...]]
    """The same where a rule that everybody can read says no."""
    partial: tuple[str, ...] = Field(min_length=1)
    """The same where other things of the same message were done; `{act}` is what could not be done."""
    missing: tuple[str, ...] = Field(min_length=1)
    """The same where no tool does it; the reason says "I can't" already."""
    left_out: tuple[str, ...] = Field(min_length=1)
    """A thing of a batch that cannot be done, `{name}`, and why, `{}`."""
    left_out_reason: tuple[str, ...] = Field(min_length=1)
    """The same where the reason names the thing."""
    left_out_shared: tuple[str, str]
    """A reason that two things of one sentence have, or more."""
    left_out_rule: tuple[str, ...] = Field(min_length=1)
    """As `left_out`, where the agent reads it and does not try."""
    left_out_reason_rule: tuple[str, ...] = Field(min_length=1)
    left_out_reason_too: tuple[str, ...] = Field(min_length=1)
    """As `left_out_reason`, after others that could not be done."""
    left_out_reasons: tuple[str, ...] = Field(min_length=1)
    """As `left_out_reason`, of `{count}` things that the reasons name."""
    offers: tuple[str, ...] = Field(min_length=1)
    """Questions whether to do something else; `{}` is a verb phrase."""
    tries: tuple[str, ...] = Field(min_length=1)
    """The same where nothing has shown yet that it can be done."""
    values: tuple[str, ...] = Field(min_length=1)
    """The same in few words where one day or time is another one; `{}` is that."""
    another: tuple[str, ...] = Field(min_length=1)
    """What the agent adds where it has nothing to offer; `{}` is "day" or "time"."""
    accepts: tuple[str, ...] = Field(min_length=1)
    """The user takes what is offered."""
    leaves: tuple[str, ...] = Field(min_length=1)
    """The user does not want it."""
    left: tuple[str, ...] = Field(min_length=1)
    """The agent's answer to that."""


@functools.cache
def load_refusals(path: Path = REFUSALS) -> Refusals:
    """Read the patterns from YAML.

    Raises:
        InputError: The file cannot be read or has unknown keys.
    """
    return load_yaml_model(path, Refusals, "refusals")


def render_refusal(
    reason: str,
    style: str,
    by_rule: bool,
    rng: random.Random,
    act: str = "",
    by_tools: bool = False,
) -> str:
    """Return a sentence that says no and why.

    Args:
        reason: Why, as a clause.
        style: Name of the agent's style.
        by_rule: A rule that everybody can read says no.
        rng: Draws the pattern.
        act: What cannot be done, as a verb phrase, where "that" would mean something else.
        by_tools: No tool does it.
    """
    refusals = load_refusals()
    by_style = refusals.rules if by_rule else refusals.declines
    patterns = refusals.partial if act else refusals.missing if by_tools else by_style.get(style) or by_style["plain"]
    pattern = draw_pattern(patterns, rng)
    clause = reason.strip().rstrip(".")
    if ":" in clause:  # a second colon
        pattern = pattern.replace(": {}.", ". {Reason}.")
    return pattern.replace("{act}", act).replace("{Reason}", capitalize_first(clause)).replace("{}", clause)


def is_reason_shown(reason: str, texts: Iterable[str]) -> bool:
    """Return True if every number and content word of a reason occurs in the texts, words by their stem."""
    seen = {token for text in texts for token in _tokenize(text)}
    return set(_tokenize(reason)) <= seen


def is_refusal_told(reason: str, text: str) -> bool:
    """Return True if a text says that something cannot be done, and enough of why."""
    return DECLINES.search(text.replace("’", "'")) is not None and measure_reason(reason, text) >= REASON


def measure_reason(reason: str, text: str) -> float:
    """Return the share of the numbers and content words of a reason that occur in a text."""
    wanted = set(_tokenize(reason))
    return len(wanted & set(_tokenize(text))) / len(wanted) if wanted else 1.0


def _tokenize(text: str) -> Iterable[str]:
    for token in _TOKEN.findall(text.lower().replace("_", " ")):
        if token[0].isdigit():
            yield _normalize_number(token)
        elif len(token) > 2 and token not in _FILLERS:
            yield token.rstrip("s")[:STEM]


def _normalize_number(token: str) -> str:
    try:
        return f"{float(token.replace(',', '')):g}"
    except ValueError:
        return token
