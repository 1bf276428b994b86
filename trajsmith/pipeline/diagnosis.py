"""`trajsmith diagnose`: episodes of an evaluation, a benchmark or a run, and the page of what they show."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import orjson

from trajsmith.evals import (
    PLAYS,
    BenchPlay,
    FailedTrace,
    PlayedEpisode,
    is_evaluation,
    read_traces,
    read_transcripts,
    summarize_causes,
)
from trajsmith.evals.diagnosis import Diagnosis, diagnose
from trajsmith.evals.observations import OBSERVATIONS, EpisodeObservation, observe_episode
from trajsmith.evals.plans import build_plan
from trajsmith.evals.transcripts import TASKS
from trajsmith.export import render_page
from trajsmith.models import BudgetSettings, ModelSettings, RoleSettings, RolesSettings
from trajsmith.models.prompts import load_builtin_prompts
from trajsmith.models.registry import ModelRegistry
from trajsmith.pipeline.evaluation import open_local_model
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import VERDICTS, RunDirectory
from trajsmith.pipeline.yaml_settings import dump_yaml
from trajsmith.records import (
    FrozenModel,
    InputError,
    content_hash,
    ensure_writable,
    has_records,
    read_entries,
    write_whole_file,
)

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
    elif has_records(folder / VERDICTS):
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
    plan, file = build_plan(diagnosis, [tasks.resolve()] if has_records(tasks) else []), out / PLAN
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


class CauseSettings(FrozenModel):
    """Settings of the model that reads failed conversations."""

    model: str
    """A folder of a model that runs here, or a model's name at `base_url`."""
    base_url: str = ""
    traces: int = 40
    """Failed conversations that are read, at most; drawn by hash, whatever went wrong in them."""
    max_tokens: int = 1024


async def add_causes(
    diagnosis: Diagnosis, folder: Path, out: Path, settings: CauseSettings, progress: RunProgress | None = None
) -> Diagnosis:
    """Return a diagnosis with the causes that a model names; its answers are kept in `out`, so that none is paid twice.

    Raises:
        InputError: The folder has no conversations, or the model cannot be used.
        RunError: The model read none of them.
    """
    traces = load_failed_traces(folder, settings.traces)
    if not traces:
        return diagnosis.model_copy(update={"reader": settings.model})
    models = {"reader": ModelSettings(model=settings.model, base_url=settings.base_url)} if settings.base_url else {}
    roles = (
        RolesSettings(judge=RoleSettings(model="reader", max_tokens=settings.max_tokens)) if models else RolesSettings()
    )
    registry = ModelRegistry(models, roles, BudgetSettings(), out, "the same diagnosis")
    local = None if models else open_local_model(settings.model, settings.max_tokens, 0.0)
    try:
        await registry.run_preflight(["judge"] if models else [])
        with (progress or NullProgress()).stage("read failed conversations", len(traces), 0, 0) as bar:
            reader = local or registry.require_role_model("judge")
            readings, unread = await read_traces(traces, reader, load_builtin_prompts(), over=bar.advance)
    finally:
        if local is not None:
            await local.close()
        await registry.close()
    weak = {group.name: f"{group.dimension} {group.name}" for group in diagnosis.groups if group.dimension == "tool"}
    changes = {"reader": settings.model, "causes": summarize_causes(readings, weak), "unread": unread}
    return diagnosis.model_copy(update=changes)


def load_failed_traces(folder: Path, most: int) -> list[FailedTrace]:
    """Read failed conversations of an evaluation, a benchmark or a run, in an order by hash.

    Raises:
        InputError: The folder holds no conversations.
    """
    traces = _iter_bench_traces(folder) if (folder / OBSERVATIONS).is_file() else _iter_traces(folder)
    return sorted(traces, key=lambda trace: content_hash(trace.episode, 8))[:most]


def _iter_traces(folder: Path) -> Iterator[FailedTrace]:
    for played in read_transcripts(folder) if is_evaluation(folder) else _read_run(folder):
        if played.passed is False:
            one, trajectory = observe_episode(played), played.trajectory
            called = (event.tool for event in trajectory.events if event.error not in ("unknown_tool", "malformed"))
            needed = (call.tool for call in played.task.gold_calls)  # with tool search, not all of them are shown
            tools = tuple(dict.fromkeys((*trajectory.tools, *needed, *called)))
            yield FailedTrace(episode=one.episode, tools=tools, messages=trajectory.messages, step=one.step)


def _iter_bench_traces(folder: Path) -> Iterator[FailedTrace]:
    observations = {one.episode: one for one in read_entries(folder / OBSERVATIONS, EpisodeObservation)}
    tools: dict[str, set[str]] = defaultdict(set)
    for one in observations.values():
        tools[one.environment] |= set(one.groups.get("tool", ()))
    for play in read_entries(folder / PLAYS, BenchPlay):
        if play.passed is False and play.play.messages:
            step = observations[play.episode].step if play.episode in observations else None
            called = {call.name for turn in play.play.steps for calls in turn for call in calls}
            names = tuple(sorted(tools[play.category] | called))
            yield FailedTrace(episode=play.episode, tools=names, messages=play.play.messages, step=step)


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
