"""What a provider is to the layers above it: one attempt at one request, told apart by kind of failure."""

from pathlib import Path
from typing import Protocol

from chatmodel.model import ChatReply, ChatRequest
from chatmodel.settings import ModelSettings
from trajectory import InputError


class Provider(Protocol):
    """Sends requests to one model, each once; waiting, repeating and counting is done above it."""

    async def send(self, request: ChatRequest) -> ChatReply:
        """Make one attempt.

        Raises:
            FailedAttempt: This attempt gave no usable answer; it says whether another one may.
            InputError: No request can be answered as things are set.
        """

    async def check(self) -> bool:
        """Look at what can be looked at for nothing: address, key, name of the model. True if all was seen to be right,
        False if only a request can tell.

        Raises:
            InputError: One of them is wrong.
        """

    async def close(self) -> None:
        """Let go of everything; safe to call twice."""


def open_provider(entry: str, settings: ModelSettings, folder: Path | None = None) -> Provider:
    """The provider of one entry of `models`.

    Args:
        folder: Where batches are noted that are being worked on; None if nothing will be asked.

    Raises:
        InputError: The key's variable is not set, or the provider's library is not installed.
    """
    if settings.provider == "openai":
        from chatmodel.served import ServedModel

        if settings.batch and folder is not None:
            from chatmodel.batched import BatchedModel

            return BatchedModel(ServedModel(entry, settings), folder / f"batches-{entry}.json")
        return ServedModel(entry, settings)
    if settings.provider == "vllm":
        from chatmodel.in_process import InProcessModel

        return InProcessModel(entry, settings)
    raise InputError(f"models.{entry}.provider: {settings.provider!r} is none of openai, vllm")
