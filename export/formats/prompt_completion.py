"""TRL's prompt-completion form: the prompt ends where the assistant first speaks."""

from collections.abc import Iterator

from export.formats._base import Format, FormatSettings, Item
from export.history import PROMPT_COMPLETION, assistants, meta
from trajectory import JsonObject


def rows(item: Item, settings: FormatSettings) -> Iterator[JsonObject]:
    row = item.row
    first = assistants(row["messages"])[0]
    prompt, completion = row["messages"][:first], row["messages"][first:]
    yield {**meta(row, row["id"]), "prompt": prompt, "completion": completion, "tools": row["tools"]}


FORMAT = Format(
    "prompt_completion",
    "TRL prompt and completion: train with assistant_only_loss, or tool results are learnt too",
    rows,
    PROMPT_COMPLETION,
)
