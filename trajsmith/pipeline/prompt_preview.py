"""`trajsmith prompts render`: the messages that models are sent for one record, without sending any.

The stage is run on the record with models that only listen: a request that the run has an answer to is answered from
its cache, at the first other one it stops. So what is shown is what was sent, or what would be sent next.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from trajsmith.models import SCRIPTED, ChatReply, ChatRequest, Role
from trajsmith.models.registry import RoleModel
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.record_joins import PlayedPairs
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import GROUNDED, TASKS, TRAJECTORIES, RunDirectory, find_written_tasks
from trajsmith.pipeline.stages import PROMPTS, RoleFactory
from trajsmith.querygen import EarlierRequests
from trajsmith.records import (
    GroundedChain,
    InputError,
    ModelFault,
    Record,
    RecordDropped,
    Task,
    Trajectory,
    has_records,
)

Kind = TypeVar("Kind", bound=Record)
Purpose = Literal["persona", "write", "refine", "agent", "user", "judge"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
ROLE: dict[Purpose, Role] = {
    "persona": "writer",
    "write": "writer",
    "refine": "writer",
    "agent": "agent",
    "user": "user",
    "judge": "judge",
}


@dataclass
class RecordingModel:
    """Model that sends nothing: records its requests and answers from the run's cache."""

    name: str
    role_model: RoleModel | None
    heard: list[ChatRequest] = field(default_factory=list)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The answer that the run has.

        Raises:
            ModelFault: It has none.
        """
        self.heard.append(request if self.role_model is None else self.role_model.fill_request(request))
        reply = None if self.role_model is None else self.role_model.peek(request)
        if reply is None:
            raise ModelFault("bad_request", self.name, "not asked yet")
        return reply

    async def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True)
class RenderedPrompts:
    """Requests of one stage for one record."""

    requests: tuple[ChatRequest, ...]
    scripted: bool
    """True if no model plays the role in this run: this is what one would be sent first."""


async def render(run: RunDirectory, purpose: Purpose, name: str) -> RenderedPrompts:
    """The requests of one purpose that a record leads to.

    Raises:
        InputError: There is no such record, or nothing of the kind is sent for it.
    """
    with run.lock():
        context = await RunContext.reopen(load_config(run.config_path), run)
        try:
            listeners = _listen(context, ROLE[purpose])
            cast = RecordingRoles(context, listeners, purpose)
            await _work(cast, run, purpose, name)
        finally:
            await context.close()
    heard = listeners[ROLE[purpose]].heard
    matching = tuple(request for request in heard if request.purpose.split(".")[-1] == purpose)
    if not matching:
        raise InputError(f"{name}: no {purpose} request is sent for it, as far as the run has got")
    return RenderedPrompts(matching, context.config.roles.of(ROLE[purpose]).model == SCRIPTED)


def _listen(context: RunContext, wanted: Role) -> dict[Role, RecordingModel]:
    """A listener for the role that is wanted, and for the others that models play."""
    listeners: dict[Role, RecordingModel] = {}
    for role in PROMPTS:
        model = context.role_model(role)
        if role == wanted or model is not None:
            known = model if isinstance(model, RoleModel) else None
            listeners[role] = RecordingModel(SCRIPTED if model is None else model.name, known)
    return listeners


class RecordingRoles(RoleFactory):
    """Role factory of a run with recording models in place of real ones."""

    def __init__(self, context: RunContext, listeners: dict[Role, RecordingModel], wanted: Purpose) -> None:
        super().__init__(context)
        self.writer, self.agent = listeners.get("writer"), listeners.get("agent")
        self.user, self.judge = listeners.get("user"), listeners.get("judge")
        if self.config.roles.writer.model == SCRIPTED and wanted != "persona":
            scripted = self.config.write.author.model_copy(update={"persona": False})
            write = self.config.write.model_copy(update={"author": scripted})
            self.config = self.config.model_copy(update={"write": write})
        self.earlier = EarlierRequests(
            context.config.write.author.duplicate
        )  # the record itself may be written already


async def _work(cast: RoleFactory, run: RunDirectory, purpose: Purpose, name: str) -> None:
    try:
        if ROLE[purpose] == "writer":
            written = _look_up(run, TASKS, Task, name)
            if written is None and name.startswith(f"{Trajectory.PREFIX}_"):
                raise InputError(_wants_a_task(run, purpose, name))
            await cast.write(_find(run, GROUNDED, GroundedChain, written.grounded_id if written else name))
        elif ROLE[purpose] == "judge":
            await cast.verify(*_played(run, name))
        else:
            trajectory = _find_pair(run, name) if name[:4] == "traj" else None
            task = trajectory[0] if trajectory else _find(run, find_written_tasks(run).name, Task, name)
            await cast.play(task, trajectory[1].candidate if trajectory else 0)
    except (ModelFault, RecordDropped):
        return  # the requests so far are what is wanted


def _played(run: RunDirectory, name: str) -> tuple[Task, Trajectory]:
    pair = _find_pair(run, name)
    if pair is None:
        raise InputError(f"no trajectory {name} in {run.path}: give the id of one, from trajectories.jsonl")
    return pair


def _find_pair(run: RunDirectory, name: str) -> tuple[Task, Trajectory] | None:
    return next((pair for _, pair in PlayedPairs(run).find([name])), None)


def _wants_a_task(run: RunDirectory, purpose: Purpose, name: str) -> str:
    """Return the error for a trajectory id where a task id is needed."""
    played = _look_up(run, TRAJECTORIES, Trajectory, name)
    task = f"; that of {name} is {played.task_id}" if played else ""
    return f"{purpose} is rendered for a task or grounded chain, not for a trajectory: give its id{task}"


def _look_up(run: RunDirectory, file: str, model: type[Kind], name: str) -> Kind | None:
    if not has_records(run.file(file)):
        return None
    with run.open_lookup(file) as lookup:
        return lookup.find(name, model)


def _find(run: RunDirectory, file: str, model: type[Kind], name: str) -> Kind:
    record = _look_up(run, file, model, name)
    if record is None:
        raise InputError(f"no record {name} in {run.path / file}")
    return record
