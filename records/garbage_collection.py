"""Settings of the garbage collector for processes that hold many records and make many more."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG, MIDDLE, OLD = 20_000, 20, 50
"""Allocations before a collection, and younger collections before an older one. Python's own (700, 10, 10) look through
everything so often that a third of the CPU of a request to a model goes into it; what is found is next to nothing."""
STREAMED = 100_000
"""Allocations before a collection while records stream by: they are trees, and to look among a thousand new objects a
row costs as much as to parse them."""


def reduce_gc_frequency() -> None:
    """Look for unreachable cycles less often; for the program, not for those who use it as a library."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)


def skip_last_collection() -> None:
    """Look for no unreachable cycles when the program ends: the system takes all memory back at once.

    A run of one chain ended with 0.3 s of CPU for that. What is to be closed or deleted at exit still is.
    """
    gc.freeze()


@contextmanager
def raise_gc_threshold() -> Iterator[None]:
    """Look for unreachable cycles less often while records stream by."""
    before = gc.get_threshold()
    gc.set_threshold(STREAMED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
