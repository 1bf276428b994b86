"""TRL's conversational form, whole conversations: the main dataset."""

from collections.abc import Iterator

from trajsmith.export.dataset import COLUMNS
from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.records import JsonObject


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    yield item.row


FORMATS.register("trl")(
    Format(
        "TRL conversational: messages, tools and the verdict; SFTTrainer takes it as it is, but not repaired plays: it "
        "learns what stands before learnt_from",
        rows,
        COLUMNS,
    )
)
