"""`trajsmith export --preview`: every row of a dataset through the template of the model that will learn it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.text import Text

from trajsmith.export import Distribution, find_context_messages
from trajsmith.export.loss_mask import MaskedRow, MaskPreview, render_mask_page
from trajsmith.models.transformers_engine import open_tokenizer
from trajsmith.records import InputError, JsonObject, RecordDropped

LOSS, AVOIDED, CONTEXT = "black on green", "white on red", "bright_black"


@dataclass
class DatasetMaskPreview:
    """Statistics and examples of a dataset's loss mask."""

    shown: list[MaskedRow] = field(default_factory=list)
    tokens: Distribution = field(default_factory=Distribution)
    """Tokens per row."""
    trained: int = 0
    lost: int = 0
    """Tokens of the loss that are cut off."""
    cut: int = 0
    """Rows of which something in the loss is cut off."""
    empty_think_blocks: int = 0
    """Empty `<think></think>` blocks in the loss."""
    rows_with_empty_think: int = 0
    """Rows that have such blocks."""
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    """Reason to the first row that was refused for it, with the detail."""

    def facts(self) -> list[tuple[str, str]]:
        """Label and value, for people."""
        total, tokens = self.tokens.total, self.tokens
        share = 100 * self.trained / max(1, sum(value * count for value, count in tokens.counts.items()))
        facts = [
            ("rows that can be trained on", f"{total} of {total + sum(self.refused.values())}"),
            ("tokens per row", f"p50 {tokens.quantile(0.5)}, p99 {tokens.quantile(0.99)}, longest {tokens.largest}"),
            ("in the loss", f"{self.trained} tokens, {share:.1f} %"),
            ("template", f"prefix-preserving on all {total} rows"),
        ]
        if self.empty_think_blocks:
            count = f"{self.empty_think_blocks} in {self.rows_with_empty_think} rows"
            facts.append(("empty <think></think> in the loss", count))
        if self.cut:
            facts.append(("cut at max length", f"{self.cut} rows lose {self.lost} tokens of the loss"))
        return facts


def preview_rows(folder: Path, model: str, rows: int, max_length: int | None) -> DatasetMaskPreview:
    """Render all rows of a dataset; keep the first `rows` to show.

    Raises:
        InputError: There is no dataset, it is of another shape, or the model has no usable template.
    """
    preview, looked = MaskPreview(open_tokenizer(model), max_length), DatasetMaskPreview()
    for number, row in enumerate(read_rows(folder)):
        id = str(row.get("id", number))
        try:
            context = find_context_messages(row) if "messages" in row else ()
            masked = preview.inspect_row(row, id, context)
        except RecordDropped as dropped:
            looked.refused[dropped.reason] += 1
            looked.examples.setdefault(dropped.reason, f"{id}: {dropped.detail}")
            continue
        looked.tokens.add(masked.tokens)
        looked.trained += masked.trained
        looked.lost += masked.lost
        looked.empty_think_blocks += masked.empty_think_blocks
        looked.rows_with_empty_think += bool(masked.empty_think_blocks)
        looked.cut += bool(masked.lost)
        if len(looked.shown) < rows:
            looked.shown.append(masked)
    return looked


def read_rows(folder: Path) -> Iterator[JsonObject]:
    """Rows of all splits as a trainer gets them, one at a time.

    Raises:
        InputError: `datasets` finds nothing there that it can read.
    """
    from datasets import load_dataset
    from datasets.exceptions import DatasetNotFoundError

    if not folder.is_dir():
        raise InputError(f"no dataset at {folder}: run `trajsmith export` first, or name another --format")
    try:
        loaded = load_dataset(str(folder), streaming=True)
    except (DatasetNotFoundError, ValueError, OSError) as error:
        raise InputError(f"{folder} is no dataset ({str(error).splitlines()[0]})") from error
    for split in loaded.values():
        yield from split


def render_masked_row(masked: MaskedRow) -> Text:
    """The row for the terminal: what is learnt on green, context in grey."""
    text = Text()
    for piece in masked.pieces:
        text.append(piece.text, LOSS if piece.loss else CONTEXT)
    return text


def render_compared_rows(chosen: MaskedRow, rejected: MaskedRow) -> Text:
    """Render a pair for the terminal: the context in grey, the preferred message on green, the other one on red."""
    text = render_masked_row(chosen)
    for piece in rejected.pieces:
        if piece.loss:
            text.append("\n")
            text.append(piece.text, AVOIDED)
    return text


def write_page(looked: DatasetMaskPreview, model: str, path: Path) -> None:
    """The same as HTML.

    Raises:
        InputError: The file cannot be written.
    """
    facts = [*looked.facts(), *((f"refused: {reason}", str(count)) for reason, count in looked.refused.items())]
    try:
        path.write_text(render_mask_page(model, facts, looked.shown), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
