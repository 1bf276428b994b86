"""`trajsmith repair`: failed plays go on rightly from before their first wrong step, in a run of their own.

Execution finds the first wrong step: a right play can still come from the message before it, and none from it.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from trajsmith.environments.injected_faults import inject_faults
from trajsmith.evals import find_first_wrong_step, is_evaluation, read_transcripts
from trajsmith.models import RoleSettings
from trajsmith.phrasing import find_clock_date
from trajsmith.pipeline.config import RunConfig, load_config
from trajsmith.pipeline.engine import PipelineStage
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_context import EnvironmentHandle, RunContext
from trajsmith.pipeline.run_directory import (
    CONFIG,
    LEDGER,
    OF_A_START,
    TASKS,
    TRAJECTORIES,
    VERDICTS,
    RunDirectory,
    find_written_tasks,
)
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import (
    AppendFile,
    FrozenModel,
    FunctionCall,
    InputError,
    JsonObject,
    RecordDropped,
    RepairOrigin,
    Task,
    Trajectory,
    Verdict,
    count_records,
    has_records,
    read_records,
    read_stored,
    storage_boundary,
)
from trajsmith.usersim import (
    AgentRole,
    ContinuedDialogue,
    FollowingAgent,
    PlaySettings,
    add_reasoning,
    add_tool_search,
    build_scripted_agent,
    build_scripted_user,
    prepare_scripted_agent,
)
from trajsmith.verify import find_undoing_call, verify_trajectory
from trajsmith.verify.traces.replaying import IMPORTED

REPAIRS = "repairs.json"
"""File that says what a run repairs; written when all is copied."""
COPIES = "failed"
FAILED, FAILED_VERDICTS = f"{COPIES}/trajectories.jsonl", f"{COPIES}/verdicts.jsonl"
"""Copies of the failed plays and of their verdicts."""
START_AGAIN = "start `trajsmith repair` again"
REPAIR_ORDER = ("repair", "verify")
OF_THE_AGENT = frozenset({"partial", "agent_error"})
"""Outcomes of plays in which the agent did something wrong."""

RepairKind = Literal["any", "cut", "recover"]
REPAIR_KINDS: tuple[RepairKind, ...] = get_args(RepairKind)


class RepairSettings(FrozenModel):
    """Origin and kind of the repairs of a run."""

    source: str
    """Run or evaluation whose failed plays were copied."""
    kind: RepairKind = "any"
    """Repairs that are made: `cut` leaves the wrong step out, `recover` keeps it as context; `any` recovers where that
    is possible, and cuts elsewhere."""


class FailedPlay(NamedTuple):
    """A play that was rejected, with its task and verdict."""

    task: Task
    trajectory: Trajectory
    verdict: Verdict


def load_repair_settings(run: RunDirectory) -> RepairSettings | None:
    """Return the settings of a run of repairs; None for any other run.

    Raises:
        InputError: Its start was cut.
    """
    path = run.file(REPAIRS)
    if not path.is_file() and run.file(COPIES).is_dir():
        raise InputError(f"{run.path}: not all failed plays were copied: {START_AGAIN}")
    return read_stored(path, RepairSettings) if path.is_file() else None


def open_repairs(source: Path, out: Path, kind: RepairKind = "any", tasks_of: Path | None = None) -> RunDirectory:
    """Open the run of repairs of a run or an evaluation; failed plays, tasks and states are copied into a new one.

    Args:
        source: Run directory, or folder that `trajsmith eval` wrote.
        out: Run directory of the repairs; one that repairs the same plays is taken up, and one whose copying was cut is
            begun again.
        kind: Repairs that are made.
        tasks_of: Run whose tasks were evaluated; for an evaluation only.

    Raises:
        InputError: `source` holds no failed play, or `out` holds something else.
        RunError: Another process writes in `out`, or the disk is full.
    """
    settings = RepairSettings(source=str(source.resolve()), kind=kind)
    if (out / REPAIRS).is_file():
        return _take_up(RunDirectory.open(out), settings)
    evaluated = is_evaluation(source)
    if evaluated and tasks_of is None:
        raise InputError(f"{source} is an evaluation: name the run whose tasks it played with --run")
    if tasks_of is not None and not evaluated:
        raise InputError(f"--run is for evaluations: {source} has its tasks")
    origin = RunDirectory.open(tasks_of or source)
    plays = iter(_read_failed_episodes(source, origin) if evaluated else _read_failed_plays(origin))
    text = dump_settings(build_repair_config(load_config(origin.config_path), out))
    first = next(plays, None)
    if first is None:
        raise InputError(f"{source} has no rejected play to repair")
    run = RunDirectory.open(out) if _is_cut_start(out) else RunDirectory.create(out, text, folder=COPIES)
    run.again = START_AGAIN
    with run.lock(), storage_boundary(out, START_AGAIN):
        if not run.file(REPAIRS).is_file():  # another process may have been faster
            run.write_text(CONFIG, text)
            _copy_plays(chain([first], plays), origin, run)
            run.write_json(REPAIRS, settings.model_dump(mode="json"))
    return _take_up(RunDirectory.open(out), settings)


def _take_up(run: RunDirectory, settings: RepairSettings) -> RunDirectory:
    if load_repair_settings(run) != settings:
        raise InputError(f"{run.path} holds repairs of other plays or of another kind: name another directory")
    return run


def _is_cut_start(out: Path) -> bool:
    """Return True for a folder with nothing but copies of failed plays that are not finished."""
    if not (out / CONFIG).is_file() or not all((out / name).is_dir() for name in (COPIES, LEDGER)):
        return False
    foreign = {entry.name for entry in out.iterdir()} - OF_A_START - {COPIES, LEDGER, TASKS}
    return not foreign and not any((out / LEDGER).iterdir())


def build_repair_config(config: RunConfig, out: Path) -> RunConfig:
    """Return the configuration of the repairs of a run: no plays of its own, and every repair is a row."""
    play = config.play.model_copy(update={"candidates": 1, "faulty": 0})
    verify = config.verify.model_copy(update={"best": False, "step_labels": True})
    roles = config.roles.model_copy(update={"judge": RoleSettings()})
    vary = config.vary.model_copy(update={"rates": {}})
    engine = config.engine.model_copy(update={"copy_to": None})
    changes = {
        "run": out,
        "engine": engine,
        "name": f"{config.name}-repaired",
        "play": play,
        "verify": verify,
        "roles": roles,
    }
    return config.model_copy(update={**changes, "accept": None, "plan": None, "shard": None, "vary": vary})


def _read_failed_plays(run: RunDirectory) -> Iterator[FailedPlay]:
    if not has_records(run.file(VERDICTS)):
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    for task, trajectory, verdict in join_verdicts(run):
        if not verdict.accepted and verdict.outcome != "completed":
            yield FailedPlay(task, trajectory, verdict)


def _read_failed_episodes(folder: Path, run: RunDirectory) -> list[FailedPlay]:
    """Return the failed episodes of an evaluation in the order of the run's tasks.

    Raises:
        InputError: They are of tasks that the run does not have.
    """
    order = {task.id: number for number, task in enumerate(read_records(find_written_tasks(run), Task))}
    plays = [
        FailedPlay(played.task, played.trajectory, played.verdict)
        for played in read_transcripts(folder)
        if played.verdict.outcome != "completed"
    ]
    foreign = next((play.task.id for play in plays if play.task.id not in order), None)
    if foreign is not None:
        raise InputError(f"{run.path} has no task {foreign}: name the run that {folder} evaluated")
    return sorted(plays, key=lambda play: (order[play.task.id], play.trajectory.candidate))


def _copy_plays(plays: Iterable[FailedPlay], origin: RunDirectory, run: RunDirectory) -> None:
    """Copy failed plays with their tasks and states, in place of what a start that was cut has copied."""
    task_id = ""
    with (
        AppendFile(run.file(TASKS)) as tasks,
        AppendFile(run.file(FAILED)) as failed,
        AppendFile(run.file(FAILED_VERDICTS)) as verdicts,
    ):
        for file in (tasks, failed, verdicts):
            file.cut(0)
        for play in plays:
            if play.task.id != task_id:
                task_id = play.task.id
                tasks.append(play.task.to_line())
                run.put_state(origin.get_state(play.task.initial_state))
            failed.append(play.trajectory.to_line())
            verdicts.append(play.verdict.to_line())
        for file in (tasks, failed, verdicts):
            file.close(sync=True)


class FailedPlays:
    """Failed plays of a run of repairs, in their order."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run

    def __len__(self) -> int:
        return count_records(self.run.file(FAILED))

    def __iter__(self) -> Iterator[tuple[str, FailedPlay]]:
        tasks = read_records(self.run.file(TASKS), Task)
        verdicts = read_records(self.run.file(FAILED_VERDICTS), Verdict)
        task = next(tasks)
        for trajectory, verdict in zip(read_records(self.run.file(FAILED), Trajectory), verdicts, strict=True):
            while task.id != trajectory.task_id:
                task = next(tasks)
            yield trajectory.id, FailedPlay(task, trajectory, verdict)


