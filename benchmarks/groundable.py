"""Which tools grounding can call, and which a random filler can: per environment and in total, no model.

    .venv/bin/python benchmarks/groundable.py --envfactory ../EnvFactory
    .venv/bin/python benchmarks/groundable.py --library --awm DIRECTORY --openapi petstore.yaml box.json
    .venv/bin/python benchmarks/groundable.py --envfactory ../EnvFactory --only Canvas --reasons

A tool counts if one call of it gave a result that is neither a refusal nor empty. The filler is that of the other
scripts here: values from the state and from earlier results by name, every tool in turn, from every state. Grounding
gets a chain of one tool and puts before it whatever it finds to be missing, on the same states. The third column is
what can succeed at all: tools that either of the two has called, or the filler with `--long` times as many calls.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _published import Pool, fill
from rich.console import Console
from rich.table import Table

from trajsmith.environments import Session, ToolResult
from trajsmith.environments.adapters.awm.settings import discover as discover_awm
from trajsmith.environments.adapters.envscaler.settings import discover as discover_envscaler
from trajsmith.environments.session import EnvironmentSource
from trajsmith.environments.sources import EnvironmentSettings, expand_settings, open_source
from trajsmith.grounding import Grounder, GroundSettings, Lessons, is_empty
from trajsmith.grounding.rewind import make_rewindable
from trajsmith.phrasing import Phrasebook
from trajsmith.pipeline.run_context import index_givers
from trajsmith.records import (
    Actor,
    Chain,
    EnvironmentFault,
    EnvironmentSpec,
    JsonObject,
    RecordDropped,
    TrajsmithError,
    content_hash,
    derive_seed,
)
from trajsmith.toolgraph import GraphIndex, build_graph

SETTINGS = GroundSettings(
    min_calls=1, tries=8, wide=16, repairs=8, budget=120, jumps=8, guess=True, faults=20, optional=0.2
)
STATES = 4
"""States of an environment that are tried."""


@dataclass
class GroundingRow:
    """Result of one environment."""

    name: str
    tools: list[str] = field(default_factory=list)
    filler: set[str] = field(default_factory=set)
    grounded: set[str] = field(default_factory=set)
    ever: set[str] = field(default_factory=set)
    """Tools that anything has called."""
    calls: dict[str, int] = field(default_factory=lambda: {"filler": 0, "grounding": 0})
    seconds: dict[str, float] = field(default_factory=lambda: {"filler": 0.0, "grounding": 0.0})
    reasons: dict[str, str] = field(default_factory=dict)
    """Tool to why its last call came to nothing."""
    steps: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Tool to the calls that were made up to it."""
    failed: str = ""


class Counting:
    """A session that counts the calls that reach it."""

    def __init__(self, inner: Session) -> None:
        self.inner, self.spec, self.calls = make_rewindable(inner), inner.spec, 0

    async def reset(self, state: JsonObject) -> None:
        await self.inner.reset(state)

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        self.calls += 1
        return await self.inner.call(tool, arguments, actor)

    async def snapshot(self) -> JsonObject:
        return await self.inner.snapshot()

    async def state_hash(self) -> str:
        return await self.inner.state_hash()

    async def checkpoint(self) -> Any:
        return await self.inner.checkpoint()

    async def rollback(self, checkpoint: Any) -> None:
        await self.inner.rollback(checkpoint)

    async def close(self) -> None:
        await self.inner.close()


async def examine(name: str, source: EnvironmentSource, rounds: int, long: int, seed: int) -> GroundingRow:
    """Call every tool of one environment in every way."""
    row = GroundingRow(name)
    try:
        spec, states = await source.spec(), (await source.states(seed))[:STATES]
        row.tools = [tool.name for tool in spec.tools]
        session = Counting(await source.open())
        start = time.process_time()
        for number, state in enumerate(states):
            row.filler |= await fill_all(row, spec, session, state, rounds, random.Random(derive_seed(seed, number)))
        row.seconds["filler"] = time.process_time() - start
        start = time.process_time()
        await ground_all(row, spec, states, session, seed)
        row.seconds["grounding"] = time.process_time() - start
        row.calls["grounding"] = session.calls - row.calls["filler"]
        row.ever = row.filler | row.grounded
        before = row.calls["filler"]
        for number, state in enumerate(states if long else ()):
            chance = random.Random(derive_seed(seed, "long", number))
            row.ever |= await fill_all(row, spec, session, state, rounds * long, chance, row.ever)
        row.calls["filler"] = before
        await session.close()
    except TrajsmithError as error:
        row.failed = str(error)
    return row


async def fill_all(
    row: GroundingRow,
    spec: EnvironmentSpec,
    session: Session,
    state: JsonObject,
    rounds: int,
    chance: random.Random,
    done: Iterable[str] = (),
) -> set[str]:
    """Tools that a random filler calls with a result, from one state on."""
    await session.reset(state)
    pool, good, done = Pool(await session.snapshot()), set(), set(done)
    for _ in range(rounds):
        for tool in spec.tools:
            row.calls["filler"] += 1
            try:
                result = await session.call(tool.name, fill(tool, pool, chance), tool.actor)
            except EnvironmentFault as fault:
                row.reasons.setdefault(tool.name, f"fault: {fault.message}")
                continue
            if not result.ok:
                row.reasons.setdefault(tool.name, result.text)
                continue
            pool.add(tool.name, result.content)
            if not is_empty(result):
                good.add(tool.name)
        if done and done | good >= set(row.tools):
            break
    return good


