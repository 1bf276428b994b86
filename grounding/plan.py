"""All ways to fill the arguments of one call, and one of them drawn at random."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trajsmith.grounding.argument_paths import build_arguments, get_argument_name
from trajsmith.grounding.lessons import Lessons
from trajsmith.phrasing import list_slots
from trajsmith.records import (
    Composite,
    Constant,
    FromOutput,
    FromUser,
    GoldCall,
    JsonObject,
    JsonValue,
    Provenance,
    ToolSpec,
    canonical_json,
)

EVERY = "[*]"
BLAME = 0.15
"""Factor on the weight of a value after a refusal."""
SAID = 0.7
"""Probability of an optional argument that the chosen words of a goal name."""
SAME_ROW_SHARE = 0.75
"""Share of wide draws that take the values of one row of the state."""
WIDE_SHARE = 0.3
"""Probability of an optional argument in wide draws."""


@dataclass(frozen=True)
class Option:
    """One way to fill a leaf."""

    value: Any
    source: FromUser | FromOutput | Constant
    weight: float = 1.0


@dataclass(frozen=True)
class Assignment:
    """Arguments of a call, and where each of them comes from."""

    arguments: JsonObject
    provenance: dict[str, Provenance]
    leaves: dict[str, Any]
    """Leaf path to value."""

    def as_call(self, tool: ToolSpec, changed: bool, result: JsonValue) -> GoldCall:
        """Return the call that was made with these arguments."""
        return GoldCall(
            tool=tool.name,
            actor=tool.actor,
            arguments=self.arguments,
            provenance=self.provenance,
            effect="write" if changed else "read",
            result=result,
        )


@dataclass
class WideOptions:
    """Wider options for leaves, and rows of the state that fit several of them."""

    options: dict[str, list[Option]] = field(default_factory=dict)
    rows: list[tuple[float, dict[str, Option]]] = field(default_factory=list)


class ArgumentPlan:
    """All ways to fill the leaves of one call at one point of the search; `draw` combines them at random."""

    def __init__(
        self,
        tool: str,
        required: dict[str, list[Option]],
        optional: dict[str, list[Option]],
        rows: list[dict[str, Option]],
        share: float,
        lessons: Lessons,
        containers: Sequence[str] = (),
        most_rows: int = 1,
    ) -> None:
        """`containers` are required arguments of whose leaves none is required; `most_rows` is for lists of objects."""
        self.tool = tool
        self.required = required
        self.optional = optional
        self.rows = rows
        self.share = share
        self.lessons = lessons
        self.containers = containers
        self.most_rows = most_rows
        self.wide: WideOptions | None = None
        self._allowed: dict[str, Callable[[Any], bool]] = {}
        """Leaf to the test of its values that a scenario makes."""
        self.alone = 0.9
        """Probability of one optional leaf where nothing is required and none was drawn."""
        self.refused: dict[tuple[str, str], float] = {}
        """(leaf, value) to the factor that its weight has lost by refusals."""

    @property
    def unmet(self) -> list[str]:
        """Required leaves that have no value at all."""
        return [path for path, options in self.required.items() if not options and not self._wide(path)]

    @property
    def possible(self) -> bool:
        """False if a required leaf has no value at all."""
        return not self.unmet

    def list_likely(self, path: str) -> list[Option]:
        """Return the likely options for a leaf."""
        return self.required.get(path) or self.optional.get(path) or []

    def bind(self, path: str, options: list[Option]) -> None:
        """Leave a leaf these options only; the call cannot be made without it."""
        self.optional.pop(path, None)
        self.required[path] = options
        values = [option.value for option in options]
        self.rows = [row for row in self.rows if path not in row or row[path].value in values]
        self.rows = [{leaf: option for leaf, option in row.items() if leaf != path} for row in self.rows]
        self._allowed[path] = lambda value: False

    def leave_out(self, paths: Sequence[str]) -> None:
        """Leave optional leaves out of the call, in a second look as well."""
        for path in paths:
            self.optional.pop(path, None)
            self._allowed[path] = lambda value: False

    def limit_to_story(self, texts: Sequence[str], bound: Sequence[str], rng: random.Random) -> None:
        """Leave the optional arguments that a sentence of a story names, surely those that all of its sentences do.

        Who goes abroad soon says from which day the pass is to run.

        Args:
            texts: The sentences of the step; without any, nothing is left out.
            bound: Arguments that the story fills.
            rng: Source of randomness.
        """
        if texts:
            wanted = [name for name in bound if name in self.optional]
            fitting = [slots for slots in map(list_slots, texts) if slots.issuperset(wanted)]
            always = frozenset.intersection(*fitting) if fitting else frozenset()
            self._keep_named(rng.choice(fitting) if fitting else frozenset(), always)

    def limit_to_sentences(self, texts: Sequence[str], linked: Sequence[str], rng: random.Random) -> None:
        """Leave the optional arguments that a request outside of stories names.

        A list is asked for with a filter as often as without, however few sentences name one, and mostly with one
        that an earlier call has filled.

        Args:
            texts: The sentences that ask for the tool; without any, nothing is left out.
            linked: Optional leaves that an earlier call gives.
            rng: Source of randomness.
        """
        if not texts:
            return
        optional = {get_argument_name(path) for path in self.optional}
        filled = frozenset(map(get_argument_name, linked))
        choices = sorted({slots & optional for slots in map(list_slots, texts)}, key=sorted)
        connected = [slots for slots in choices if slots & filled]
        if connected and rng.random() < SAID:
            self._keep_named(rng.choice(connected), filled)
        else:
            self._keep_named(rng.choice(choices))

    def _keep_named(self, named: frozenset[str], always: frozenset[str] = frozenset()) -> None:
        self.leave_out([path for path in self.optional if get_argument_name(path) not in named])
        sure = any(get_argument_name(path) in always for path in self.optional)
        self.share = 1.0 if sure else max(self.share, SAID)

    def restrict(self, path: str, allows: Callable[[Any], bool]) -> None:
        """Leave a leaf the values that pass a test, in a second look as well."""
        for options in (self.required, self.optional):
            if path in options:
                options[path] = [option for option in options[path] if allows(option.value)]
        if not self.optional.get(path, True):
            del self.optional[path]
        self.rows = [row for row in self.rows if path not in row or allows(row[path].value)]
        self._allowed[path] = allows

    def _wide(self, path: str) -> list[Option]:
        options = self.wide.options.get(path, []) if self.wide is not None else []
        allows = self._allowed.get(path)
        return options if allows is None else [option for option in options if allows(option.value)]

    def draw(self, rng: random.Random) -> Assignment:
        """One random assignment; at least one optional leaf where nothing is required."""
        return self._draw_wide(rng) if self.wide is not None else self._draw(rng)

    def draw_untried(self, rng: random.Random, tried: set[bytes], draws: int) -> Iterator[Assignment]:
        """Yield assignments that were not tried; where another one is asked for, the values of the last are blamed.

        Args:
            rng: Source of randomness.
            tried: Arguments that the call was made with; those that are yielded are added.
            draws: Assignments that are drawn, those counted too that were tried before.
        """
        for _ in range(draws if self.possible else 0):
            assignment = self.draw(rng)
            arguments = canonical_json(assignment.arguments)
            if arguments not in tried:
                tried.add(arguments)
                yield assignment
                self.blame(assignment)

    def _draw(self, rng: random.Random) -> Assignment:
        extra = [path for path in self.optional if rng.random() < self.share]
        if not self.required and not extra and self.optional and rng.random() < self.alone:
            extra = [rng.choice(list(self.optional))]
        extra += self._inside(extra, self.optional, rng)
        leaves = {**self.required, **{path: self.optional[path] for path in extra}}
        row = rng.choice(self.rows) if self.rows else {}
        chosen = {path: row.get(path) or self._choose(path, options, rng) for path, options in leaves.items()}
        return assemble_arguments(self._more_rows(chosen, rng))

    def _inside(self, extra: list[str], optional: Mapping[str, list[Option]], rng: random.Random) -> list[str]:
        """Leaves for required objects and lists that would have none; all of them half of the time."""
        included: list[str] = []
        for name in self.containers:
            inner = [path for path in optional if get_argument_name(path) == name and path != name]
            if inner and not any(get_argument_name(path) == name for path in (*self.required, *extra)):
                included += inner if rng.random() < 0.5 else rng.sample(inner, rng.randint(1, len(inner)))
        return included

    def _draw_wide(self, rng: random.Random) -> Assignment:
        assert self.wide is not None
        wanted = self.lessons.wanted[self.tool]
        optional = {path: options for path, options in self.wide.options.items() if path not in self.required}
        share = WIDE_SHARE if rng.random() < 0.5 else 0.0
        extra = [path for path in optional if path in wanted or rng.random() < share]
        extra += [path for path in self._inside(extra, optional, rng) if path not in extra]
        together = self.wide.rows and rng.random() < SAME_ROW_SHARE
        row = rng.choices([row for _, row in self.wide.rows], [w for w, _ in self.wide.rows])[0] if together else {}
        chosen: dict[str, Option] = {}
        for path in (*self.required, *extra):
            near, wide = self.list_likely(path), self._wide(path)
            learnt = self.lessons.hints(self.tool, path) is not None
            if near and (not wide or (not learnt and rng.random() < 0.4)):
                chosen[path] = self._choose(path, near, rng)
            elif path in row and path not in self._allowed and not (learnt and rng.random() < 0.7):
                chosen[path] = row[path]
            elif wide:
                chosen[path] = self._choose(path, wide, rng)
        return assemble_arguments(self._more_rows(chosen, rng))

    def _more_rows(self, chosen: dict[str, Option], rng: random.Random) -> dict[str, Option]:
        """The leaves of the first rows of lists of objects, and of further rows that differ from those before."""
        widened = dict(chosen)
        for prefix in dict.fromkeys(path.split(EVERY)[0] for path in chosen if f"{EVERY}." in path):
            inside = [path for path in chosen if path.startswith(prefix + EVERY)]
            seen = {repr([chosen[path].value for path in inside])}
            for number in range(1, self.most_rows):
                row = {path: self._choose(path, self.list_likely(path) or self._wide(path), rng) for path in inside}
                signature = repr([option.value for option in row.values()])
                if signature in seen or rng.random() < 0.5:
                    break
                seen.add(signature)
                for path, option in row.items():
                    widened[path.replace(EVERY, f"[{number}]", 1)] = _move_to_row(option, number)
        return widened

    def _choose(self, path: str, options: list[Option], rng: random.Random) -> Option:
        if not self.refused and self.tool not in self.lessons.weighed:
            return rng.choices(options, [option.weight for option in options])[0]
        return rng.choices(options, [option.weight * self._factor(path, option.value) for option in options])[0]

    def _factor(self, path: str, value: Any) -> float:
        return self.refused.get((path, repr(value)), 1.0) * self.lessons.weight(self.tool, path, value)

    def blame(self, assignment: Assignment) -> None:
        """A call with these arguments was refused: its values become less likely, the guilty one most."""
        for path, value in assignment.leaves.items():
            key = (path, repr(value))
            self.refused[key] = self.refused.get(key, 1.0) * BLAME


def _move_to_row(option: Option, number: int) -> Option:
    """The option with a key of its own, if the user says it: two rows are two things to know."""
    if not isinstance(option.source, FromUser):
        return option
    return replace(option, source=FromUser(known=f"{option.source.known}#row{number + 1}"))


def assemble_arguments(chosen: Mapping[str, Option]) -> Assignment:
    """Build nested arguments from leaf paths; a nested argument gets a composite provenance."""
    values = {path: option.value for path, option in chosen.items()}
    provenance: dict[str, Provenance] = {}
    leaves: dict[str, dict[str, Any]] = {}
    for path, option in chosen.items():
        name = get_argument_name(path)
        if name == path:
            provenance[name] = option.source
        else:
            leaves.setdefault(name, {})[path.replace(EVERY, "[0]")] = option.source
    for name, sources in leaves.items():
        provenance[name] = Composite(leaves=sources)
    return Assignment(build_arguments(values), provenance, values)
