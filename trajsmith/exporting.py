"""`trajsmith export --format`: single formats of a run, from its records alone; no environment is started."""

from pathlib import Path

from environments.together import PLUS, joined_spec
from export import FormatSettings, Matrix
from trajectory import EnvironmentSpec, InputError
from trajsmith.choosing import SELECTION, left_out
from trajsmith.config import load_config
from trajsmith.joined import judged_heads
from trajsmith.journal import count
from trajsmith.progress import Progress
from trajsmith.rundir import RunDirectory, storage_boundary
from trajsmith.stages import VERDICTS


async def export_formats(
    run: RunDirectory, names: list[str], out: Path | None, window: int | None, progress: Progress
) -> Matrix:
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
    specs = stored_specs(run)
    config.export.split.check(specs)
    targets = {name: _target(run, name, out, len(names) > 1) for name in dict.fromkeys(names)}
    settings = FormatSettings(window=window or config.export.window)
    first, others = next(iter(targets.values())), left_out(run)
    matrix = Matrix(targets, run.get_state, config.export.split, settings, config.export.rows_per_shard)
    bar_of = progress.stage("export", count(run.file(VERDICTS)), 0, 0)
    with storage_boundary(first, run.path), matrix, bar_of as bar:
        for task, trajectory, verdict in judged_heads(run):
            taken = verdict.accepted and trajectory.id not in others
            if taken:
                matrix.add(task, trajectory, verdict, specs[trajectory.environment])
            bar.advance(dropped=not taken)
    return matrix


def stored_specs(run: RunDirectory) -> dict[str, EnvironmentSpec]:
    """The environments that the run was made with, by name."""
    files = (path for path in run.file("environments").glob("*.json") if not path.name.endswith(".phrases.json"))
    specs = (EnvironmentSpec.model_validate(run.read_json(f"environments/{path.name}")) for path in sorted(files))
    return Specs({spec.name: spec for spec in specs})


class Specs(dict[str, EnvironmentSpec]):
    """Environments by name; of several that were played as one ("bank+travel") the spec is made when asked for."""

    def __missing__(self, name: str) -> EnvironmentSpec:
        self[name] = joined_spec([self[part] for part in name.split(PLUS)])
        return self[name]


def _target(run: RunDirectory, name: str, out: Path | None, several: bool) -> Path:
    if out is None:
        return run.file(f"exports/{name}")
    return out / name if several else out
