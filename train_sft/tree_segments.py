"""Segments of a sequence whose positions tell a tree of rows."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """Tokens of consecutive positions, and what stands before them in their row."""

    start: int
    stop: int
    before: tuple[tuple[int, int], ...]
    """Ranges of earlier tokens that they see, by rising position."""


def find_segments(positions: Sequence[int]) -> list[Segment]:
    """Return the segments of a sequence in the order of its tokens.

    Raises:
        ValueError: A position is skipped, so that a token would see nothing there.
    """
    segments: list[Segment] = []
    path: list[tuple[int, int]] = []
    start = 0
    for index in range(1, len(positions) + 1):
        if index < len(positions) and positions[index] == positions[index - 1] + 1:
            continue
        path = _cut_path(path, positions[start])
        segments.append(Segment(start, index, tuple(path)))
        path = [*path, (start, index)]
        start = index
    return segments


def _cut_path(path: Sequence[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return the first `length` tokens of a path of ranges."""
    cut: list[tuple[int, int]] = []
    for start, stop in path:
        taken = min(stop - start, length)
        if taken > 0:
            cut.append((start, start + taken))
            length -= taken
    if length:
        raise ValueError(f"positions skip {length} tokens")
    return cut
