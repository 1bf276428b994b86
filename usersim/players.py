"""Roles by name: what plays the agent and the user of a dialogue."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from trajsmith.models import ChatModel, RoleSettings
from trajsmith.models.prompts import Prompts
from trajsmith.phrasing import Wording, find_clock_date, get_agent_voice
from trajsmith.records import EnvironmentSpec, InputError, JsonObject, Registry, Task
from trajsmith.usersim.courtesies import Courtesies
from trajsmith.usersim.dialogue import PlaySettings
from trajsmith.usersim.model_agent import ModelAgent
from trajsmith.usersim.model_user import USER, ModelUser
from trajsmith.usersim.roles import AgentRole, UserFactory, UserRole
from trajsmith.usersim.scripted_agent import ScriptedAgent
from trajsmith.usersim.scripted_roles import build_scripted_agent, build_scripted_user


@dataclass(frozen=True)
class RoleContext:
    """Ingredients of a role in one dialogue."""

    task: Task
    spec: EnvironmentSpec
    wording: Wording
    state: JsonObject
    """Initial state; shared, so it must not be changed."""
    candidate: int
    """Number of the dialogue among those of the task."""
    settings: PlaySettings
    prompts: Prompts
    model: ChatModel | None = None
    """The model that the configuration names for the role."""
    user_is_model: bool = False
    """A model plays the user, so that a scripted agent has to read its text."""

    def require_model(self) -> ChatModel:
        """Return the model.

        Raises:
            InputError: The configuration names none.
        """
        if self.model is None:
            raise InputError("this role needs a model: name one among `models`")
        return self.model


@dataclass(frozen=True)
class DialogueRole:
    """Builders of an agent, a user, or both."""

    agent: Callable[[RoleContext], AgentRole] | None = None
    user: Callable[[RoleContext], UserRole] | None = None


DIALOGUE_ROLES: Registry[DialogueRole] = Registry(
    "roles", {"scripted": "trajsmith.usersim.players", "model": "trajsmith.usersim.players"}
)


def get_role_name(settings: RoleSettings, model: ChatModel | None) -> str:
    """Return the name of the role that the settings of an agent or a user stand for."""
    return settings.played_by or ("scripted" if model is None else "model")


def build_agent(name: str, context: RoleContext) -> AgentRole:
    """Build the agent of a dialogue.

    Raises:
        InputError: There is no such role, it plays no agent, or it needs a model.
    """
    build = DIALOGUE_ROLES.get(name).agent
    if build is None:
        raise InputError(f"roles.agent: {name} plays no agent, only the user")
    return build(context)


def build_user(name: str, context: RoleContext) -> UserRole:
    """Build the user of a dialogue.

    Raises:
        InputError: There is no such role, it plays no user, or it needs a model.
    """
    build = DIALOGUE_ROLES.get(name).user
    if build is None:
        raise InputError(f"roles.user: {name} plays no user, only the agent")
    return build(context)


def build_user_factory(settings: RoleSettings, model: ChatModel | None, prompts: Prompts) -> UserFactory:
    """Build the factory of the users of evaluation and training.

    Raises:
        InputError: The prompt of a model user cannot be used, or there is no such role.
    """
    name = get_role_name(settings, model)
    DIALOGUE_ROLES.get(name)
    if model is not None:
        prompts.get(USER)

    def build(task: Task, spec: EnvironmentSpec, wording: Wording, state: JsonObject, candidate: int) -> UserRole:
        return build_user(name, RoleContext(task, spec, wording, state, candidate, PlaySettings(), prompts, model))

    return build


def prepare_scripted_agent(agent: ScriptedAgent, settings: PlaySettings, now: date) -> None:
    """Have an agent play as the settings say, at the environment's time."""
    agent.parallel, agent.now = settings.parallel, now
    if settings.voice:
        agent.style = settings.voice
        agent.voice = get_agent_voice(settings.voice).model_copy(update={"silent": 1.0})
        agent.reports.style, agent.reports.steady = agent.voice.reports, True
        agent.courtesies = Courtesies()


def _build_scripted_agent(context: RoleContext) -> AgentRole:
    agent = build_scripted_agent(context.task, context.wording, context.candidate, listens=context.user_is_model)
    prepare_scripted_agent(agent, context.settings, find_clock_date(context.state))
    return agent


def _build_scripted_user(context: RoleContext) -> UserRole:
    return build_scripted_user(context.task, context.spec, context.wording, context.state, context.candidate)


def _build_model_agent(context: RoleContext) -> AgentRole:
    return ModelAgent(context.require_model(), context.spec, context.task, context.settings, context.candidate)


def _build_model_user(context: RoleContext) -> UserRole:
    return ModelUser(
        context.require_model(), context.spec, context.wording, context.task, context.state, context.candidate,
        context.prompts,
    )  # fmt: skip


DIALOGUE_ROLES.register("scripted")(DialogueRole(_build_scripted_agent, _build_scripted_user))
DIALOGUE_ROLES.register("model")(DialogueRole(_build_model_agent, _build_model_user))
