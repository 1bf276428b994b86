"""Concurrent requests about a graph; permanent faults are kept as answers, an outage ends the batch."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from trajsmith.models.model import ChatModel, ChatRequest
from trajsmith.models.structured import complete_structured
from trajsmith.records import ModelFault
from trajsmith.records.errors import ModelFaultKind

Reply = TypeVar("Reply", bound=BaseModel)

FOR_GOOD: frozenset[ModelFaultKind] = frozenset({"bad_reply", "content_filter", "context_overflow", "bad_request"})
"""Kinds of fault that the same question meets again whenever it is asked."""


async def ask_all(model: ChatModel, requests: Sequence[ChatRequest], schema: type[Reply]) -> list[Reply | ModelFault]:
    """The answers in the order of the questions; a fault in place of one that the model will never give.

    Raises:
        ModelFault: The server does not answer. All other questions are answered and cached by then.
    """
    replies = await asyncio.gather(
        *(complete_structured(model, request, schema) for request in requests), return_exceptions=True
    )
    answers: list[Reply | ModelFault] = []
    for one in replies:
        if isinstance(one, BaseException) and not (isinstance(one, ModelFault) and one.kind in FOR_GOOD):
            raise one
        answers.append(one)
    return answers
