"""The pipeline, end to end: graph, chains, grounding, tasks, dialogues, verdicts, dataset and report."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from trajsmith.export import (
    INDEX,
    VARIETY_SAMPLE,
    ConversationBrowser,
    DatasetWriter,
    DialogueFaults,
    FormatSettings,
    MultiFormatWriter,
    ReportBuilder,
    Statistics,
    build_card,
    build_plots,
    compute_tool_coverage,
    write_overview,
)
from trajsmith.models import ROLES, SCRIPTED, Role
from trajsmith.models.registry import check_models
from trajsmith.pipeline.config import RunConfig, check_files, check_plugins, load_config
from trajsmith.pipeline.config_changes import FIRST_OF_ROLE
from trajsmith.pipeline.dataset_selection import SELECTION, DatasetSelector
from trajsmith.pipeline.dialogue_audit import AuditReport
from trajsmith.pipeline.engine import ENGINES, run_stage
from trajsmith.pipeline.export_chunks import ExportOrder, PageEntry, serialize_place
from trajsmith.pipeline.export_engine import are_built_in, count_export_workers, export_parts
from trajsmith.pipeline.export_plan import ExportPlan, JudgedPlace, VerdictHead
from trajsmith.pipeline.format_export import iter_selected, load_pass_rates
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.record_forms import compress_large_files
from trajsmith.pipeline.record_joins import TaskCandidates, join_verdicts
from trajsmith.pipeline.repairs import REPAIR_ORDER, FailedPlays, RepairKind, load_repair_settings, make_repair_stage
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_copies import choose_address, keep_copy
from trajsmith.pipeline.run_directory import VERDICTS, RunDirectory
from trajsmith.pipeline.run_pages import GALLERY, is_outdated, write_pages
from trajsmith.pipeline.run_summary import RunTally, find_main_reason
from trajsmith.pipeline.stage_times import StopWatch
from trajsmith.pipeline.stage_workers import choose_workers
from trajsmith.pipeline.stages import ORDER, ChainPlan, check_roles, list_stages, make_stages
from trajsmith.pipeline.top_up_rounds import TopUpRound, load_rounds, next_round, save_rounds
from trajsmith.pipeline.trace_import import load_imported_files, run_imports
from trajsmith.pipeline.vary_plan import VaryPlan
from trajsmith.pipeline.worker_pool import distribute_stage
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import (
    EnvironmentSpec,
    InputError,
    RunError,
    Summary,
    TaskHeader,
    Trajectory,
    canonical_json,
    count_records,
    has_records,
)
from trajsmith.records.storage import SAME_COMMAND, storage_boundary
from trajsmith.verify.dialogue_audit import AuditContext

MAIN = "trl"
"""Format of the dataset in `dataset/`."""
AUDITED_VARIETY = 50
"""Dialogues of one environment whose words a report with an audit compares, as `trajsmith audit` does."""


async def run_pipeline(run: RunDirectory, progress: RunProgress | None = None) -> Summary:
    """Run what is not done yet, then export; safe to call again at any time.

    Raises:
        InputError: The configuration cannot be used as it is.
        RunError: The run cannot go on; what was committed stays.
    """
    if load_imported_files(run):
        return await import_traces(run, progress)
    if repairs := load_repair_settings(run):
        return await repair_plays(run, repairs.kind, progress)
    with run.lock():
        config = load_config(run.config_path)
        async with _opened(config, run, list_stages(config)) as context:
            config.export.split.check(context.places)
            context.check_names()
            if config.shard is not None:
                return await _run_shard(run, context, progress)
            selector = await _run_rounds(run, context, progress)
            return await export_run(run, context, progress or NullProgress(), selector)


async def _run_shard(run: RunDirectory, context: RunContext, progress: RunProgress | None) -> Summary:
    """Run the stages of one shard; rows are chosen and written after merging.

    Raises:
        InputError: Models help with the graph: every shard would build and pay one of its own.
    """
    roles = context.config.roles
    if any(roles.of(role).model != SCRIPTED for role in ("refine", "classify")):
        raise InputError("shard: models refine or classify the graph, so shards would have different ones: unset them")
    await _run_stages(run, context, list_stages(context.config), progress)
    summary = _tallied(run, context)
    run.write_json("summary.json", summary.model_dump(mode="json"))
    return summary


async def _run_rounds(run: RunDirectory, context: RunContext, progress: RunProgress | None) -> DatasetSelector:
    """Run the line once, or, where a number of rows is asked for, until they are there.

    Raises:
        RunError: The budget is spent and something is still missing.
    """
    _check_strata(context)
    selector, rounds = DatasetSelector(run, context), load_rounds(run, context.config)
    while True:
        if selector.quotas:
            save_rounds(run, rounds)
        await _run_stages(run, context, list_stages(context.config), progress, rounds)
        if selector.quotas is None:
            return selector
        selector.add_new()
        if not selector.quotas.missing():
            compress_large_files(run, context.config.engine, progress)
            return selector
        try:
            rounds = (*rounds, next_round(run, context.config, rounds, selector))
        except RunError:
            run.write_json("summary.json", _tallied(run, context).model_dump(mode="json"))
            raise


def _check_strata(context: RunContext) -> None:
    """Find out before any work whether all environments that are asked for are there."""
    wanted = context.config.accept.by.get("environment", {}) if context.config.accept else {}
    for name in wanted if isinstance(wanted, dict) else ():
        if name not in context.places:
            raise InputError(f"accept.by.environment: no environment {name!r}; there are {', '.join(context.places)}")


async def import_traces(run: RunDirectory, progress: RunProgress | None = None) -> Summary:
    """Make the calls of imported dialogues again and judge them; what was done is not done twice. Exports nothing.

    Raises:
        InputError: The configuration cannot be used as it is.
        RunError: The run cannot go on; what was committed stays.
    """
    with run.lock():
        async with _opened(load_config(run.config_path), run, ("verify",)) as context:
            await run_imports(run, context, progress)
            await _run_stages(run, context, ("verify",), progress)
            compress_large_files(run, context.config.engine, progress)
            summary = _tallied(run, context)
            run.write_json("summary.json", summary.model_dump(mode="json"))
            return summary


async def repair_plays(run: RunDirectory, kind: RepairKind, progress: RunProgress | None = None) -> Summary:
    """Repair the failed plays of a run of repairs, verify what came of it, and export; safe to call again.

    Raises:
        RunError: The run cannot go on, or nothing could be repaired; what was committed stays.
    """
    with run.lock():
        config = load_config(run.config_path)
        async with _opened(config, run, ("verify",)) as context:
            stage = make_repair_stage(context, kind)
            await run_stage(stage, run, FailedPlays(run), config.engine.concurrency, progress)
            await _run_stages(run, context, ("verify",), progress)
            compress_large_files(run, config.engine, progress)
            return await export_run(run, context, progress or NullProgress())


async def run_one_stage(run: RunDirectory, name: str, progress: RunProgress | None = None) -> Summary:
    """Run one stage and export nothing; the stages before it must have run.

    Raises:
        InputError: The records that the stage reads are not there, or the run holds repairs or imports and has no such
            stage.
        RunError: The run cannot go on; what was committed stays.
    """
    with run.lock():
        config = load_config(run.config_path)
        if load_repair_settings(run) is not None and name not in REPAIR_ORDER:
            raise InputError(f"{run.path} holds repairs of plays that were copied: its stages are repair and verify")
        if name != "verify" and load_imported_files(run):
            raise InputError(f"{run.path} holds recorded dialogues: of these stages it has verify alone")
        if name not in list_stages(config):
            raise InputError(f"{run.path} makes no variants: set vary.rates, for example with trajsmith resume --set")
        async with _opened(config, run, (name,)) as context:
            if ORDER.index(name) <= ORDER.index("vary"):
                context.check_names()
            await _run_stages(run, context, (name,), progress, load_rounds(run, config))
    return _tallied(run, context)


def _tallied(run: RunDirectory, context: RunContext) -> Summary:
    tally = RunTally(run, context.config, context)
    for _, trajectory, verdict in join_verdicts(run):
        tally.add(trajectory, verdict)
    return tally.summary()


@asynccontextmanager
async def _opened(config: RunConfig, run: RunDirectory, stages: Sequence[str]) -> AsyncIterator[RunContext]:
    """The world, with the models that these stages need found in order, and let go of whatever happens."""
    wanted = await check_ready(config, stages)
    async with keep_copy(run, choose_address(config), config.engine.copy_every):
        context = await RunContext.open(config, run)
        try:
            if wanted:
                await context.registry.run_preflight(wanted)
            yield context
        finally:
            await context.close()


async def check_ready(config: RunConfig, stages: Sequence[str] = ORDER) -> list[Role]:
    """The roles that models play in these stages, after a look at whether those can be used.

    Raises:
        InputError: Key, address or name of a model is wrong, or a prompt or file, or there is nothing to spend.
    """
    check_plugins(config)
    check_roles(config)
    check_files(config)
    wanted = [role for role in find_roles(stages) if config.roles.of(role).model != SCRIPTED]
    config.budget.check(wanted)
    await check_models(config.models, config.roles, wanted)
    return wanted


def find_roles(stages: Sequence[str]) -> list[Role]:
    """The roles that speak in these stages; the graph is built before the first chain is drawn."""
    names = ["graph", *stages] if "sample" in stages else list(stages)
    return [role for role in ROLES if FIRST_OF_ROLE[role] in names]


async def _run_stages(
    run: RunDirectory,
    context: RunContext,
    names: Sequence[str],
    progress: RunProgress | None,
    rounds: Sequence[TopUpRound] = (),
) -> None:
    all_stages, engine = make_stages(context), context.config.engine
    run_on_engine = ENGINES.get(engine.kind)
    try:
        for name in names:
            spoken = any(context.config.roles.of(role).model != SCRIPTED for role in find_roles((name,)))
            pool = None if spoken else choose_workers(run, context, all_stages[name])
            raw = pool is not None
            inputs: Iterable[tuple[str, Any]] | None = None
            if name == "sample":
                await context.prepare_graph()
                inputs = ChainPlan(context, rounds)
            elif name == "vary":
                inputs = VaryPlan(context, rounds, raw)
            elif name == "verify":
                inputs = TaskCandidates(run, raw)
            stage, concurrency = all_stages[name], engine.concurrency
            if pool is not None:
                stage, concurrency = distribute_stage(stage, pool), concurrency * pool.count
            await run_on_engine(stage, run, inputs, concurrency, progress)
            if context.config.accept is None or context.config.shard is not None:  # else a round may add to it
                compress_large_files(run, engine, progress, (stage.output,))
    finally:
        context.code_checks.close()


async def export_run(
    run: RunDirectory,
    context: RunContext,
    progress: RunProgress,
    selector: DatasetSelector | None = None,
    audited: bool = False,
) -> Summary:
    """Write dataset, card, report and summary from what the run holds, in one pass over the records.

    Args:
        run: The run.
        context: Its environments.
        progress: Where progress is shown.
        selector: What goes into the dataset, from a caller that has it.
        audited: Count faults of language for the report; this costs more than the export itself.

    Raises:
        RunError: The disk is full or broken, or no trajectory was accepted.
    """
    config, watch = context.config, StopWatch()
    selector = selector or DatasetSelector(run, context)
    _choose(run, selector)
    await context.close_workers()
    settings = config.export
    settings.split.check(context.places)
    specs = {name: place.spec for name, place in sorted(context.places.items())}
    tally, total = RunTally(run, config, context), count_records(run.file(VERDICTS))
    audit = AuditReport() if audited else None
    pages = total <= settings.pages
    report = ReportBuilder(list(specs.values()), settings.gallery, AUDITED_VARIETY if audited else VARIETY_SAMPLE)
    target, rates = run.file("dataset"), load_pass_rates(run)
    targets = {MAIN: target} | {name: run.file(f"exports/{name}") for name in settings.formats if name != MAIN}
    matrix = MultiFormatWriter(
        targets, context.state, settings.split, FormatSettings(window=settings.window), settings.rows_per_shard, rates
    )
    order = ExportOrder(
        matrix.targets, (True,), True, bool(config.play.faulty), pages, run.again, are_built_in(targets)
    )
    shown: dict[str, bytes] = {}
    """Entries of the pages, by id."""

    def consider(head: VerdictHead, place: JudgedPlace) -> None:
        def make_entry() -> bytes:
            return shown.get(head.trajectory_id) or serialize_place(run, place)

        report.offer(head.environment, bool(place.accepted), head.trajectory_id, make_entry)

    plan = ExportPlan(
        run, settings.split, settings.rows_per_shard, selector.list_unselected(), rates, order.wanted,
        AUDITED_VARIETY if audited else VARIETY_SAMPLE, consider,
    )  # fmt: skip
    entries: list[PageEntry] = []
    parts = export_parts(plan, order, count_export_workers(config.engine, order, total), _audit_into(audit, context))
    with storage_boundary(target, run.again), matrix:
        with progress.stage("export dataset", total, 0, 0) as bar:
            async with aclosing(parts):
                async for part in parts:
                    matrix.add_written(part.rows)
                    report.merge(part.report)
                    tally.counts.merge(part.counts)
                    entries += part.entries
                    bar.advance(part.left_out, part.written + part.left_out)
        shown.update((entry.trajectory_id, entry.data) for entry in entries)
        if pages:
            write_pages(run, config.name, entries)
        tally.content, dataset = plan.content, matrix.writers[MAIN]
        tally.exported, tally.refused = dataset.rows, matrix.dropped[MAIN]
        summary = tally.summary(watch.read(), selector)
        if not pages and is_outdated(run):
            write_overview(run.file(GALLERY), config.name, report.counts.groups, f"trajsmith report {run.path} --all")
        faults = DialogueFaults(audit.rows, audit.faults, audit.faulty_rows) if audit is not None else None
        report.write(summary, run.file("report.html"), faults, f"{GALLERY}/{INDEX}")
        run.write_json("summary.json", summary.model_dump(mode="json"))
        if not dataset.rows:
            raise RunError(f"{_nothing(summary, tally)}; see {run.file('report.html')}")
        if config.accept and dataset.rows != config.accept.count:
            refused = ", ".join(f"{reason}: {number}" for reason, number in tally.refused.items())
            raise RunError(
                f"{dataset.rows} of {config.accept.count} rows could be written ({refused}); ask for as many more with "
                f"trajsmith resume {run.path} --set accept.count=..."
            )
        _describe(dataset, config, summary, list(specs.values()), report.counts.statistics, selector.card())
    return summary


def _audit_into(audit: AuditReport | None, context: RunContext) -> Callable[[TaskHeader, Trajectory], None] | None:
    """Return what counts the faults of language of one dialogue; None without an audit."""
    if audit is None:
        return None

    def count(head: TaskHeader, trajectory: Trajectory) -> None:
        task, place = head.whole(), context.place(trajectory.environment)
        audit.add_dialogue(AuditContext(task, trajectory, place.spec, place.wording, context.state(task.initial_state)))

    return count


def _nothing(summary: Summary, tally: RunTally) -> str:
    """Why a dataset has no row: nothing was accepted, or nothing of it could be written."""
    if not tally.refused:
        return f"no trajectory was accepted ({find_main_reason(summary)})"
    reasons = ", ".join(f"{reason}: {number}" for reason, number in tally.refused.most_common(3))
    return f"none of {tally.counts.accepted} accepted trajectories could be exported ({reasons})"


def _choose(run: RunDirectory, selector: DatasetSelector) -> None:
    """Decide what goes into the dataset, and keep what does not with its reason.

    Raises:
        RunError: Rows that were asked for are missing.
    """
    if not selector.active:
        run.file(SELECTION).unlink(missing_ok=True)
        return
    selector.add_new()
    if selector.quotas and selector.quotas.missing():
        raise RunError(f"not all rows that were asked for are there yet: resume with `trajsmith resume {run.path}`")
    run.write_text(SELECTION, "".join(f"{canonical_json(row).decode()}\n" for row in selector.rows()))


def _describe(
    dataset: DatasetWriter,
    config: RunConfig,
    summary: Summary,
    specs: Sequence[EnvironmentSpec],
    statistics: Statistics,
    chosen: str,
) -> None:
    """Put card, pictures and configuration beside the data; `chosen` is what the card says of the choice."""
    plots = build_plots(summary, statistics, compute_tool_coverage(summary, specs, statistics))
    for name, picture in plots.items():
        dataset.attach(name, picture)
    private = {"run": Path("runs") / config.run.name, "engine": config.engine.model_copy(update={"copy_to": None})}
    shared = config.model_copy(update=private)
    dataset.attach("config.yaml", dump_settings(shared, folders=False))
    splits, license = dataset.splits, config.export.license
    card = build_card(summary, specs, statistics, license=license, splits=splits, plots=list(plots))
    dataset.attach("README.md", card + chosen)


async def export_again(run: RunDirectory, progress: RunProgress, audited: bool = False) -> Summary:
    """Write the dataset and the report again from the records of a run; `audited` counts faults of language, too."""
    if not has_records(run.file(VERDICTS)):
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    run.again = SAME_COMMAND
    with run.lock():
        context = await RunContext.open(load_config(run.config_path), run)
        return await export_run(run, context, progress, audited=audited)


async def browse_run(run: RunDirectory, progress: RunProgress) -> Path:
    """Write the pages, from the records alone, and give the one to open.

    Raises:
        InputError: The run has no verdicts.
        RunError: The disk is full.
    """
    if not has_records(run.file(VERDICTS)):
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    run.refuse_links()
    name, folder = load_config(run.config_path).name, run.file(GALLERY)
    bar_of = progress.stage("write pages", count_records(run.file(VERDICTS)), 0, 0)
    with storage_boundary(folder), ConversationBrowser(folder, name) as browser, bar_of as bar:
        for task, trajectory, verdict in iter_selected(run):
            browser.add(task, trajectory, verdict)
            bar.advance(dropped=False)
    return folder / INDEX
