"""`trajsmith env gen / split`: environments without a model or from themes with models; those that are held out."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from trajsmith.cli.console import out, print_line, run_async
from trajsmith.cli.options import MOST_SEED, DryRun, ModelConfig, Set
from trajsmith.records import InputError, RunError, ensure_writable

if TYPE_CHECKING:
    from trajsmith.envgen.generate import Blueprint, GenerationResult
    from trajsmith.envgen.generate.tool_lists import ToolList

SHOWN = 8
SOURCES = (
    "--from-openapi, --from-mcp, --from-tables, --from-traces, --from-domain, --from-tasks, "
    "--from-documents, --from-plan"
)


FromOpenApi = Annotated[
    list[Path] | None,
    typer.Option(
        "--from-openapi",
        help="An OpenAPI document (3.0, 3.1). With --count, also a directory of them; may be given more than once.",
    ),
]
FromTables = Annotated[
    list[Path] | None,
    typer.Option(
        "--from-tables",
        help="CSV, JSON, JSON Lines or SQLite: a file, or a directory of them. With --count, a .sql file with "
        "CREATE TABLE as well; may be given more than once.",
    ),
]


def gen(
    out: Annotated[
        Path | None, typer.Option("--out", help="Without a model: directory that the environment's folder is made in.")
    ] = None,
    from_openapi: FromOpenApi = None,
    from_mcp: Annotated[
        list[str] | None,
        typer.Option(
            "--from-mcp",
            help="A tool list (JSON or JSON Lines), FILE or FILE:SERVER; or RUN.yaml:NAME. With --count, lists of many "
            "servers; may be given more than once.",
        ),
    ] = None,
    from_tables: FromTables = None,
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
            "--count",
            min=1,
            help="With --from-mcp, --from-openapi and --from-tables: accepted environments to make of all of them.",
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
    if themes or config is not None or run is not None:
        from trajsmith.cli.env_gen_models import gen_by_models

        several = len(themes) > 1 or any((from_openapi, from_mcp, from_tables, from_traces))
        _refuse_options_without_model(several, out is not None or name is not None, user_tools)
        gen_by_models(from_domain, from_tasks, from_documents, config, run, overrides or [], dry_run, from_plan)
        return
    if dry_run or overrides:
        raise InputError("--dry-run and --set go with models")
    sources = from_openapi or [], from_mcp or [], from_tables or []
    target = _check_sources(sources, from_traces or [], out, count, bool(name or user_tools))
    if count is not None:
        _generate_many(sources, target, count, seed, workers, avoid or [])
        return
    if from_traces:
        _generate_clone(from_traces, target, name, seed, user_tools)
        return
    read = _reader(*(next(iter(source), None) for source in sources))  # type: ignore[arg-type]
    from trajsmith.envgen.generate import generate_environment

    result = generate_environment(read, target, name, seed, user_tools=user_tools or None)
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


Sources = tuple[list[Path], list[str], list[Path]]
"""OpenAPI documents, tool lists and tables."""


def _check_sources(
    sources: Sources, traces: list[Path], directory: Path | None, count: int | None, is_named: bool
) -> Path:
    """Return the directory of the environments.

    Raises:
        InputError: Options do not go together.
    """
    kinds = sum(bool(source) for source in (*sources, traces))
    if not kinds or (kinds > 1 and (count is None or traces)):
        raise InputError(f"give exactly one of {SOURCES}; --count takes the first three together")
    if directory is None:
        raise InputError("give --out, the directory that the environment's folder is made in")
    if count is not None and (is_named or traces):
        raise InputError("--count goes without --name, --user-tool and --from-traces")
    if count is None and any(len(list(source)) > 1 for source in sources):
        raise InputError("several sources go with --count")
    return directory


def _generate_many(
    sources: Sources, out_dir: Path, count: int, seed: int, workers: int,
    avoid: list[str],
) -> None:  # fmt: skip
    """Make many environments of lists of many servers, documents and tables, and say what became of them."""
    from trajsmith.envgen.generate.tool_lists import read_tool_lists
    from trajsmith.envgen.scale import MassPlan, generate_environments, read_documents, select_services

    openapi, mcp, tables = sources
    lists = [one for file in mcp for one in read_tool_lists(Path(file))]
    documents = read_documents(openapi, tables)
    selection = select_services(lists, avoid, documents, count)
    read = len(lists) + len(documents.services) + len(documents.schemas)
    out.print(f"{read} servers and documents: {len(selection.services)} services", markup=False)
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


def split(
    catalogue: Annotated[
        Path, typer.Argument(metavar="CATALOGUE", help="The --out of `env gen --count`, or its catalogue.json.")
    ],
    held_out: Annotated[
        float, typer.Option("--held-out", min=0.01, max=0.9, help="Share of the environments to hold out, at least.")
    ] = 0.2,
    most_overlap: Annotated[
        float,
        typer.Option(
            "--most-overlap", min=0.0, max=1.0,
            help="Largest overlap of tool names, or of records and actions, between training and held out.",
        ),
    ] = 0.3,
    seed: Annotated[int, typer.Option("--seed", min=0, max=MOST_SEED, help="Seed of the choice.")] = 0,
    target: Annotated[
        Path | None, typer.Option("--out", help="Directory of train.yaml and held_out.yaml; left out, the catalogue's.")
    ] = None,
) -> None:  # fmt: skip
    """Split generated environments by domain and tools: no group is in both parts, and none shares many tools.

    Environments of other groups that are too similar to one that is held out are in neither part.
    """
    from trajsmith.envgen.scale import read_environments, split_environments, write_split

    parts = split_environments(read_environments(catalogue), held_out, most_overlap, seed)
    directory = target or (catalogue if catalogue.is_dir() else catalogue.parent)
    ensure_writable(directory / "train.yaml", make=True)
    files = write_split(directory, parts, catalogue)
    table = Table("family", "training", "held out", "in neither")
    for family, *counts in parts.count_families():
        table.add_row(family, *map(str, counts))
    table.add_row("all", *(str(len(part)) for part in (parts.train, parts.held_out, parts.left_out)))
    out.print(table)
    groups = sorted({one.group for one in parts.held_out})
    print_line(f"held out: {len(groups)} groups: {'; '.join(groups)}")
    print_line(f"largest overlap between the parts: {parts.most_overlap:.2f}")
    for file in files:
        print_line(f"environments of a run: {file}")


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
