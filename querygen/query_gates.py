"""Mechanical checks of generated queries: only facts that the speaker knows, and all facts that are promised.

A fault goes back to the writer in words (`says`); after the last round it is the reason of the drop.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.grounding import is_identifier, iterate_leaves
from trajsmith.phrasing import Phrasebook, Wording, derive_request_phrase, is_value_mentioned
from trajsmith.phrasing.fact_detection import AllowedContent, is_fact_stated
from trajsmith.querygen.plan import TaskPlan
from trajsmith.querygen.questions import asks_for
from trajsmith.records import EnvironmentSpec, FromOutput, GoldCall, UserFact
from trajsmith.verify import ReferenceCheck, build_gold_turn

MAX_QUERY_LENGTH = 1500
"""Characters of a request."""
_COPIED_WORDS = 6
"""Words in a row that nobody says who has not read them."""


@dataclass(frozen=True)
class DraftFault:
    """Problem in a generated draft."""

    reason: str
    """Drop reason."""
    detail: str
    """The piece of text, or the fact, that it is about."""
    says: str = ""
    """What the writer is told."""


def build_tool_patterns(spec: EnvironmentSpec) -> list[re.Pattern[str]]:
    """Build patterns that match tool names in a text; names that are ordinary words are left out."""
    names = [tool.name for tool in spec.tools if "_" in tool.name or re.search(r"[a-z][A-Z]", tool.name)]
    return [re.compile(rf"\b{re.escape(name)}\b") for name in names]


def find_tool_mention(text: str, patterns: Sequence[re.Pattern[str]]) -> DraftFault | None:
    mention = next((match.group(0) for pattern in patterns if (match := pattern.search(text))), None)
    if mention is None:
        return None
    return DraftFault("query_names_a_tool", text[:120], f'it names the tool "{mention}"; people do not know tool names')


def find_leaked_value(text: str, calls: Sequence[GoldCall], known: Iterable[UserFact]) -> DraftFault | None:
    """Find a value that only a tool could have returned: an identifier that the calls take from results."""
    sayable = {str(entry.value) for entry in known}
    for path, value in iter_internal_values(calls):
        text_value = str(value)
        if len(text_value) >= 4 and text_value in text and text_value not in sayable:
            says = f'it says "{text_value}", which this person cannot know yet'
            return DraftFault("query_leaks_an_internal_value", f"{path}={text_value}", says)
    return None


_QUOTED = re.compile(r"[\"“„«]\{(\w+)\}")
"""A value in quotes within a request: `add a chat called "{subject}"`."""


def find_wordless_values(calls: Sequence[GoldCall], phrasebook: Phrasebook) -> DraftFault | None:
    """Find a call that takes several plain values out of one earlier result, such as street and town of an order.

    The phrasebook has words for each value that a user says, and none for "the same address as that order". One value
    is enough where requests quote it: nobody calls a new thing "my subject".
    """
    for call in calls:
        taken: dict[int, list[str]] = {}
        for path, source, _ in iterate_leaves(call):
            name = path.split(".")[-1]
            plain = phrasebook.parameters.keys() & {name, f"{call.tool}.{name}"} and name not in phrasebook.entities
            if not isinstance(source, FromOutput) or is_identifier(name) or not plain:
                continue
            if all(pick.how == "only" for pick in source.selectors):
                taken.setdefault(source.call, []).append(name)
        phrases = phrasebook.tools.get(call.tool)
        quoted = {name for wish in (phrases.ask if phrases else ()) for name in _QUOTED.findall(wish)}
        names = next((names for names in taken.values() if len(names) > 1 or quoted & {*names}), None)
        if names is not None:
            says = f"nobody can say that {call.tool} takes {', '.join(names)} from an earlier result"
            return DraftFault("query_has_no_words_for_values", f"{call.tool}: {', '.join(names)}", says)
    return None


def iter_internal_values(calls: Sequence[GoldCall]) -> Iterator[tuple[str, Any]]:
    """Yield identifiers that the calls take from earlier results."""
    for call in calls:
        for path, source, value in iterate_leaves(call):
            if isinstance(source, FromOutput) and is_identifier(path.split(".")[-1]):
                yield path, value


def _list_passages(text: str) -> set[tuple[str, ...]]:
    """Return all rows of words of a text that are too long to be chance."""
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[start : start + _COPIED_WORDS]) for start in range(len(words) - _COPIED_WORDS + 1)}


class QueryGates:
    """The gates of one environment."""

    def __init__(self, spec: EnvironmentSpec, wording: Wording) -> None:
        self.wording = wording
        self.tools = build_tool_patterns(spec)
        self.common = AllowedContent()
        self.common.add(spec.name, spec.description, *(tool.description for tool in spec.tools))
        self.common.add(*(surface for tool in spec.tools for surface in tool.parameters))
        described = (spec.description, *(tool.description for tool in spec.tools))
        phrases = " ".join(derive_request_phrase(tool) for tool in spec.tools)
        self.described = set().union(*map(_list_passages, described)) - _list_passages(phrases)
        """Passages that the writer reads and the person does not."""

    def build_allowed_content(self, plan: TaskPlan, upto: int, held: Collection[str] = ()) -> AllowedContent:
        """Return what the user may say by the end of a turn; `held` facts are known but not stated yet."""
        allowed = AllowedContent(self.common)
        allowed.add(plan.persona.name, plan.persona.role, plan.scenario, plan.clock)
        for key in plan.stated(upto) | {key for turn in plan.turns[:upto] for key in turn.held}:
            if key not in held:
                allowed.add(plan.known[key].value, plan.known[key].said)
        allowed.add(*(turn.meaning for turn in plan.turns[: upto + 1] if not (turn.opened or turn.held)))
        return allowed

    def query(self, text: str, plan: TaskPlan, number: int) -> list[DraftFault]:
        """Everything that is wrong with the request of one turn."""
        turn = plan.turns[number]
        faults = [
            find_tool_mention(text, self.tools),
            find_leaked_value(text, plan.grounded.calls, plan.known.values()),
            self._shape(text),
        ]
        for key in turn.fresh:
            if not is_fact_stated(text, plan.known[key], self.wording):
                entry = plan.known[key]
                says = f'it does not say the {entry.label} as it is known: "{entry.said}"'
                faults.append(DraftFault("query_leaves_out_a_fact", key, says))
        for info in turn.asked:
            if info.narrow and not asks_for(text, info, list(plan.known.values())):
                says = f'it does not ask what the person wants to know: "{info.question}"'
                faults.append(DraftFault("query_does_not_ask", info.question, says))
        others = " ".join(plan.known[key].said for key in turn.fresh)
        for key in turn.held:
            entry, elsewhere = plan.known[key], others if key == turn.opened else turn.meaning
            if self._states_fact(text, entry) and not self._states_fact(elsewhere, entry):
                says = f'it says the {entry.label} "{entry.said}" already, which must be left open'
                faults.append(DraftFault("query_tells_what_is_held_back", key, says))
        copied = _list_passages(text) & self.described
        copied -= _list_passages(" ".join([turn.meaning, *(plan.known[key].said for key in turn.fresh)]))
        if copied:
            passage = " ".join(min(copied))
            says = f'it copies "{passage}" from a description: say only what the person wants'
            faults.append(DraftFault("query_copies_a_description", passage, says))
        strange = self.build_allowed_content(plan, number, turn.held).find_unsupported(text)
        if strange:
            says = f"it says {', '.join(map(repr, strange[:4]))}, which stands in none of the facts: leave it out"
            faults.append(DraftFault("query_invents_a_value", ", ".join(strange[:4]), says))
        return [fault for fault in faults if fault is not None]

    def references(self, queries: Sequence[str], plan: TaskPlan) -> list[tuple[int, DraftFault]]:
        """Everything in the requests that a reader takes to mean another thing than the calls use: (turn, fault)."""
        check, calls = ReferenceCheck(self.wording, now=plan.now), plan.grounded.calls
        asked: set[str] = set()
        for number, turn in enumerate(plan.turns):
            open_keys = {key for key in plan.needed(turn) if key not in plan.stated(number)} - asked
            spoken = build_gold_turn(queries[number], calls[turn.start : turn.stop], turn.start, calls, open_keys)
            spoken.replies = ". ".join(plan.known[key].said for key in sorted(open_keys))
            check.read(spoken)
            asked |= open_keys
        return [
            (fault.turn, DraftFault(f"ambiguous_reference:{fault.kind}", fault.words, fault.describe()))
            for fault in check.faults
        ]

    def scenario(self, text: str, plan: TaskPlan) -> list[DraftFault]:
        """Everything that is wrong with a persona or scenario: it names no tool and no facts but the known ones."""
        allowed = self.build_allowed_content(plan, len(plan.turns) - 1)
        allowed.add(*(entry.said for entry in plan.known.values()), *(entry.value for entry in plan.known.values()))
        faults = [
            find_tool_mention(text, self.tools),
            find_leaked_value(text, plan.grounded.calls, plan.known.values()),
        ]
        strange = allowed.find_unsupported(text)
        if strange:
            says = f"it says {', '.join(map(repr, strange[:4]))}, which is not given: leave it out"
            faults.append(DraftFault("persona_invents_a_value", ", ".join(strange[:4]), says))
        return [fault for fault in faults if fault is not None]

    @staticmethod
    def _states_fact(text: str, entry: UserFact) -> bool:
        return entry.how in ("value", "equals") and is_value_mentioned(text, entry.value)

    @staticmethod
    def _shape(text: str) -> DraftFault | None:
        if not text.strip():
            return DraftFault("query_is_no_request", "", "it is empty")
        if len(text) > MAX_QUERY_LENGTH:
            return DraftFault(
                "query_is_no_request", text[:120], f"it has {len(text)} characters; stay under {MAX_QUERY_LENGTH}"
            )
        if re.search(r"[{}<>]|```|^\s*[-*#] ", text, re.MULTILINE):
            return DraftFault("query_is_no_request", text[:120], "it has markup or code in it; write plain speech")
        return None
