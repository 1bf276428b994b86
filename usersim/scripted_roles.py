"""Builders of the scripted roles of a task, whether it is a variant or not."""

from trajsmith.phrasing import Wording, find_clock_date
from trajsmith.records import EnvironmentSpec, JsonObject, Task
from trajsmith.usersim.partial_batch import PartialBatchAgent
from trajsmith.usersim.scripted_agent import ScriptedAgent
from trajsmith.usersim.scripted_user import ScriptedUser
from trajsmith.usersim.variant_roles import VariantAgent, VariantUser


def build_scripted_agent(task: Task, wording: Wording, candidate: int, listens: bool = False) -> ScriptedAgent:
    """The scripted agent of a task, whether it is a variant or not."""
    return get_agent_class(task)(task, wording, candidate, listens)


def get_agent_class(task: Task) -> type[ScriptedAgent]:
    """Return the class of the agent that handles a task as it should be."""
    if task.twist is None:
        return ScriptedAgent
    return PartialBatchAgent if task.twist.refused else VariantAgent


def build_scripted_user(
    task: Task, spec: EnvironmentSpec, wording: Wording, state: JsonObject, candidate: int
) -> ScriptedUser:
    """Build the scripted user of a task, whether it is a variant or not; see `UserFactory`."""
    kind = ScriptedUser if task.twist is None else VariantUser
    return kind(task, wording, candidate, find_clock_date(state))
