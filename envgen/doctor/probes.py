"""Calls that are made to see what happens: at the edges of the schemas, beyond them, with names that do not exist."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from envgen.doctor import texts
from envgen.doctor.case import Step
from envgen.doctor.explore import Explorer, Observation
from envgen.doctor.lab import Lab, Mark
from envgen.doctor.maker import Maker
from envgen.doctor.numbers import limits
from grounding.fields import SchemaField
from grounding.names import words
from trajectory import EnvironmentFault, JsonObject, ToolSpec, derive_seed

Aim = Literal["edge", "wrong", "missing", "extra", "unknown", "beyond"]
PER_TOOL = 40
"""Probes of one tool."""
BASES = 2
"""Calls of each tool that succeeded and are varied."""


def sizes_list(parameter: str) -> bool:
    """True if a parameter says how much is listed; too large a number is often taken as the largest possible one."""
    return bool(_LISTING & set(words(parameter)))


_LISTING = frozenset({"limit", "page", "top", "max", "result", "first", "size", "per", "offset"})
NEVER = "zz-no-such-thing-0"


@dataclass(frozen=True)
class Probe:
    """A call that was varied, and what came of it."""

    aim: Aim
    parameter: str
    base: Observation
    """The call that succeeded."""
    seen: Observation


async def probe_all(explorer: Explorer) -> list[Probe]:
    """Probe every tool from states at which it has succeeded."""
    probes: list[Probe] = []
    for tool in explorer.tools:
        bases = sorted(explorer.found.succeeded(tool.name), key=lambda seen: len(seen.prefix))
        for base in _different(bases, BASES):
            probes += await _probe(explorer, tool, base)
    return probes


def _different(seen: list[Observation], count: int) -> list[Observation]:
    """The first, and the one with most parameters."""
    if not seen:
        return []
    fullest = max(seen, key=lambda one: len(one.step.arguments))
    return [seen[0], *([fullest] if fullest is not seen[0] else [])][:count]


async def _probe(explorer: Explorer, tool: ToolSpec, base: Observation) -> list[Probe]:
    lab, made = explorer.lab, []
    await lab.begin(base.start)
    for step in base.prefix:
        await lab.call(step)
    mark = await lab.mark()
    rng = random.Random(derive_seed(explorer.seed, "probe", tool.name))
    variations = list(_variations(explorer.maker, tool, base))
    for aim, parameter, arguments in _sample(variations, PER_TOOL // BASES, rng):
        step = Step(tool=tool.name, arguments=arguments, actor=tool.actor)
        seen = await explorer.observe(base.start, base.prefix, step, drawn=False)
        made.append(Probe(aim, parameter, base, seen))
        if (seen.changed or seen.outcome.fault is not None) and not await _is_back(lab, mark):
            break
    return made


async def _is_back(lab: Lab, mark: Mark) -> bool:
    """Undo a probe; false if the state before it cannot be loaded again, which `round_trip` tells of."""
    try:
        await lab.back(mark)
    except EnvironmentFault:
        await lab.renew()
        return False
    return True


Variation = tuple[Aim, str, JsonObject]
FIRST: tuple[Aim, ...] = ("unknown", "missing", "beyond")
"""Aims that no probe is left out of."""


def _sample(variations: list[Variation], count: int, rng: random.Random) -> list[Variation]:
    """All that ask for names that do not exist or leave something out; of the others, as many as there is room for."""
    first = [variation for variation in variations if variation[0] in FIRST]
    rest = [variation for variation in variations if variation[0] not in FIRST]
    return [*first, *rng.sample(rest, min(len(rest), max(0, count - len(first))))]


def _variations(maker: Maker, tool: ToolSpec, base: Observation) -> Iterator[Variation]:
    arguments = base.step.arguments
    for name in tool.required:
        yield "missing", name, {key: value for key, value in arguments.items() if key != name}
    yield "extra", "", {**arguments, "zz_no_such_parameter": 1}
    for leaf in maker.leaves[tool.name]:
        if "." in leaf.path or "[" in leaf.path:
            continue
        if maker.names_something(tool.name, leaf) and isinstance(arguments.get(leaf.path), str):
            yield "unknown", leaf.path, {**arguments, leaf.path: _unknown(arguments[leaf.path], leaf, base)}
        elif maker.looks_up(tool.name, leaf) and leaf.path in arguments:
            yield "unknown", leaf.path, {**arguments, leaf.path: NEVER}
        for value in beyond(leaf, arguments.get(leaf.path)):
            yield "beyond", leaf.path, {**arguments, leaf.path: value}
        for value in texts.edges(leaf.schema, leaf.types):
            yield "edge", leaf.path, {**arguments, leaf.path: value}
        for value in texts.wrong(leaf.schema, leaf.types):
            yield "wrong", leaf.path, {**arguments, leaf.path: value}


def beyond(leaf: SchemaField, given: Any) -> Iterator[Any]:
    """Values just beyond the limits that a parameter's own description states."""
    if sizes_list(leaf.name):
        return
    for limit in limits(leaf.description):
        if not float(limit.number).is_integer():
            continue
        step = int(limit.number) + (1 if limit.side == "upper" else -1)
        if leaf.types & {"integer", "number"} and texts.within(step, leaf.schema):
            yield step
        elif (
            leaf.types == {"array"}
            and limit.side == "upper"
            and limit.number <= 50
            and isinstance(given, list)
            and given
        ):
            yield (given * step)[:step]
        elif leaf.types == {"string"} and "character" in limit.rest[:2] and limit.number <= 5000:
            yield "x" * step


def _unknown(known: str, leaf: SchemaField, base: Observation) -> str:
    """A name of the same form that nothing in the state has."""
    digits = [index for index, character in enumerate(known) if character.isdigit()]
    state = str(base.before.state)
    for digit in "98765":
        if len(digits) >= 2:
            made = "".join(digit if index in digits else character for index, character in enumerate(known))
            if made not in state and texts.fits(made, leaf.schema, leaf.types):
                return made
    return f"{known[:1]}{digit * 7}" if digits else NEVER
