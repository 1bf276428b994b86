"""verl's RL rows: prompt, data source, reward model and extra info; one row per task.

What differs from row to row in shape (task, tools, state) is JSON text: verl reads rows into one Arrow struct.
"""

from collections.abc import Iterator

import orjson

from trajsmith.export.columns import Columns
from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import find_assistant_messages
from trajsmith.records import JsonObject

COLUMNS: Columns = {
    "data_source": "string",
    "prompt": "list of chat",
    "ability": "string",
    "reward_model": {"style": "string", "ground_truth": "string"},
    "extra_info": {
        "index": "int64", "split": "string", "need_tools_kwargs": "bool", "task_id": "string", "environment": "string",
        "initial_state": "string", "state": "string", "tools": "string",
    },
}  # fmt: skip


def rows(item: ExportItem, settings: FormatSettings) -> Iterator[JsonObject]:
    task, row = item.task, item.row
    messages = row["messages"]
    yield {
        "data_source": row["environment"],
        "prompt": messages[: find_assistant_messages(messages)[0]],
        "ability": "tool_use",
        "reward_model": {"style": "rule", "ground_truth": task.to_line().decode().strip()},
        "extra_info": {
            "index": int(task.id.partition("_")[2][:15], 16), "split": item.split, "need_tools_kwargs": False,
            "task_id": task.id, "environment": row["environment"], "initial_state": task.initial_state,
            "state": orjson.dumps(item.state(task.initial_state)).decode(),
            "tools": orjson.dumps(row["tools"]).decode(),
        },
    }  # fmt: skip


FORMATS.register("verl_rl")(
    Format(
        "verl RL Parquet: prompt, data_source, reward_model with the task as ground truth, extra_info with the state",
        rows,
        COLUMNS,
        per_task=True,
    )
)
