"""The command line. Errors are one line that says what to do; exit code 2 for wrong input, 1 for a failed run."""

import errno
import io
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.exceptions import TyperException

from trajsmith.cli import (
    arena,
    audit,
    bench,
    calibrate,
    diagnose,
    env,
    env_growth,
    filter_run,
    graph,
    import_traces,
    leaderboard,
    merge,
    models,
    plan,
    plugins,
    prompts,
    push,
    records,
    repair,
    scaffold,
    task,
    train,
)
from trajsmith.cli import export as cli_export
from trajsmith.cli.console import note_unfinished, out, print_line, run_async
from trajsmith.cli.finished_run import show_run
from trajsmith.cli.options import ConfigFile, DryRun, RunOption, RunPath, Set
from trajsmith.records import (
    InputError,
    RunError,
    TrajsmithError,
    format_error_line,
    reduce_gc_frequency,
    skip_last_collection,
)

if TYPE_CHECKING:
    from trajsmith.pipeline.progress import RunProgress
    from trajsmith.pipeline.run_directory import RunDirectory


Result = TypeVar("Result")
WRONG_PATH = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.ENAMETOOLONG, errno.ELOOP})
"""Errors of a path that a user named; all others are of the machine."""

app = typer.Typer(
    help="Turns executable tool environments into verified multi-turn tool-use datasets.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
env_growth.register(env.app)
app.add_typer(env.app, name="env")
app.add_typer(graph.app, name="graph")
app.add_typer(models.app, name="models")
app.add_typer(task.app, name="task")
app.add_typer(prompts.app, name="prompts")
app.add_typer(scaffold.configs_app, name="configs")
app.callback()(scaffold.set_global_options)
app.command()(scaffold.init)
app.command(name="import")(import_traces.import_files)
app.command(name="filter")(filter_run.filter_run)
app.command()(merge.merge)
app.command()(repair.repair)
app.command()(plan.plan)
app.command()(records.compress)
app.command()(records.show)
app.command()(records.find)
app.command()(records.copy)
app.command(name="audit")(audit.audit_dialogues_or_suites)
app.command()(push.card)
app.command()(push.push)
app.command()(plugins.plugins)
app.command()(train.sft)
app.command()(train.dpo)
app.command()(train.grpo)
app.command(name="eval")(train.evaluate)
app.command()(calibrate.calibrate)
app.command()(diagnose.diagnose)
app.command()(bench.bench)
app.command()(leaderboard.leaderboard)
app.command()(arena.arena)


@app.command()
def run(
    config: ConfigFile,
    overrides: Set = None,
    directory: Annotated[
        Path | None, typer.Option("--run", help="Run directory, in place of the configuration's.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete an existing run in that directory first.")] = False,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Plan that trajsmith diagnose wrote: make data for these groups.")
    ] = None,
    dry_run: DryRun = False,
    shard: merge.Shard = None,
) -> None:
    """Run the whole pipeline: graph, chains, grounding, tasks, dialogues, verdicts, dataset and report.

    Stopped or killed, resume it with: trajsmith resume RUN

    With --shard 3/8, do only the third of eight parts, in a directory of its own; the same command goes on with a part
    that was stopped, and trajsmith merge makes one run of all parts.
    """
    if shard is not None:
        merge.run_shard(config, overrides or [], directory, shard, fresh)
        return
    from trajsmith.api import runs
    from trajsmith.pipeline.config import load_config
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.pipeline.yaml_settings import dump_settings, load_settings

    extra = [f"run={directory}"] if directory else []
    if plan is not None:
        from trajsmith.toolgraph import SamplingPlan

        wanted = load_settings(plan, SamplingPlan, must_exist=True)
        extra.append(f"plan={wanted.model_dump_json()}")
        for wish in wanted.list_open_wishes():
            print_line(f"plan: no {wish} are made: the run does with its own (trajsmith env gen --from-plan {plan})")
    settings = load_config(config, [*(overrides or []), *extra], must_exist=True)
    RunDirectory(settings.run).check_new(dump_settings(settings), fresh or dry_run)
    if dry_run:
        from trajsmith.pipeline.dry_run import preview

        run_async(preview(settings, out))
        return
    from trajsmith.pipeline.live_exploration import explore_run, list_unexplored

    if list_unexplored(settings):
        settings = run_async(explore_run(settings, print_line))
    with _open_progress(settings.run) as progress:
        finished = runs.run(settings, fresh=fresh, progress=progress)
    show_run(finished.path, finished.summary)


