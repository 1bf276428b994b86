"""Chains of eight tools: can they be called, does a tool stand twice, and what does one cost?

    .venv/bin/python benchmarks/sampling.py                          # 842, 5,376 and 35,000 tools, some minutes
    .venv/bin/python benchmarks/sampling.py --sizes 842 --chains 500
    .venv/bin/python benchmarks/sampling.py --envfactory ../EnvFactory    # its tools, and its own samplers, too
    .venv/bin/python benchmarks/sampling.py --dials                  # what each setting does to chains, by the library
    .venv/bin/python benchmarks/sampling.py --side-by-side --chains 1000    # the papers' samplers and ours, coverage

The tools are real ones, from the lists in the shared data (`TRAJSMITH_DATA`, or ../shared/data); beyond these come
copies under other server names. With a checkout of EnvFactory, its published samplers draw from the same graph as ours.
Every list is a process of its own. CPU is user plus system time; a chain's cost holds its random generator and the list
of its dependencies, and not the building of graph and index, which are told apart.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from _toolgraph_sets import data_folder, read_tools
from _toolgraph_theirs import Draw, published_samplers, published_tools
from rich.console import Console
from rich.table import Table

from trajsmith.environments.blocking import run_blocking
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.native_source import build_library_source
from trajsmith.records import ToolSpec
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, ToolGraph, build_graph, sample_across
from trajsmith.toolgraph.chain_metrics import ChainShape, measure_chain
from trajsmith.toolgraph.evidence import (
    ExecutionSettings,
    GraphEvidence,
    apply_evidence,
    compute_schema_scores,
    execute_all_links,
)
from trajsmith.toolgraph.settings import SAMPLERS

SIZES = (842, 5376, 35000)
LENGTH = 8
EXTRAS: dict[str, dict[str, Any]] = {
    "topology, 3 servers": {"servers": 3},
    "topology, difficulty 0.5": {"difficulty": 0.5},
    "topology, 20 % repeats": {"repeats": 0.2},
}
SHARES = ("servers", "strong", "weak", "independent", "writes", "branches", "joins", "repeats")
WAYS: dict[str, dict[str, Any]] = {**{method: {"method": method} for method in SAMPLERS.names()}, **EXTRAS}

Measured = dict[str, Any]


def real_tools() -> Iterator[ToolSpec]:
    """Environments with outputs first, then servers as they are found, then long lists of single functions."""
    data = data_folder()
    sets, lists = sorted(data.glob("sets/*/tools.jsonl")), sorted(data.glob("scale/*.tools.jsonl"))
    for path in (*sets, *sorted(lists, key=lambda path: "_functions" in path.name)):
        yield from read_tools(path)


def some_tools(count: int) -> list[ToolSpec]:
    """The first `count` tools with different names; copies under other server names beyond the last."""
    by_name = {tool.full_name: tool for tool in real_tools()}
    if not by_name:
        raise SystemExit(f"no tools under {data_folder()}: set TRAJSMITH_DATA")
    tools = list(by_name.values())
    for copy in range(1, -(-count // len(tools))):
        tools += [tool.model_copy(update={"server": f"{tool.server} {copy}"}) for tool in by_name.values()]
    return tools[:count]


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def clocked(work: Any) -> tuple[Any, float]:
    """The result, and CPU seconds."""
    before = cpu()
    return work(), cpu() - before


def measure(tools: list[ToolSpec], chains: int, checkout: Path | None) -> Measured:
    """Build, store, load, index, draw; with a checkout, by EnvFactory's code too."""
    graph, build = clocked(lambda: build_graph(tools))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.json.gz"
        _, save = clocked(lambda: graph.save(path))
        packed = path.stat().st_size
        del graph
        graph, load = clocked(lambda: ToolGraph.load(path))
    index, indexing = clocked(lambda: GraphIndex(graph))
    ways = {name: draws(index, wanted, chains) for name, wanted in WAYS.items()}
    if checkout is not None:
        for name, draw in published_samplers(checkout, graph, LENGTH).items():
            ways[name] = published(index, draw, chains)
    figures = {
        "tools": len(graph.tools),
        "edges": len(graph.edges),
        "links": sum(len(edge.links) for edge in graph.edges),
        "build": build,
        "save": save,
        "load": load,
        "index": indexing,
        "packed": packed,
        "ways": ways,
        "records": records(graph, chains),
    }
    return {**figures, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def draws(index: GraphIndex, wanted: dict[str, Any], chains: int) -> Measured:
    """Draw by one method and look at the chains."""
    sampler, start = clocked(
        lambda: Sampler(index, SampleSettings.model_validate({"length": (LENGTH, LENGTH), **wanted}))
    )
    for seed in range(200):
        sampler.draw(random.Random(-seed))
    drawn, seconds = clocked(lambda: [sampler.draw(random.Random(seed)) for seed in range(chains)])
    shapes = [measure_chain(index, *chain) for chain in drawn]
    return {
        **looks(shapes),
        **spread(index, [tools for tools, _ in drawn]),
        "start": start,
        "microseconds": 1e6 * seconds / chains,
        "used": len(sampler.used),
    }


def published(index: GraphIndex, draw: Draw, chains: int) -> Measured:
    """The same by code of others; its chains may touch several servers."""
    reader = Sampler(index, SampleSettings(servers=2))
    drawn, seconds = clocked(lambda: [draw(seed) for seed in range(chains)])
    shapes = [measure_chain(index, chain, reader.dependencies(chain)) for chain in drawn]
    used = len({tool for chain in drawn for tool in chain})
    spreads = spread(index, drawn)
    return {**looks(shapes), **spreads, "microseconds": 1e6 * seconds / chains, "used": used}


def spread(index: GraphIndex, drawn: list[Any]) -> Measured:
    """Share of the edges of weight 2 and 3 that 1,000 chains go, and how much two chains differ (Jaccard distance)."""
    every = {pair for pair, weight in index.weights.items() if weight >= 2}
    chains = [list(tools) for tools in drawn[:1000]]
    gone = {(a, b) for tools in chains for place, a in enumerate(tools) for b in tools[place + 1 :]} & every
    rng, sets = random.Random(0), [frozenset(tools) for tools in chains]
    pairs = [(rng.choice(sets), rng.choice(sets)) for _ in range(2000)]
    return {
        "covered": len(gone) / max(1, len(every)),
        "differ": mean(1 - len(a & b) / len(a | b) for a, b in pairs if a | b),
    }


def looks(shapes: list[ChainShape]) -> Measured:
    """Average the figures of chains."""
    return {
        "closed": mean(shape.open_needs == 0 for shape in shapes),
        "doubled": mean(shape.repeats > 0 for shape in shapes),
        "exact": mean(shape.length == LENGTH for shape in shapes),
        **{name: mean(getattr(shape, name) for shape in shapes) for name in ChainShape.__dataclass_fields__},
    }


def records(graph: ToolGraph, chains: int) -> Measured:
    """The same as finished records, ids included."""
    wanted = SampleSettings(count=chains + 200, length=(LENGTH, LENGTH))
    stream = sample_across(graph, wanted, 0)
    for _ in range(200):
        next(stream)
    _, seconds = clocked(lambda: deque(stream, maxlen=0))
    return {"microseconds": 1e6 * seconds / chains}


DIALS: tuple[dict[str, Any], ...] = (
    {},
    *({"difficulty": level} for level in (0.0, 0.5, 1.0)),
    *(
        {name: share}
        for name in ("weak", "independent", "writes", "branching", "joins", "repeats")
        for share in (0, 0.8)
    ),
)


def dials(chains: int) -> Table:
    """Tabulate the effect of every setting on chains of the bundled environments."""
    tools = [tool for name in ENVIRONMENTS.names() for tool in ENVIRONMENTS.get(name).describe().tools]
    index = GraphIndex(build_graph(tools))
    table = Table(
        "setting", "tools", *SHARES, title=f"{len(tools)} tools of {len(ENVIRONMENTS.names())} bundled environments"
    )
    for wanted in DIALS:
        settings = SampleSettings.model_validate({"length": (4, 12), "servers": 3, **wanted})
        sampler = Sampler(index, settings)
        shapes = [measure_chain(index, *sampler.draw(random.Random(seed))) for seed in range(chains)]
        cells = (f"{mean(getattr(shape, name) for shape in shapes):.1f}" for name in ("length", *SHARES))
        table.add_row(", ".join(f"{name} {value}" for name, value in wanted.items()) or "none", *cells)
    return table


SHARES_OF_EDGES = (0.8, 0.95, 0.99)
SIDE_BY_SIDE: dict[str, dict[str, Any]] = {
    "envfactory (Algorithm 1 as published)": {"method": "envfactory"},
    "envfactory, pseudocode of the paper": {"method": "envfactory_pseudocode"},
    "random walk": {"method": "random_walk"},
    "weighted walk (Agent-World)": {"method": "weighted_walk"},
    "topology": {"method": "topology"},
    "topology, difficulty 0": {"difficulty": 0.0, "length": (4, 12)},
    "topology, difficulty 1": {"difficulty": 1.0, "length": (4, 12)},
    "coverage": {"method": "coverage"},
    "scenarios": {"scenarios": 1.0},
}
"""Samplers of the papers and our own, by their settings."""


def executed_graph(sources: list[Any]) -> ToolGraph:
    """The graph of environments as a run has it: links tried by execution."""
    tools = [tool for source in sources for tool in run_blocking(source.spec()).tools]
    scores = compute_schema_scores(tools)
    executed = run_blocking(execute_all_links(sources, scores, ExecutionSettings(), 0))
    return apply_evidence(build_graph(tools), GraphEvidence(executed=executed), scores)


def side_by_side(chains: int) -> Table:
    """Tabulate all samplers over the bundled environments: solvable share, coverage, diversity, cost."""
    sources = [build_library_source(name, {"small": 3, "medium": 1}) for name in ENVIRONMENTS.names()]
    graph = executed_graph(sources)
    tools, index = graph.tools, GraphIndex(graph)
    every = {pair for pair, weight in index.weights.items() if weight >= 2}
    table = Table(
        *("sampler", "closed", f"edges in {chains:,}", "chains for 80 / 95 / 99 %", "differ", "CPU us per chain"),
        title=f"{len(tools)} tools, {len(every)} edges",
    )
    for name, wanted in SIDE_BY_SIDE.items():
        settings = SampleSettings.model_validate({"length": (LENGTH, LENGTH), **wanted})
        if name == "scenarios":
            samplers = [scenario_sampler(source, settings) for source in sources]
            drawn, seconds = clocked(lambda samplers=samplers: scenario_chains(samplers, chains))
        else:
            sampler = Sampler(index, settings)
            drawn, seconds = clocked(
                lambda sampler=sampler: [sampler.draw(random.Random(seed)) for seed in range(chains)]
            )
        shapes = [measure_chain(index, *chain) for chain in drawn]
        figures = {**looks(shapes), **spread(index, [names for names, _ in drawn])}
        seen: set[tuple[str, str]] = set()
        reached: dict[float, int] = {}
        for number, (names, _) in enumerate(drawn, 1):
            seen |= {(a, b) for place, a in enumerate(names) for b in names[place + 1 :]} & every
            for share in SHARES_OF_EDGES:
                if len(seen) >= share * len(every):
                    reached.setdefault(share, number)
        table.add_row(
            name,
            *(f"{100 * figures[key]:.1f} %" for key in ("closed", "covered")),
            " / ".join(str(reached.get(share, "-")) for share in SHARES_OF_EDGES),
            f"{figures['differ']:.2f}",
            f"{1e6 * seconds / chains:.0f}",
        )
    return table


def scenario_sampler(source: Any, settings: SampleSettings) -> tuple[str, Sampler]:
    """The server of an environment, and the sampler of its scenarios."""
    graph = executed_graph([source])
    server = graph.tools[0].server
    return server, Sampler(GraphIndex(graph, server), settings, source.scenarios)


def scenario_chains(samplers: list[tuple[str, Sampler]], chains: int) -> list[Any]:
    """Chains inside the scenarios of the environments in turn, under full names."""
    drawn = []
    for seed in range(chains):
        server, sampler = samplers[seed % len(samplers)]
        story = sampler.draw_scenario(random.Random(seed))
        if story is None:
            raise SystemExit(f"{server} has no scenarios")
        names = [f"{server}.{sampler.network.names[tool]}" for tool in story[0].tools]
        drawn.append((names, story[1]))
    return drawn


def show(figures: dict[str, Measured], out: Console) -> None:
    cost = Table(
        "tools", "edges", "links", "build s", "save s", "load s", "index s", "file MB", "peak MiB", title="Once"
    )
    for one in figures.values():
        seconds = (f"{one[name]:.1f}" for name in ("build", "save", "load", "index"))
        sizes = (f"{one['packed'] / 1e6:.1f}", f"{one['memory']:.0f}")
        cost.add_row(f"{one['tools']:,}", f"{one['edges']:,}", f"{one['links']:,}", *seconds, *sizes)
    out.print(cost)
    for name, one in figures.items():
        table = Table(
            *(
                "sampler",
                "closed",
                "edges in 1,000",
                "differ",
                "with a tool twice",
                "8 tools long",
                "tools used",
                "servers",
                "strong",
                "weak",
            ),
            *("independent", "branches", "joins", "CPU us per chain"),
            title=f"Chains of {LENGTH}, {name}",
        )
        for kind, way in one["ways"].items():
            shares = (f"{100 * way[key]:.1f} %" for key in ("closed", "covered", "differ", "doubled", "exact"))
            shape = (f"{way[key]:.1f}" for key in ("servers", "strong", "weak", "independent", "branches", "joins"))
            table.add_row(kind, *shares, f"{way['used']:,}", *shape, f"{way['microseconds']:.0f}")
        out.print(table)
        out.print(f"topology as finished records: {one['records']['microseconds']:.0f} us per chain")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--chains", type=int, default=2000)
    parser.add_argument("--envfactory", type=Path, help="a checkout of EnvFactory")
    parser.add_argument("--dials", action="store_true", help="only what each setting does to chains")
    parser.add_argument("--side-by-side", action="store_true", help="only all samplers on the bundled environments")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.dials:
        Console(width=140).print(dials(wanted.chains))
        return
    if wanted.side_by_side:
        Console(width=140).print(side_by_side(wanted.chains))
        return
    if wanted.one is not None:
        theirs = published_tools(wanted.envfactory) if wanted.one == "theirs" else None
        checkout = wanted.envfactory if theirs else None
        sys.stdout.write(json.dumps(measure(theirs or some_tools(int(wanted.one)), wanted.chains, checkout)))
        return
    figures = {}
    more = [] if wanted.envfactory is None else ["--envfactory", str(wanted.envfactory)]
    for one in (*(["theirs"] if more else []), *map(str, wanted.sizes)):
        command = [sys.executable, __file__, "--one", one, "--chains", str(wanted.chains), *more]
        measured = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        figures[f"{measured['tools']:,} tools" + (" of EnvFactory" if one == "theirs" else "")] = measured
    if wanted.json is not None:
        wanted.json.write_text(json.dumps(figures, indent=2))
    show(figures, Console(width=180))


if __name__ == "__main__":
    main()
