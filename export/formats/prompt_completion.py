"""TRL's prompt-completion form: the prompt ends where the assistant first speaks."""

from collections.abc import Iterator

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import PROMPT_COMPLETION, build_row_metadata, find_assistant_messages
from trajsmith.records import JsonObject


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    row = item.row
    first = row["learnt_from"] or find_assistant_messages(row["messages"])[0]
    prompt, completion = row["messages"][:first], row["messages"][first:]
    yield {**build_row_metadata(row, row["id"]), "prompt": prompt, "completion": completion, "tools": row["tools"]}


FORMATS.register("prompt_completion")(
    Format(
        "TRL prompt and completion: train with assistant_only_loss, or tool results are learnt too",
        rows,
        PROMPT_COMPLETION,
    )
)
