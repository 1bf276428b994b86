"""Retries of failed requests: by kind of failure, with jittered waits, up to a deadline."""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import cast

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from trajsmith.models.failures import OUTAGE, FailedAttempt
from trajsmith.models.model import ChatReply, ChatRequest, Usage
from trajsmith.models.provider import Provider
from trajsmith.models.rate_limits import RateLimits
from trajsmith.models.replicas import ReplicatedProvider
from trajsmith.models.settings import ModelSettings
from trajsmith.records import RunError

_log = logging.getLogger(__name__)

BATCH_SECONDS = 26 * 3600.0
"""A batch ends within 24 hours; the rest is for sending and fetching."""
MAX_BATCH_CONCURRENCY = 100_000


@dataclass
class _RetryState:
    """State of one request: failed attempts and when the first was sent."""

    failed: list[FailedAttempt] = field(default_factory=list)
    first_sent: float | None = None
    outage_counted: bool = False
    """The first failure was handed to those who repeat."""


class RetryingProvider:
    """Provider wrapper that retries requests until they are answered or cannot succeed.

    A request ends after `attempts`, or when its next attempt could only begin after `deadline`. When requests one after
    another come to nothing for the server's sake, that is an outage: the run stops and loses nothing.

    Args:
        entry: Name among `models`.
        again: The command that goes on after an outage.
    """

    def __init__(self, entry: str, provider: Provider, settings: ModelSettings, again: str) -> None:
        self._entry = entry
        self._provider = provider
        self._settings = settings
        self._limits = RateLimits(settings)
        if isinstance(provider, ReplicatedProvider):
            provider.note_failure = self._limits.note_failure
        self._silent = 0
        self._again_by = again
        self._closing = False
        self._retrying = AsyncRetrying(
            retry=retry_if_exception(_is_retryable),
            stop=self._hopeless,
            wait=self._wait,
            before_sleep=self._log_retry,
            reraise=True,
        )

    async def send(self, request: ChatRequest, tokens: int, wasted: Callable[[Usage], None]) -> ChatReply:
        """The answer.

        Args:
            tokens: What the request is thought to cost, for the limit per minute.
            wasted: Told of every answer that could not be used, for it is paid all the same.

        Raises:
            ModelFault: No attempt gave a usable answer.
            InputError: Nothing can be answered as things are set.
            RunError: The server is out.
        """
        course = _RetryState()
        try:
            reply = await self._first(request, tokens, wasted, course)
        except FailedAttempt as failed:
            fault = failed.as_fault(self._settings.model, len(course.failed))
            _log.info("models.%s: request given up: %s", self._entry, fault)
            self._count_silence(failed, str(fault))
            raise fault from failed
        self._silent = 0
        return reply

    def stop_retrying(self) -> None:
        """Stop retrying because the run is ending; pending requests may still complete."""
        self._closing = True

    async def _first(
        self, request: ChatRequest, tokens: int, wasted: Callable[[Usage], None], course: _RetryState
    ) -> ChatReply:
        """The first attempt by itself: most requests need no other, and tenacity costs a tenth of a request."""
        try:
            return await self._attempt(request, tokens, wasted, course)
        except FailedAttempt:
            reply: ChatReply = await self._retrying(self._again, request, tokens, wasted, course)
            return reply

    async def _again(
        self, request: ChatRequest, tokens: int, wasted: Callable[[Usage], None], course: _RetryState
    ) -> ChatReply:
        """The failure of the first attempt, then further attempts."""
        if not course.outage_counted:
            course.outage_counted = True
            raise course.failed[0]
        return await self._attempt(request, tokens, wasted, course)

    async def _attempt(
        self, request: ChatRequest, tokens: int, wasted: Callable[[Usage], None], course: _RetryState
    ) -> ChatReply:
        async with self._limits.acquire(tokens):
            if course.first_sent is None:
                course.first_sent = monotonic()
            left = course.first_sent + self._settings.deadline - monotonic()
            if left <= 0 and not self._settings.is_in_process:  # it waited too long for its turn: not sent, so not paid
                raise FailedAttempt("timeout", f"no answer within {self._settings.deadline:.3g} s", retryable=False)
            sent = monotonic()
            try:
                seconds = self._choose_seconds(left)
                reply = await self._in_time(request, seconds)
            except FailedAttempt as failed:
                if not self._settings.replicas:  # several servers tell it themselves
                    self._limits.note_failure(sent, failed.kind)
                course.failed.append(failed)
                if failed.usage is not None:
                    wasted(failed.usage)
                raise
            self._limits.note_reply(sent, reply.usage.completion_tokens)
            return reply

    def _choose_seconds(self, left: float) -> float | None:
        """Return how long an attempt may take; several servers have `timeout` each, a model in process has no limit."""
        if self._settings.is_in_process:
            return None
        return left if self._settings.replicas else min(self._settings.timeout, left)

    async def _in_time(self, request: ChatRequest, seconds: float | None) -> ChatReply:
        """Make an attempt; `seconds` is None for a model in this process, which computes on if nobody waits for it."""
        try:
            async with asyncio.timeout(seconds):
                return await self._provider.send(request)
        except TimeoutError:
            raise FailedAttempt("timeout", f"no answer within {seconds:.3g} s", retryable=True) from None

    def _wait(self, state: RetryCallState) -> float:
        """Half of a growing span and a random part of the other half; longer if the server asks for it."""
        span = min(self._settings.first_wait * 2.0 ** (state.attempt_number - 1), self._settings.longest_wait)
        asked = _get_failure(state).after or 0.0
        return max(asked, span / 2) + random.uniform(0.0, span / 2)

    def _hopeless(self, state: RetryCallState) -> bool:
        course: _RetryState = state.args[-1]
        late = monotonic() + state.upcoming_sleep - (course.first_sent or monotonic()) >= self._settings.deadline
        return self._closing or late or state.attempt_number >= self._settings.attempts

    def _log_retry(self, state: RetryCallState) -> None:
        failed, number = _get_failure(state), f"{state.attempt_number} of {self._settings.attempts}"
        reason = f"{failed.kind}: {failed.message}"
        _log.info(
            "models.%s: attempt %s failed (%s), retry in %.1f s", self._entry, number, reason, state.upcoming_sleep
        )

    def _count_silence(self, failed: FailedAttempt, message: str) -> None:
        if failed.kind not in OUTAGE:
            self._silent = 0
            return
        self._silent += 1
        if self._silent >= self._settings.outage_after:
            raise RunError(
                f"models.{self._entry}: {self._silent} requests in a row without an answer, the last one: {message}; "
                f"when the server is back, continue with: {self._again_by}"
            )


def build_batch_settings(settings: ModelSettings) -> ModelSettings:
    """Return settings for batch requests: no rate limit, and a day's timeout for each attempt."""
    waits = {
        "timeout": BATCH_SECONDS,
        "deadline": settings.attempts * BATCH_SECONDS,
        "concurrency": MAX_BATCH_CONCURRENCY,
    }
    return settings.model_copy(update={**waits, "requests_per_minute": None, "tokens_per_minute": None})


def _is_retryable(error: BaseException) -> bool:
    return isinstance(error, FailedAttempt) and error.retryable


def _get_failure(state: RetryCallState) -> FailedAttempt:
    if state.outcome is None:
        raise ValueError("asked for a wait before there was an attempt")
    return cast(FailedAttempt, state.outcome.exception())
