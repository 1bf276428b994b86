# ruff: noqa: UP045 - written as the published domains are
from typing import Literal, Optional

from pydantic import BaseModel


class ToolCall(BaseModel):
    id: str = ""
    name: str
    arguments: dict
    requestor: Literal["user", "assistant"] = "assistant"


class Spoken(BaseModel):
    content: Optional[str] = None
    tool_calls: Optional[list[ToolCall]] = None


class AssistantMessage(Spoken):
    role: Literal["assistant"]


class UserMessage(Spoken):
    role: Literal["user"]


class ToolMessage(BaseModel):
    id: str
    role: Literal["tool"]
    content: str
    error: bool = False
