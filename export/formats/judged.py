"""Rows of the main dataset with whether they were accepted, and why not: for rejected trajectories."""

from collections.abc import Iterator

from trajsmith.export.dataset import COLUMNS
from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.records import JsonObject


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    yield item.row | {"accepted": item.verdict.accepted, "reasons": list(item.verdict.reasons)}


FORMATS.register("judged")(
    Format(
        "TRL rows with `accepted` and `reasons`; the format of `trajsmith export --include rejected` and `all`",
        rows,
        COLUMNS | {"accepted": "bool", "reasons": "json"},
    )
)
