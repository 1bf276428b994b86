"""Progress in logs: times that people read, and none that is guessed from one input."""

import io

import pytest
from rich.console import Console

from trajsmith.pipeline import progress
from trajsmith.pipeline.progress import PlainProgress, format_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(4.4, "4 s"), (120, "120 s"), (121, "2 min"), (840, "14 min"), (3599, "1 h 0 min"), (4764, "1 h 19 min")],
)
def test_long_times_are_said_in_minutes_and_hours(seconds, text):
    assert format_duration(seconds) == text


def test_the_time_that_is_left_is_said_after_a_few_inputs(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    screen = io.StringIO()
    with PlainProgress(Console(file=screen)).stage("play dialogues", 400, 100, 0) as bar:
        for clock[0] in (12.0, 24.0, 36.0, 48.0, 60.0):
            bar.advance()
    lines = [line for line in screen.getvalue().splitlines() if "started" not in line and "resumed" not in line]
    assert lines[0] == "play dialogues: 101/400, 0.1/s"
    assert [("left" in line) for line in lines[:5]] == [False] * 4 + [True]
    assert lines[4] == "play dialogues: 105/400, 0.1/s, 59 min left"
