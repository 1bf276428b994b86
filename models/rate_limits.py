"""Rate limits of one model: concurrent requests, requests and tokens per minute."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from time import monotonic

from aiolimiter import AsyncLimiter

from trajsmith.models.settings import MOST_CONCURRENCY, ModelSettings
from trajsmith.records import ModelFaultKind

_log = logging.getLogger(__name__)

MINUTE = 60.0
FIRST_CONCURRENCY = 8
OVERLOAD: frozenset[ModelFaultKind] = frozenset({"rate_limit", "timeout", "server"})
"""Failures that fewer requests at a time may avoid; a refused connection is none."""
SLOWER = 3.0
"""Replies that take this many times as long as at the best time mean a queue in the server."""
FORGETTING = 1.25
"""With few requests in flight, the best time grows by this with each slow window: a server may be slow for others."""
REPLIES_PER_WINDOW = 32
LEAST_TOKENS = 32
"""Shorter replies count as this long: most of their time is that of the prompt."""


class RateLimits:
    """Rate limits of one model. Waiting time here counts towards no deadline."""

    def __init__(self, settings: ModelSettings) -> None:
        auto = settings.concurrency == "auto"
        self._slots = AdaptiveSlots() if auto else asyncio.Semaphore(settings.connections)
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

    def note_reply(self, sent: float, tokens: int) -> None:
        """Note that a request of this time was answered with so many tokens."""
        if isinstance(self._slots, AdaptiveSlots):
            self._slots.note_reply(sent, tokens)

    def note_failure(self, sent: float, kind: ModelFaultKind) -> None:
        """Note that an attempt of this time failed."""
        if isinstance(self._slots, AdaptiveSlots) and kind in OVERLOAD:
            self._slots.reduce(sent, kind)


class AdaptiveSlots:
    """Slots whose number follows what the server can do: additive increase, multiplicative decrease (Chiu, Jain 1989).

    Each reply adds one slot until the first decrease, and after several in a row up to where the first one led (slow
    start); beyond, the replies of a whole round add one. A decrease takes half, once a round: requests that were sent
    before it count no more.
    """

    def __init__(self, first: int = FIRST_CONCURRENCY, most: int = MOST_CONCURRENCY) -> None:
        self.limit = float(first)
        self._most = most
        self._fast_until = float(most)
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._reduced = 0.0
        self._replied = True
        self._paces: list[float] = []
        self._best: float | None = None

    async def __aenter__(self) -> None:
        if self._in_flight < int(self.limit) and not self._waiting:
            self._in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had its turn in the same moment
                self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        self._in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._in_flight < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    def note_reply(self, sent: float, tokens: int) -> None:
        """Add to the slots where all are in use and replies do not slow down."""
        self._replied = self._replied or sent >= self._reduced
        self._paces.append((monotonic() - sent) / max(tokens, LEAST_TOKENS))
        if len(self._paces) == REPLIES_PER_WINDOW:
            pace = median(self._paces)
            self._paces.clear()
            if self._best is not None and pace > SLOWER * self._best:
                if self.limit <= 2 * FIRST_CONCURRENCY:
                    self._best *= FORGETTING
                self.reduce(sent, "slow replies")
                return
            self._best = pace if self._best is None else min(self._best, pace)
        if self._in_flight >= int(self.limit) and sent >= self._reduced:
            self.limit = min(
                float(self._most), self.limit + (1.0 if self.limit < self._fast_until else 1.0 / self.limit)
            )
            self._admit()

    def reduce(self, sent: float, reason: str) -> None:
        """Take half of the slots, unless that was done after this request was sent."""
        if sent < self._reduced:
            return
        self._reduced = monotonic()
        self.limit = max(1.0, self.limit / 2)
        if self._replied:
            self._fast_until = self.limit
            self._replied = False
        self._paces.clear()
        _log.info("requests in flight: at most %d (%s)", int(self.limit), reason)


def _per_minute(rate: float | None) -> AsyncLimiter | None:
    """Create a limiter whose bucket holds one second's worth, so that a minute's allowance is not spent at once."""
    if rate is None:
        return None
    burst = max(1.0, rate / MINUTE)
    return AsyncLimiter(burst, MINUTE * burst / rate)
