"""Simulated user, teacher agent and the dialogue loop."""

from trajsmith.usersim.dialogue import AGENT, Dialogue, PlaySettings, render_system_prompt
from trajsmith.usersim.model_agent import ExposedTools, ModelAgent
from trajsmith.usersim.model_user import USER, ModelUser, build_user_factory
from trajsmith.usersim.roles import AgentAct, AgentRole, UserAct, UserCall, UserFactory, UserRole
from trajsmith.usersim.scripted_agent import ScriptedAgent
from trajsmith.usersim.scripted_user import ScriptedUser
from trajsmith.usersim.variant_roles import build_scripted_agent, build_scripted_user

__all__ = [
    "AGENT",
    "USER",
    "AgentAct",
    "AgentRole",
    "Dialogue",
    "ExposedTools",
    "ModelAgent",
    "ModelUser",
    "PlaySettings",
    "ScriptedAgent",
    "ScriptedUser",
    "UserAct",
    "UserCall",
    "UserFactory",
    "UserRole",
    "build_scripted_agent",
    "build_scripted_user",
    "build_user_factory",
    "render_system_prompt",
]
