"""Rows that begin alike in one sequence: what they share is computed once, with the same loss and gradient.

Most of a row is the system prompt and the schemas of tools, which carry no loss and are the same in many rows. The rows
of a device batch become one sequence: the shared beginning, then the rest of each row, with positions that go on where
the beginning ends. `tree_attention` lets every token see its own row only.
"""

import os
import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.models.prefix_cache import MIN_SHARED, count_shared_tokens
from trajsmith.records import InputError, JsonObject, derive_seed

IGNORED = -100
"""Label of a token that is not in the loss."""
GRAIN = 64
"""Tokens to a multiple of which a sequence is filled up. Libraries of processors compile products for every length, and
what they keep fills the heap with holes."""
CLASHING = (
    *("packing", "padding_free", "train_sampling_strategy", "dataset_kwargs", "remove_unused_columns"),
    "per_device_eval_batch_size",
)
"""Settings of the trainer that say how rows become batches, which `share_prefix` does."""


@dataclass(frozen=True)
class LabelledRow:
    """Tokens of one row and their labels, four bytes each."""

    ids: "array[int]"
    labels: "array[int]"

    @property
    def head(self) -> int:
        """Tokens that other rows can share: those before the last one that precedes the loss."""
        first = next((index for index, label in enumerate(self.labels) if label != IGNORED), len(self.labels))
        return max(0, first - 1)


@dataclass(frozen=True)
class TreeBatch:
    """Rows of one device batch as one sequence."""

    input_ids: list[int]
    labels: list[int]
    position_ids: list[int]


def build_label(ids: Sequence[int], mask: Sequence[int], length: int) -> LabelledRow:
    """Build a row from its tokens and the mask of those in the loss, cut at a length."""
    labels = array("i", (token if loss else IGNORED for token, loss in zip(ids, mask, strict=True)))
    return LabelledRow(array("i", ids[:length]), labels[:length])


def lay_out_rows(rows: Sequence[LabelledRow]) -> TreeBatch:
    """Lay rows out as one sequence, shared beginnings once, at any depth."""
    batch = TreeBatch([], [], [])
    _append_rows(batch, sorted(rows, key=lambda row: row.ids), 0)
    return batch


def _append_rows(batch: TreeBatch, rows: Sequence[LabelledRow], start: int) -> None:
    """Append what rows have from a token on; they are sorted and share everything before it."""
    while rows:
        first, stop, size = rows[0], len(rows[0].ids), 1
        for row in rows[1:]:
            shared = min(count_shared_tokens(first.ids, row.ids), first.head, row.head)
            if shared < start + MIN_SHARED:
                break
            stop, size = min(stop, shared), size + 1
        batch.input_ids.extend(first.ids[start:stop])
        batch.labels.extend(first.labels[start:stop])
        batch.position_ids.extend(range(start, stop))
        if size > 1:
            _append_rows(batch, rows[:size], stop)
        rows = rows[size:]