async def ground_all(
    row: GroundingRow, spec: EnvironmentSpec, states: list[JsonObject], session: Session, seed: int
) -> None:
    """Ground a chain for every tool, state after state until one does; what one tool teaches serves the next."""
    givers = index_givers(GraphIndex(build_graph(spec.tools), spec.name))

    lessons = [Lessons() for _ in states]
    for number, state, repairs in [
        (n, state, times) for times in (0, SETTINGS.repairs) for n, state in enumerate(states)
    ]:
        settings = SETTINGS.model_copy(update={"repairs": repairs})
        grounder = Grounder(spec, state, Phrasebook(), settings, givers)
        for tool in row.tools:
            if tool in row.grounded:
                continue
            chain = Chain(
                index=number,
                environment=spec.name,
                tools=(tool,),
                dependencies=(),
                state=content_hash(state),
                sampler={},
                seed=derive_seed(seed, tool, number, repairs),
            )
            try:
                grounded = await grounder.ground(chain, session, lessons[number])
            except RecordDropped as drop:
                row.reasons[tool] = "; ".join(lessons[number].refusals[tool][-1:]) or row.reasons.get(tool, str(drop))
                continue
            except EnvironmentFault as fault:
                row.reasons[tool] = f"fault: {fault.message}"
                continue
            if any(call.tool == tool and call.result not in (None, "", [], {}) for call in grounded.calls):
                row.grounded.add(tool)
                row.steps[tool] = tuple(call.tool for call in grounded.calls)


def sources(chosen: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """(title, settings of an entry) of everything that was asked for."""
    if chosen.library:
        yield "library", {"library": "*"}
    if chosen.envfactory:
        yield "EnvFactory", {"envfactory": chosen.envfactory}
    for awm in discover_awm(chosen.awm)[: chosen.first] if chosen.awm else ():
        yield "AWM", {"awm": awm}
    for envscaler in discover_envscaler(chosen.envscaler)[: chosen.first] if chosen.envscaler else ():
        yield "EnvScaler", {"envscaler": envscaler}
    for path in chosen.openapi:
        yield "OpenAPI", {"openapi": path}


async def run(chosen: argparse.Namespace) -> dict[str, list[GroundingRow]]:
    rows: dict[str, list[GroundingRow]] = {}
    for title, entry in sources(chosen):
        for settings in expand_settings(EnvironmentSettings(**entry)):
            try:
                source = open_source(settings)
                name = (await source.spec()).name
            except TrajsmithError as error:
                rows.setdefault(title, []).append(GroundingRow(title, failed=str(error)))
                continue
            if not chosen.only or name in chosen.only:
                rows.setdefault(title, []).append(await examine(name, source, chosen.rounds, chosen.long, chosen.seed))
            close = getattr(source, "close", None)
            if close is not None:
                close()
    return rows


def show(title: str, rows: list[GroundingRow], reasons: bool) -> None:
    console = Console(width=200)
    table = Table(title=title)
    for heading in ("environment", "tools", "filler", "grounding", "ever", "of those", "calls", "CPU s"):
        table.add_column(heading, justify="left" if heading == "environment" else "right")
    for row in rows:
        if row.failed:
            table.add_row(row.name, "-", "-", "-", "-", row.failed[:60], "", "")
            continue
        table.add_row(*_cells(row.name, [row]))
    table.add_section()
    table.add_row(*_cells("all", rows))
    console.print(table)
    for row in rows if reasons else ():
        for tool in row.tools:
            if tool not in row.grounded:
                mark = "EVER " if tool in row.ever else ""
                console.print(f"{mark}{row.name}.{tool}: {row.reasons.get(tool, '')[:150]}", markup=False)


def _cells(name: str, rows: list[GroundingRow]) -> list[str]:
    tools, filler = sum(len(row.tools) for row in rows), sum(len(row.filler) for row in rows)
    grounded, ever = sum(len(row.grounded) for row in rows), sum(len(row.ever) for row in rows)
    calls = " / ".join(str(sum(row.calls[key] for row in rows)) for key in ("filler", "grounding"))
    seconds = " / ".join(f"{sum(row.seconds[key] for row in rows):.1f}" for key in ("filler", "grounding"))
    share = f"{filler / ever:.1%} / {grounded / ever:.1%}" if ever else "-"
    return [name, str(tools), str(filler), str(grounded), str(ever), share, calls, seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", action="store_true", help="the bundled environments")
    parser.add_argument("--envfactory", type=Path, help="a checkout of EnvFactory")
    parser.add_argument("--awm", type=Path, help="a directory of what AWM publishes")
    parser.add_argument("--envscaler", type=Path, help="a file or directory of EnvScaler")
    parser.add_argument("--openapi", type=Path, nargs="*", default=[], help="OpenAPI documents")
    parser.add_argument("--first", type=int, help="only so many environments of AWM and EnvScaler")
    parser.add_argument("--only", nargs="*", default=[], help="names of environments")
    parser.add_argument("--rounds", type=int, default=8, help="the filler's calls of each tool from each state")
    parser.add_argument("--long", type=int, default=8, help="how many times as many for the third column")
    parser.add_argument("--reasons", action="store_true", help="list what grounding could not call, and why")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if not any((chosen.library, chosen.envfactory, chosen.awm, chosen.envscaler, chosen.openapi)):
        parser.error("say which environments: --library, --envfactory, --awm, --envscaler or --openapi")
    for title, rows in asyncio.run(run(chosen)).items():
        show(title, rows, chosen.reasons)


if __name__ == "__main__":
    main()
