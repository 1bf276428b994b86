"""Rate limits of one model: concurrent requests, requests and tokens per minute."""

from asyncio import Semaphore
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiolimiter import AsyncLimiter

from trajsmith.models.settings import ModelSettings

MINUTE = 60.0


class RateLimits:
    """Rate limits of one model. Waiting time here counts towards no deadline."""

    def __init__(self, settings: ModelSettings) -> None:
        self._slots = Semaphore(settings.concurrency)
        self._requests = _per_minute(settings.requests_per_minute)
        self._tokens = _per_minute(settings.tokens_per_minute)

    @asynccontextmanager
    async def acquire(self, tokens: int) -> AsyncIterator[None]:
        """Wait until a request of about this many tokens may be sent; holds a slot while the context is open."""
        async with self._slots:
            if self._tokens:
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
            if self._requests:
                await self._requests.acquire()
            yield


def _per_minute(rate: float | None) -> AsyncLimiter | None:
    """Create a limiter whose bucket holds one second's worth, so that a minute's allowance is not spent at once."""
    if rate is None:
        return None
    burst = max(1.0, rate / MINUTE)
    return AsyncLimiter(burst, MINUTE * burst / rate)
