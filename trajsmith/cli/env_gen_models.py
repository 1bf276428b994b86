"""`trajsmith env gen` from themes, with models: sources, what is shown before and after."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from trajsmith.cli.console import err, out, print_line, run_async
from trajsmith.envgen.synthesis.settings import GENERATION_STAGES
from trajsmith.models.usage import compute_cost
from trajsmith.records import InputError, ModelFault, RunError

if TYPE_CHECKING:
    from trajsmith.envgen.sources import ThemeSource
    from trajsmith.envgen.sources.read_result import SourceReadResult
    from trajsmith.envgen.synthesis.funnel import Funnel
    from trajsmith.envgen.synthesis.records import SynthesisOutcome
    from trajsmith.envgen.synthesis.search_records import SearchCounts
    from trajsmith.pipeline.environment_generation import GenConfig

SHOWN = 6
"""Reasons of one rejection that are printed; `outcomes.jsonl` has all."""


def gen_by_models(
    domain: str | None,
    tasks: Path | None,
    documents: Path | None,
    config: Path | None,
    run: Path | None,
    overrides: Sequence[str],
    dry_run: bool,
    plan: Path | None = None,
) -> None:
    """Make environments of a source, or go on with a run.

    Raises:
        InputError: Source or configuration cannot be used.
        RunError: Nothing was accepted, or a model was out; the reasons have been shown.
    """
    from trajsmith.pipeline.environment_generation import (
        build_wish_sources,
        fill_plan_files,
        generate,
        load_run_inputs,
        read_plan,
        store_plan,
    )

    has_sources = any(source is not None for source in (domain, tasks, documents, plan))
    settings = load_run_settings(config, run, overrides, has_sources)
    sources: Sequence[ThemeSource] = ()
    if not has_sources:
        before = load_run_inputs(settings.run)
        sources, tasks = before.sources, before.tasks
    by_model = tasks if settings.synthesis.themes == "model" and not dry_run else None
    if plan is not None:
        sources = build_wish_sources(read_plan(plan))
    elif by_model is None and (has_sources or tasks is not None):
        sources = [*sources, *_sources(domain, tasks, documents)]
    if dry_run:
        preview(settings, sources)
        return
    with explain_resume(settings.run):
        if plan is not None:
            store_plan(settings, read_plan(plan))
        generated = run_async(generate(settings, sources, by_model, err))
    if generated.reading is not None:
        _read_sources(generated.reading)
    show(settings.run, generated.outcomes, generated.funnel)
    if generated.search is not None:
        _show_search(generated.search)
    filled = fill_plan_files(settings.run, generated.outcomes)
    if filled is not None:
        print_line(f"make data with them: trajsmith run CONFIG --plan {filled}")
    require_decisions(generated.undecided, settings.run)
    if not any(outcome.accepted for outcome in generated.outcomes):
        raise RunError(f"nothing is accepted; the reasons stand in {settings.run / 'outcomes.jsonl'}")


def explain_resume(run: Path) -> AbstractContextManager[None]:
    """Say how a run that stops goes on."""
    return explain_stop(f"trajsmith resume {run}")


@contextmanager
def explain_stop(command: str) -> Iterator[None]:
    """Say by which command something that stops goes on."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise RunError(f"stopped; nothing is lost, resume with: {command}") from stop
    except ModelFault as fault:
        raise RunError(f"{fault}; nothing is lost, resume with: {command}") from fault


def require_decisions(undecided: Mapping[str, str], run: Path) -> None:
    """Themes of which nothing could be told now.

    Raises:
        RunError: There are some; each has been shown.
    """
    for reason in undecided.values():
        print_line(f"undecided: {reason}; resume with: trajsmith resume {run}")
    if undecided:
        raise RunError(f"{len(undecided)} themes could not be decided; resume with: trajsmith resume {run}")


def load_run_settings(
    config: Path | None, run: Path | None, overrides: Sequence[str], has_sources: bool
) -> "GenConfig":
    """The configuration of a start, or that of the run that goes on.

    Args:
        given: A source was named, so that a configuration must be.
    """
    from trajsmith.pipeline.environment_generation import load_gen_config

    if config is not None:
        settings = load_gen_config(config, overrides)
        return settings if run is None else settings.model_copy(update={"run": run})
    if run is None or has_sources:
        raise InputError("domains, tasks and documents need models: give --config, such as configs/envgen_openai.yaml")
    if not (run / "config.yaml").is_file():
        raise InputError(f"{run} holds no run of env gen: give a source and --config")
    return load_gen_config(run / "config.yaml", overrides).model_copy(update={"run": run})


def _sources(domain: str | None, tasks: Path | None, documents: Path | None) -> "Sequence[ThemeSource]":
    from trajsmith.envgen.sources.documents import read_documents
    from trajsmith.envgen.sources.domains import build_domain_source, read_domains
    from trajsmith.envgen.sources.task_sets import read_task_set

    if tasks is not None:
        return _read_sources(read_task_set(tasks))
    if documents is not None:
        return _read_sources(read_documents(documents))
    name = domain or ""
    return _read_sources(read_domains(Path(name))) if Path(name).is_file() else [build_domain_source(name)]


