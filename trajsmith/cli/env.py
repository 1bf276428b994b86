"""`trajsmith env`: the environments."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from trajsmith.cli.console import out, print_line, run_async
from trajsmith.cli.env_check import check
from trajsmith.cli.env_explore import explore
from trajsmith.cli.env_gen import gen, split
from trajsmith.cli.env_publish import bundle, export, pull, push
from trajsmith.cli.env_serve import serve
from trajsmith.cli.options import WHAT, Sandbox
from trajsmith.records import InputError, RunError, escape_controls

if TYPE_CHECKING:
    from trajsmith.records import EnvironmentSpec

app = typer.Typer(help="List, show, examine and serve environments; test the sandbox.", no_args_is_help=True)
app.command()(check)
app.command()(explore)
app.command()(gen)
app.command()(serve)
app.command()(push)
app.command()(pull)
app.command()(bundle)
app.command()(export)
app.command()(split)
_EFFECTS = {True: "read", False: "write", None: "?"}


@app.command("list")
def list_environments(
    names: Annotated[bool, typer.Option("--names", help="Only the names, one a line.")] = False,
) -> None:
    """List the bundled and installed environments."""
    from trajsmith.environments import list_bundled_environments
    from trajsmith.environments.library import ENVIRONMENTS
    from trajsmith.environments.linked import list_worlds

    if names:
        for name in (*ENVIRONMENTS.names(), *list_bundled_environments()):
            typer.echo(name)
        return
    table = Table("name", "domain", "tools", "of the user", "about")
    for name in ENVIRONMENTS.names():
        spec = ENVIRONMENTS.get(name).describe()
        mine = sum(tool.actor == "user" for tool in spec.tools)
        table.add_row(name, spec.domain, str(len(spec.tools)), str(mine or ""), spec.description.split("\n")[0])
    for name, entry in list_bundled_environments().items():
        words = [escape(escape_controls(text)) for text in (entry.domain, entry.description)]
        table.add_row(name, words[0], str(entry.tools), str(entry.user_tools or ""), words[1])
    out.print(table)
    print_line(f"linked worlds, several of them as one: {', '.join(list_worlds())}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help=WHAT)],
    sandbox: Sandbox = None,
) -> None:
    """Show the policy, the tools and the state of an environment, and what its loader noted."""
    from trajsmith.phrasing import render_full_policy
    from trajsmith.pipeline.environment_references import check_words, open_named_source

    source = open_named_source(name, sandbox=sandbox)
    spec = run_async(source.spec())
    check_words(source, spec)
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
    attack: Annotated[
        bool, typer.Option("--attack", help="Make attacks on this machine from inside the sandbox, and say what held.")
    ] = False,
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="With --attack: default (used if left out), strict, or unsafe to see them work."),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option("--provider", help="With --attack: what starts the workers: built_in (if left out), bubblewrap."),
    ] = None,
) -> None:
    """Try what this machine offers to the sandbox, and say which of its modes work here.

    With --attack: code that reads and changes files, looks for keys, calls listeners, starts processes, changes other
    plays and floods its parent is run in the sandbox, and what it achieved is judged from outside (15 s). The files,
    listeners and keys are made for it.

    Exit code 1 if mode `default` does not work, or an attack was not stopped.
    """
    if attack:
        _attack("default" if mode is None else mode, "built_in" if provider is None else provider, json)
        return
    for option, value in (("--mode", mode), ("--provider", provider)):
        if value is not None:
            raise InputError(f"{option} is for attacks: add --attack")
    from trajsmith.environments.sandbox.probe import probe as tried
    from trajsmith.environments.sandbox.probe import render

    report = tried()
    if json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        out.print(render(report))
    if not report.modes["default"].works:
        raise RunError(f"sandbox mode default does not work here: {report.modes['default'].message}")


def _attack(mode: str, provider: str, json: bool) -> None:
    from trajsmith.environments.sandbox.attack_suite import run_attacks_here
    from trajsmith.environments.sandbox.launchers import SANDBOXES
    from trajsmith.environments.sandbox.settings import MODES

    if mode not in MODES:
        raise InputError(f"--mode {mode!a}: one of {', '.join(MODES)}")
    try:
        SANDBOXES.check_name(provider)
    except ValueError as error:
        raise InputError(f"--provider: {error}") from error
    report = run_attacks_here(mode, provider)
    through = [one for one in report.outcomes if one.harm]
    if json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        table = Table("attacks on", "tried", "stopped", "not stopped", title=f"mode {mode}, provider {provider}")
        for kind, (tried, harmful) in report.count().items():
            table.add_row(kind, str(tried), str(tried - harmful), str(harmful))
        out.print(table)
        for one in through:
            print_line(f"not stopped: {one.name} ({one.kind}, while a {one.when}): {'; '.join(one.harm)}")
        print_line(
            f"a play costs {report.play_ms:.0f} ms to open and close, a call {report.call_us:.0f} us (wall time)"
        )
    if through:
        raise RunError(f"{len(through)} of {len(report.outcomes)} attacks were not stopped in mode {mode}")


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