def group_rows(rows: Sequence[LabelledRow], size: int) -> list[list[LabelledRow]]:
    """Divide rows into batches of a size, those that begin alike together where they fit.

    Rows belong together if they share at least half of what the shorter one could share.
    """
    groups: list[list[LabelledRow]] = []
    for row in sorted(rows, key=lambda row: row.ids):
        last = groups[-1] if groups else []
        if last and len(last) < size:
            shared = count_shared_tokens(last[0].ids, row.ids)
            if shared >= max(MIN_SHARED, min(last[0].head, row.head) // 2):
                last.append(row)
                continue
        groups.append([row])
    batches: list[list[LabelledRow]] = []
    for group in sorted(groups, key=len, reverse=True):
        place = next((batch for batch in batches if len(batch) + len(group) <= size), None)
        if place is None:
            batches.append(list(group))
        else:
            place += group
    return batches


def share_tools(rows: Sequence[JsonObject], shown: int, size: int, seed: int) -> list[JsonObject]:
    """Show the same tools to rows that have the same system message, so that they begin alike.

    These are the tools that the rows of a group call, and others that they showed before, up to a number. Rows of a
    variant keep their own: what is missing there is missing on purpose; so do rows that do not tell their variant, and
    rows that call a tool that they do not show.

    Args:
        rows: Rows with `messages`, `tools` and metadata.
        shown: Tools shown at most; a row that calls more keeps its own.
        size: Rows in a group at most.
        seed: Draws groups and tools.
    """
    order = list(range(len(rows)))
    rng = random.Random(derive_seed("share tools", str(seed)))
    rng.shuffle(order)
    called_tools = [list_called_tools(row) for row in rows]
    order.sort(key=lambda index: -len(called_tools[index]))  # what needs most tools finds room first
    open_groups: dict[tuple[str, str], list[tuple[list[int], set[str]]]] = {}
    for index in order:
        row, called = rows[index], set(called_tools[index])
        if row.get("variant") != "base" or len(called) > shown or row["messages"][0]["role"] != "system":
            continue
        if not called <= {tool["function"]["name"] for tool in row["tools"]}:
            continue
        groups = open_groups.setdefault((str(row.get("environment")), row["messages"][0]["content"]), [])
        fitting = [group for group in groups if len(group[0]) < size and len(group[1] | called) <= shown]
        if fitting:
            members, names = min(fitting, key=lambda group: (len(group[1] | called) - len(group[1]), -len(group[0])))
            members.append(index)
            names |= called
        else:
            groups.append(([index], called))
    changed = list(rows)
    for groups in open_groups.values():
        for members, names in groups:
            tools = {tool["function"]["name"]: tool for index in members for tool in rows[index]["tools"]}
            others = sorted(set(tools) - names)
            drawn = names | set(rng.sample(others, min(len(others), shown - len(names))))
            listed = rng.sample(sorted(drawn), len(drawn))
            for index in members:
                changed[index] = {**rows[index], "tools": [tools[name] for name in listed]}
    return changed


def list_called_tools(row: JsonObject) -> set[str]:
    """Return the names of the tools that a row calls."""
    return {call["function"]["name"] for message in row["messages"] for call in message.get("tool_calls") or ()}


def build_tree_arguments(trainer: JsonObject) -> JsonObject:
    """Return settings of the trainer with which a batch of rows is one sequence.

    Raises:
        InputError: The configuration sets one of them otherwise.
    """
    for key in CLASHING:
        if key in trainer:
            raise InputError(f"trainer.{key}: share_prefix makes the batches itself; leave one of the two out")
    return trainer | {
        "per_device_train_batch_size": 1,
        "per_device_eval_batch_size": 1,
        "train_sampling_strategy": "sequential" if count_processes() > 1 else "random",
        "dataset_kwargs": {"skip_prepare_dataset": True},
        "remove_unused_columns": False,
    }


def count_processes() -> int:
    """Return how many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def collate_tree(examples: Sequence[JsonObject]) -> JsonObject:
    """Collate the one batch that a step gets: token ids, labels and positions of shape (1, tokens).

    The sequence is filled up to a multiple of `GRAIN` tokens with a row that nothing sees and that has no loss.
    """
    import torch

    (example,) = examples
    missing = -len(example["input_ids"]) % GRAIN
    filling = {"input_ids": [0] * missing, "labels": [IGNORED] * missing, "position_ids": list(range(missing))}
    return {name: torch.tensor([[*example[name], *rest]]) for name, rest in filling.items()}


def build_tree_dataset(rows: Sequence[LabelledRow], size: int, seed: int) -> Any:
    """Build the dataset of a trainer from rows; one entry is a device batch, in the order of the training."""
    from datasets import Dataset

    batches = [lay_out_rows(group) for group in group_rows(rows, size)]
    return Dataset.from_list([vars(batch) for batch in order_batches(batches, count_processes(), seed)])


def order_batches(batches: Sequence[TreeBatch], processes: int, seed: int) -> list[TreeBatch]:
    """Order batches by chance, those that processes compute at the same time of like length, so that none waits."""
    by_length = sorted(batches, key=lambda batch: len(batch.input_ids))
    steps = [by_length[start : start + processes] for start in range(0, len(batches), processes)]
    random.Random(derive_seed("order batches", str(seed))).shuffle(steps)
    steps.sort(key=len, reverse=True)  # what is left over comes last: it would shift the others
    return [batch for step in steps for batch in step]
