"""`trajsmith plugins`: the extension points, and what is built in and installed of each."""

from importlib import import_module
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from trajsmith.cli.console import out
from trajsmith.records import InputError, Registry, RunError

REGISTRIES = {
    "environments": "trajsmith.environments.library:ENVIRONMENTS",
    "bundles": "trajsmith.environments.bundles:BUNDLES",
    "adapters": "trajsmith.environments.adapters.registry:ADAPTERS",
    "providers": "trajsmith.models.settings:PROVIDERS",
    "rewards": "trajsmith.verify.rewards:REWARDS",
    "checks": "trajsmith.verify.checks:CHECKS",
    "formats": "trajsmith.export.formats:FORMATS",
    "variants": "trajsmith.querygen.vary:VARIANTS",
    "samplers": "trajsmith.toolgraph.settings:SAMPLERS",
    "roles": "trajsmith.usersim.players:DIALOGUE_ROLES",
    "engines": "trajsmith.pipeline.engine:ENGINES",
    "sandbox_providers": "trajsmith.environments.sandbox.launchers:SANDBOXES",
    "trainers": "trajsmith.pipeline.arena_trainers:TRAINERS",
    "benchmarks": "trajsmith.evals.benchmarks:BENCHMARKS",
    "suites": "trajsmith.evals.suites:SUITES",
}
"""Kind to its registry."""


def load_registry(kind: str) -> Registry[object]:
    """Return the registry of a kind.

    Raises:
        InputError: There is no such kind.
    """
    if kind not in REGISTRIES:
        raise InputError(f"no kind of plug-in {kind!r}; there are: {', '.join(REGISTRIES)}")
    module, _, name = REGISTRIES[kind].partition(":")
    registry: Registry[object] = getattr(import_module(module), name)
    return registry


def plugins(
    kind: Annotated[
        str | None, typer.Option("--kind", help=f"One of {', '.join(REGISTRIES)}; all if left out.")
    ] = None,
) -> None:
    """List what is built in and installed of every extension point. Exit code 1 if something cannot be loaded."""
    table = Table("kind", "name", "distribution", Column("module", overflow="fold"), box=None, pad_edge=False)
    faults = []
    for shown in [kind] if kind else REGISTRIES:
        registry = load_registry(shown)
        for source in registry.sources():
            table.add_row(shown, source.name, source.distribution, source.module)
            try:
                registry.get(source.name)
            except InputError as error:
                faults.append(str(error))
    out.print(table)
    for fault in dict.fromkeys(faults):
        out.print(f"[red]not usable:[/red] {escape(fault)}", soft_wrap=True)
    if faults:
        raise RunError("not every plug-in can be used")
