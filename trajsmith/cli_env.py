"""`trajsmith env`: the environments."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from environments.library import library_environment, library_names
from trajectory import EnvironmentSpec

app = typer.Typer(help="List and show environments.", no_args_is_help=True)
out = Console(highlight=False)


@app.command("list")
def list_environments(
    names: Annotated[bool, typer.Option("--names", help="Only the names, one a line.")] = False,
) -> None:
    """List the bundled and installed environments."""
    if names:
        for name in library_names():
            typer.echo(name)
        return
    table = Table("name", "domain", "tools", "of the user", "about")
    for name in library_names():
        spec = library_environment(name).describe()
        mine = sum(tool.actor == "user" for tool in spec.tools)
        table.add_row(name, spec.domain, str(len(spec.tools)), str(mine or ""), spec.description.split("\n")[0])
    out.print(table)


@app.command()
def show(name: Annotated[str, typer.Argument(help="Name of an environment, see `trajsmith env list`.")]) -> None:
    """Show the policy, the tools and the state of an environment."""
    spec = library_environment(name).describe()
    out.print(f"[bold]{spec.name}[/bold]  {spec.domain}  version {spec.version}\n{spec.description}\n", highlight=False)
    out.print(spec.policy + "\n", markup=False, soft_wrap=True)
    out.print(_tools(spec))
    tables = [key for key, value in spec.state_schema.get("properties", {}).items() if "additionalProperties" in value]
    out.print(f"state: {', '.join(tables)}", markup=False)


def _tools(spec: EnvironmentSpec) -> Table:
    table = Table(
        Column("tool", overflow="fold"), "effect", "actor", Column("parameters", overflow="fold"), "description"
    )
    for tool in spec.tools:
        parameters = ", ".join(name if name in tool.required else f"[{name}]" for name in tool.parameters)
        effect = "write" if tool.declares_write else "read"
        table.add_row(tool.name, effect, tool.actor, parameters.replace("[", "\\["), tool.description.split("\n")[0])
    return table
