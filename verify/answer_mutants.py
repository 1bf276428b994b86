"""Wrong answers to what was asked: the calls are right, the words are not. None of them needs the environment.

Each takes the place of one right answer; what else the turn asks for is told rightly. A wrong answer that states the
same values as the right one is no mistake and is not made.
"""

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.grounding import is_identifier
from trajsmith.phrasing import format_value, humanize, render_fact, render_phrase
from trajsmith.records import AnswerFact, RequestedInfo
from trajsmith.verify.normalized_state import get_at_place, iter_leaves

ANSWER_KINDS = ("nothing_told", "another_field", "another_row", "stale_value")
IDLE_WORDS = "I've looked that up for you, and it's all there."


@dataclass(frozen=True)
class AnswerMutant:
    """A wrong answer of one turn."""

    kind: str
    says: str
    turn: int
    text: str


class AnswerMutator:
    """Makes wrong answers to what the turns of a task ask for, in an order that depends on the seed only."""

    def __init__(
        self,
        asked: Sequence[Sequence[RequestedInfo]],
        checked: Sequence[Sequence[AnswerFact]],
        results: Mapping[int, Any],
        seed: int,
    ) -> None:
        """Prepare the wrong answers.

        Args:
            asked: What each turn asks for.
            checked: The facts of each turn that checks look for.
            results: Gold call to its result.
            seed: Which answers come first.
        """
        self.asked = asked
        self.checked = [{repr(fact.value) for fact in facts} for facts in checked]
        self.results = results
        self.rng = random.Random(seed)

    def all(self) -> Iterator[AnswerMutant]:
        """Yield wrong answers, of all kinds in turn."""
        sites = [
            (kind, turn, info)
            for turn, infos in enumerate(self.asked)
            for info in infos
            for kind in ANSWER_KINDS
            if any(repr(fact.value) in self.checked[turn] for fact in info.facts)
        ]
        for kind, turn, info in self.rng.sample(sites, len(sites)):
            text = self._render(kind, turn, info)
            if text is not None:
                rest = [render_fact(fact) for other in self.asked[turn] if other is not info for fact in other.facts]
                says = f"{kind}: {info.question} {text}"
                yield AnswerMutant(kind, says, turn, "\n".join([*rest, text]))

    def _render(self, kind: str, turn: int, info: RequestedInfo) -> str | None:
        """Return a wrong answer of this kind, or None if there is none."""
        beside = {repr(fact.value) for other in self.asked[turn] if other is not info for fact in other.facts}
        open_facts = [fact for fact in info.facts if repr(fact.value) in self.checked[turn] - beside]
        if not open_facts:
            return None
        if kind == "nothing_told":
            return IDLE_WORDS
        fact = self.rng.choice(open_facts)
        if not fact.place or fact.value == []:
            return None
        if kind == "another_field":
            return self._tell_another_field(info, fact)
        if kind == "another_row":
            return self._tell_another_row(info) if info.row else None
        return self._tell_stale_value(info, fact)

    def _tell_another_field(self, info: RequestedInfo, fact: AnswerFact) -> str | None:
        """A field beside the one that was asked for, with the others told rightly."""
        around = get_at_place(self.results.get(info.call), fact.place[:-1])
        if not isinstance(around, dict):
            return None
        right = {repr(other.value) for other in info.facts}
        fields = [
            name
            for name, value in around.items()
            if isinstance(value, str | int | float) and value != "" and name != fact.place[-1]
            if repr(value) not in right and type(value) is type(fact.value) and not is_identifier(name)
        ]
        if not fields:
            return None
        fields = [name for name in fields if not _contains(around[name], fact.value)]
        if not fields:
            return None
        name = self.rng.choice(fields)
        rest = [render_fact(other) for other in info.facts if other.value != fact.value]
        return "\n".join([*rest, f"The {humanize(name)} is {format_value(around[name])}."])

    def _tell_another_row(self, info: RequestedInfo) -> str | None:
        """The same fields of another row, all with other values."""
        place = info.facts[0].place
        where = next((number for number, part in enumerate(place) if part.isdigit()), None)
        if where is None:
            return None
        content = self.results.get(info.call)
        rows = get_at_place(content, place[:where])
        right = rows[int(place[where])]
        others = [
            row
            for number, row in enumerate(rows)
            if str(number) != place[where]
            and all(_differs(get_at_place(row, fact.place[where + 1 :]), fact.value) for fact in info.facts)
        ]
        options = ((row, template) for row in self._shuffle(others) for template in self._shuffle(info.answer))
        for row, template in options:
            text = _render(template, content, row)
            if text and text != _render(template, content, right):
                return text
        return None

    def _tell_stale_value(self, info: RequestedInfo, fact: AnswerFact) -> str | None:
        """The value of an earlier result for the same entity, before it changed."""
        content = self.results.get(info.call)
        field, identity = fact.place[-1], _get_identity(get_at_place(content, fact.place[:-1]))
        for call in range(info.call - 1, -1, -1):
            for place, value in iter_leaves(self.results.get(call), ()):
                if not place or place[-1] != field or not _differs(value, fact.value):
                    continue
                if identity and identity & _get_identity(get_at_place(self.results[call], place[:-1])):
                    return self._tell_replaced(info, fact, _replace(content, fact.place, value), value)
        return None

    def _tell_replaced(self, info: RequestedInfo, fact: AnswerFact, content: Any, value: Any) -> str | None:
        """Answer from a result in which a value was replaced; without templates by its field."""
        depth = next((number for number, part in enumerate(fact.place) if part.isdigit()), 0) + 1
        row = get_at_place(content, fact.place[:depth]) if info.row is not None else None
        texts = [_render(template, content, row) for template in self._shuffle(info.answer)]
        plain = "" if info.narrow else f"The {humanize(fact.place[-1])} is {format_value(value)}."
        text = next((text for text in texts if text), plain)
        rest = [render_fact(other) for other in info.facts if other.value != fact.value]
        return "\n".join([*rest, text]) if text else None

    def _shuffle(self, items: Sequence[Any]) -> list[Any]:
        return self.rng.sample(list(items), len(items))


def _render(template: str, content: Any, row: Any) -> str | None:
    """Return an answer to a question for another result or row."""
    values = {"out": content, "arg": {}, "row_templates": {}, "now": "", **({} if row is None else {"row": row})}
    return render_phrase(template, values)


def _contains(value: Any, fact: Any) -> bool:
    """Return True if a text holds another one: "twin room at the Blue Anchor" tells the inn."""
    return isinstance(value, str) and str(fact).lower() in value.lower()


def _differs(value: Any, fact: Any) -> bool:
    return isinstance(value, str | int | float) and type(value) is type(fact) and value != fact


def _get_identity(row: Any) -> set[tuple[str, Any]]:
    """Return the identifiers of a row."""
    fields = row.items() if isinstance(row, dict) else ()
    return {(name, value) for name, value in fields if is_identifier(name) and isinstance(value, str | int)}


def _replace(content: Any, place: Sequence[str], value: Any) -> Any:
    changed = copy.deepcopy(content)
    node = changed
    for part in place[:-1]:
        node = node[int(part)] if isinstance(node, list) else node[part]
    node[place[-1]] = value
    return changed
