"""Rows in the Hub's session trace format: documented fields, calls that come back, the configuration of the card."""

import json

import pytest
import yaml
from samples import ENVIRONMENTS, make_items, make_spec
from session_schema import check_session

from trajsmith.export import build_row
from trajsmith.export.columns import build_features
from trajsmith.export.session_traces import (
    TRACE_COLUMNS,
    add_trace_config,
    build_session,
    build_trace_row,
    write_session,
)
from trajsmith.records import InputError
from trajsmith.verify.traces import read_dialogues

SPECS = {name: make_spec(name) for name in ENVIRONMENTS}
CARD = """---
license: mit
tags:
- trl
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*
---

# small

Licence: mit.
"""


def make_rows(count=6):
    items = [item for item in make_items(count) if item[2].accepted]
    return [(item, build_row(*item, SPECS[item[1].environment])) for item in items]


@pytest.mark.parametrize("model", ["scripted", "gpt-x"])
def test_every_line_has_the_documented_fields(model):
    for (_, trajectory, _), row in make_rows():
        header, messages = check_session(json.loads(json.dumps(build_session(row, model))))
        assert (header.harness, header.id) == ("trajsmith", trajectory.id)
        assert header.trajsmith["task_id"] == trajectory.task_id and header.trajsmith["outcome"] == "completed"
        assert "\n" not in header.name and 0 < len(header.name) <= 101
        assert {one.model for one in messages if one.role == "assistant"} == {"" if model == "scripted" else model}
        reasoning = [one.reasoning_content for one in trajectory.messages if one.reasoning_content]
        assert [one.reasoningContent for one in messages if one.reasoningContent] == reasoning


def test_a_session_comes_back_as_the_calls_of_its_play(tmp_path):
    for (_, trajectory, _), row in make_rows():
        ((_, dialogue),) = read_dialogues(write_session(tmp_path, row, "gpt-x"))
        assert (dialogue.format, dialogue.dialogue, dialogue.models) == (
            "hub_traces",
            trajectory.id,
            {"agent": "gpt-x"},
        )
        assert dialogue.task is not None and dialogue.task.name == trajectory.task_id
        assert dialogue.messages == tuple(one for one in trajectory.messages if one.role != "tool")
        outputs = {one.tool_call_id: one.content for one in trajectory.messages if one.role == "tool"}
        assert {call.id: call.output for call in dialogue.calls} == outputs


def test_rows_of_sessions_have_the_columns_of_datasets(tmp_path):
    json_module = pytest.importorskip("datasets.packaged_modules.json.json")
    features = getattr(json_module, "AGENT_TRACES_FEATURES", None)
    if features is None:
        pytest.skip("this version of datasets knows no traces of agents")
    assert build_features(TRACE_COLUMNS) == features
    for _, row in make_rows(1):
        path = write_session(tmp_path / "traces", row, "scripted")
        built = build_trace_row(row, path, tmp_path)
        assert built["trace"].splitlines() == path.read_text().splitlines()
        _, name, prompt, _, users, _ = json_module.parse_traces_info(built["trace"].splitlines())
        assert (built["session_id"], built["prompt"], built["num_user_messages"]) == (name, prompt, users)


def test_the_configuration_of_sessions_is_put_into_a_card_once():
    once = add_trace_config(CARD, {"train": 3}, "aa")
    twice = add_trace_config(once, {"train": 2, "test": 1}, "bb")
    _, front, text = twice.split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields["license"] == "mit" and fields["tags"] == ["trl", "agent-traces"]
    assert [one["config_name"] for one in fields["configs"]] == ["default", "traces"]
    assert fields["configs"][1]["data_files"] == [
        {"split": "train", "path": "traces/train-*"},
        {"split": "test", "path": "traces/test-*"},
    ]
    assert text.startswith("\n# small\n") and text.count("## Traces") == 1 and "Licence: mit." in text


@pytest.mark.parametrize(
    "card", ["", "# no front matter\n", "---\n[a\n---\n", "---\nlicense: mit\n---\n", "---\n3\n---\n"]
)
def test_a_card_of_another_form_is_refused(card):
    with pytest.raises(InputError, match="the card of the dataset was changed"):
        add_trace_config(card, {"train": 1}, "aa")
