"""`trajsmith export --format`: single formats of a run, from its records alone; no environment is started."""

from pathlib import Path

from trajsmith.environments.composite import NAME_SEPARATOR, compose_spec
from trajsmith.export import FormatSettings, MultiFormatWriter
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.dataset_selection import SELECTION, load_unselected_ids
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.record_joins import join_verdict_heads
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.stages import VERDICTS
from trajsmith.records import EnvironmentSpec, InputError
from trajsmith.records.journal import count_records
from trajsmith.records.storage import storage_boundary


async def export_formats(
    run: RunDirectory, names: list[str], out: Path | None, window: int | None, progress: RunProgress
) -> MultiFormatWriter:
    """Write formats into `exports/<name>` of the run, or into `out` (a folder per format where there are several).

    Raises:
        InputError: A format is unknown, or the run has no verdicts.
        RunError: The disk is full, or a format got no row; the others are in place.
    """
    config = load_config(run.config_path)
    if not run.file(VERDICTS).is_file():
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    if (config.accept or config.duplicates or config.decontaminate) and not run.file(SELECTION).is_file():
        raise InputError(f"{run.path}: what goes in is not decided yet: run `trajsmith resume {run.path}`")
    run.refuse_links()
    specs = load_stored_specs(run)
    config.export.split.check(specs)
    targets = {name: _target(run, name, out, len(names) > 1) for name in dict.fromkeys(names)}
    settings = FormatSettings(window=window or config.export.window)
    first, others = next(iter(targets.values())), load_unselected_ids(run)
    matrix = MultiFormatWriter(targets, run.get_state, config.export.split, settings, config.export.rows_per_shard)
    bar_of = progress.stage("export", count_records(run.file(VERDICTS)), 0, 0)
    with storage_boundary(first, run.again), matrix, bar_of as bar:
        for task, trajectory, verdict in join_verdict_heads(run):
            taken = verdict.accepted and trajectory.id not in others
            if taken:
                matrix.add(task, trajectory, verdict, specs[trajectory.environment])
            bar.advance(dropped=not taken)
    return matrix


def load_stored_specs(run: RunDirectory) -> dict[str, EnvironmentSpec]:
    """The environments that the run was made with, by name."""
    files = (path for path in run.file("environments").glob("*.json") if not path.name.endswith(".phrases.json"))
    specs = (EnvironmentSpec.model_validate(run.read_json(f"environments/{path.name}")) for path in sorted(files))
    return SpecLookup({spec.name: spec for spec in specs})


class SpecLookup(dict[str, EnvironmentSpec]):
    """Environment specs by name; a joined one ("bank+travel") is built on demand."""

    def __missing__(self, name: str) -> EnvironmentSpec:
        self[name] = compose_spec([self[part] for part in name.split(NAME_SEPARATOR)])
        return self[name]


def _target(run: RunDirectory, name: str, out: Path | None, several: bool) -> Path:
    if out is None:
        return run.file(f"exports/{name}")
    return out / name if several else out
