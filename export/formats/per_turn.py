"""One row per user turn: the history is context, only the last round is learnt.

EnvScaler (Appendix, SFT) trains so, since Qwen3's template takes the reasoning out of earlier rounds: a sample of n
rounds becomes n samples of 1 to n rounds, and only the last round of each is supervised.
"""

from collections.abc import Iterator

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import CUT, cut_row, split_rounds
from trajsmith.records import JsonObject


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    spans = split_rounds(item.row["messages"], item.row["learnt_from"])
    for number, span in enumerate(spans, 1):
        yield cut_row(item.row, number, len(spans), span, settings.window)


FORMATS.register("per_turn")(
    Format(
        "one row per user turn, only the last round is learnt (EnvScaler); whole history unless --window",
        rows,
        CUT,
    )
)
