"""Simulated user, teacher agent and the dialogue loop."""

from usersim.dialogue import AGENT, Dialogue, PlaySettings, system_prompt
from usersim.model_agent import ModelAgent, ShownTools
from usersim.model_user import USER, ModelUser
from usersim.roles import AgentAct, AgentRole, UserAct, UserCall, UserRole
from usersim.scripted_agent import ScriptedAgent
from usersim.scripted_user import ScriptedUser
from usersim.twisted import scripted_agent, scripted_user

__all__ = [
    "AGENT",
    "USER",
    "AgentAct",
    "AgentRole",
    "Dialogue",
    "ModelAgent",
    "ModelUser",
    "PlaySettings",
    "ScriptedAgent",
    "ScriptedUser",
    "ShownTools",
    "UserAct",
    "UserCall",
    "UserRole",
    "scripted_agent",
    "scripted_user",
    "system_prompt",
]
