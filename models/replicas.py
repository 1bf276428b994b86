"""Several servers with the same model, as one provider: by weight, a dialogue on one server, around those that fail.

The first request of a dialogue names the server by weighted rendezvous hashing, so that its later requests find their
beginning in that server's prefix cache. A server that has more than its share of what is in flight, or that failed
just now, is left out (consistent hashing with bounded loads; Mirrokni, Thorup, Zadimoghaddam: arXiv 1608.01350).
A request that waits long may go to a second server (hedged requests; Dean, Barroso: The Tail at Scale, 2013).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil, log
from time import monotonic

from trajsmith.models.failures import OUTAGE, FailedAttempt
from trajsmith.models.model import ChatReply, ChatRequest
from trajsmith.models.provider import Provider
from trajsmith.models.settings import ModelSettings
from trajsmith.records import InputError, ModelFaultKind

_log = logging.getLogger(__name__)

LOAD_FACTOR = 1.25
"""A server may have this many times its share of the requests in flight."""
DIALOGUE_MESSAGES = 2
"""Messages at the beginning that tell dialogues apart: the system prompt and the first request."""


@dataclass
class _Replica:
    """One of the servers."""

    address: str
    weight: float
    provider: Provider
    in_flight: int = 0
    failures: int = 0
    """Rounds of requests that failed, one after another."""
    failed: float = 0.0
    """Time of the last failure that counted."""
    rests_until: float = 0.0
    asked_until: float = 0.0
    """Until when the server itself asked to be left alone."""

    def rank(self, dialogue: bytes) -> float:
        """Return the score of this server for a dialogue; the highest one is asked first."""
        digest = blake2b(dialogue + self.address.encode(), digest_size=8).digest()
        return -self.weight / log((int.from_bytes(digest) + 1) / (2**64 + 1))


class ReplicatedProvider:
    """Provider of one model on several servers.

    Args:
        entry: Name among `models`.
        settings: Settings with `replicas`.
        open_one: Opens the provider of one server.
    """

    def __init__(self, entry: str, settings: ModelSettings, open_one: Callable[[str, ModelSettings], Provider]) -> None:
        self._entry = entry
        self._settings = settings
        self.note_failure: Callable[[float, ModelFaultKind], None] = lambda sent, kind: None
        """Is told of each failure that another server may make up for: when the request was sent, and of which kind."""
        self._replicas = [
            _Replica(server.base_url, server.weight, open_one(entry, settings.of_server(server)))
            for server in settings.list_servers()
        ]

    async def send(self, request: ChatRequest) -> ChatReply:
        """Ask the server of this dialogue, then the others for as long as servers fail, each in its own time.

        Raises:
            FailedAttempt: No server gave a usable answer; it is the failure of the last one.
            InputError: No request can be answered as things are set.
        """
        failed: FailedAttempt | InputError | None = None
        waiting = deque(self._order(request))
        while waiting:
            replica = waiting.popleft()
            left = replica.rests_until - monotonic()
            if left > 0 and failed is not None:
                break  # the rest failed just now, too: wait before the next attempt
            if replica.asked_until > monotonic():  # the one that rests shortest, and it said how long
                raise FailedAttempt("rate_limit", "all servers ask to wait", retryable=True, after=left)
            try:
                return await self._ask_hedged(replica, waiting, request)
            except FailedAttempt as failure:
                if failure.kind not in OUTAGE:
                    raise
                failed = failure
            except InputError as error:  # a key or a name that this server does not know
                failed = failed or error
        if failed is None:
            raise ValueError("a model has at least one server")
        raise failed

    def _order(self, request: ChatRequest) -> Sequence[_Replica]:
        """Order the servers: those that can take more, those with more than their share, and those that rest last."""
        dialogue = b"".join(
            message.model_dump_json(include={"role", "content"}).encode()
            for message in request.messages[:DIALOGUE_MESSAGES]
        )
        now = monotonic()
        total = sum(replica.in_flight for replica in self._replicas) + 1
        awake = sum(replica.weight for replica in self._replicas if replica.rests_until <= now)

        def place(replica: _Replica) -> tuple[float, bool, float]:
            if replica.rests_until > now:
                return replica.rests_until, True, 0.0
            full = replica.in_flight >= ceil(LOAD_FACTOR * total * replica.weight / awake)
            return 0.0, full, -replica.rank(dialogue)

        return sorted(self._replicas, key=place)

    async def _ask_hedged(self, replica: _Replica, others: deque[_Replica], request: ChatRequest) -> ChatReply:
        """Ask a server, and the next one as well if there is no answer after a while; the first usable answer counts.

        Args:
            replica: The server to ask.
            others: Further servers in their order; one that is asked, too, is taken out.
            request: The request.

        Raises:
            FailedAttempt: None of the two gave a usable answer; it is the failure of the last one.
            InputError: No request can be answered there as things are set.
        """
        seconds = self._settings.hedge_after
        if seconds is None:
            return await self._ask(replica, request)
        tasks = [asyncio.create_task(self._ask(replica, request))]
        try:
            await asyncio.wait(tasks, timeout=seconds)
            if not tasks[0].done() and others and others[0].rests_until <= monotonic():
                second = others.popleft()
                _log.debug("models.%s: %s is asked, too, after %.3g s", self._entry, second.address, seconds)
                tasks.append(asyncio.create_task(self._ask(second, request)))
            for earliest in asyncio.as_completed(tasks[:]):
                try:
                    return await earliest
                except (FailedAttempt, InputError) as error:
                    failed = error
            raise failed
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, replica: _Replica, request: ChatRequest) -> ChatReply:
        sent, seconds = monotonic(), self._settings.timeout
        replica.in_flight += 1
        try:
            async with asyncio.timeout(seconds):
                reply = await replica.provider.send(request)
        except TimeoutError:
            failure = FailedAttempt("timeout", f"no answer within {seconds:.3g} s", retryable=True)
            self._let_rest(replica, sent, failure)
            raise failure from None
        except FailedAttempt as failure:
            if failure.kind in OUTAGE:
                self._let_rest(replica, sent, failure)
            raise
        except InputError as error:
            self._leave_out(replica, error)
            raise
        finally:
            replica.in_flight -= 1
        if sent >= replica.failed:
            replica.failures, replica.rests_until, replica.asked_until = 0, 0.0, 0.0
        return reply

    def _let_rest(self, replica: _Replica, sent: float, failure: FailedAttempt) -> None:
        """Leave a server out for a span that doubles with each round of failures, or for as long as it asks."""
        now = monotonic()
        self.note_failure(sent, failure.kind)
        if failure.after:
            replica.asked_until = max(replica.asked_until, now + failure.after)
        if sent >= replica.failed:
            span = min(self._settings.first_wait * 2.0 ** min(replica.failures, 30), self._settings.longest_wait)
            replica.failures, replica.failed = replica.failures + 1, now
            replica.rests_until = now + span
            reason = f"{failure.kind}: {failure.message}"
            _log.info("models.%s: %s is left out for %.1f s (%s)", self._entry, replica.address, span, reason)
        replica.rests_until = max(replica.rests_until, replica.asked_until)

    def _leave_out(self, replica: _Replica, error: InputError) -> None:
        """Leave out a server that cannot be used as things are set, until long waits are over."""
        _log.warning("%s; the other servers of models.%s are used", error, self._entry)
        replica.rests_until = monotonic() + self._settings.deadline

    async def check(self) -> bool:
        """Check every server; those that cannot be used are left out as long as one can.

        Raises:
            InputError: None can be used.
        """
        checks = [replica.provider.check() for replica in self._replicas]
        results = await asyncio.gather(*checks, return_exceptions=True)
        wrong = [result for result in results if isinstance(result, BaseException)]
        for replica, result in zip(self._replicas, results, strict=True):
            if isinstance(result, InputError) and len(wrong) < len(results):
                self._leave_out(replica, result)
            elif isinstance(result, BaseException):
                raise result
        return all(result is True for result in results if isinstance(result, bool))

    async def close(self) -> None:
        await asyncio.gather(*(replica.provider.close() for replica in self._replicas))
