"""The garbage collector, set for a process that holds many records and makes many more."""

import gc

YOUNG, MIDDLE, OLD = 20_000, 20, 50
"""Allocations before a collection, and younger collections before an older one. Python's own (700, 10, 10) look through
everything so often that a third of the CPU of a request to a model goes into it; what is found is next to nothing."""


def reduce_gc_frequency() -> None:
    """Look for unreachable cycles less often; for the program, not for those who use it as a library."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)
