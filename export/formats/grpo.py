"""Rows for reinforcement learning with live environments: one per task, with everything that `reset` needs."""

from collections.abc import Iterator

import orjson

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import find_assistant_messages
from trajsmith.records import JsonObject

COLUMNS: dict[str, str] = {
    "id": "string",
    "prompt": "list of json",
    "environment": "string",
    "mode": "string",
    "variant": "string",
    "source": "string",
    "difficulty": "float64",
    "pass_rates": "json",
    "tools": "list of json",
    "initial_state": "string",
    "state": "json",
    "task": "json",
    "seed": "int64",
}
"""`task` is the record itself: `Task.model_validate(row["task"])` gives turns, known values, gold calls and checks."""


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    task, row = item.task, item.row
    yield {
        "id": task.id,
        "prompt": row["messages"][: find_assistant_messages(row["messages"])[0]],
        "environment": row["environment"],
        "mode": task.mode,
        "variant": task.variant,
        "source": row["source"],
        "difficulty": task.difficulty,
        "pass_rates": row["pass_rates"],
        "tools": row["tools"],
        "initial_state": task.initial_state,
        "state": item.state(task.initial_state),
        "task": orjson.loads(task.to_json()),
        "seed": task.seed,
    }


FORMATS.register("grpo")(
    Format(
        "one row per task for GRPO: prompt, environment, tools, initial state, task with gold calls and checks",
        rows,
        COLUMNS,
        per_task=True,
    )
)
