"""CPU time of a call: bundled environments beside generated ones, kind of tool by kind of tool, in one interleaved run.

    python benchmarks/generated_speed.py [FILE.py ...] [--rounds 9]

Generated here: one from a bundled environment's rows as tables, one from an OpenAPI document, both without a model, and
the scripted expert's (`tests/envgen`), as models would have written it; FILEs are more of any kind. Each plays from its
state that is nearest to 30 kB. Tools are told apart by what they do: show one record, list records, add a row, change
rows; of each, calls that are answered are looked for by chance. A play is that of a rollout, without a sandbox around
it. Every record has been read when the time of a call is taken; the first walk over all is told apart.
"""

import argparse
import asyncio
import gc
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "envgen")]

from expertly import score_library  # noqa: E402 - beside the tests

from trajsmith.envgen.generate.blueprint import Blueprint  # noqa: E402
from trajsmith.envgen.generate.code import rename_colliding_classes, render_environment_code  # noqa: E402
from trajsmith.envgen.generate.from_openapi import read_openapi  # noqa: E402
from trajsmith.envgen.generate.from_tables import read_tables  # noqa: E402
from trajsmith.envgen.generate.refinement import refine_blueprint  # noqa: E402
from trajsmith.environments.library import ENVIRONMENTS  # noqa: E402
from trajsmith.environments.native_program import NativeProgram, load  # noqa: E402
from trajsmith.records import ToolSpec  # noqa: E402

KINDS = ("show", "list", "add", "change")
BYTES = 30_000
CALLS = 4
"""Calls of each tool that are timed."""
REPEATS = 60
"""Times that a read is made in a round."""
WRITES = 12
"""Plays on which a write is made in a round."""
console = Console(width=150, highlight=False)


@dataclass
class Timed:
    """One call that is answered, and what it costs."""

    kind: str
    tool: str
    arguments: dict[str, Any]
    costs: list[float]
    """Microseconds of each round."""


@dataclass
class Bed:
    """An environment with a state and calls."""

    origin: str
    name: str
    program: NativeProgram
    state: bytes
    calls: list[Timed]
    starts: list[float]
    """Microseconds of a reset to the state, each round."""
    walks: list[float]
    """Microseconds of reading every record for the first time, each round."""

    def play(self) -> Any:
        return self.program.start(self.state)

    def walked(self) -> Any:
        """A play of which every record has been read."""
        play = self.play()
        live = play._state  # of the play itself, so that no tool's own work is in it
        live.begin(False)
        for value in live.state.__dict__.values():
            if isinstance(value, dict):
                list(value.values())
        live.finish(live.state)
        return play


def bed(origin: str, name: str, program: NativeProgram) -> Bed:
    states = []
    for size in ("small", "medium", "large"):
        program.sizes = {size: 1}
        states.append(orjson.dumps(program.states(1)[0]))
    state = min(states, key=lambda one: max(len(one), BYTES) / min(len(one), BYTES))
    new_bed = Bed(origin, name, program, state, [], [], [])
    for tool in program.spec.tools:
        if tool.actor == "assistant":
            new_bed.calls += found_calls(new_bed, tool)
    return new_bed


def found_calls(where: Bed, tool: ToolSpec) -> list[Timed]:
    """Calls that are answered, with arguments drawn from the state and the schema."""
    rng, state = random.Random(tool.name), orjson.loads(where.state)
    calls: dict[bytes, Timed] = {}
    for _ in range(600):
        arguments = drawn(tool, state, rng)
        play = where.play()
        result = play.call(tool.name, arguments)
        kind = kind_of(tool, result.content, play.changes(), state) if result.ok else None
        if kind is not None:
            calls[orjson.dumps(arguments)] = Timed(kind, tool.name, arguments, [])
        if len(calls) == CALLS:
            break
    return list(calls.values())


