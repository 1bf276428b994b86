"""Near-duplicates of earlier requests, by MinHash; the same answer whatever the timing was.

Tasks are written side by side, so "earlier" must not mean "finished sooner". Every writer takes a ticket before it
starts anything, in the order of the inputs, and compares only when all tickets before its own are given back.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from trajsmith.phrasing.near_duplicates import NearDuplicateIndex, hash_shingles


class EarlierRequests:
    """Earlier requests of a run.

    Args:
        threshold: Jaccard similarity of the shingles from which two requests count as the same.
        texts: Id and text of what an earlier part of the run has written.
    """

    def __init__(self, threshold: float, texts: Iterable[tuple[str, str]] = ()) -> None:
        self._index = NearDuplicateIndex(threshold)
        self._tickets = 0
        self._open: set[int] = set()
        self._moved = asyncio.Condition()
        for name, text in texts:
            self.add(name, text)

    @asynccontextmanager
    async def ticket(self) -> AsyncIterator[int]:
        """A place in the order; take it before the first `await` of the work."""
        number = self._tickets
        self._tickets += 1
        self._open.add(number)
        try:
            yield number
        finally:
            self._open.discard(number)
            async with self._moved:
                self._moved.notify_all()

    async def turn(self, number: int) -> None:
        """Wait until all earlier tickets are written or dropped. Hold no resource that others wait for."""
        async with self._moved:
            await self._moved.wait_for(lambda: not self._open or min(self._open) >= number)

    def find(self, text: str) -> str | None:
        """Return the id of an earlier request that says the same, or None; ask only in `turn`."""
        return self._index.find(hash_shingles(text))

    def add(self, name: str, text: str) -> None:
        """Remember a request."""
        self._index.add(name, hash_shingles(text))
