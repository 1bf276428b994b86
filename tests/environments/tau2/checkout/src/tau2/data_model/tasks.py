# ruff: noqa: UP045 - written as the published domains are
from typing import Optional

from pydantic import BaseModel


class InitializationData(BaseModel):
    agent_data: Optional[dict] = None
    user_data: Optional[dict] = None


class InitialState(BaseModel):
    initialization_data: Optional[InitializationData] = None
    initialization_actions: Optional[list[dict]] = None
    message_history: Optional[list] = None
