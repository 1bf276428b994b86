"""Interface of providers: one attempt at one request, with failures classified by kind."""

from pathlib import Path
from typing import Protocol

from trajsmith.models.model import ChatReply, ChatRequest
from trajsmith.models.settings import PROVIDERS, ModelSettings


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
        InputError: There is no such provider, the key's variable is not set, or its library is not installed.
    """
    provider: Provider = PROVIDERS.get(settings.provider)(entry, settings, folder)
    return provider
