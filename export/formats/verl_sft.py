"""verl's multi-turn SFT rows.

verl reads Parquet through pandas into one struct for all messages and all tools, which fills every schema and every
argument with the keys of all others, as nulls. So both columns are JSON text here, and `verl_dataset.py` beside the
data holds the dataset class (verl: `data.custom_cls.path`, `data.custom_cls.name`) that reads them.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

import orjson

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import META, build_row_metadata, refuse_context
from trajsmith.records import JsonObject

READER = Path(__file__).parents[1] / "templates" / "verl_dataset.py.txt"


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    row = item.row
    refuse_context(row)
    reasons = any("reasoning_content" in message for message in row["messages"])
    yield {
        **build_row_metadata(row, row["id"]),
        "messages": orjson.dumps(row["messages"]).decode(),
        "tools": orjson.dumps(row["tools"]).decode(),
        "enable_thinking": reasons,
    }


def files(splits: Collection[str]) -> dict[str, str]:
    return {"verl_dataset.py": READER.read_text("utf-8")}


FORMATS.register("verl_sft")(
    Format(
        "verl SFT Parquet, with the dataset class that keeps arguments and schemas free of nulls",
        rows,
        {**META, "messages": "string", "tools": "string", "enable_thinking": "bool"},
        files=files,
    )
)
