"""`trajsmith prompts`: which prompts there are, and the exact messages that are sent for a record."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.table import Table

from trajsmith.cli.console import out, print_line, print_note, run_async
from trajsmith.records import InputError

if TYPE_CHECKING:
    from trajsmith.pipeline.prompt_preview import RenderedPrompts

app = typer.Typer(help="The prompts of the model roles.", no_args_is_help=True)


@app.command("list")
def list_prompts(
    folder: Annotated[
        Path | None, typer.Option("--prompts", help="Folder with prompts of your own, as the setting `prompts`.")
    ] = None,
) -> None:
    """List the prompts with role, version, purpose and source; reads and checks every one."""
    from trajsmith.envgen.synthesis.prompt_specs import SOURCE_SPECS, SPECS
    from trajsmith.envgen.synthesis.settings import STAGES
    from trajsmith.models.prompts import Prompts
    from trajsmith.pipeline.stages import PROMPTS

    prompts = Prompts(folder)
    table = Table("prompt", "role", "version", "purpose", "source")
    roles = [(role, spec) for role, specs in PROMPTS.items() for spec in specs]
    for role, spec in [*roles, *((STAGES[stage], spec) for stage, spec in (SPECS | SOURCE_SPECS).items())]:
        prompt = prompts.get(spec)
        table.add_row(prompt.name, role, prompt.version, prompt.purpose, prompt.source)
    out.print(table)


@app.command("render")
def render_prompt(
    stage: Annotated[str, typer.Argument(help="One of persona, write, refine, agent, user, judge.")],
    name: Annotated[
        str,
        typer.Option(
            "--id", help="Id of a task or chain; for agent and user of a task or trajectory; for judge of a trajectory."
        ),
    ],
    run: Annotated[Path, typer.Option("--run", help="Run directory.")],
    as_json: Annotated[bool, typer.Option("--json", help="One request a line, as JSON.")] = False,
) -> None:
    """Show the exact messages that are sent for a record. Nothing is sent."""
    from trajsmith.pipeline.prompt_preview import PURPOSES, render
    from trajsmith.pipeline.run_directory import RunDirectory

    wanted = next((purpose for purpose in PURPOSES if purpose == stage), None)
    if wanted is None:
        raise InputError(f"{_unrendered(stage)}: use one of {', '.join(PURPOSES)}")
    rendered = run_async(render(RunDirectory.open(run), wanted, name))
    if as_json:
        for request in rendered.requests:
            typer.echo(orjson.dumps(request.model_dump(mode="json", exclude_none=True)))
        return
    _show(stage, rendered)


def _unrendered(stage: str) -> str:
    """Why a stage's prompts cannot be rendered."""
    from trajsmith.envgen.synthesis.prompt_specs import SPECS
    from trajsmith.pipeline.stages import PROMPTS

    specs = [spec for role in ("refine", "classify") for spec in PROMPTS[role]]
    if stage in {"graph", "toolgraph", "classify", *(spec.name for spec in specs)}:
        return "the graph's prompts are about the tools of an environment, not about a record, so none is rendered"
    if stage in {spec.name for spec in SPECS.values()}:
        return "the prompts of `env gen` are about an environment being made, not about a record, so none is rendered"
    return f"there is no stage {stage!r} with prompts"


def _show(stage: str, rendered: "RenderedPrompts") -> None:
    if rendered.scripted:
        print_note(f"note: {stage} is scripted in this run; this is what a model would be sent")
    for number, request in enumerate(rendered.requests, 1):
        print_line(f"=== {stage}: request {number} of {len(rendered.requests)} ===")
        for message in request.messages:
            print_line(f"--- {message.role} ---")
            if message.content:
                print_line(message.content)
            for call in message.tool_calls or ():
                print_line(f"{call.function.name}({orjson.dumps(call.function.arguments).decode()})")
        if request.reply_schema:
            print_line(f"--- schema of the reply: {request.schema_name} ---")
            print_line(orjson.dumps(request.reply_schema).decode())
        if request.tools:
            print_line("--- tools ---")
            for tool in request.tools:
                print_line(orjson.dumps(tool).decode())
