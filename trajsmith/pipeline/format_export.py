"""`trajsmith export --format`: single formats of a run, from its records alone; no environment is started."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal

from trajsmith.evals import ATTEMPTS, measure_difficulty, read_attempts
from trajsmith.export import FormatSettings, MultiFormatWriter
from trajsmith.pipeline.config import RunConfig, load_config
from trajsmith.pipeline.dataset_selection import SELECTION, load_unselected
from trajsmith.pipeline.export_chunks import ExportOrder
from trajsmith.pipeline.export_engine import are_built_in, count_export_workers, export_parts
from trajsmith.pipeline.export_plan import ExportPlan
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.record_joins import JudgedTrajectory, join_verdict_heads
from trajsmith.pipeline.run_directory import VERDICTS, RunDirectory
from trajsmith.pipeline.stored_specs import load_stored_specs
from trajsmith.records import InputError, TaskHeader, Trajectory, Verdict, count_records, has_records, storage_boundary

Include = Literal["accepted", "rejected", "all"]
"""Which judged trajectories are exported."""
JUDGED = "judged"
"""Format whose rows say whether they were accepted, and why not."""


async def export_formats(
    run: RunDirectory,
    names: Sequence[str],
    out: Path | None,
    window: int | None,
    progress: RunProgress,
    include: Include = "accepted",
    records: Iterable[JudgedTrajectory] | None = None,
    explain_empty: Callable[[], str] | None = None,
) -> MultiFormatWriter:
    """Write formats into `exports/<name>` of the run, or into `out` (a folder per format where there are several).

    Args:
        run: Run with verdicts.
        names: Formats.
        out: Folder in place of that of the run.
        window: Assistant turns of history in a row; None is the configuration's.
        progress: Shows how far it is.
        include: Which trajectories of the run are written. Rejected ones go into the format `judged` only.
        records: Trajectories of the run to write in place of those of `include`, in the order of the run.
        explain_empty: Says why there are no `records`, once they are read.

    Raises:
        InputError: A format is unknown, the run has no verdicts, or rejected rows are asked for in another format.
        RunError: The disk is full, or a format got no row; the others are in place.
    """
    config = load_judged_config(run)
    other = next((name for name in names if name != JUDGED), None)
    if include != "accepted" and other is not None:
        raise InputError(
            f"format {other} does not say which rows were rejected: export {include} rows in the format {JUDGED}"
        )
    run.refuse_links()
    specs = load_stored_specs(run)
    config.export.split.check(specs)
    targets = {name: _target(run, name, out, len(names) > 1) for name in dict.fromkeys(names)}
    settings = FormatSettings(window=window or config.export.window)
    rates, total = load_pass_rates(run), count_records(run.file(VERDICTS))
    matrix = MultiFormatWriter(
        targets, run.get_state, config.export.split, settings, config.export.rows_per_shard, rates
    )
    left_out = 0
    with storage_boundary(next(iter(targets.values()))), matrix, progress.stage("export", total, 0, 0) as bar:
        if records is not None:
            for task, trajectory, verdict in records:
                matrix.add(task, trajectory, verdict, specs[trajectory.environment])
                bar.advance()
        else:
            order = ExportOrder(matrix.targets, ACCEPTED[include], views=are_built_in(targets))
            rows = config.export.rows_per_shard
            plan = ExportPlan(run, config.export.split, rows, load_unselected(run), rates, order.wanted)
            parts = export_parts(plan, order, count_export_workers(config.engine, order, total))
            async with aclosing(parts):
                async for part in parts:
                    matrix.add_written(part.rows)
                    left_out += part.left_out
                    bar.advance(part.left_out, part.written + part.left_out)
        if records is None:
            matrix.empty_reason = _explain_empty(include, left_out)
        else:
            matrix.empty_reason = explain_empty() if explain_empty else "no record was passed"
    return matrix


def load_judged_config(run: RunDirectory) -> RunConfig:
    """Return the configuration of a run whose trajectories are judged and selected.

    Raises:
        InputError: They are not yet.
    """
    config = load_config(run.config_path)
    if not has_records(run.file(VERDICTS)):
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    if (config.accept or config.duplicates or config.decontaminate) and not run.file(SELECTION).is_file():
        raise InputError(f"{run.path}: what goes in is not decided yet: run `trajsmith resume {run.path}`")
    return config


def _explain_empty(include: Include, left_out: int) -> str:
    """Say why none of the trajectories of a run is written, all of which were left out."""
    if not left_out:
        return "the run has no trajectory"
    if include == "rejected":
        return f"nothing was rejected: all {left_out} trajectories were accepted; --include all writes every one"
    return f"no trajectory was accepted: all {left_out} were rejected; --include rejected writes them"


ACCEPTED: dict[Include, tuple[bool, ...]] = {"accepted": (True,), "rejected": (False,), "all": (True, False)}
"""Choice of `--include` to the verdicts that it means."""


def iter_selected(run: RunDirectory) -> Iterator[tuple[TaskHeader, Trajectory, Verdict]]:
    """Iterate over the judged trajectories; what the selection of the run left out is rejected, with its reason."""
    unselected = load_unselected(run)
    for task, trajectory, verdict in join_verdict_heads(run):
        if trajectory.id in unselected:
            reasons = (f"not chosen: {unselected[trajectory.id]}",)
            verdict = verdict.model_copy(update={"accepted": False, "reasons": reasons})
        yield task, trajectory, verdict


def load_pass_rates(run: RunDirectory) -> dict[str, dict[str, float]]:
    """Return the pass rates of each task of a run by solver; empty if no solver played it."""
    return {name: one.rates for name, one in measure_difficulty(read_attempts(run.file(ATTEMPTS))).items()}


def _target(run: RunDirectory, name: str, out: Path | None, several: bool) -> Path:
    if out is None:
        return run.file(f"exports/{name}")
    return out / name if several else out
