# ruff: noqa: UP045 - written as the published domains are
from enum import Enum
from typing import Optional

from pydantic import BaseModel
from tau2.data_model.message import AssistantMessage, ToolMessage, UserMessage


class RewardType(str, Enum):  # noqa: UP042 - as the published one is
    DB = "DB"
    ENV_ASSERTION = "ENV_ASSERTION"
    ACTION = "ACTION"
    COMMUNICATE = "COMMUNICATE"
    NL_ASSERTION = "NL_ASSERTION"


class InitializationData(BaseModel):
    agent_data: Optional[dict] = None
    user_data: Optional[dict] = None


class InitialState(BaseModel):
    initialization_data: Optional[InitializationData] = None
    initialization_actions: Optional[list[dict]] = None
    message_history: Optional[list[AssistantMessage | UserMessage | ToolMessage]] = None


class Action(BaseModel):
    action_id: str
    name: str
    arguments: dict
    requestor: str = "assistant"


class Assertion(BaseModel):
    book_id: str
    holder: Optional[str] = None


class EvaluationCriteria(BaseModel):
    actions: Optional[list[Action]] = None
    env_assertions: Optional[list[Assertion]] = None
    communicate_info: Optional[list[str]] = None
    nl_assertions: Optional[list[str]] = None
    reward_basis: list[RewardType] = [RewardType.DB, RewardType.COMMUNICATE]


class Task(BaseModel):
    id: str
    initial_state: Optional[InitialState] = None
    evaluation_criteria: Optional[EvaluationCriteria] = None