def drawn(tool: ToolSpec, state: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Arguments, mostly those of one record, so that they go together; some of what is optional for what writes."""
    alike = [row for row in rows_of(state) if tool.parameters.keys() & row.keys()]
    row = rng.choice(alike) if alike else {}
    timings = {}
    for name, schema in sorted(tool.parameters.items()):
        if name in tool.required or (tool.declares_write and rng.random() < 0.3):
            same = row.get(name) is not None and rng.random() < 0.6
            timings[name] = row[name] if same else rng.choice(values(name, schema, state))
    return timings


def rows_of(state: dict[str, Any]) -> list[dict[str, Any]]:
    """All records of a state."""
    tables = [table for table in state.values() if isinstance(table, dict)]
    return [row for table in tables for row in table.values() if isinstance(row, dict)]


def kind_of(tool: ToolSpec, content: Any, changes: list[Any], state: dict[str, Any]) -> str | None:
    """Classify a call by its effect; None if it showed or changed nothing."""
    if not tool.declares_write:
        rows = content.get("result") if set(content) == {"result"} else None
        return ("list" if rows else None) if isinstance(rows, list) else "show"
    rows = [(table, key) for table, key, _ in changes if key is not None]
    if any(key not in state[table] for table, key in rows):
        return "add"
    return "change" if rows else None


def values(name: str, schema: dict[str, Any], state: dict[str, Any]) -> list[Any]:
    """List values for a parameter: choices, examples, what the state has under its name, something new."""
    branches = [schema, *schema.get("anyOf", ())]
    candidates = [value for one in branches for value in (*one.get("enum", ()), *one.get("examples", ()))]
    candidates += sorted({row[name] for row in rows_of(state) if isinstance(row.get(name), str | int | float)}, key=str)
    kind = next((one["type"] for one in branches if one.get("type") not in (None, "null")), "string")
    plain: dict[str, list[Any]] = {"integer": [1, 2, 3], "number": [1.0, 2.5], "boolean": [True, False], "array": [[]]}
    new = [{}] if kind == "object" else ["2026-05-05", "something plain", "new.one@example.org"]
    chosen = any("enum" in one for one in branches)
    return candidates if chosen else candidates + plain.get(kind, new)


def beds(folders: list[Path], scrap: Path) -> Iterator[Bed]:
    for name in ENVIRONMENTS.names():
        yield bed("bundled", name, NativeProgram(ENVIRONMENTS.get(name)))
    rows = scrap / "helpdesk"
    rows.mkdir()
    state = ENVIRONMENTS.get("helpdesk").seed_state("medium", 1).model_dump(mode="json")
    for table, content in state.items():
        if table != "counters" and isinstance(content, dict) and content:
            (rows / f"{table}.json").write_bytes(orjson.dumps(list(content.values())))
    yield generated("tables", read_tables(rows))
    yield generated("openapi", read_openapi(ROOT / "tests" / "environments" / "openapi" / "specs" / "shop.yaml"))
    expert = asyncio.run(score_library(scrap / "expert")) / "score_library.py"
    for origin, file in [("models", expert), *(("given", file) for file in folders)]:
        yield bed(origin, file.stem, from_text(file.read_text(encoding="utf-8"), file.name))


def generated(origin: str, blueprint: Blueprint) -> Bed:
    refined = rename_colliding_classes(refine_blueprint(blueprint))
    return bed(origin, refined.name, from_text(render_environment_code(refined), f"{refined.name}.py"))


def from_text(source: str, file: str) -> NativeProgram:
    return load({"source": source, "file": file, "cls": "", "sizes": {}})


def measure(all_beds: list[Bed], rounds: int) -> None:
    """Every call of every environment in turn, and again; what a busy machine does to one round it does to all."""
    for _ in range(rounds):
        for one in all_beds:
            gc.collect()
            one.starts.append(spent(one.play, REPEATS))
            one.walks.append(spent(one.walked, WRITES) - one.starts[-1])
            for call in one.calls:
                call.costs.append(cost(one, call))


def spent(work: Callable[[], Any], times: int) -> float:
    """Microseconds of CPU that something takes."""
    started = time.process_time_ns()
    for _ in range(times):
        work()
    return (time.process_time_ns() - started) / times / 1000


def cost(where: Bed, call: Timed) -> float:
    """Microseconds of a call: reads again and again on one play, a write once on each of several."""
    if call.kind in ("show", "list"):
        play = where.walked()
        play.call(call.tool, call.arguments)
        return spent(lambda: play.call(call.tool, call.arguments), REPEATS)
    plays = iter([where.walked() for _ in range(WRITES)])
    return spent(lambda: next(plays).call(call.tool, call.arguments), WRITES)


COLUMNS = ("reset", "first walk", *KINDS)


def show(all_beds: list[Bed], each: bool) -> None:
    table = Table("made from", "environment", "kB", *COLUMNS)
    sums: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in all_beds:
        shown_columns = columns(one)
        table.add_row(
            one.origin, one.name, f"{len(one.state) / 1000:.0f}", *(cell(shown_columns[name]) for name in COLUMNS)
        )
        for name, values in shown_columns.items():
            sums[one.origin][name] += values
        for (kind, tool), value in by_tool(one).items() if each else ():
            console.print(f"{one.origin} {one.name} {kind} {tool}: {value:.1f}")
    console.print(table)
    for origin, by_column in sums.items():
        usual = {name: statistics.median(sums["bundled"][name]) for name in COLUMNS}
        middles = {name: statistics.median(values) for name, values in by_column.items() if values}
        parts = [f"{name} {middle:.1f} ({middle / usual[name]:.2f})" for name, middle in middles.items()]
        console.print(f"{origin}: {', '.join(parts)}")
    console.print("microseconds of CPU, medians of rounds, then of tools; in brackets their share of the bundled ones'")


def columns(one: Bed) -> dict[str, list[float]]:
    """A value for each tool of a kind, and one for the whole."""
    tools = by_tool(one)
    timings = {"reset": [statistics.median(one.starts)], "first walk": [statistics.median(one.walks)]}
    return timings | {kind: [value for (of, _), value in tools.items() if of == kind] for kind in KINDS}


def cell(values: list[float]) -> str:
    """Their median, and how many there are of them."""
    several = f" ({len(values)})" if len(values) > 1 else ""
    return f"{statistics.median(values):.1f}{several}" if values else "-"


def by_tool(one: Bed) -> dict[tuple[str, str], float]:
    """The median of each tool, by what it does and its name."""
    timings: dict[tuple[str, str], list[float]] = defaultdict(list)
    for call in one.calls:
        timings[call.kind, call.tool].append(statistics.median(call.costs))
    return {key: statistics.median(costs) for key, costs in timings.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--each", action="store_true", help="Every tool on a line of its own as well.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scrap:
        all_beds = list(beds(arguments.files, Path(scrap)))
        measure(all_beds, arguments.rounds)
        show(all_beds, arguments.each)


if __name__ == "__main__":
    main()