def make_repair_stage(context: RunContext, kind: RepairKind) -> PipelineStage[FailedPlay, Trajectory]:
    """Make the stage that repairs failed plays."""

    async def repair(play: FailedPlay) -> tuple[Trajectory]:
        return (await PlayRepair(context, play).make(kind),)

    return PipelineStage("repair", repair, TRAJECTORIES, Trajectory, title="repair failed plays")


class Continuation(NamedTuple):
    """A right or wrong continuation of a failed play."""

    trajectory: Trajectory
    verdict: Verdict


class PlayRepair:
    """The repair of one failed play."""

    def __init__(self, context: RunContext, play: FailedPlay) -> None:
        self.task, self.failed, self.verdict = play
        self.context = context
        self.steps = [number for number, each in enumerate(self.failed.messages) if each.role == "assistant"]

    async def make(self, kind: RepairKind) -> Trajectory:
        """Return an accepted play that begins with steps of the failed one.

        It keeps the most steps if acceptance is monotone: with a step, every earlier one can be kept. Where a later
        step mends an earlier one, the search by halving can end at the earlier.

        Raises:
            RecordDropped: There is none; the reason says why.
        """
        if self.verdict.outcome not in OF_THE_AGENT:
            raise RecordDropped("not_the_agents_fault", self.verdict.outcome)
        if self.task.variant == IMPORTED:
            raise RecordDropped("imported_task", "the scripted agent has no words for it")
        if self.context.config.play.tools == "two_level" and self.task.search is None:
            raise RecordDropped("two_level_tools", "the scripted agent calls tools directly")
        prefix, right, beyond = await self._find_last_right_step()
        stays = await self._is_wrong_step(right, prefix)
        if kind != "cut" and not stays:
            mended = await self._undo_step(prefix)
            if mended is not None:
                prefix, right, stays = prefix + 1, mended, True
        while kind == "cut" and stays:
            prefix -= 1
            beyond = ()
            right = await self.continue_from(prefix)
            if not right.verdict.accepted:
                raise RecordDropped("no_right_play", "; ".join(right.verdict.reasons))
            stays = await self._is_wrong_step(right, prefix)
        if kind == "recover" and not stays:
            raise RecordDropped("harm_stays", "; ".join(beyond))
        if not prefix:
            raise RecordDropped("wrong_from_the_start", "nothing of it could be kept")
        repair = RepairOrigin(
            of=self.failed.id,
            kind="recover" if stays else "cut",
            message=self.steps[prefix],
            mistake=self._name_mistake(),
            beyond=beyond,
        )
        repaired = right.trajectory.model_copy(update={"repair": repair})
        return repaired.model_copy(update={"id": repaired.content_id()})

    async def _find_last_right_step(self) -> tuple[int, Continuation, tuple[str, ...]]:
        """Return how many steps can be kept, the play that comes of it, and why not one more; found by halving.

        Raises:
            RecordDropped: Not even the play from the beginning is right.
        """
        low, high, beyond = -1, len(self.steps), self.verdict.reasons
        best: Continuation | None = None
        while high - low > 1:
            middle = (low + high) // 2
            continuation = await self.continue_from(middle)
            if continuation.verdict.accepted:
                low, best = middle, continuation
            else:
                high, beyond = middle, continuation.verdict.reasons
        if best is None:
            raise RecordDropped("no_right_play", "; ".join(beyond))
        return low, best, beyond

    async def _undo_step(self, step: int) -> Continuation | None:
        """Keep the first wrong step, undo what it changed, and go on; None if that gives no right play."""
        message, place = self.steps[step], self.context.place(self.failed.environment)
        changed = any(event.message == message and event.effect for event in self.failed.events)
        if not changed or self.task.search is not None or step + 1 == len(self.steps):
            return None
        tools, state = self.task.find_shown_specs(place.spec.tools), self.context.state(self.task.initial_state)
        async with place.session() as opened:
            session = inject_faults(opened, self.task)
            undoing = await find_undoing_call(self.failed, message, state, session, tools, self.task.masks)
        if undoing is None:
            return None
        continuation = await self.continue_from(step + 1, undoing)
        return continuation if continuation.verdict.accepted else None

    async def continue_from(self, prefix: int, undoing: FunctionCall | None = None) -> Continuation:
        """Keep so many steps of the agent, play the rest rightly, and judge it; `undoing` comes first."""
        place, state = self.context.place(self.failed.environment), self.context.state(self.task.initial_state)
        task, candidate, settings = self.task, self.failed.candidate, self.context.config.play
        make = partial(_build_expert, task, place, state, candidate, settings)
        agent = FollowingAgent(make, place.wording)
        agent.undoing = undoing
        user = build_scripted_user(task, place.spec, place.wording, state, candidate)
        async with place.session() as opened:
            dialogue = ContinuedDialogue(
                place.spec, task, state, inject_faults(opened, task), agent, user, settings, candidate,
                self.context.prompts,
            )  # fmt: skip
            trajectory = await dialogue.keep(self.failed, self.steps[prefix]).play()
        return Continuation(trajectory, await self._verify(trajectory, step_labels=False))

    async def _verify(self, trajectory: Trajectory, step_labels: bool) -> Verdict:
        context, place = self.context, self.context.place(trajectory.environment)
        settings = context.config.verify.model_copy(update={"prune": False, "step_labels": step_labels})
        state = context.state(self.task.initial_state)
        async with place.session() as session:
            return await verify_trajectory(
                self.task, trajectory, state, session, settings, context.code_checks, place.wording
            )

    async def _is_wrong_step(self, right: Continuation, prefix: int) -> bool:
        """Return True if the last step that is kept makes a call that is not needed, such as one that was refused."""
        last = self.steps[prefix - 1] if prefix else -1
        if last < 0 or not self.failed.messages[last].tool_calls:
            return False
        labels = (await self._verify(right.trajectory, step_labels=True)).step_labels
        events = right.trajectory.events
        return any(events[step.event].message == last and step.label != "needed" for step in labels or ())

    def _name_mistake(self) -> str:
        if self.failed.injected:
            return self.failed.injected[0].kind
        step = find_first_wrong_step(self.task, self.failed, self.verdict)
        return step.kind if step is not None else self.verdict.outcome


def _build_expert(
    task: Task, place: EnvironmentHandle, state: JsonObject, candidate: int, settings: PlaySettings
) -> AgentRole:
    """Build the scripted agent that plays a task rightly, as a run plays it."""
    scripted = build_scripted_agent(task, place.wording, candidate)
    prepare_scripted_agent(scripted, settings, find_clock_date(state))
    agent = add_reasoning(scripted, task, place.wording, candidate, settings)
    return add_tool_search(agent, task, place.spec, candidate, True)
