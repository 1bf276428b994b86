"""verl's RL rows: prompt, data source, reward model, extra info and agent loop; one row per task.

`agent_loop.yaml` and `tools.yaml` beside the data are the configuration of the agent loop that `agent_name` names.

What differs from row to row in shape (task, tools, state) is JSON text: verl reads rows into one Arrow struct.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

import orjson

from trajsmith.export.columns import Columns
from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.history import find_assistant_messages
from trajsmith.records import JsonObject

TEMPLATES = Path(__file__).parents[1] / "templates"
AGENT = "trajsmith"
"""Name of the agent loop in `agent_loop.yaml`."""
COLUMNS: Columns = {
    "data_source": "string",
    "agent_name": "string",
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
        "agent_name": AGENT,
        "prompt": messages[: find_assistant_messages(messages)[0]],
        "ability": "tool_use",
        "reward_model": {"style": "rule", "ground_truth": task.to_json().decode()},
        "extra_info": {
            "index": int(task.id.partition("_")[2][:15], 16), "split": item.split, "need_tools_kwargs": False,
            "task_id": task.id, "environment": row["environment"], "initial_state": task.initial_state,
            "state": orjson.dumps(item.state(task.initial_state)).decode(),
            "tools": orjson.dumps(row["tools"]).decode(),
        },
    }  # fmt: skip


def files(splits: Collection[str]) -> dict[str, str]:
    return {
        name: (TEMPLATES / f"verl_{name}").read_text("utf-8") for name in ("agent_loop.yaml", "tools.yaml")
    }  # fmt: skip


FORMATS.register("verl_rl")(
    Format(
        "verl RL Parquet: prompt, data_source, reward_model with the task, extra_info with the state; an agent loop",
        rows,
        COLUMNS,
        per_task=True,
        files=files,
    )
)
