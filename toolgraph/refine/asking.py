"""One structured question to a model: asked, validated, and asked once more with the fault before its eyes."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from chatmodel.model import ChatModel, ChatRequest
from trajectory import Message, first_fault

Answer = TypeVar("Answer", bound=BaseModel)
ATTEMPTS = 2


class NoAnswer(Exception):
    """The model gave nothing that can be used; the text says what was wrong last."""


async def ask(model: ChatModel, messages: tuple[Message, ...], kind: type[Answer], purpose: str) -> Answer:
    """Ask for one object.

    Requests say nothing that changes between runs, so a model with a request cache is paid once.

    Args:
        model: Any model.
        messages: From a prompt.
        kind: What the reply must be.
        purpose: For the count of usage.

    Raises:
        NoAnswer: Both replies were no such object.
    """
    fault = ""
    for _ in range(ATTEMPTS):
        request = ChatRequest(
            messages=messages,
            schema_name=kind.__name__,
            reply_schema=kind.model_json_schema(),
            temperature=0.0,
            purpose=purpose,
        )
        reply = await model.complete(request)
        try:
            return kind.model_validate_json(_bare(reply.message.content))
        except ValidationError as error:
            fault = first_fault(error)
            told = Message(role="user", content=f"That cannot be used: {fault}. Answer again, with the JSON alone.")
            messages = (*messages, Message(role="assistant", content=reply.message.content), told)
    raise NoAnswer(fault)


def _bare(text: str) -> str:
    """The object in a reply that wraps it in a fence or in words."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text
