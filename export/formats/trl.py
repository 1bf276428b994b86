"""TRL's conversational form, whole conversations: the main dataset."""

from collections.abc import Iterator

from export.dataset import COLUMNS
from export.formats._base import Format, FormatSettings, Item
from trajectory import JsonObject


def rows(item: Item, settings: FormatSettings) -> Iterator[JsonObject]:
    yield item.row


FORMAT = Format(
    "trl", "TRL conversational: messages, tools and the verdict; SFTTrainer takes it as it is", rows, COLUMNS
)
