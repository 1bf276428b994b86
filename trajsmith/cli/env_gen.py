"""`trajsmith env gen`: environments from documents, tool lists and tables without a model, from themes with models."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trajsmith.cli.console import out, print_line, run_async
from trajsmith.cli.options import MOST_SEED, DryRun, ModelConfig, Set
from trajsmith.records import InputError, RunError

if TYPE_CHECKING:
    from trajsmith.envgen.generate import Blueprint, GenerationResult
    from trajsmith.envgen.generate.tool_lists import ToolList

SHOWN = 8
SOURCES = (
    "--from-openapi, --from-mcp, --from-tables, --from-traces, --from-domain, --from-tasks, "
    "--from-documents, --from-plan"
)


def gen(
    out: Annotated[
        Path | None, typer.Option("--out", help="Without a model: directory that the environment's folder is made in.")
    ] = None,
    from_openapi: Annotated[Path | None, typer.Option("--from-openapi", help="An OpenAPI document (3.0, 3.1).")] = None,
    from_mcp: Annotated[
        list[str] | None,
        typer.Option(
            "--from-mcp",
            help="A tool list (JSON or JSON Lines), FILE or FILE:SERVER; or RUN.yaml:NAME. With --count, lists of many "
            "servers; may be given more than once.",
        ),
    ] = None,
    from_tables: Annotated[
        Path | None,
        typer.Option("--from-tables", help="CSV, JSON, JSON Lines or SQLite: a file, or a directory of them."),
    ] = None,
    from_traces: Annotated[
        list[Path] | None,
        typer.Option("--from-traces", help="Recorded calls: a format of `trajsmith import`, spans, HAR. Repeatable."),
    ] = None,
    from_domain: Annotated[
        str | None,
        typer.Option("--from-domain", help="With models: a domain's name, or a file that lists names."),
    ] = None,
    from_tasks: Annotated[
        Path | None, typer.Option("--from-tasks", help="With models: JSON Lines of users' requests.")
    ] = None,
    from_documents: Annotated[
        Path | None, typer.Option("--from-documents", help="With models: a folder of documents on one domain each.")
    ] = None,
    from_plan: Annotated[
        Path | None,
        typer.Option("--from-plan", help="With models: plan.yaml of a diagnosis, for the environments that it wants."),
    ] = None,
    config: ModelConfig = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="With models: run directory; alone, resume that run.")
    ] = None,
    overrides: Set = None,
    dry_run: DryRun = False,
    name: Annotated[str | None, typer.Option("--name", help="Without a model: name of the environment.")] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=MOST_SEED, help="Without a model: seed of the examination.")
    ] = 0,
    user_tools: Annotated[
        list[str] | None,
        typer.Option(
            "--user-tool",
            help="Without a model: a tool that only the user calls, on their own device, in place of those that the "
            "source names; may be given more than once.",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "--count", min=1, help="With --from-mcp: accepted environments to make of the servers of the lists."
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="With --count: processes at once.")] = 1,
    avoid: Annotated[
        list[str] | None, typer.Option("--avoid", help="With --count: a kind of record that no environment is about.")
    ] = None,
) -> None:
    """Make environments from a source and keep those that pass their tests and the environment checks (0.9 or more).

    Without a model from an OpenAPI document, a tool list, tables or recorded calls, into --out. With models from a
    domain's name, requests, documents or a plan, into the run directory of --config: built, tested, examined,
    mended and judged.

    Exit code 1 if all is rejected: the reasons are shown and kept. A killed run goes on where it was.
    """
    themes = [option for option in (from_domain, from_tasks, from_documents, from_plan) if option is not None]
    sources = [bool(option) for option in (from_openapi, from_mcp, from_tables, from_traces)]
    if themes or config is not None or run is not None:
        from trajsmith.cli.env_gen_models import gen_by_models

        _refuse_options_without_model(any(sources) or len(themes) > 1, out is not None or name is not None, user_tools)
        gen_by_models(from_domain, from_tasks, from_documents, config, run, overrides or [], dry_run, from_plan)
        return
    out = _check_options_without_model(bool(dry_run or overrides), sum(sources), out)
    if count is not None:
        if not from_mcp or name or user_tools:
            raise InputError("--count goes with --from-mcp only, and without --name and --user-tool")
        _generate_many(from_mcp, out, count, seed, workers, avoid or [])
        return
    if from_traces:
        _generate_clone(from_traces, out, name, seed, user_tools)
        return
    if from_mcp and len(from_mcp) > 1:
        raise InputError("several tool lists go with --count")
    read = _reader(from_openapi, from_mcp[0] if from_mcp else None, from_tables)
    from trajsmith.envgen.generate import generate_environment

    result = generate_environment(read, out, name, seed, user_tools=user_tools or None)
    _print_result(result)
    if not result.accepted:
        raise RunError(f"{result.name} is rejected: {result.reasons[0]} (kept in {result.directory})")


def _refuse_options_without_model(several: bool, placed: bool, user_tools: list[str] | None) -> None:
    """Refuse what does not go with models."""
    if several:
        raise InputError(f"give exactly one of {SOURCES}; --config and --run go with the last four")
    if placed:
        raise InputError("--out and --name go without a model: with models, --run names the folder")
    if user_tools:
        raise InputError("--user-tool goes without a model: models say themselves which tools are the user's")


def _check_options_without_model(modelled: bool, sources: int, out_dir: Path | None) -> Path:
    """Refuse what goes with models only; return the directory."""
    if modelled:
        raise InputError("--dry-run and --set go with models")
    if sources != 1:
        raise InputError(f"give exactly one of {SOURCES}")
    if out_dir is None:
        raise InputError("give --out, the directory that the environment's folder is made in")
    return out_dir


def _generate_clone(
    files: list[Path], out_dir: Path, name: str | None, seed: int, user_tools: list[str] | None
) -> None:
    """Make a clone of recordings, and say how sure each of its tools is."""
    from trajsmith.envgen.traces import describe_tool, generate_clone

    if user_tools:
        raise InputError("--user-tool goes without --from-traces: recordings say who calls")
    result = generate_clone(files, out_dir, name, seed)
    report = result.report
    score = "no score" if result.score is None else f"{result.score:.2f}"
    verdict = "accepted" if result.accepted else "rejected"
    out.print(f"{result.name}: {verdict}, environment checker {score}, tests: {result.tests}", markup=False)
    print_line(
        f"{report.equal} of {report.calls} recorded calls of {report.dialogues} dialogues give the recorded result "
        f"({report.supplied} of them show the rows that their dialogue starts from), {result.seconds} s"
    )
    for table in report.tables:
        print_line(f"table {table.table}: {table.rows} rows, {table.contradictions} contradictions")
    for tool in report.tools:
        print_line(describe_tool(tool))
    for where, reason in report.left_out[:SHOWN]:
        print_line(f"left out: {where}: {reason}")
    if len(report.left_out) > SHOWN:
        print_line(f"{len(report.left_out) - SHOWN} more are listed in {result.directory / 'blueprint.json'}")
    if result.failed_tasks:
        print_line(f"{result.failed_tasks} dialogues failed: {result.directory / 'failed_tasks.jsonl'}")
    for reason in result.reasons:
        print_line(f"reason: {reason}")
    if not result.accepted:
        raise RunError(f"{result.name} is rejected: {result.reasons[0]} (kept in {result.directory})")
    print_line(f"use it: - python: {result.directory / (result.name + '.py')}")


def _generate_many(files: list[str], out_dir: Path, count: int, seed: int, workers: int, avoid: list[str]) -> None:
    """Make many environments of lists of many servers, and say what became of them."""
    from trajsmith.envgen.generate.tool_lists import read_tool_lists
    from trajsmith.envgen.scale import MassPlan, generate_environments, select_services

    lists = [one for file in files for one in read_tool_lists(Path(file))]
    selection = select_services(lists, avoid)
    out.print(f"{len(lists)} servers: {len(selection.services)} services", markup=False)
    for reason, number in selection.count_reasons().items():
        print_line(f"{number} servers: {reason}")
    result = generate_environments(selection, MassPlan(out_dir, count, seed, workers), print_line)
    out.print(
        f"{len(result.accepted)} of {len(result.entries)} accepted; catalogue: {out_dir / 'catalogue.md'}", markup=False
    )
    if result.undecided:
        raise RunError(f"{len(result.undecided)} environments are undecided: repeat the command")
    if len(result.accepted) < count:
        raise RunError(f"{len(result.accepted)} environments are accepted, fewer than {count}: the lists have no more")


def _reader(openapi: Path | None, mcp: str | None, tables: Path | None) -> "Callable[[], Blueprint]":
    if openapi is not None:
        from trajsmith.envgen.generate.from_openapi import read_openapi

        return lambda: read_openapi(openapi)
    if tables is not None:
        from trajsmith.envgen.generate.from_tables import read_tables

        return lambda: read_tables(tables)
    from trajsmith.envgen.generate.from_mcp import read_mcp

    return lambda: read_mcp(_tool_list(mcp or ""))


def _tool_list(reference: str) -> "ToolList":
    """A tool list from a file, or from a server that a run's configuration names."""
    from trajsmith.envgen.generate.tool_lists import ToolList, read_tool_list

    if Path(reference.partition(":")[0]).suffix not in (".yaml", ".yml"):
        return read_tool_list(reference)
    from trajsmith.pipeline.environment_references import open_named_source

    source = open_named_source(reference)
    spec = run_async(source.spec())
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema,
         "output_schema": tool.output_schema, "actor": tool.actor}
        for tool in spec.tools
    ]  # fmt: skip
    return ToolList(spec.name, tools)


def _print_result(result: "GenerationResult") -> None:
    from trajsmith.envgen.generate import Blueprint

    blueprint = Blueprint.model_validate_json((result.directory / "blueprint.json").read_bytes())
    verdict = "accepted" if result.accepted else "rejected"
    score = "no score" if result.score is None else f"{result.score:.2f}"
    out.print(f"{result.name}: {verdict}, environment checker {score}, tests: {result.tests}", markup=False)
    out.print(
        f"{result.entities} entities, {result.tools} tools, {result.left_out} left out, {result.seconds} s",
        markup=False,
    )
    for one in blueprint.left_out[:SHOWN]:
        print_line(f"left out: {one.what}: {one.reason}")
    if len(blueprint.left_out) > SHOWN:
        out.print(
            f"{len(blueprint.left_out) - SHOWN} more are listed in {result.directory / 'blueprint.json'}", markup=False
        )
    for reason in result.reasons:
        print_line(f"reason: {reason}")
    if result.accepted:
        print_line(f"use it: - python: {result.directory / (result.name + '.py')}")
