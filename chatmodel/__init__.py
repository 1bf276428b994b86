"""Talking: the scripted language with its phrasebooks, and language models behind one small interface.

Sandboxed workers import this package, so it brings neither network nor database: what talks to servers is imported from
its own module (`chatmodel.board`, `chatmodel.structured`, `chatmodel.usage`).
"""

from chatmodel.model import ChatModel, ChatReply, ChatRequest, MalformedCall, Usage, function_tool
from chatmodel.phrasebook import EntityPhrases, ParameterPhrases, Phrasebook, ToolPhrases, load_phrasebook
from chatmodel.plain import capital
from chatmodel.settings import (
    ROLES,
    SCRIPTED,
    BudgetSettings,
    ModelSettings,
    Price,
    Role,
    RoleSettings,
    RolesSettings,
    Sampling,
)
from chatmodel.wording import Wording, pick_text

__all__ = [
    "ROLES",
    "SCRIPTED",
    "BudgetSettings",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "EntityPhrases",
    "MalformedCall",
    "ModelSettings",
    "ParameterPhrases",
    "Phrasebook",
    "Price",
    "Role",
    "RoleSettings",
    "RolesSettings",
    "Sampling",
    "ToolPhrases",
    "Usage",
    "Wording",
    "capital",
    "function_tool",
    "load_phrasebook",
    "pick_text",
]
