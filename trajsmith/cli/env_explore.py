"""`trajsmith env explore`: find out by calls what a live MCP server offers, and write a full entry of it."""

from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import print_line, run_async
from trajsmith.cli.options import MOST_SEED, DryRun
from trajsmith.records import InputError


def explore(
    name: Annotated[str, typer.Argument(help="mcp.json or mcp.json:NAME; RUN.yaml:NAME of a live MCP server.")],
    target: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE.yaml", help="Write the configuration there, to edit and run it."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=MOST_SEED, help="Seed of the values that are tried.")] = 0,
    open_world: Annotated[
        bool, typer.Option("--open-world", help="Also call tools that reach other systems, such as the web.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Call the tools of a live MCP server in fresh workspaces, and say what was found out.

    With --out, write a configuration with initial states, values of arguments, what to observe, refusals and words,
    which `trajsmith run FILE.yaml` takes as it is. Nothing outside of the workspaces is written by our arguments; the
    server itself runs with your rights.
    """
    from trajsmith.environments.adapters.mcp import McpSettings
    from trajsmith.pipeline.environment_references import find_named_entries
    from trajsmith.pipeline.live_exploration import explore_entry, render_entry, write_entry
    from trajsmith.records import ensure_writable

    entries = [getattr(entry, "mcp", None) for entry in find_named_entries(name)]
    servers = [settings for settings in entries if isinstance(settings, McpSettings)]
    if not servers:
        raise InputError(f"{name}: no live MCP server: only these are explored")
    if len(servers) > 1:
        raise InputError(f"{name} holds {len(servers)} servers: name one, for example {name}:{servers[0].name}")
    (settings,) = servers
    if dry_run:
        start = " ".join(settings.command or [settings.url or ""])
        print_line(
            f"{settings.name}: would be started by `{start}` in fresh workspaces, with at most 600 calls in 240 s"
        )
        return
    if target is not None:
        ensure_writable(target, make=True)
    entry = run_async(explore_entry(settings, seed, print_line, open_world))
    for note in entry.notes:
        print_line(f"{settings.name}: {note}")
    if target is None:
        print_line(render_entry(entry))
        return
    write_entry(entry, target)
    print_line(f"wrote {target}: trajsmith run {target}")
