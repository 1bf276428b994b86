"""`trajsmith export --format`: single formats of a run, from its records alone; no environment is started."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from trajsmith.environments.composite import CompositeLookup, compose_spec
from trajsmith.evals import ATTEMPTS, measure_difficulty, read_attempts
from trajsmith.export import FormatSettings, MultiFormatWriter
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.dataset_selection import SELECTION, load_unselected
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.record_joins import JudgedTrajectory, join_verdict_heads
from trajsmith.pipeline.run_directory import VERDICTS, RunDirectory
from trajsmith.records import (
    EnvironmentSpec,
    InputError,
    TaskHeader,
    Trajectory,
    Verdict,
    count_records,
    storage_boundary,
)

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
    config = load_config(run.config_path)
    if not run.file(VERDICTS).is_file():
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    if (config.accept or config.duplicates or config.decontaminate) and not run.file(SELECTION).is_file():
        raise InputError(f"{run.path}: what goes in is not decided yet: run `trajsmith resume {run.path}`")
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
    first, wanted = next(iter(targets.values())), ACCEPTED[include]
    rates = load_pass_rates(run)
    matrix = MultiFormatWriter(
        targets, run.get_state, config.export.split, settings, config.export.rows_per_shard, rates
    )
    bar_of = progress.stage("export", count_records(run.file(VERDICTS)), 0, 0)
    left_out = 0
    with storage_boundary(first), matrix, bar_of as bar:
        for task, trajectory, verdict in iter_selected(run) if records is None else records:
            taken = records is not None or verdict.accepted in wanted
            if taken:
                matrix.add(task, trajectory, verdict, specs[trajectory.environment])
            else:
                matrix.add_rejected(task, trajectory, verdict)
                left_out += 1
            bar.advance(dropped=not taken)
        if records is None:
            matrix.empty_reason = _explain_empty(include, left_out)
        else:
            matrix.empty_reason = explain_empty() if explain_empty else "no record was passed"
    return matrix


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


def load_stored_specs(run: RunDirectory) -> CompositeLookup[EnvironmentSpec]:
    """The environments that the run was made with, by name."""
    files = (
        path
        for path in run.file("environments").glob("*.json")
        if not path.name.endswith((".phrases.json", ".scenarios.json"))
    )
    specs = (EnvironmentSpec.model_validate(run.read_json(f"environments/{path.name}")) for path in sorted(files))
    return CompositeLookup({spec.name: spec for spec in specs}, compose_spec)


def load_pass_rates(run: RunDirectory) -> dict[str, dict[str, float]]:
    """Return the pass rates of each task of a run by solver; empty if no solver played it."""
    return {name: one.rates for name, one in measure_difficulty(read_attempts(run.file(ATTEMPTS))).items()}


def _target(run: RunDirectory, name: str, out: Path | None, several: bool) -> Path:
    if out is None:
        return run.file(f"exports/{name}")
    return out / name if several else out
