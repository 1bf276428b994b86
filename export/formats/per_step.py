"""One row per assistant message, with the history that an agent with a sliding window would see (AWM, Appendix A)."""

from collections.abc import Iterator

from export.formats._base import Format, FormatSettings, Item
from export.history import CUT, assistants, cut_row
from trajectory import JsonObject

WINDOW = 3
"""AWM's w."""


def rows(item: Item, settings: FormatSettings) -> Iterator[JsonObject]:
    steps = assistants(item.row["messages"])
    for number, start in enumerate(steps, 1):
        yield cut_row(item.row, number, len(steps), (start, start + 1), settings.window or WINDOW)


FORMAT = Format("per_step", f"one row per assistant message, history window {WINDOW} (AWM) unless --window", rows, CUT)
