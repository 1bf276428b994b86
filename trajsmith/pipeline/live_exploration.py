"""Exploration of the live MCP servers of a run before it starts: entries that only name a command become full."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from trajsmith.envgen.exploration import ExploredEntry, compose_entry, explore_server
from trajsmith.environments.adapters.mcp import McpSettings
from trajsmith.environments.sources import EnvironmentSettings
from trajsmith.pipeline.config import RunConfig, list_live_defaults
from trajsmith.pipeline.yaml_settings import dump_yaml
from trajsmith.records import EnvironmentFault, InputError, JsonObject, ensure_writable, write_whole_file

Report = Callable[[str], None]
_TEMPORARY = "{workspace}"
_WIDTH = 200
"""Characters of a line of progress."""


def needs_exploration(entry: EnvironmentSettings) -> bool:
    """Return True for a live MCP server of which nothing but its start is known."""
    settings = _get_settings(entry)
    return settings is not None and settings.explore is True and not settings.states


def list_unexplored(config: RunConfig) -> list[str]:
    """Return the names of the servers that a run explores first."""
    unexplored = [_get_settings(entry) for entry in config.environments if needs_exploration(entry)]
    return [settings.name for settings in unexplored if settings is not None]


async def explore_entry(
    settings: McpSettings, seed: int, report: Report, open_world: bool = False, base: Path | None = None
) -> ExploredEntry:
    """Explore one server and return its full entry.

    Raises:
        InputError: The server does not start, keeps its state outside of its workspace, or no tool of it can be used.
    """
    isolated = settings.model_copy(update={"env": {"TMPDIR": _TEMPORARY, **settings.env}, "seeded": True})
    name = settings.name
    try:
        findings = await explore_server(
            isolated, (base or Path()).absolute(), seed, lambda line: report(f"{name}: {line}"[:_WIDTH]), open_world
        )
    except EnvironmentFault as fault:
        raise InputError(f"MCP server {name} cannot be explored: {fault}") from fault
    entry = compose_entry(isolated, findings)
    if not entry.usable:
        ((reason, _),) = Counter(tool.without for tool in findings.tools.values()).most_common(1)
        raise InputError(f"MCP server {name}: no tool of it can be used: {reason}; leave it out with `disabled`")
    return entry


async def explore_run(config: RunConfig, report: Report) -> RunConfig:
    """Return a configuration in which all servers of a client's file are described in full.

    Raises:
        InputError: One of them cannot be used.
    """
    entries: list[EnvironmentSettings] = []
    single = False
    for entry in config.environments:
        settings = _get_settings(entry)
        if settings is None or not needs_exploration(entry):
            entries.append(entry)
            continue
        explored = await explore_entry(settings, config.seed, report)
        for note in explored.notes:
            report(f"{settings.name}: {note}"[:_WIDTH])
        single = single or explored.usable < 2
        entries.append(entry.model_copy(update={"mcp": explored.settings}))
    update: JsonObject = {}
    if single and config.ground.min_calls > 1:
        report("ground.min_calls is 1: a server with one tool has no chains of two calls")
        low, high = config.sample.length
        update = {
            "ground": config.ground.model_copy(update={"min_calls": 1}),
            "sample": config.sample.model_copy(update={"length": (1, max(1, high)) if low > 1 else (low, high)}),
        }
    return config.model_copy(update={"environments": tuple(entries), **update})


def render_entry(entry: ExploredEntry) -> str:
    """Return a configuration with the entry as YAML, which `trajsmith run` takes as it is."""
    settings = entry.settings
    document = {
        "name": settings.name,
        "run": f"runs/{settings.name}",
        "environments": [{"mcp": settings.model_dump(mode="json", exclude_defaults=True)}],
        **list_live_defaults(1, 1 if entry.usable < 2 else 2),
    }
    head = "# What `trajsmith env explore` found out by calls; edit it and run it with `trajsmith run FILE`.\n"
    notes = "".join(f"# {line}\n" for note in entry.notes for line in note.splitlines()[:1])
    return head + notes + dump_yaml(document)


def write_entry(entry: ExploredEntry, target: Path) -> None:
    """Write the configuration of an explored server, whole or not at all.

    Raises:
        InputError: Nothing can be written there.
    """
    write_whole_file(ensure_writable(target, make=True), render_entry(entry).encode())


def _get_settings(entry: EnvironmentSettings) -> McpSettings | None:
    settings = getattr(entry, "mcp", None)
    return settings if isinstance(settings, McpSettings) else None
