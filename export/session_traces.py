"""Plays as sessions in the Hub's session trace format (STS): a header, then a line per message.

`datasets` has one builder for all configurations of a repository, so sessions beside rows in Parquet are Parquet, too:
`build_trace_row` builds the rows that its JSON builder makes of traces.
"""

from collections.abc import Mapping
from pathlib import Path

import orjson

from trajsmith.export._templates import create_template_environment
from trajsmith.export.card import find_size_category
from trajsmith.export.columns import Columns
from trajsmith.export.hub import TRACES_OF_DATASET
from trajsmith.export.shards import JsonLines
from trajsmith.records import InputError, JsonObject, to_one_line

HARNESS = "trajsmith"
TAG = "agent-traces"
SCRIPTED = "scripted"
LONGEST_NAME = 100
FACTS = (
    *("task_id", "environment", "mode", "variant", "source", "language", "difficulty", "turns", "tool_calls"),
    *("learnt_from", "initial_state", "final_state", "seed"),
)
"""Columns of a row that the header repeats. All have one type in every run: `datasets` merges the headers."""
TRACE_COLUMNS: Columns = {
    "harness": "string",
    "session_id": "string",
    "prompt": "string",
    "messages": "list of json",
    "tools": "list of json",
    "metadata": "json",
    "sent_at": "string",
    "num_user_messages": "int64",
    "num_tool_calls": "int64",
    "trace": "json",
    "file_path": "string",
}
"""Columns of `datasets` for traces of agents."""
SECTION = "\n## Traces\n"


def build_session(row: JsonObject, model: str) -> list[JsonObject]:
    """Return the lines of a session.

    Args:
        row: Row of the main dataset.
        model: Model of the agent, or `scripted`.
    """
    header = {
        "type": "session",
        "harness": HARNESS,
        "id": row["id"],
        "name": to_one_line(_find_prompt(row), LONGEST_NAME),
        "trajsmith": _build_facts(row),
    }
    return [header, *({"type": "message", "message": _build_message(one, model)} for one in row["messages"])]


def write_session(folder: Path, row: JsonObject, model: str) -> Path:
    """Write the session of a row into a folder, as a file that is named by its id, and return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{row['id']}.jsonl"
    file = JsonLines(path)
    try:
        for line in build_session(row, model):
            file.write(line)
    finally:
        file.close()
    return path


def build_trace_row(row: JsonObject, path: Path, folder: Path) -> JsonObject:
    """Return the row of a session that was written; columns as `TRACE_COLUMNS`.

    Args:
        row: Row of the main dataset.
        path: File of the session.
        folder: Dataset that the file lies in.
    """
    roles = [message["role"] for message in row["messages"]]
    return {
        "harness": HARNESS,
        "session_id": row["id"],
        "prompt": _find_prompt(row),
        "messages": row["messages"],
        "tools": row["tools"],
        "metadata": _build_facts(row),
        "sent_at": None,
        "num_user_messages": roles.count("user"),
        "num_tool_calls": row["tool_calls"],
        "trace": path.read_text("utf-8"),
        "file_path": path.relative_to(folder).as_posix(),
    }


def build_trace_card(name: str, license: str, language: str, splits: Mapping[str, int], content: str) -> str:
    """Return the README.md of a folder of sessions.

    Args:
        name: Name of the run.
        license: SPDX name in lower case.
        language: Language that users and agents speak.
        splits: Split to sessions.
        content: Hash of the sessions: `datasets` keeps what it has read under a hash of the front matter.
    """
    import yaml

    sessions = sum(splits.values())
    fields: JsonObject = {
        "license": license,
        "language": [language],
        "pretty_name": f"{name}: sessions",
        "task_categories": ["text-generation"],
        "size_categories": [find_size_category(sessions)],
        "tags": [TAG, "traces", "tool-use", "function-calling", "agents", "synthetic", "trajsmith"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"data/{split}/*.jsonl"} for split in splits],
                "description": f"sessions {content}",
            }
        ],
    }
    template = create_template_environment().get_template("trace_card.md.j2")
    front_matter = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)
    return template.render(front_matter=front_matter, name=name, sessions=sessions, splits=splits, license=license)


def add_trace_config(card: str, splits: Mapping[str, int], content: str) -> str:
    """Return the card of a dataset with the configuration `traces`, in place of an older one.

    Args:
        card: README.md of a dataset.
        splits: Split to sessions.
        content: As in `build_trace_card`.

    Raises:
        InputError: The card has no front matter with configurations.
    """
    import yaml

    try:
        _, front, text = card.split("---\n", 2)
        fields = yaml.safe_load(front)
        configs = [one for one in fields["configs"] if one["config_name"] != TRACES_OF_DATASET]
        tags = [tag for tag in fields["tags"] if tag != TAG]
    except (ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise InputError("the card of the dataset was changed: write it again with `trajsmith export`") from error
    files = [{"split": split, "path": f"{TRACES_OF_DATASET}/{split}-*"} for split in splits]
    added = {"config_name": TRACES_OF_DATASET, "data_files": files, "description": f"sessions {content}"}
    fields |= {"configs": [*configs, added], "tags": [*tags, TAG]}
    section = create_template_environment().get_template("trace_section.md.j2").render(splits=splits)
    front = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n{text.partition(SECTION)[0]}{SECTION}{section}"


def _build_facts(row: JsonObject) -> JsonObject:
    """Return what trajsmith knows of a play: its task, its environment and its verdict."""
    return {name: row[name] for name in FACTS} | {"outcome": row["verdict"]["outcome"]}


def _build_message(message: JsonObject, model: str) -> JsonObject:
    """Return a message of a row in the form of the format; arguments are text."""
    built = {"role": message["role"], "content": message["content"]}
    if message["role"] == "tool":
        return {**built, "toolCallId": message["tool_call_id"]}
    if "reasoning_content" in message:
        built["reasoningContent"] = message["reasoning_content"]
    if calls := message.get("tool_calls"):
        built["toolCalls"] = [_build_call(call) for call in calls]
    if message["role"] == "assistant" and model != SCRIPTED:
        built["model"] = model
    return built


def _build_call(call: JsonObject) -> JsonObject:
    function = call["function"]
    arguments = orjson.dumps(function["arguments"]).decode()
    return {"id": call["id"], "function": {"name": function["name"], "arguments": arguments}}


def _find_prompt(row: JsonObject) -> str:
    """Return the first message of the user."""
    return next((str(message["content"]) for message in row["messages"] if message["role"] == "user"), "")
