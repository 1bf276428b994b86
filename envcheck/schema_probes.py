"""Probe calls: at the edges of the schemas, beyond them, and with unknown names."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from trajsmith.envcheck.argument_sampler import ArgumentSampler
from trajsmith.envcheck.case_runner import CaseRunner, StateCheckpoint
from trajsmith.envcheck.exploration import Explorer, Observation
from trajsmith.envcheck.findings import CaseStep
from trajsmith.envcheck.stated_numbers import find_upper_limits
from trajsmith.grounding import (
    SchemaField,
    fits_schema,
    is_within_bounds,
    list_boundary_values,
    list_invalid_values,
    split_name,
)
from trajsmith.records import EnvironmentFault, JsonObject, ToolSpec, derive_seed

Aim = Literal["edge", "wrong", "missing", "extra", "unknown", "beyond"]
PER_TOOL = 40
"""Probes of one tool."""
BASES = 2
"""Calls of each tool that succeeded and are varied."""


def is_list_size(parameter: str) -> bool:
    """Return True if a parameter limits the length of a list; too large a value is often clamped."""
    return bool(_LISTING & set(split_name(parameter)))


_LISTING = frozenset({"limit", "page", "top", "max", "result", "first", "size", "per", "offset"})
NEVER = "zz-no-such-thing-0"


@dataclass(frozen=True)
class SchemaProbe:
    """A varied call and its observation."""

    aim: Aim
    parameter: str
    base: Observation
    """The call that succeeded."""
    seen: Observation


async def probe_all(explorer: Explorer) -> list[SchemaProbe]:
    """Probe every tool from states at which it has succeeded."""
    probes: list[SchemaProbe] = []
    for tool in explorer.tools:
        bases = sorted(explorer.log.succeeded(tool.name), key=lambda seen: len(seen.prefix))
        for base in _different(bases, BASES):
            probes += await _probe(explorer, tool, base)
    return probes


def _different(seen: list[Observation], count: int) -> list[Observation]:
    """The first, and the one with most parameters."""
    if not seen:
        return []
    fullest = max(seen, key=lambda one: len(one.step.arguments))
    return [seen[0], *([fullest] if fullest is not seen[0] else [])][:count]


async def _probe(explorer: Explorer, tool: ToolSpec, base: Observation) -> list[SchemaProbe]:
    runner, probes = explorer.runner, []
    await runner.reset_to(base.start)
    for step in base.prefix:
        await runner.call(step)
    mark = await runner.mark()
    rng = random.Random(derive_seed(explorer.seed, "probe", tool.name))
    variations = list(_variations(explorer.sampler, tool, base))
    for aim, parameter, arguments in _sample(variations, PER_TOOL // BASES, rng):
        step = CaseStep(tool=tool.name, arguments=arguments, actor=tool.actor)
        seen = await explorer.observe(base.start, base.prefix, step, drawn=False)
        probes.append(SchemaProbe(aim, parameter, base, seen))
        if (seen.changed or seen.outcome.fault is not None) and not await _is_back(runner, mark):
            break
    return probes


async def _is_back(runner: CaseRunner, mark: StateCheckpoint) -> bool:
    """Undo a probe; false if the state before it cannot be loaded again, which `round_trip` tells of."""
    try:
        await runner.restore(mark)
    except EnvironmentFault:
        await runner.open_new_session()
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


def _variations(sampler: ArgumentSampler, tool: ToolSpec, base: Observation) -> Iterator[Variation]:
    arguments = base.step.arguments
    for name in tool.required:
        yield "missing", name, {key: value for key, value in arguments.items() if key != name}
    yield "extra", "", {**arguments, "zz_no_such_parameter": 1}
    for leaf in sampler.leaves[tool.name]:
        if "." in leaf.path or "[" in leaf.path:
            continue
        if sampler.is_reference(tool.name, leaf) and isinstance(arguments.get(leaf.path), str):
            yield "unknown", leaf.path, {**arguments, leaf.path: _unknown(arguments[leaf.path], leaf, base)}
        elif sampler.is_lookup_parameter(tool.name, leaf) and leaf.path in arguments:
            yield "unknown", leaf.path, {**arguments, leaf.path: NEVER}
        for value in values_beyond_limits(leaf, arguments.get(leaf.path)):
            yield "beyond", leaf.path, {**arguments, leaf.path: value}
        for value in list_boundary_values(leaf.schema, leaf.types):
            yield "edge", leaf.path, {**arguments, leaf.path: value}
        for value in list_invalid_values(leaf.schema, leaf.types):
            yield "wrong", leaf.path, {**arguments, leaf.path: value}


def values_beyond_limits(leaf: SchemaField, current: Any) -> Iterator[Any]:
    """Values just beyond the limits that a parameter's own description states."""
    if is_list_size(leaf.name):
        return
    for limit in find_upper_limits(leaf.description):
        if not float(limit.number).is_integer():
            continue
        step = int(limit.number) + (1 if limit.side == "upper" else -1)
        if leaf.types & {"integer", "number"} and is_within_bounds(step, leaf.schema):
            yield step
        elif (
            leaf.types == {"array"}
            and limit.side == "upper"
            and limit.number <= 50
            and isinstance(current, list)
            and current
        ):
            yield (current * step)[:step]
        elif leaf.types == {"string"} and "character" in limit.rest[:2] and limit.number <= 5000:
            yield "x" * step


def _unknown(known: str, leaf: SchemaField, base: Observation) -> str:
    """A name of the same form that nothing in the state has."""
    digits = [index for index, character in enumerate(known) if character.isdigit()]
    state = str(base.before.state)
    for digit in "98765":
        if len(digits) >= 2:
            altered = "".join(digit if index in digits else character for index, character in enumerate(known))
            if altered not in state and fits_schema(altered, leaf.schema, leaf.types):
                return altered
    return f"{known[:1]}{digit * 7}" if digits else NEVER
