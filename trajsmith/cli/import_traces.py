"""`trajsmith import`: recorded dialogues replayed and judged."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from trajsmith.cli.console import out, print_line
from trajsmith.cli.options import Set
from trajsmith.records import RunError

if TYPE_CHECKING:
    from trajsmith.pipeline.run_directory import RunDirectory


def import_files(
    files: Annotated[list[Path], typer.Argument(help="JSON or JSON Lines files of recorded dialogues.")],
    directory: Annotated[Path, typer.Option("--run", help="Run directory; made if there is none.")],
    config: Annotated[
        Path | None,
        typer.Option("--config", help="YAML with the environments that the calls are made on; needed for a new run."),
    ] = None,
    format_name: Annotated[
        str,
        typer.Option(
            "--format", help="tau2, taubench, atif, hub_traces, openai, sharegpt, bfcl; recognised if left out."
        ),
    ] = "auto",
    environment: Annotated[
        str, typer.Option("--environment", help="Which of the configuration's environments; needed if it has several.")
    ] = "",
    tasks: Annotated[
        Path | None, typer.Option("--tasks", help="File with the questions that BFCL results leave out.")
    ] = None,
    without_gold: Annotated[
        str,
        typer.Option(
            "--without-gold",
            help="Accept dialogues without gold actions: reject (none; the default), replay (exact replay, results as "
            "recorded), reward (the same, and a recorded reward of at least --min-reward).",
        ),
    ] = "",
    min_reward: Annotated[
        float | None, typer.Option("--min-reward", help="Lowest recorded reward for --without-gold reward; 1 if unset.")
    ] = None,
    overrides: Set = None,
) -> None:
    """Read recorded dialogues, make their calls again on an environment, and judge each of them.

    Reads OpenAI messages, ShareGPT, ATIF documents, session traces of the Hub, tau2-bench simulations, tau-bench
    results and BFCL multi-turn results. Where the file says what is right (gold actions), the final state is compared
    with the gold state; where it holds verdicts of its own, the agreement is shown. Dialogues that cannot be used are
    counted by reason, the others go on.

        trajsmith import simulations.json --run runs/airline --config airline.yaml
    """
    from trajsmith import import_dialogues
    from trajsmith.pipeline.progress import open_progress

    rule = [f"verify.imported.without_gold={without_gold}"] if without_gold else []
    rule += [f"verify.imported.min_reward={min_reward}"] if min_reward is not None else []
    try:
        with open_progress() as progress:
            run = import_dialogues(
                files,
                run=directory,
                config=config,
                format=format_name,
                environment=environment,
                tasks=tasks,
                overrides=[*(overrides or []), *rule],
                progress=progress,
            )
    except KeyboardInterrupt as stop:
        raise RunError(f"stopped; nothing is lost, resume with: trajsmith resume {directory}") from stop
    _show(run.directory)


def _show(run: "RunDirectory") -> None:
    """Print the dropped dialogues with reasons, the verdicts, and their agreement with those of the files."""
    from trajsmith.pipeline.engine import summarize_stage
    from trajsmith.pipeline.record_joins import join_verdicts
    from trajsmith.pipeline.trace_import import IMPORT_ORDER

    outcomes: Counter[tuple[str, str]] = Counter()
    agreement: Counter[tuple[bool, bool]] = Counter()
    differing: Counter[str] = Counter()
    for _, trajectory, verdict in join_verdicts(run):
        recorded = trajectory.recorded or {}
        outcomes[(str(recorded.get("file")), verdict.outcome)] += 1
        if "state_match" in recorded and verdict.state_match is not None:
            agreement[(bool(recorded["state_match"]), verdict.state_match)] += 1
        differing.update({event.tool for event in trajectory.events if event.agrees is False})
    for name in (*IMPORT_ORDER, "verify"):
        stage = summarize_stage(run, name)
        for reason, number in stage.dropped.items():
            out.print(f"dropped ({name}): {reason}: {number}", markup=False)
            if reason in stage.examples:
                print_line(f"  first: {stage.examples[reason]}")
    table = Table("file", "verdict", "dialogues", title="imported dialogues")
    for (file, outcome), number in sorted(outcomes.items()):
        table.add_row(file, outcome, str(number))
    out.print(table)
    for tool, number in differing.most_common(5):
        out.print(f"{tool}: gives something else than recorded in {number} dialogues", markup=False)
    if agreement:
        same = agreement[(True, True)] + agreement[(False, False)]
        out.print(f"final state, recorded verdict against ours: {same} of {agreement.total()} equal")
    print_line(f"verdicts: {run.file('verdicts.jsonl')}")
    print_line(f"replay: trajsmith replay {run.path}   dataset: trajsmith export {run.path}")
