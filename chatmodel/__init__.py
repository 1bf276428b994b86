"""Talking: the scripted language with its phrasebooks, and language models behind one small interface."""

from chatmodel.board import Board, check_models
from chatmodel.model import ChatModel, ChatReply, ChatRequest, MalformedCall, Usage, function_tool
from chatmodel.phrasebook import EntityPhrases, ParameterPhrases, Phrasebook, ToolPhrases, load_phrasebook
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
from chatmodel.structured import ask
from chatmodel.usage import UsageLedger, cost_of, sum_usage
from chatmodel.wording import Wording, capital, pick_text

__all__ = [
    "ROLES",
    "SCRIPTED",
    "Board",
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
    "UsageLedger",
    "Wording",
    "ask",
    "capital",
    "check_models",
    "cost_of",
    "function_tool",
    "load_phrasebook",
    "pick_text",
    "sum_usage",
]
