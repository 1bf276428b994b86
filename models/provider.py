"""Interface of providers: one attempt at one request, with failures classified by kind."""

from pathlib import Path
from typing import Protocol

from trajsmith.models.model import ChatReply, ChatRequest
from trajsmith.models.settings import ModelSettings
from trajsmith.records import InputError


class Provider(Protocol):
    """Sends each request to one model once; rate limits, retries and usage are handled above it."""

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
        """Close all connections; safe to call twice."""


def open_provider(entry: str, settings: ModelSettings, folder: Path | None = None) -> Provider:
    """Open the provider of one entry of `models`.

    Args:
        folder: Where batches are noted that are being worked on; None if nothing will be asked.

    Raises:
        InputError: The key's variable is not set, or the provider's library is not installed.
    """
    if settings.provider == "openai":
        from trajsmith.models.openai_server import OpenAIProvider

        if settings.batch and folder is not None:
            from trajsmith.models.batch_api import BatchApiProvider

            return BatchApiProvider(OpenAIProvider(entry, settings), folder / f"batches-{entry}.jsonl")
        return OpenAIProvider(entry, settings)
    if settings.provider == "vllm":
        from trajsmith.models.vllm_engine import VllmProvider

        return VllmProvider(entry, settings)
    if settings.provider == "transformers":
        from trajsmith.models.transformers_engine import TransformersProvider

        return TransformersProvider(entry, settings)
    raise InputError(f"models.{entry}.provider: {settings.provider!r} is none of openai, vllm, transformers")
