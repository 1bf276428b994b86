"""`trajsmith run --dry-run`: everything that can be checked before work, and what would be done."""

import random
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from trajsmith.environments.sources import open_source
from trajsmith.models import ROLES
from trajsmith.pipeline.config import RunConfig, check_files
from trajsmith.pipeline.environment_references import check_words
from trajsmith.pipeline.live_exploration import needs_exploration
from trajsmith.pipeline.runner import check_ready
from trajsmith.pipeline.stages import check_roles
from trajsmith.pipeline.usage_estimate import estimate_run
from trajsmith.records import InputError
from trajsmith.toolgraph import GraphIndex, Sampler, build_graph


async def preview(config: RunConfig, out: Console) -> None:
    """Open every environment, build the graph, draw one chain of each; nothing is written.

    What it will come to is shown before keys and servers are looked at: who has none yet wants to know it, too.

    Raises:
        InputError: Something in the configuration cannot work.
    """
    check_roles(config)
    check_files(config)
    title = f"{config.name}: {config.sample.count} chains into {config.run}"
    table = Table("environment", "source", "runs in", "tools", "states", title=title)
    below: list[str] = []
    seen: set[str] = set()
    tools = 0
    for entry in config.environments:
        source = open_source(entry)
        spec = await source.spec()
        if spec.name in seen:
            raise InputError(f"two environments are named {spec.name!r}: list each once")
        seen.add(spec.name)
        check_words(source, spec)
        tools += len(spec.tools)
        states = await source.states(config.seed)
        sampler = Sampler(GraphIndex(build_graph(spec.tools, config.graph), spec.name), config.sample)
        chain, _ = sampler.draw(random.Random(config.seed))
        unreachable = [tool.name for tool in spec.tools if tool.name not in sampler.usable]
        if unreachable:
            below.append(f"unreachable in {spec.name}: {', '.join(unreachable)}")
        table.add_row(
            spec.name,
            spec.source.split(":")[0],
            source.isolation,
            str(len(spec.tools)),
            str(len(states)),
        )
        if needs_exploration(entry):
            below.append(
                f"{spec.name} is explored first: its tools are called in fresh workspaces to find states, values and "
                "what to observe (`trajsmith env explore` shows it)"
            )
        below.append(f"a chain of {spec.name}: {shorten_chain(chain)}")
    out.print(table)
    for line in below:
        out.print(line, soft_wrap=True)
    show_roles(config, tools, out)
    await check_ready(config)


def shorten_chain(chain: Sequence[str], width: int = 44) -> str:
    """The first tools of a chain, in `width` characters, and how many more there are; one is always shown."""
    shown = list(chain)
    while len(shown) > 1 and len(" > ".join(shown)) > width:
        shown.pop()
    more = len(chain) - len(shown)
    return " > ".join(shown) + (f" > and {more} more" if more else "")


def show_roles(config: RunConfig, tools: int, out: Console) -> None:
    """Print the model of every role with an estimate of its usage.

    Args:
        tools: Tools of all environments together.
    """
    rows = {row.role: row for row in estimate_run(config, tools)}
    if not rows:
        out.print("roles: all scripted; tokens 0, cost 0")
        return
    table = Table(
        "role",
        "played by",
        "requests",
        "prompt tokens",
        "cached",
        "completion tokens",
        "cost",
        title="roles and an estimate of what they will be asked",
    )
    for role in ROLES:
        if role in rows:
            row = rows[role]
            counts = (row.usage.requests, row.usage.prompt_tokens, row.usage.cached_tokens, row.usage.completion_tokens)
            table.add_row(role, row.model, *(f"{count:,}" for count in counts), f"{row.cost:.2f}")
        else:
            table.add_row(role, "scripted", "0", "0", "0", "0", "0.00")
    out.print(table)
    tokens = sum(row.usage.prompt_tokens + row.usage.completion_tokens for row in rows.values())
    requests = sum(row.usage.requests for row in rows.values())
    cost = sum(row.cost for row in rows.values())
    out.print(f"estimated: {requests:,} requests, {tokens:,} tokens, cost {cost:.2f} (an estimate from mean sizes)")
    limits = config.budget
    if limits.max_cost is not None or limits.max_tokens is not None:
        out.print(f"budget: max_cost {limits.max_cost}, max_tokens {limits.max_tokens}; the run stops there, resumable")
