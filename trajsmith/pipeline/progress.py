"""What a run shows while it works: one bar per stage on a terminal, a few plain lines elsewhere, or nothing.

Progress goes to standard error, so that standard output stays free for data.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichBars
from rich.text import Text

EVERY_SECONDS = 10.0
FEW = 5
"""Inputs after which a stage says how long the others will take."""
MOST_SECONDS = 120
"""Longest time that is said in seconds."""


def format_duration(seconds: float) -> str:
    """Return a time for people: "95 s", "14 min", "1 h 19 min"."""
    if seconds <= MOST_SECONDS:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class StageBar(Protocol):
    """Progress of one stage."""

    def advance(self, dropped: int = 0, count: int = 1) -> None:
        """Tell that `count` more inputs are committed, `dropped` of them dropped."""


class RunProgress(Protocol):
    """Interface through which stages report progress."""

    def stage(self, title: str, total: int | None, done: int, dropped: int) -> AbstractContextManager[StageBar]:
        """Show a stage while the context lasts; `done` inputs of `total` (None: unknown) are committed already."""


class NullProgress:
    """Shows nothing."""

    @contextmanager
    def stage(self, title: str, total: int | None, done: int, dropped: int) -> Iterator[StageBar]:
        yield self

    def advance(self, dropped: int = 0, count: int = 1) -> None:
        pass


class PlainProgress:
    """One line when a stage starts, ends, and every ten seconds between: for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def stage(self, title: str, total: int | None, done: int, dropped: int) -> Iterator[StageBar]:
        bar = _PlainBar(self._console, title, total, done, dropped)
        bar.tell("resumed" if done else "started")
        outcome = "stopped"
        try:
            yield bar
            outcome = "done"
        finally:
            bar.tell(outcome)


class _PlainBar:
    def __init__(self, console: Console, title: str, total: int | None, done: int, dropped: int) -> None:
        self._console = console
        self._title = title
        self._total = total
        self._done = self._before = done
        self._dropped = dropped
        self._start = self._told = time.monotonic()

    def advance(self, dropped: int = 0, count: int = 1) -> None:
        self._done += count
        self._dropped += dropped
        if time.monotonic() - self._told >= EVERY_SECONDS:
            self.tell("")

    def tell(self, text: str) -> None:
        self._told = time.monotonic()
        elapsed = self._told - self._start
        rate = (self._done - self._before) / elapsed if elapsed > 0 else 0.0
        parts = [f"{self._done}/{self._total}" if self._total is not None else str(self._done)]
        if self._dropped:
            parts.append(f"{self._dropped} dropped")
        if rate:
            parts.append(f"{rate:.1f}/s")
        if rate and not text and self._total is not None and self._done - self._before >= FEW:
            parts.append(f"{format_duration((self._total - self._done) / rate)} left")
        line = f"{self._title}: {text + ', ' if text else ''}{', '.join(parts)}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class RichProgress:
    """A live bar per stage. Use it inside `open_progress`, which starts and stops the display."""

    def __init__(self, bars: RichBars) -> None:
        self._bars = bars

    @contextmanager
    def stage(self, title: str, total: int | None, done: int, dropped: int) -> Iterator[StageBar]:
        task = self._bars.add_task(escape(title), total=total, completed=done, dropped=dropped)
        try:
            yield _RichBar(self._bars, task, dropped)
        finally:
            self._bars.stop_task(task)


class _RichBar:
    def __init__(self, bars: RichBars, task: TaskID, dropped: int) -> None:
        self._bars = bars
        self._task = task
        self._dropped = dropped

    def advance(self, dropped: int = 0, count: int = 1) -> None:
        self._dropped += dropped
        self._bars.update(self._task, advance=count, dropped=self._dropped)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "", style="progress.data.speed")


class _Dropped(ProgressColumn):
    def render(self, task: Task) -> Text:
        dropped = task.fields["dropped"]
        return Text(f"{dropped} dropped" if dropped else "", style="yellow")


@contextmanager
def open_progress(console: Console | None = None) -> Iterator[RunProgress]:
    """Bars if standard error is a terminal, plain lines if not."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield PlainProgress(console)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Dropped(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with RichBars(*columns, console=console) as bars:
        yield RichProgress(bars)
