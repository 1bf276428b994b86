"""Rows as training units: whole, turns or steps with their history, and what of them stays context."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

from trajsmith.export.formats.per_step import WINDOW
from trajsmith.export.history import cut_row, find_assistant_messages, find_unlearnt_messages, split_rounds
from trajsmith.export.loss_mask import read_tools
from trajsmith.records import JsonObject, RecordDropped, ToolStyle, render_tools
from trajsmith.train_sft.settings import HistorySettings
from trajsmith.train_sft.shared_prefix import list_called_tools


@dataclass(frozen=True)
class TrainingUnit:
    """One row as it is trained on."""

    row: JsonObject
    unlearnt: tuple[int, ...] = ()
    """Positions of the assistant's messages that stay context."""
    teaches: bool = True
    """False where all of the assistant's messages stay context."""


def split_masked_units(
    rows: Iterable[JsonObject], history: HistorySettings, tools: ToolStyle = "full", mask_steps: bool = False
) -> Iterator[TrainingUnit | RecordDropped]:
    """Split rows into training units, with the messages that stay context.

    Those are what a repaired play keeps of the failed one, and with `mask_steps` messages with needless or harmful
    calls. A unit that has no other message of the assistant says so. A row that needs labels and has none gives the
    reason why it is refused.
    """
    for row in rows:
        try:
            unlearnt = find_unlearnt_messages(row, mask_steps)
        except RecordDropped as dropped:
            yield dropped
            continue
        learnt = set(find_assistant_messages(row["messages"])) - set(unlearnt)
        for unit, (start, stop) in zip(
            split_training_units([row], history, tools), list_spans(row, history), strict=True
        ):
            moved = start - len(unit.get("prompt", ()))
            masked = tuple(index - moved for index in unlearnt if start <= index < stop)
            yield TrainingUnit(unit, masked, teaches=not learnt.isdisjoint(range(start, stop)))


def list_spans(row: JsonObject, history: HistorySettings) -> list[tuple[int, int]]:
    """List start and stop of the messages that each training unit of a row teaches."""
    if history.unit == "whole":
        return [(0, len(row["messages"]))]
    if history.unit == "per_step":
        return [(start, start + 1) for start in find_assistant_messages(row["messages"])]
    return split_rounds(row["messages"])


def split_training_units(
    rows: Iterable[JsonObject], history: HistorySettings, tools: ToolStyle = "full"
) -> Iterator[JsonObject]:
    """Split rows into training units: whole, turns, or steps with their history, and render their tools."""
    window = history.window or (WINDOW if history.unit == "per_step" else None)
    for row in rows:
        row = {**row, "tools": render_tools(read_tools(row["tools"], str(row.get("id", ""))), tools)}
        if history.unit == "whole":
            yield {"messages": row["messages"], "tools": row["tools"]}
            continue
        spans = list_spans(row, history)
        for number, span in enumerate(spans, 1):
            cut = cut_row(
                {"id": "", "task_id": "", "environment": "", "variant": "", "language": "", **row},
                number,
                len(spans),
                span,
                window,
            )
            yield {"prompt": cut["prompt"], "completion": cut["completion"], "tools": cut["tools"]}


def leave_out_longer_rows(
    rows: Iterable[JsonObject], tools: ToolStyle, tokenizer: Any, max_length: int, shown: int
) -> list[JsonObject]:
    """Leave out the rows of which the conversation has more tokens than fit, with those tools that it will show.

    These are the ones that it calls, and others up to a number; which ones is not known yet. What the template refuses
    is kept, for whoever counts it.
    """
    fitting = []
    for row in rows:
        called = list_called_tools(row)
        (unit,) = split_training_units([row], HistorySettings(), tools)
        first = sorted(unit["tools"], key=lambda tool: tool["function"]["name"] not in called)
        listed = first[: max(shown, len(called))] if row.get("variant") == "base" else unit["tools"]
        try:
            text = tokenizer.apply_chat_template(unit["messages"], tools=listed or None, tokenize=False)
        except (TemplateError, TypeError, ValueError, KeyError):
            fitting.append(row)
            continue
        if len(tokenizer(text, add_special_tokens=False)["input_ids"]) <= max_length:
            fitting.append(row)
    return fitting
