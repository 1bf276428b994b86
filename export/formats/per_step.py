"""One row per assistant message, with the history that an agent with a sliding window would see (AWM, Appendix A)."""

from collections.abc import Iterator

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import CUT, cut_row, find_assistant_messages
from trajsmith.records import JsonObject

WINDOW = 3
"""AWM's w."""


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    learnt_from = item.row["learnt_from"]
    steps = [index for index in find_assistant_messages(item.row["messages"]) if index >= learnt_from]
    for number, start in enumerate(steps, 1):
        yield cut_row(item.row, number, len(steps), (start, start + 1), settings.window or WINDOW)


FORMATS.register("per_step")(
    Format(f"one row per assistant message, history window {WINDOW} (AWM) unless --window", rows, CUT)
)
