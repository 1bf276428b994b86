"""CPU time that may be spent on the schemas and patterns of others, counted where it is spent."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trajsmith.records import InputError

LIST_SECONDS = 5.0
"""CPU time for the schemas of one list of tools, most of which is that of their patterns. Thousands that people wrote
take a tenth of it; an expression of ten characters, such as a range of letters of either case, can take milliseconds.
"""


@dataclass
class TimeLimit:
    """CPU seconds that are left."""

    left: float
    exhausted: Exception
    """What is raised when none is left."""


class _Clock(threading.local):
    """Limits and count of one thread."""

    limits: tuple[TimeLimit, ...] = ()
    """Limits that hold now, the narrowest first."""
    counted: float | None = None
    """CPU time up to which time is counted; None where it is not."""


_clock = _Clock()


@contextmanager
def limit_check_time(where: str) -> Iterator[None]:
    """Give all schemas and patterns of a list of tools together `LIST_SECONDS` of CPU time.

    Args:
        where: Whose they are, for the error's text.

    Raises:
        InputError: They take longer.
    """
    error = InputError(f"{where}: its schemas and their patterns take more than {LIST_SECONDS:g} s to read")
    with add_time_limit(TimeLimit(LIST_SECONDS, error)):
        yield


@contextmanager
def add_time_limit(limit: TimeLimit) -> Iterator[None]:
    """Let a limit hold for what happens inside, beside those that hold already."""
    before = _clock.limits
    _clock.limits = (limit, *before)
    try:
        yield
    finally:
        _clock.limits = before


@contextmanager
def count_check_time() -> Iterator[None]:
    """Take the CPU time of what happens inside from the limits that hold."""
    outermost = _clock.counted is None
    if outermost:
        _clock.counted = time.thread_time()
    try:
        yield
    finally:
        try:
            charge_check_time()
        finally:
            if outermost:
                _clock.counted = None


def charge_check_time() -> None:
    """Take the CPU time since the last look at the clock from the limits that hold; nothing where none is counted."""
    if _clock.counted is None:
        return
    now = time.thread_time()
    spent = now - _clock.counted
    _clock.counted = now
    for limit in _clock.limits:
        limit.left -= spent
        if limit.left < 0:
            raise limit.exhausted
