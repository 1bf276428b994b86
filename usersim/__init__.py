"""Simulated user, teacher agent and the dialogue loop."""

from usersim.dialogue import Dialogue, PlaySettings, system_prompt
from usersim.roles import AgentAct, AgentRole, UserAct, UserCall, UserRole
from usersim.scripted_agent import ScriptedAgent
from usersim.scripted_user import ScriptedUser

__all__ = [
    "AgentAct",
    "AgentRole",
    "Dialogue",
    "PlaySettings",
    "ScriptedAgent",
    "ScriptedUser",
    "UserAct",
    "UserCall",
    "UserRole",
    "system_prompt",
]
