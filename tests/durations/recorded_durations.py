"""How long tests took when durations.txt was written: long ones can be left out, and long files begin.

A line of the file is seconds and what took them: a test function (the longest of its cases), or a whole file for a
fixture that its tests share. What is not in the file is short or new. `make durations` writes it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

FILE = Path(__file__).with_name("durations.txt")
SHORTEST = 0.1
"""Seconds from which something is recorded."""


class RecordedDurations:
    """Seconds by function and by file.

    Args:
        lines: Lines of durations.txt.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        pairs = (line.split(maxsplit=1) for line in lines)
        self._seconds = {name.strip(): float(seconds) for seconds, name in pairs}

    @classmethod
    def read(cls) -> "RecordedDurations":
        """Return what durations.txt says."""
        return cls(FILE.read_text().splitlines())

    def get_longest(self, node: str) -> float:
        """Return the seconds of a test, with the shared fixtures of its file."""
        file, _, _ = node.partition("::")
        return max(self._seconds.get(file, 0.0), self._seconds.get(strip_case(node), 0.0))

    def sum_file(self, file: str) -> float:
        """Return the seconds of all that is recorded of a file."""
        return sum(seconds for name, seconds in self._seconds.items() if name.partition("::")[0] == file)


class DurationRecorder:
    """A plug-in of pytest that writes durations.txt after a run."""

    def __init__(self, file: Path = FILE) -> None:
        self._file = file
        self._phases: dict[str, dict[str, float]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report) -> None:
        self._phases[report.nodeid][report.when] = report.duration

    def pytest_sessionfinish(self) -> None:
        self._file.write_text("".join(f"{seconds:.1f} {name}\n" for name, seconds in summarize(self._phases)))


def strip_case(node: str) -> str:
    """Return the name of a test without its parameters."""
    return node.partition("[")[0]


def summarize(phases: dict[str, dict[str, float]]) -> Iterator[tuple[str, float]]:
    """Yield (name, seconds) of functions and files that take long enough, by name.

    The setup of one test that is longer than that of the others in its file is a fixture that they share.
    """
    setups: dict[str, list[float]] = defaultdict(list)
    for node, seconds in phases.items():
        setups[node.partition("::")[0]].append(seconds.get("setup", 0.0))
    usual = {file: median(several) for file, several in setups.items()}
    longest = {file: sum(one - usual[file] for one in several if one > usual[file]) for file, several in setups.items()}
    for node, seconds in phases.items():
        own = sum(seconds.values()) - max(seconds.get("setup", 0.0) - usual[node.partition("::")[0]], 0.0)
        longest[strip_case(node)] = max(longest.get(strip_case(node), 0.0), own)
    yield from sorted((name, seconds) for name, seconds in longest.items() if seconds >= SHORTEST)
