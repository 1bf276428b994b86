"""`trajsmith env`: the environments."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from trajsmith.cli.console import out, print_line, run_async
from trajsmith.cli.env_check import check
from trajsmith.cli.env_gen import gen
from trajsmith.cli.env_serve import serve
from trajsmith.cli.options import WHAT, Sandbox
from trajsmith.records import RunError

if TYPE_CHECKING:
    from trajsmith.records import EnvironmentSpec

app = typer.Typer(help="List, show, examine and serve environments; test the sandbox.", no_args_is_help=True)
app.command()(check)
app.command()(gen)
app.command()(serve)
_EFFECTS = {True: "read", False: "write", None: "?"}


@app.command("list")
def list_environments(
    names: Annotated[bool, typer.Option("--names", help="Only the names, one a line.")] = False,
) -> None:
    """List the bundled and installed environments."""
    from trajsmith.environments.library import ENVIRONMENTS

    if names:
        for name in ENVIRONMENTS.names():
            typer.echo(name)
        return
    table = Table("name", "domain", "tools", "of the user", "about")
    for name in ENVIRONMENTS.names():
        spec = ENVIRONMENTS.get(name).describe()
        mine = sum(tool.actor == "user" for tool in spec.tools)
        table.add_row(name, spec.domain, str(len(spec.tools)), str(mine or ""), spec.description.split("\n")[0])
    out.print(table)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help=WHAT)],
    sandbox: Sandbox = None,
) -> None:
    """Show the policy, the tools and the state of an environment, and what its loader noted."""
    from trajsmith.phrasing import render_full_policy
    from trajsmith.pipeline.environment_references import open_named_source

    source = open_named_source(name, sandbox=sandbox)
    spec = run_async(source.spec())
    out.print(f"[bold]{spec.name}[/bold]  {spec.domain}  version {spec.version}\n{spec.description}\n", highlight=False)
    print_line(render_full_policy(spec) + "\n")
    out.print(_tools(spec))
    tables = [
        key
        for key, value in spec.state_schema.get("properties", {}).items()
        if isinstance(value, dict) and "additionalProperties" in value
    ]
    out.print(f"state: {', '.join(tables)}", markup=False)
    out.print(f"runs in: {source.isolation}", markup=False)
    for note in source.notes:
        print_line(f"note: {note}")


@app.command()
def probe(
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Try what this machine offers to the sandbox, and say which of its modes work here.

    Exit code 1 if mode `default` does not.
    """
    from trajsmith.environments.sandbox.probe import probe as tried
    from trajsmith.environments.sandbox.probe import render

    report = tried()
    if json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        out.print(render(report))
    if not report.modes["default"].works:
        raise RunError(f"sandbox mode default does not work here: {report.modes['default'].message}")


def _tools(spec: "EnvironmentSpec") -> Table:
    from trajsmith.phrasing import summarize_rule

    table = Table(
        Column("tool", overflow="fold"),
        "effect",
        "actor",
        Column("asks first", overflow="fold"),
        Column("parameters", overflow="fold"),
        "description",
    )
    for tool in spec.tools:
        parameters = ", ".join(name if name in tool.required else f"[{name}]" for name in tool.parameters)
        effect = _EFFECTS[tool.annotations.read_only_hint]
        about = tool.description.split("\n")[0]
        table.add_row(tool.name, effect, tool.actor, summarize_rule(tool), parameters.replace("[", "\\["), about)
    return table
