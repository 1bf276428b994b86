"""Mechanical gates on what was written: a request may hold only what its speaker knows, and must hold what it promises.

A fault goes back to the writer in words (`says`); after the last round it is the reason of the drop.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chatmodel import Wording
from chatmodel.recognise import Sayable, tells
from chatmodel.surface import mentions
from grounding import leaves
from grounding.names import is_identifier
from querygen.plan import TaskPlan
from trajectory import EnvironmentSpec, FromOutput, GoldCall, Known

LONGEST = 1500
"""Characters of a request."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a draft."""

    reason: str
    """Drop reason."""
    detail: str
    """The piece of text, or the fact, that it is about."""
    says: str = ""
    """What the writer is told."""


def tool_patterns(spec: EnvironmentSpec) -> list[re.Pattern[str]]:
    """How tool names stand in a text; names that are ordinary words are no sign of anything."""
    names = [tool.name for tool in spec.tools if "_" in tool.name or re.search(r"[a-z][A-Z]", tool.name)]
    return [re.compile(rf"\b{re.escape(name)}\b") for name in names]


def names_a_tool(text: str, patterns: Sequence[re.Pattern[str]]) -> Fault | None:
    found = next((match.group(0) for pattern in patterns if (match := pattern.search(text))), None)
    if found is None:
        return None
    return Fault("query_names_a_tool", text[:120], f'it names the tool "{found}"; people do not know tool names')


def leaks(text: str, calls: Sequence[GoldCall], known: Iterable[Known]) -> Fault | None:
    """A value that only a tool could have told: an identifier that the calls take from results."""
    sayable = {str(entry.value) for entry in known}
    for path, value in internal_values(calls):
        said = str(value)
        if len(said) >= 4 and said in text and said not in sayable:
            says = f'it says "{said}", which this person cannot know yet'
            return Fault("query_leaks_an_internal_value", f"{path}={said}", says)
    return None


def internal_values(calls: Sequence[GoldCall]) -> Iterator[tuple[str, Any]]:
    """Identifiers that the calls take from earlier results."""
    for call in calls:
        for path, source, value in leaves(call):
            if isinstance(source, FromOutput) and is_identifier(path.split(".")[-1]):
                yield path, value


class Gates:
    """The gates of one environment."""

    def __init__(self, spec: EnvironmentSpec, wording: Wording) -> None:
        self.wording = wording
        self.tools = tool_patterns(spec)
        self.common = Sayable()
        self.common.add(spec.name, spec.description, *(tool.description for tool in spec.tools))
        self.common.add(*(surface for tool in spec.tools for surface in tool.parameters))

    def sayable(self, plan: TaskPlan, upto: int, held: Collection[str] = ()) -> Sayable:
        """What the user may say by the end of a turn; `held` is known, too, but not said yet."""
        allowed = Sayable(self.common)
        allowed.add(plan.persona.name, plan.persona.role, plan.scenario, plan.clock)
        for key in plan.stated(upto) | {key for turn in plan.turns[:upto] for key in turn.held}:
            if key not in held:
                allowed.add(plan.known[key].value, plan.known[key].said)
        allowed.add(*(turn.meaning for turn in plan.turns[: upto + 1] if not (turn.opened or turn.held)))
        return allowed

    def query(self, text: str, plan: TaskPlan, number: int) -> list[Fault]:
        """Everything that is wrong with the request of one turn."""
        turn = plan.turns[number]
        found = [
            names_a_tool(text, self.tools),
            leaks(text, plan.grounded.calls, plan.known.values()),
            self._shape(text),
        ]
        for key in turn.fresh:
            if not tells(text, plan.known[key], self.wording):
                entry = plan.known[key]
                says = f'it does not say the {entry.label} as it is known: "{entry.said}"'
                found.append(Fault("query_leaves_out_a_fact", key, says))
        others = " ".join(plan.known[key].said for key in turn.fresh)
        for key in turn.held:
            entry, elsewhere = plan.known[key], others if key == turn.opened else turn.meaning
            if self._given(text, entry) and not self._given(elsewhere, entry):
                says = f'it says the {entry.label} "{entry.said}" already, which must be left open'
                found.append(Fault("query_tells_what_is_held_back", key, says))
        strange = self.sayable(plan, number, turn.held).strange(text)
        if strange:
            says = f"it says {', '.join(map(repr, strange[:4]))}, which stands in none of the facts: leave it out"
            found.append(Fault("query_invents_a_value", ", ".join(strange[:4]), says))
        return [fault for fault in found if fault is not None]

    def scenario(self, text: str, plan: TaskPlan) -> list[Fault]:
        """Everything that is wrong with a persona or scenario: it names no tool and no facts but the known ones."""
        allowed = self.sayable(plan, len(plan.turns) - 1)
        allowed.add(*(entry.said for entry in plan.known.values()), *(entry.value for entry in plan.known.values()))
        found = [names_a_tool(text, self.tools), leaks(text, plan.grounded.calls, plan.known.values())]
        strange = allowed.strange(text)
        if strange:
            says = f"it says {', '.join(map(repr, strange[:4]))}, which is not given: leave it out"
            found.append(Fault("persona_invents_a_value", ", ".join(strange[:4]), says))
        return [fault for fault in found if fault is not None]

    @staticmethod
    def _given(text: str, entry: Known) -> bool:
        return entry.how in ("value", "equals") and mentions(text, entry.value)

    @staticmethod
    def _shape(text: str) -> Fault | None:
        if not text.strip():
            return Fault("query_is_no_request", "", "it is empty")
        if len(text) > LONGEST:
            return Fault("query_is_no_request", text[:120], f"it has {len(text)} characters; stay under {LONGEST}")
        if re.search(r"[{}<>]|```|^\s*[-*#] ", text, re.MULTILINE):
            return Fault("query_is_no_request", text[:120], "it has markup or code in it; write plain speech")
        return None
