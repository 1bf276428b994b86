"""What calls have taught so far: values that worked and that did not, and what refusals said about parameters.

A refusal is the best documentation that many tools have: it names the choices, the limit or the form that the schema
leaves out. Lessons belong to one search unless a caller hands the same ones to several; then the order of the searches
matters, and only a caller that makes them in a fixed order should.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.hints import Hints, merge_hints, read_hints
from trajsmith.grounding.names import split_name

WORKED = 4.0
"""Factor on the weight of a value that a call of this tool succeeded with."""
FAILED = 0.4
"""Factor on the weight of a value for every call that failed with it."""
_MISSING = re.compile(r"required|missing|must be (?:provided|specified|given|set)|provide|specify|need", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_]+")


class Lessons:
    """Preferences per parameter, learned from successes and refusals."""

    def __init__(self) -> None:
        self._weights: dict[tuple[str, str, str], float] = {}
        self._hints: dict[tuple[str, str], Hints] = {}
        self.weighed: set[str] = set()
        """Tools of which some value is preferred or avoided."""
        self.wanted: dict[str, set[str]] = defaultdict(set)
        """Tool to optional leaves that refusals asked for."""
        self.refusals: dict[str, list[str]] = defaultdict(list)
        """Tool to what its refusals said, each text once."""

    def weight(self, tool: str, leaf: str, value: Any) -> float:
        """Factor on the weight of a value."""
        return self._weights.get((tool, leaf, repr(value)), 1.0)

    def hints(self, tool: str, leaf: str) -> Hints | None:
        """Return the hints that refusals gave about a parameter."""
        return self._hints.get((tool, leaf))

    def has_hints(self, tool: str) -> bool:
        """Return whether a refusal of this tool gave a hint about a parameter."""
        return bool(self.wanted.get(tool)) or any(name == tool for name, _ in self._hints)

    def record_success(self, tool: str, leaves: Mapping[str, Any]) -> None:
        """Record that a call succeeded with these values."""
        self.weighed.add(tool)
        for leaf, value in leaves.items():
            self._weights[tool, leaf, repr(value)] = WORKED

    def record_failure(self, tool: str, leaves: Mapping[str, Any]) -> None:
        """Record that a call had no effect or was refused with these values."""
        self.weighed.add(tool)
        for leaf, value in leaves.items():
            key = (tool, leaf, repr(value))
            self._weights[key] = self._weights.get(key, 1.0) * FAILED

    def record_refusal(self, tool: str, text: str, fields: Sequence[SchemaField], leaves: Mapping[str, Any]) -> bool:
        """Learn from a refusal; true if it said something new about a parameter."""
        if text in self.refusals[tool]:
            return False
        self.refusals[tool].append(text)
        about = _about(text, fields, leaves)
        missing = _MISSING.search(text) is not None
        asked = [leaf.path for leaf in about if missing and leaf.path not in leaves]
        self.wanted[tool].update(asked)
        hints = read_hints(_without(text, leaves))
        target = next((leaf for leaf in about if leaf.path in leaves), None) or next(iter(about), None)
        if target is None and hints.keys:
            target = next(
                (leaf for leaf in fields if leaf.types == frozenset({"object"}) and leaf.path in leaves), None
            )
        if not hints or target is None:
            return bool(asked)
        before = self._hints.get((tool, target.path))
        self._hints[tool, target.path] = merge_hints(before, hints) if before else hints
        return True


def _about(text: str, fields: Sequence[SchemaField], leaves: Mapping[str, Any]) -> list[SchemaField]:
    """The parameters that a text speaks of, surest first: by name, else by the value that was given."""
    spoken = {word for token in _WORD.findall(text) for word in split_name(token)}
    scored: list[tuple[float, SchemaField]] = []
    for leaf in fields:
        parts = set(split_name(leaf.name))
        score = 2.0 * (leaf.name in text) + len(parts & spoken) / max(len(parts), 1)
        value = leaves.get(leaf.path)
        if isinstance(value, str) and len(value) > 1 and value in text:
            score += 0.8
        if score > 0.4:
            scored.append((score, leaf))
    scored.sort(key=lambda pair: -pair[0])
    return [leaf for _, leaf in scored]


def _without(text: str, leaves: Mapping[str, Any]) -> str:
    """A refusal without the values that it repeats, so that they do not look like choices."""
    for value in leaves.values():
        if isinstance(value, str) and len(value) > 1:
            for quote in ("'", '"', "`"):
                text = text.replace(f"{quote}{value}{quote}", "")
    return text
