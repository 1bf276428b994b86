"""The main dataset with its JSON as text, for readers whose `datasets` is older than 4.7 and knows no JSON columns."""

from collections.abc import Iterator

import orjson

from trajsmith.export.dataset import COLUMNS
from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.records import JsonObject

TEXT = frozenset(name for name, kind in COLUMNS.items() if kind in ("json", "list of json"))
"""Columns that are text here."""


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    yield {name: orjson.dumps(value).decode() if name in TEXT else value for name, value in item.row.items()}


FORMATS.register("json_text")(
    Format(
        "the main dataset with messages, tools and verdict as JSON text: for datasets before 4.7; repaired plays are "
        "to be learnt from learnt_from on",
        rows,
        {name: "string" if name in TEXT else kind for name, kind in COLUMNS.items()},
    )
)
