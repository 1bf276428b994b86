"""`trajsmith env check`: examines environments without a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.table import Column, Table
from rich.text import Text

from trajsmith.cli.console import out, print_line, run_async, write_json
from trajsmith.cli.options import MOST_SEED, WHAT, Sandbox
from trajsmith.records import InputError, RunError, ensure_writable, write_whole_file

if TYPE_CHECKING:
    from trajsmith.envcheck import CheckPlan, EnvironmentReport, Finding, FindingReplay
    from trajsmith.environments import EnvironmentSource

BELOW = 1
"""Exit code if a score is below the threshold."""
SHOWN = 40
"""Findings of one environment that are printed; JSON and HTML have all."""
COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE|YAML",
            help=WHAT,
        ),
    ],
    json: Annotated[Path | None, typer.Option("--json", help="Write the report as JSON; `--replay` reads it.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the report as one HTML file.")] = None,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Least score; below it the exit code is 1.")] = 0.9,
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay",
            metavar="FINDING",
            help="Id of a finding, from --json or found anew: its calls are made again and shown.",
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(
            min=1,
            max=86400,
            help="Seconds per environment: bundled ones take about 5, foreign ones in the sandbox 10 to 30.",
        ),
    ] = 120.0,
    seed: Annotated[
        int, typer.Option(min=0, max=MOST_SEED, help="Seed of the initial states and of the arguments.")
    ] = 0,
    sandbox: Sandbox = None,
) -> None:
    """Examine environments without a model: do they do what they say, and is their state sound?

    Thousands of calls are played from initial states of several seeds, with arguments that fit, that lie at the limits
    and that are wrong. Looked for are crashes, results that break their schemas, refusals without a reason, undeclared
    effects, values that never arrive, references and totals that calls break, limits and lists that are not kept, state
    that is not saved or shared between sessions, and dependence on clock, chance or process.

    Each finding stands with the smallest calls that show it: an error is wrong anywhere, a warning unless it was meant,
    a note is worth a look and costs nothing. The score is 1.00 without errors and warnings.

    Exit code 0 if every score reaches --threshold. 1 if one does not, if --budget was over before any check was made
    (there is no score then: raise it), or if the finding of --replay does not show any more. 2 for wrong input.
    """
    from trajsmith import check_environment
    from trajsmith.envcheck import CheckPlan

    sources = _sources(target, sandbox)
    for file in (json if replay is None else None, html):
        if file is not None:
            ensure_writable(file, make=True)
    plan = CheckPlan(seed=seed, seconds=budget)
    if replay is not None:
        run_async(_replay(sources, replay, json, plan))
        return
    reports = [check_environment(source, seed=seed, seconds=budget) for source in sources]
    for report in reports:
        _show(report, target)
    if json is not None:
        write_json(json, {"reports": [report.model_dump(mode="json") for report in reports]})
    if html is not None:
        from trajsmith.envcheck import render_reports_html

        write_whole_file(html, render_reports_html(reports).encode())
    low = [report.environment for report in reports if report.score is not None and report.score < threshold]
    if low:
        out.print(f"below {threshold:g}: {', '.join(low)}", markup=False)
    open_ = [report.environment for report in reports if report.score is None]
    if open_:
        raise RunError(f"{', '.join(open_)}: {budget:g} s were over before any check was made; raise --budget")
    if low:
        raise typer.Exit(BELOW)


def _sources(target: str, sandbox: str | None) -> "list[EnvironmentSource]":
    """The environments that an argument names.

    Raises:
        InputError: There is no such environment or file.
    """
    from trajsmith.environments.sources import open_source
    from trajsmith.pipeline.environment_references import find_named_entries, set_sandbox_mode

    return [open_source(set_sandbox_mode(entry, sandbox)) for entry in find_named_entries(target)]


def _close(source: "EnvironmentSource") -> None:
    from trajsmith.envcheck import CloseableSource

    if isinstance(source, CloseableSource):
        source.close()


async def _replay(sources: "Sequence[EnvironmentSource]", wanted: str, saved: Path | None, plan: "CheckPlan") -> None:
    """Show one finding: from a saved report if there is one, else found anew.

    Raises:
        InputError: There is no such finding.
        RunError: It does not show any more.
    """
    from trajsmith.envcheck import replay_finding

    for source in sources:
        try:
            replayed = await _find(source, wanted, saved, plan)
            if replayed is not None:
                _print_replay(await replay_finding(source, replayed, plan))
                return
        finally:
            _close(source)
    where = saved or "this examination"
    raise InputError(f"{where} has no finding {wanted}; the ids stand in the report, for example in that of --json")


async def _find(source: "EnvironmentSource", wanted: str, saved: Path | None, plan: "CheckPlan") -> "Finding | None":
    from trajsmith.envcheck import check_environment

    reports = _read(saved) if saved is not None else []
    if reports:
        name = (await source.spec()).name
        reports = [report for report in reports if report.environment == name]
    else:
        reports = [await check_environment(source, plan)]
    return next((finding for report in reports for finding in report.findings if finding.id == wanted), None)


def _read(path: Path) -> "list[EnvironmentReport]":
    """The reports in a file; none if there is no such file yet.

    Raises:
        InputError: It holds something else.
    """
    if not path.exists():
        return []
    from pydantic import ValidationError

    from trajsmith.envcheck import EnvironmentReport
    from trajsmith.records import format_first_error

    try:
        return [EnvironmentReport.model_validate(report) for report in orjson.loads(path.read_bytes())["reports"]]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no report of `trajsmith env check --json`: {error}") from error
    except ValidationError as error:
        raise InputError(f"{path} is no report of `trajsmith env check --json`: {format_first_error(error)}") from error


def _print_replay(shown: "FindingReplay") -> None:
    """Print a replay; a finding that does not show any more ends with exit code 1."""
    finding = shown.finding
    out.print(f"{finding.id} {finding.severity} {finding.check}: {finding.message}", markup=False)
    for line in shown.lines:
        print_line(f"  {line}")
    if not shown.judged:
        out.print("this finding is about many calls or none; what the examination saw:")
        _evidence(finding.seen, finding.expected)
    elif shown.evidence is None:
        raise RunError(f"finding {finding.id} does not show any more")
    else:
        _evidence(shown.evidence.seen, shown.evidence.expected)


def _evidence(seen: str, expected: str) -> None:
    print_line(f"  seen:     {seen}")
    print_line(f"  expected: {expected}")


def _show(report: "EnvironmentReport", target: str) -> None:
    counts = ", ".join(f"{report.count(one)} {one}s" for one in ("error", "warning", "note"))
    out.print(
        Text.assemble((report.environment, "bold"), f"  {_score(report.score)}   {counts}   {report.calls} calls")
    )
    out.print(_tools(report))
    for finding in report.findings[:SHOWN]:
        _finding(finding)
    if len(report.findings) > SHOWN:
        out.print(f"and {len(report.findings) - SHOWN} more; --json or --html have all")
    skipped = [f"{one.name} ({one.reason})" for one in report.checks if one.outcome == "skipped"]
    if skipped:
        out.print(f"skipped: {'; '.join(skipped)}", markup=False, style="dim")
    if report.sampled:
        out.print(f"the initial states are large: learned from the first {report.states} only", markup=False)
    if report.stopped:
        out.print(f"the time ended at {report.stopped}; raise --budget", markup=False)
    if report.findings:
        out.print(f"see one happen: trajsmith env check {target} --replay {report.findings[0].id}", markup=False)


def _score(score: float | None) -> str:
    return "no score" if score is None else f"score {score:.2f}"


def _tools(report: "EnvironmentReport") -> Table:
    table = Table(
        Column("tool", overflow="fold"), Column("score", justify="right"), Column("ok", justify="right"),
        Column("refused", justify="right"), Column("broke", justify="right"), Column("failed checks", overflow="fold"),
    )  # fmt: skip
    for tool in report.tools:
        numbers = (
            "" if tool.score is None else f"{tool.score:.2f}",
            str(tool.succeeded),
            str(tool.refused),
            str(tool.broke or ""),
        )
        table.add_row(tool.name, *numbers, ", ".join(tool.failed))
    return table


def _finding(finding: "Finding") -> None:
    from trajsmith.envcheck.finding_replay import format_arguments

    head = Text.assemble(
        (finding.severity, COLOURS[finding.severity]), f" {finding.check} {finding.id}  {finding.message}"
    )
    out.print(head, soft_wrap=True)
    if finding.case is not None:
        start = finding.case.start
        out.print(f"    from initial state {start.index} of seed {start.seed}", markup=False, style="dim")
        for step in finding.case.steps:
            step_text = (
                f"{step.tool}({format_arguments(step)})" if step.do == "call" else "save, and load into a new session"
            )
            print_line(f"    {step_text}")
    print_line(f"    seen: {finding.seen}")
    print_line(f"    expected: {finding.expected}")
