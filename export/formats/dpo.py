"""TRL's preference form: a prompt, and the accepted and the rejected message in it."""

from collections.abc import Iterator

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import META, build_row_metadata
from trajsmith.export.preference_pairs import build_pair
from trajsmith.records import JsonObject

PAIR = {"rejected_id": "string", "kind": "string", "difference": "string", "turn": "int64", "consequence": "json"}


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    pair, rejected = build_pair(item), item.rejected
    if rejected is None:
        return
    yield {
        **build_row_metadata(item.row, f"{rejected[0].id}-pair"),
        "prompt": pair.prompt,
        "chosen": [pair.chosen],
        "rejected": [pair.rejected],
        "tools": item.row["tools"],
        "rejected_id": rejected[0].id,
        "kind": pair.kind,
        "difference": pair.difference,
        "turn": pair.turn,
        "consequence": pair.consequence,
    }


MESSAGES = dict.fromkeys(("prompt", "chosen", "rejected", "tools"), "list of json")
FORMATS.register("dpo")(
    Format(
        "TRL preference pairs for DPOTrainer: an accepted and a rejected message in the same situation",
        rows,
        META | MESSAGES | PAIR,
        compares=True,
    )
)