def _read_sources(reading: "SourceReadResult") -> "Sequence[ThemeSource]":
    """The sources of a file, after what was left out has been shown."""
    out.print(f"{reading.read} read, {len(reading.sources)} themes, {len(reading.left_out)} left out", markup=False)
    for reason, number in reading.reasons.items():
        print_line(f"left out: {reason}: {number}")
    return reading.sources


def preview(settings: "GenConfig", sources: "Sequence[ThemeSource]", stages: Sequence[str] = GENERATION_STAGES) -> None:
    """Stages, roles and an estimate; only what costs nothing is asked of servers."""
    from trajsmith.pipeline.environment_generation import check_ready
    from trajsmith.pipeline.usage_estimate import estimate_generation

    table = Table(
        "stage", "role", "model", "requests", "prompt tokens", "completion tokens", "cost",
        title=f"{settings.name}: {len(sources)} themes into {settings.run}",
    )  # fmt: skip
    tokens, cost = 0, 0.0
    for row in estimate_generation(settings, len(sources), stages):
        money = compute_cost(row.usage, settings.models[row.entry].price)
        tokens, cost = tokens + row.usage.prompt_tokens + row.usage.completion_tokens, cost + money
        counts = (row.usage.requests, row.usage.prompt_tokens, row.usage.completion_tokens)
        table.add_row(
            row.stage, row.role, settings.models[row.entry].model, *(f"{one:,}" for one in counts), f"{money:.2f}"
        )
    out.print(table)
    out.print(f"estimated: {tokens:,} tokens, cost {cost:.2f} (from mean sizes; most of it depends on the repairs)")
    limits = settings.budget
    if limits.max_cost is not None or limits.max_tokens is not None:
        out.print(f"budget: max_cost {limits.max_cost}, max_tokens {limits.max_tokens}; it stops there, resumable")
    for source in sources[:20]:
        out.print(f"theme: {source.name} ({source.kind}, {len(source.requests)} requests)", markup=False)
    _preview_search(settings, sources)
    run_async(check_ready(settings, sources))


def _preview_search(settings: "GenConfig", sources: "Sequence[ThemeSource]") -> None:
    """Whom a search asks how much; what it costs, if anything, only the server's owner knows."""
    from trajsmith.envgen.synthesis.search_records import find_unsearched_in_folder

    search = settings.search
    if search is None:
        return
    number = len(find_unsearched_in_folder(settings.run, search, sources))
    print_line(
        f"search: {search.tool} of {search.name}: {len(search.queries)} queries for each of {number} themes, "
        f"{search.results} results each; themes with requests, documents or an earlier search are not searched for"
    )
    if search.mining is not None:
        mining = search.mining
        print_line(
            f"then up to {mining.rounds} rounds of {mining.queries} queries and {mining.pages} pages for each, with a "
            "request to the designer per round and page, which are not in the estimate"
        )


def show(run: Path | None, outcomes: "Sequence[SynthesisOutcome]", funnel: "Funnel") -> None:
    """Print the outcome of every theme, the funnel and the cost.

    Args:
        run: Folder below which `environments/` has what was accepted; None if it is told otherwise where that is.
    """
    table = Table(
        "theme",
        "environment",
        "outcome",
        "repairs",
        "tests and environment checker",
        "check",
        "semantic",
        "tools",
        "cost",
    )
    for one in outcomes:
        table.add_row(
            one.source, one.name, "accepted" if one.accepted else f"rejected ({one.stage})", str(one.rounds),
            f"{one.score:.2f}", _format_score(one.check_score), _format_score(one.semantic), str(one.tools),
            f"{funnel.cost_by_theme.get(one.source, 0.0):.4f}",
        )  # fmt: skip
    out.print(table)
    _show_funnel(funnel)
    for one in outcomes:
        for reason in one.reasons[:SHOWN]:
            print_line(f"rejected: {one.source}: {reason}")
        for note in one.notes:
            print_line(f"note: {one.source}: {note}")
        for reason in one.dropped:
            print_line(f"tool taken out: {one.name}: {reason}")
        if one.accepted and run is not None:
            path = run / "environments" / one.name / f"{one.name}.py"
            print_line(f"use it: - python: {path}")


def _show_search(search: "SearchCounts") -> None:
    print_line(
        f"search: {search.themes} themes, {search.passages} passages, {search.repeated} repeated, "
        f"{search.faults} queries without results, {len(search.without)} themes without passages"
    )
    if search.pages:
        print_line(f"read: {search.pages} pages, {search.rows} rows")


def _show_funnel(funnel: "Funnel") -> None:
    out.print("funnel: " + " > ".join(f"{step} {number}" for step, number in funnel.themes.items()), markup=False)
    for reason, number in funnel.rejected.items():
        print_line(f"reason: {reason}: {number}")
    table = Table("stage", "requests", "prompt tokens", "completion tokens", "cost")
    for stage in funnel.stages:
        counts = (stage.requests, stage.prompt_tokens, stage.completion_tokens)
        table.add_row(stage.stage, *(f"{one:,}" for one in counts), f"{stage.cost:.4f}")
    out.print(table)
    each = ""
    if funnel.tokens_per_accepted is not None:
        each = (
            f"; for each accepted environment {funnel.tokens_per_accepted:,} tokens, cost "
            f"{funnel.cost_per_accepted:.4f}"
        )
    out.print(f"{funnel.requests} requests, {funnel.tokens:,} tokens, cost {funnel.cost:.4f}{each}", markup=False)


def _format_score(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
