"""Questions about a graph, asked side by side: what will never have an answer is kept as that, an outage ends it."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from chatmodel.model import ChatModel, ChatRequest
from chatmodel.structured import ask
from trajectory import ModelFault
from trajectory.errors import ModelFaultKind

Reply = TypeVar("Reply", bound=BaseModel)

FOR_GOOD: frozenset[ModelFaultKind] = frozenset({"bad_reply", "content_filter", "context_overflow", "bad_request"})
"""Kinds of fault that the same question meets again whenever it is asked."""


async def ask_all(model: ChatModel, requests: Sequence[ChatRequest], schema: type[Reply]) -> list[Reply | ModelFault]:
    """The answers in the order of the questions; a fault in place of one that the model will never give.

    Raises:
        ModelFault: The server does not answer. All other questions are answered and cached by then.
    """
    found = await asyncio.gather(*(ask(model, request, schema) for request in requests), return_exceptions=True)
    answers: list[Reply | ModelFault] = []
    for one in found:
        if isinstance(one, BaseException) and not (isinstance(one, ModelFault) and one.kind in FOR_GOOD):
            raise one
        answers.append(one)
    return answers