@app.command()
def resume(
    directory: RunPath = None,
    option: RunOption = None,
    overrides: Set = None,
    yes: Annotated[bool, typer.Option("--yes", help="Repeat stale stages without asking.")] = False,
) -> None:
    """Continue a stopped run, also one of env gen or env grow; nothing is lost, duplicated or done twice.

    With --set, stages that the change makes stale are repeated: the command lists them and asks.

    With the address of a copy (engine.copy_to), the run is downloaded first, into runs/NAME or --run:
    trajsmith resume s3://bucket/runs/big
    """
    from trajsmith.api import runs
    from trajsmith.pipeline.environment_generation import is_generation

    directory, option = records.fetch_named(directory, option)

    opened = _open(directory, option)
    if is_generation(opened.config_path):
        from trajsmith.cli.env_grow_models import resume_generation

        resume_generation(opened.path, overrides or [])
        return
    if overrides:
        _change(opened, overrides, yes)
    with _open_progress(opened.path) as progress:
        finished = runs.resume(opened.path, progress=progress)
    show_run(opened.path, finished.summary)


@app.command()
def export(
    directory: RunPath = None,
    option: RunOption = None,
    formats: cli_export.Formats = None,
    list_formats: Annotated[bool, typer.Option("--formats", help="List the formats.")] = False,
    target: cli_export.Out = None,
    window: cli_export.Window = None,
    preview: cli_export.Preview = False,
    model: cli_export.Model = "",
    rows: cli_export.Rows = 1,
    page: cli_export.Page = None,
    max_length: cli_export.MaxLength = None,
    include: cli_export.IncludeOption = "accepted",
) -> None:
    """Write dataset, card, report and summary again from the records of a run; with --format, only that format.

    With --include rejected or all, trajectories that were rejected are written too, with scores and reasons.
    """
    if list_formats:
        cli_export.show_formats()
        return
    choice = cli_export.parse_include(include)
    formats = cli_export.choose_formats(formats, choice)
    cli_export.check_options(formats, target, window)
    opened = _open(directory, option, reads=target is not None and not preview)
    if preview:
        folder = opened.file(f"exports/{formats[0]}" if formats else "dataset")
        cli_export.preview_mask(folder, model, rows, page, max_length)
        return
    formats = cli_export.write_folder_formats(opened, formats, target)
    note_unfinished(opened)
    if formats:
        from trajsmith.pipeline.format_export import export_formats

        written = _with_progress(
            opened.path, lambda progress: export_formats(opened, formats, target, window, progress, choice)
        )
        cli_export.show_written(written)
    if formats is None:
        _export_all(opened)


def _export_all(opened: "RunDirectory", audited: bool = False) -> None:
    from trajsmith.pipeline.runner import export_again

    show_run(opened.path, _with_progress(opened.path, lambda progress: export_again(opened, progress, audited)))


@app.command()
def report(
    directory: RunPath = None,
    option: RunOption = None,
    every: Annotated[bool, typer.Option("--all", help="All conversations as pages in RUN/gallery instead.")] = False,
    audit: Annotated[bool, typer.Option("--audit", help="Count faults of language of all dialogues, too.")] = False,
) -> None:
    """Write the HTML report of a run again, or the pages of an evaluation's episodes, and say where it is."""
    from trajsmith.evals import is_evaluation, write_gallery

    if directory is not None and option is None and is_evaluation(directory):
        print_line(f"open {write_gallery(directory)} in a browser")
        return
    opened = _open(directory, option)
    note_unfinished(opened)
    if every:
        from trajsmith.pipeline.runner import browse_run

        page = _with_progress(opened.path, lambda progress: browse_run(opened, progress))
    else:
        _export_all(opened, audit)
        page = opened.file("report.html")
    print_line(f"open {page} in a browser")


@app.command()
def replay(
    directory: RunPath = None,
    option: RunOption = None,
    ids: Annotated[list[str] | None, typer.Option("--id", help="Only this trajectory. May be repeated.")] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Public Ed25519 key (PEM) that must have signed every file of the run.")
    ] = None,
) -> None:
    """Execute every trajectory of a run again and compare the state hashes. Exit code 1 if one differs.

    Files of a run of the Hub are compared with its manifest first. With --key those of a local copy are, too, and the
    manifest's signature is checked.
    """
    from trajsmith.export import check_signature
    from trajsmith.pipeline.hub_runs import split_reference
    from trajsmith.pipeline.run_replay import replay_run

    opened = _open(directory, option, reads=True)
    if key is not None:
        folder, repository = opened.path.resolve(), split_reference(directory or option or "")[0]
        signature = check_signature(folder.parent, folder.name, key, repository)
        out.print(f"signed by {signature.key_id} for {signature.repository}", markup=False)
    report = _with_progress(opened.path, lambda progress: replay_run(opened, ids or [], progress))
    for name, why in [*report.different, *report.undecided]:
        out.print(f"{name}: {why}", markup=False)
    for name in report.changed:
        out.print(f"note: the code or schemas of {name} changed since this run was made", markup=False)
    share = 100 * report.equal / report.total
    out.print(f"{report.equal} of {report.total} trajectories replayed to equal state hashes ({share:.1f} %)")
    if report.equal < report.total:
        raise RunError(f"{len(report.different)} differ, {len(report.undecided)} could not be decided")


