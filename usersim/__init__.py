"""Simulated user, teacher agent and the dialogue loop."""

from trajsmith.usersim.call_resolution import ToolAccess, resolve_inner_call
from trajsmith.usersim.continuation import ContinuedDialogue, FollowingAgent
from trajsmith.usersim.dialogue import AGENT, Dialogue, PlaySettings, render_system_prompt
from trajsmith.usersim.faulty_agent import FaultSettings, build_faulty_agent
from trajsmith.usersim.model_agent import ExposedTools, ModelAgent
from trajsmith.usersim.model_user import USER, ModelUser
from trajsmith.usersim.players import (
    DIALOGUE_ROLES,
    DialogueRole,
    RoleContext,
    build_agent,
    build_user,
    build_user_factory,
    get_role_name,
    prepare_scripted_agent,
)
from trajsmith.usersim.reasoning import add_reasoning
from trajsmith.usersim.roles import AgentAct, AgentRole, UserAct, UserCall, UserFactory, UserRole
from trajsmith.usersim.scripted_agent import ScriptedAgent
from trajsmith.usersim.scripted_roles import build_scripted_agent, build_scripted_user
from trajsmith.usersim.scripted_user import ScriptedUser
from trajsmith.usersim.tool_search import add_tool_search

__all__ = [
    "AGENT",
    "DIALOGUE_ROLES",
    "USER",
    "AgentAct",
    "AgentRole",
    "ContinuedDialogue",
    "Dialogue",
    "DialogueRole",
    "ExposedTools",
    "FaultSettings",
    "FollowingAgent",
    "ModelAgent",
    "ModelUser",
    "PlaySettings",
    "RoleContext",
    "ScriptedAgent",
    "ScriptedUser",
    "ToolAccess",
    "UserAct",
    "UserCall",
    "UserFactory",
    "UserRole",
    "add_reasoning",
    "add_tool_search",
    "build_agent",
    "build_faulty_agent",
    "build_scripted_agent",
    "build_scripted_user",
    "build_user",
    "build_user_factory",
    "get_role_name",
    "prepare_scripted_agent",
    "render_system_prompt",
    "resolve_inner_call",
]
