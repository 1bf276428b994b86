"""`trajsmith run --dry-run`: everything that can be checked before work, and what would be done."""

import random

from rich.console import Console
from rich.table import Table

from environments.sources import open_source
from toolgraph import GraphIndex, Sampler, build_graph
from trajectory import InputError
from trajsmith.config import RunConfig


async def preview(config: RunConfig, out: Console) -> None:
    """Open every environment, build the graph, draw one chain of each; nothing is written.

    Raises:
        InputError: Something in the configuration cannot work.
    """
    table = Table(
        "environment",
        "source",
        "runs in",
        "tools",
        "states",
        "unreachable",
        "a chain",
        title=f"{config.name}: {config.sample.count} chains into {config.run}",
    )
    seen: set[str] = set()
    for entry in config.environments:
        source = open_source(entry)
        spec = await source.spec()
        if spec.name in seen:
            raise InputError(f"two environments are named {spec.name!r}: list each once")
        seen.add(spec.name)
        states = await source.states(config.seed)
        sampler = Sampler(GraphIndex(build_graph(spec.tools, config.graph), spec.name), config.sample)
        chain, _ = sampler.draw(random.Random(config.seed))
        unreachable = [tool.name for tool in spec.tools if tool.name not in sampler.usable]
        table.add_row(
            spec.name,
            spec.source.split(":")[0],
            source.isolation,
            str(len(spec.tools)),
            str(len(states)),
            ", ".join(unreachable),
            " > ".join(chain),
        )
    out.print(table)
    out.print("roles: user scripted, agent scripted; tokens 0, cost 0")