def _stage_command(name: str, text: str) -> None:
    """Each stage alone, on a run directory; earlier stages must have run."""

    def command(directory: RunPath = None, option: RunOption = None) -> None:
        _run_one_stage(_open(directory, option), name)

    command.__doc__ = text
    app.command(name)(command)


def _run_one_stage(opened: "RunDirectory", name: str) -> None:
    from trajsmith.pipeline.runner import run_one_stage

    summary = _with_progress(opened.path, lambda progress: run_one_stage(opened, name, progress))
    show_run(opened.path, summary, exported=False)


_stage_command("sample", "Only draw the tool chains of a run.")
_stage_command("ground", "Only ground the chains of a run by execution.")


@app.command()
def tasks(
    directory: RunPath = None,
    option: RunOption = None,
    audit: Annotated[
        bool, typer.Option("--audit", help="Write nothing: test the checks of the tasks that are there.")
    ] = False,
    mutants: Annotated[int, typer.Option("--mutants", min=1, help="With --audit: wrong runs per task.")] = 40,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="With --audit: only so many tasks, from the first.")
    ] = None,
) -> None:
    """Only write the tasks of a run, or test the checks of its tasks. Exit code 1 if one is weak."""
    opened = _open(directory, option, reads=audit)
    if audit:
        from trajsmith.cli.tasks_audit import audit as audit_tasks

        audit_tasks(opened, mutants, limit)
        return
    _run_one_stage(opened, "write")


_stage_command("vary", "Only derive the variants of the tasks of a run.")
_stage_command("play", "Only play the dialogues of a run.")
_stage_command("verify", "Only verify the trajectories of a run.")


def _open(directory: Path | None, option: Path | None, reads: bool = False) -> "RunDirectory":
    """The run that is named as argument or as option.

    Args:
        reads: The command writes nothing into it, so that it may be one of the Hub.

    Raises:
        InputError: None or two are named, or there is no run.
    """
    from trajsmith.pipeline.hub_runs import open_run
    from trajsmith.pipeline.run_directory import RunDirectory

    named = [path for path in (directory, option) if path is not None]
    if len(named) != 1:
        raise InputError("name one run directory, for example: trajsmith resume runs/quickstart")
    return (open_run if reads else RunDirectory.open)(named[0])


def _change(run: "RunDirectory", overrides: list[str], yes: bool) -> None:
    """Change the settings of a run, after asking whether what that makes stale may be done again.

    Raises:
        InputError: The settings are wrong, or there is no terminal to ask.
    """
    from trajsmith.pipeline.config_changes import apply_change, plan_change
    from trajsmith.pipeline.runner import check_ready

    change = plan_change(run, overrides)
    run_async(check_ready(change.after))
    if change.stale and not yes:
        if not sys.stdin.isatty():
            raise InputError(f"{change}; pass --yes to do so")
        if not typer.confirm(f"{str(change).capitalize()}. Continue?", err=True):
            raise InputError("nothing was changed")
    apply_change(run, change)


def _with_progress(path: Path, work: Callable[["RunProgress"], Coroutine[Any, Any, Result]]) -> Result:
    with _open_progress(path) as progress:
        return run_async(work(progress))


@contextmanager
def _open_progress(path: Path) -> "Iterator[RunProgress]":
    """Show progress of work on a run; Ctrl-C becomes the line that says how to go on."""
    from trajsmith.pipeline.progress import open_progress

    try:
        with open_progress() as progress:
            yield progress
    except KeyboardInterrupt as stop:
        raise RunError(f"stopped; nothing is lost, resume with: trajsmith resume {path}") from stop


def main() -> None:
    """Entry point: turns our errors into one line and an exit code."""
    reduce_gc_frequency()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal of few letters, or a text of half ones, ends no command
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(standalone_mode=False)
    except TrajsmithError as error:
        _fail(f"error: {error}", error.exit_code)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except typer.Abort:
        _fail("stopped", 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except TyperException as error:
        if not error.format_message():  # no arguments: the help is already printed
            sys.exit(2)
        _fail(f"error: {error.format_message()}", 2)
    except OSError as error:
        if error.filename is None and error.strerror is None:
            raise
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        _fail(f"error: {where}{error.strerror}", 2 if error.errno in WRONG_PATH else 1)
    finally:
        skip_last_collection()


def _fail(message: str, code: int) -> None:
    sys.stderr.write(format_error_line(message) + "\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
