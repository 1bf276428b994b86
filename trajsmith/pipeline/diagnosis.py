"""`trajsmith diagnose`: episodes of an evaluation, a benchmark or a run, and the page of what they show."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from trajsmith.evals import PlayedEpisode, is_evaluation, read_transcripts
from trajsmith.evals.diagnosis import Diagnosis, diagnose
from trajsmith.evals.observations import OBSERVATIONS, EpisodeObservation, observe_episode
from trajsmith.evals.plans import build_plan
from trajsmith.evals.transcripts import TASKS
from trajsmith.export import render_page
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import VERDICTS, RunDirectory
from trajsmith.pipeline.yaml_settings import dump_yaml
from trajsmith.records import InputError, ensure_writable, read_entries, write_whole_file

DIAGNOSIS, PAGE, PLAN = "diagnosis.json", "diagnosis.html", "plan.yaml"
UNSCORED = ("environment_error", "undecided", "user_error")


def load_observations(folder: Path) -> list[EpisodeObservation]:
    """Read the episodes of an evaluation, of a benchmark, or of a run, such as one of imported traces.

    Raises:
        InputError: The folder is none of them, or holds no episode.
    """
    if (folder / OBSERVATIONS).is_file():
        observations = list(read_entries(folder / OBSERVATIONS, EpisodeObservation))
    elif is_evaluation(folder):
        observations = [observe_episode(played) for played in read_transcripts(folder)]
    elif (folder / VERDICTS).is_file():
        observations = [observe_episode(played) for played in _read_run(folder)]
    else:
        raise InputError(
            f"{folder} is no evaluation, no benchmark and no run with verdicts: name a folder that trajsmith eval, "
            "bench, run or import wrote"
        )
    if not observations:
        raise InputError(f"{folder} holds no episode yet: give the command that writes it again")
    return observations


def _read_run(folder: Path) -> Iterator[PlayedEpisode]:
    for task, trajectory, verdict in join_verdicts(RunDirectory.open(folder)):
        passed = None if verdict.outcome in UNSCORED else verdict.outcome == "completed"
        yield PlayedEpisode(task, trajectory.candidate, passed, "", trajectory, verdict)


def write_diagnosis(diagnosis: Diagnosis, out: Path) -> Path:
    """Write `diagnosis.json` and the page beside it, and return the page.

    Raises:
        InputError: Nothing can be written there.
        RunError: The disk is full.
    """
    page = ensure_writable(out / PAGE, make=True)
    data = orjson.dumps(diagnosis.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_whole_file(out / DIAGNOSIS, data)
    write_whole_file(page, render_page("diagnosis.html.j2", diagnosis=diagnosis).encode())
    return page


def write_plan(diagnosis: Diagnosis, folder: Path, out: Path) -> Path | None:
    """Write `plan.yaml` for the weak groups, and return it; None if no group can be served.

    Args:
        diagnosis: What was found.
        folder: The evaluation, whose tasks the new data must not repeat.
        out: Where the plan is written; an older one is removed.
    """
    tasks = folder / TASKS
    plan, file = build_plan(diagnosis, [tasks.resolve()] if tasks.is_file() else []), out / PLAN
    if plan is None:
        file.unlink(missing_ok=True)
        return None
    write_whole_file(file, dump_yaml(plan.model_dump(mode="json")).encode())
    return file


def diagnose_folders(folder: Path, against: Path | None = None) -> Diagnosis:
    """Diagnose an evaluation, compared with an earlier one where that is named.

    Raises:
        InputError: A folder holds no episodes.
    """
    before = load_observations(against) if against is not None else []
    return diagnose(load_observations(folder), folder.name, before, against.name if against is not None else "")


def read_diagnosis(path: Path) -> Diagnosis:
    """Read a diagnosis from its file or folder.

    Raises:
        InputError: There is none, or it is something else.
    """
    from pydantic import ValidationError

    from trajsmith.records import format_first_error

    file = path / DIAGNOSIS if path.is_dir() else path
    try:
        return Diagnosis.model_validate_json(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}; write it with trajsmith diagnose EVAL") from error
    except ValidationError as error:
        raise InputError(f"{file} is no diagnosis: {format_first_error(error)}") from error
