"""Several servers with the same model, as one provider: by weight, a dialogue on one server, around those that fail.

The first request of a dialogue names the server by weighted rendezvous hashing, so that its later requests find their
beginning in that server's prefix cache. A server that has more than its share of what is in flight, or that failed
just now, is left out (consistent hashing with bounded loads; Mirrokni, Thorup, Zadimoghaddam: arXiv 1608.01350).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil, log
from time import monotonic

from trajsmith.models.failures import OUTAGE, FailedAttempt
from trajsmith.models.model import ChatReply, ChatRequest
from trajsmith.models.provider import Provider
from trajsmith.models.settings import ModelSettings
from trajsmith.records import InputError

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
    """One after another."""
    rests_until: float = 0.0

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
        self._replicas = [
            _Replica(server.base_url, server.weight, open_one(entry, settings.of_server(server)))
            for server in settings.list_servers()
        ]

    async def send(self, request: ChatRequest) -> ChatReply:
        """Ask the server of this dialogue, then the others for as long as servers fail.

        Raises:
            FailedAttempt: No server gave a usable answer; it is the failure of the last one.
            InputError: No request can be answered as things are set.
        """
        failed: FailedAttempt | None = None
        for replica in self._order(request):
            if failed is not None and replica.rests_until > monotonic():
                break  # the rest failed just now, too: wait before the next attempt
            try:
                return await self._ask(replica, request)
            except FailedAttempt as failure:
                if failure.kind not in OUTAGE:
                    raise
                failed = failure
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

    async def _ask(self, replica: _Replica, request: ChatRequest) -> ChatReply:
        replica.in_flight += 1
        try:
            reply = await replica.provider.send(request)
        except FailedAttempt as failure:
            if failure.kind in OUTAGE:
                self._let_rest(replica, failure.after or 0.0, f"{failure.kind}: {failure.message}")
            raise
        except asyncio.CancelledError:  # most often it took too long
            self._let_rest(replica, 0.0, "no answer in time")
            raise
        finally:
            replica.in_flight -= 1
        replica.failures = 0
        replica.rests_until = 0.0
        return reply

    def _let_rest(self, replica: _Replica, asked: float, reason: str) -> None:
        """Leave a server out for a span that doubles with each failure in a row."""
        span = max(asked, min(self._settings.first_wait * 2.0**replica.failures, self._settings.longest_wait))
        replica.failures += 1
        replica.rests_until = monotonic() + span
        _log.info("models.%s: %s is left out for %.1f s (%s)", self._entry, replica.address, span, reason)

    async def check(self) -> bool:
        """Check every server; those that cannot be used are a warning as long as one can.

        Raises:
            InputError: None can be used.
        """
        checks = [replica.provider.check() for replica in self._replicas]
        results = await asyncio.gather(*checks, return_exceptions=True)
        wrong = [result for result in results if isinstance(result, BaseException)]
        for result in wrong:
            if not isinstance(result, InputError) or len(wrong) == len(results):
                raise result
            _log.warning("%s; the other servers of models.%s are used", result, self._entry)
        return all(result is True for result in results if isinstance(result, bool))

    async def close(self) -> None:
        await asyncio.gather(*(replica.provider.close() for replica in self._replicas))
