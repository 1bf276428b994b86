"""TRL's unpaired preference form: a prompt, a message in it, and whether it was right."""

from collections.abc import Iterator

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import PROMPT_COMPLETION, build_row_metadata
from trajsmith.export.preference_pairs import build_pair
from trajsmith.records import JsonObject


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    pair, rejected = build_pair(item), item.rejected
    if rejected is None:
        return
    for label, message in ((True, pair.chosen), (False, pair.rejected)):
        side = "chosen" if label else "rejected"
        yield {
            **build_row_metadata(item.row, f"{rejected[0].id}-{side}"),
            "trajectory_id": item.trajectory.id if label else rejected[0].id,
            "prompt": pair.prompt,
            "completion": [message],
            "tools": item.row["tools"],
            "label": label,
            "kind": "" if label else pair.kind,
            "consequence": pair.consequence[side],
        }


FORMATS.register("kto")(
    Format(
        "TRL unpaired preferences for KTOTrainer: messages with `label`, right and wrong in the same situation",
        rows,
        PROMPT_COMPLETION | {"label": "bool", "kind": "string", "consequence": "json"},
        compares=True,
    )
)
