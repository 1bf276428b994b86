"""Every format is written, read back with its consumer's reader, and compared with the record it came from."""

import json
import re
from itertools import groupby, pairwise
from pathlib import Path

import pytest
import yaml
from samples import ENVIRONMENTS, make_item, make_items, make_spec

from trajsmith.export import FORMATS, FormatSettings, MultiFormatWriter, SplitSettings
from trajsmith.export.history import apply_window
from trajsmith.export.splits import SPLITS
from trajsmith.records import FunctionCall, InputError, Message, RecordDropped, RunError, Task, ToolCall
from trajsmith.records.tool import ToolSpec
from trajsmith.train_grpo import MESSAGE_USER

SPECS = {name: make_spec(name) for name in ENVIRONMENTS}
STATES = {"s0": {"orders": {"W1": {"total": 1.84, "größe": None, "lines": []}}}}
PARQUET = [name for name, made in FORMATS.load_all().items() if made.columns is not None and not made.compares]


def write(
    folder: Path, *names: str, count: int = 12, split: SplitSettings | None = None, **settings
) -> MultiFormatWriter:
    targets = {name: folder / name for name in names}
    with MultiFormatWriter(
        targets, STATES.__getitem__, split or SplitSettings(), FormatSettings(**settings), 5
    ) as matrix:
        for item in make_items(count):
            matrix.add(*item, SPECS[item[1].environment])
    return matrix


def load(folder: Path, cache: Path):
    from datasets import load_dataset

    return load_dataset(str(folder), cache_dir=str(cache))


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def trajectories(count: int = 12):
    return {item[1].id: item[1] for item in make_items(count)}


def tools_of(trajectory) -> list[dict]:
    spec = SPECS[trajectory.environment]
    return [spec.tool(name).as_function() for name in trajectory.tools]


def messages_of(rows: list[dict]) -> tuple[Message, ...]:
    return tuple(Message.model_validate(row) for row in rows)


def test_each_file_is_one_format():
    files = {path.stem for path in (Path(__file__).parents[2] / "export" / "formats").glob("[!_]*.py")}
    assert set(FORMATS.names()) == files
    with pytest.raises(
        InputError, match=r"no format named 'csv'; there are: atif, dpo, grpo, json_text, judged, kto, openai"
    ):
        FORMATS.get("csv")


def test_trl_and_prompt_completion_come_back_as_the_records(tmp_path):
    write(tmp_path, "trl", "prompt_completion")
    whole = load(tmp_path / "trl", tmp_path / "c")["train"]
    halves = load(tmp_path / "prompt_completion", tmp_path / "c")["train"]
    for row, half in zip(whole, halves, strict=True):
        trajectory = trajectories()[row["id"]]
        assert messages_of(row["messages"]) == messages_of(half["prompt"] + half["completion"]) == trajectory.messages
        assert row["tools"] == half["tools"] == tools_of(trajectory)
        assert half["completion"][0]["role"] == "assistant"
        assert {message["role"] for message in half["prompt"]} == {"system", "user"}


def test_no_row_gains_a_null_key(tmp_path):
    """Arrow's usual inference merges all schemas and all arguments, and fills the holes with nulls."""
    write(tmp_path, "trl", "per_step", "grpo")
    for name, column in (("trl", "messages"), ("per_step", "completion"), ("grpo", "prompt")):
        for row in load(tmp_path / name, tmp_path / "c")["train"]:
            assert all(value is not None for message in row[column] for value in message.values())
            assert all("properties" not in tool["function"] for tool in row["tools"])
            assert all(tool in tools_of_any() for tool in row["tools"])


def tools_of_any() -> list[dict]:
    return [tool.as_function() for spec in SPECS.values() for tool in spec.tools]


def test_atif_steps_join_calls_and_results_and_come_back_as_the_calls(tmp_path):
    """A message of the agent, its calls and their results are one step; each call comes back with its result."""
    from trajsmith.verify.traces import read_dialogues

    write(tmp_path, "atif")
    file = next((tmp_path / "atif").rglob("*.jsonl"))
    documents = {document["trajectory_id"]: document for document in lines(file)}
    assert documents.keys() == trajectories().keys()
    for _, dialogue in read_dialogues(file):
        trajectory = trajectories()[dialogue.dialogue]
        document = documents[trajectory.id]
        assert document["schema_version"] == "ATIF-v1.8"
        assert [step["step_id"] for step in document["steps"]] == list(range(1, len(document["steps"]) + 1))
        assert document["agent"]["tool_definitions"] == tools_of(trajectory)
        assert dialogue.messages == tuple(message for message in trajectory.messages if message.role != "tool")
        outputs = {message.tool_call_id: message.content for message in trajectory.messages if message.role == "tool"}
        assert {call.id: call.output for call in dialogue.calls} == outputs
        assert dialogue.task is not None and dialogue.task.name == trajectory.task_id


def test_per_turn_rows_learn_each_round_once(tmp_path):
    write(tmp_path, "per_turn")
    by_trajectory = groupby(load(tmp_path / "per_turn", tmp_path / "c")["train"], lambda row: row["trajectory_id"])
    for id, group in by_trajectory:
        rows, trajectory = list(group), trajectories()[id]
        assert [row["number"] for row in rows] == list(range(1, len(trajectory.turns) + 1))
        for row, span in zip(rows, trajectory.turns, strict=True):
            assert messages_of(row["completion"]) == trajectory.messages[span.start + 1 : span.stop]
            assert messages_of(row["prompt"]) == trajectory.messages[: span.start + 1]
            assert (row["of"], row["left_out"]) == (len(rows), 0)


def test_per_step_rows_hold_each_assistant_message_once(tmp_path):
    write(tmp_path, "per_step")
    by_trajectory = groupby(load(tmp_path / "per_step", tmp_path / "c")["train"], lambda row: row["trajectory_id"])
    for id, group in by_trajectory:
        learnt = [message for row in group for message in row["completion"]]
        said = [message for message in trajectories()[id].messages if message.role == "assistant"]
        assert list(messages_of(learnt)) == said


def plain(*roles: str) -> list[dict]:
    return [{"role": role, "content": str(number)} for number, role in enumerate(roles)]


def contents(messages: list[dict]) -> list[int]:
    return [int(message["content"]) for message in messages]


def test_window_keeps_system_first_user_first_exchange_and_the_latest_turns():
    """AWM, Appendix A: w = 3 beside the system prompt, the first user message and the first exchange."""
    messages = plain("system", "user", *["assistant", "tool"] * 7)
    assert contents(apply_window(messages, 14, 3)) == [0, 1, 2, 3, 8, 9, 10, 11, 12, 13]
    assert contents(apply_window(messages, 10, 3)) == list(range(10))
    assert contents(apply_window(messages, 14, None)) == list(range(14))


def test_window_keeps_the_request_that_the_step_answers():
    messages = plain("system", "user", "assistant", "user", *["assistant", "tool"] * 6)
    assert contents(apply_window(messages, 14, 2)) == [0, 1, 2, 3, 10, 11, 12, 13]
    later = plain("system", "user", "assistant", "tool", "assistant", "user", *["assistant", "tool"] * 4)
    assert contents(apply_window(later, 12, 2)) == [0, 1, 2, 3, 5, 8, 9, 10, 11]


def test_window_is_a_setting(tmp_path):
    rows = {}
    for window in (1, 3):
        write(tmp_path / str(window), "per_step", window=window)
        rows[window] = list(load(tmp_path / str(window) / "per_step", tmp_path / "c")["train"])
    assert sum(row["left_out"] for row in rows[1]) > sum(row["left_out"] for row in rows[3]) > 0
    most = max(sum(message["role"] == "assistant" for message in row["prompt"]) for row in rows[1])
    assert most == 2  # the first exchange and one recent turn


def test_grpo_rows_hold_what_reset_needs(tmp_path):
    write(tmp_path, "grpo")
    tasks = {item[0].id: item[0] for item in make_items(12)}
    rows = list(load(tmp_path / "grpo", tmp_path / "c")["train"])
    assert {row["id"] for row in rows} == set(tasks)
    for row in rows:
        task = Task.model_validate(row["task"])
        assert task == tasks[row["id"]] and task.content_id() == row["id"]
        assert row["state"] == STATES[task.initial_state]
        assert [message["role"] for message in row["prompt"]] == ["system", "user"]
        assert [tool["function"]["name"] for tool in row["tools"]] == list(task.exposed_tools)


def test_several_trajectories_of_a_task_are_one_grpo_row(tmp_path):
    item = make_item()
    with MultiFormatWriter(
        {"grpo": tmp_path / "g", "trl": tmp_path / "t"}, STATES.__getitem__, SplitSettings(), FormatSettings()
    ) as m:
        for _ in range(3):
            m.add(*item, SPECS["shop"])
    assert (m.writers["grpo"].rows, m.writers["trl"].rows) == (1, 3)


def test_openai_lines_pass_the_services_own_types(tmp_path):
    chat = pytest.importorskip("openai.types.chat", reason="openai is missing: pip install openai")
    from pydantic import TypeAdapter

    write(tmp_path, "openai")
    message_type, tool_type = (
        TypeAdapter(chat.ChatCompletionMessageParam),
        TypeAdapter(chat.ChatCompletionFunctionToolParam),
    )
    found = lines(tmp_path / "openai" / "data" / "train.jsonl")
    for line, trajectory in zip(found, trajectories().values(), strict=True):
        for message, record in zip(line["messages"], trajectory.messages, strict=True):
            message_type.validate_python(message, strict=True)
            assert from_wire(message, record) == record
        for tool in line["tools"]:
            tool_type.validate_python(tool, strict=True)
        assert line["tools"] == tools_of(trajectory)
        assert line.keys() == {"messages", "tools"}


def test_rows_for_reinforcement_fine_tuning_end_with_the_user_and_their_grader_accepts_the_calls(tmp_path):
    chat = pytest.importorskip("openai.types.chat", reason="openai is missing: pip install openai")
    from openai.types.fine_tuning import ReinforcementMethod
    from pydantic import TypeAdapter

    write(tmp_path, "openai_rft")
    grader = json.loads((tmp_path / "openai_rft" / "grader.json").read_text("utf-8"))
    method = ReinforcementMethod.model_validate({"grader": grader})
    scope: dict = {}
    exec(compile(method.grader.source, "grader", "exec"), scope)
    rows = lines(tmp_path / "openai_rft" / "data" / "train.jsonl")
    wanted = [
        [call.function.model_dump() for call in message.tool_calls]
        for trajectory in trajectories().values()
        for before, message in pairwise(trajectory.messages)
        if message.tool_calls and before.role == "user"
    ]
    assert [[json.loads(call["arguments"]) for call in row["expected_calls"]] for row in rows] == [
        [call["arguments"] for call in calls] for calls in wanted
    ]
    for row, calls in zip(rows, wanted, strict=True):
        for message in row["messages"]:
            TypeAdapter(chat.ChatCompletionMessageParam).validate_python(message, strict=True)
        assert row["messages"][-1]["role"] == "user" and "system" not in {
            message["role"] for message in row["messages"]
        }
        made = [
            {"type": "function", "function": {**call, "arguments": json.dumps(call["arguments"])}} for call in calls
        ]
        other = {"type": "function", "function": {"name": "other", "arguments": "{}"}}
        broken = {"type": "function", "function": {"name": calls[0]["name"], "arguments": "{"}}
        grades = [
            scope["grade"]({"output_tools": one}, row) for one in (made, [*made, other], made[1:], [broken], None)
        ]
        assert grades == [1, 0, 0, 0, 0]


def from_wire(message: dict, record: Message) -> Message:
    """Back to a record; only the name of a result and the reasoning have no place in OpenAI's form."""
    calls = [
        ToolCall(id=call["id"], function=FunctionCall(name=call["function"]["name"],
                                                      arguments=json.loads(call["function"]["arguments"])))
        for call in message.get("tool_calls", [])
    ]  # fmt: skip
    return Message(
        role=message["role"], content=message.get("content", ""), tool_call_id=message.get("tool_call_id"),
        tool_calls=tuple(calls) or None, name=record.name, reasoning_content=record.reasoning_content,
    )  # fmt: skip


def test_openai_lines_are_equal_through_datasets(tmp_path):
    write(tmp_path, "openai")
    loaded = load(tmp_path / "openai", tmp_path / "c")["train"]
    names = [[tool["function"]["name"] for tool in row["tools"]] for row in loaded]
    assert names == [list(trajectory.tools) for trajectory in trajectories().values()]


def test_openai_refuses_a_tool_name_that_the_service_refuses():
    task, trajectory, verdict = make_item()
    bad = ToolSpec(server="shop", name="orders.find", input_schema={"type": "object"})
    spec = SPECS["shop"].model_copy(update={"tools": (*SPECS["shop"].tools, bad)})
    shown = trajectory.model_copy(update={"tools": (*trajectory.tools, "orders.find")})
    verdict = verdict.model_copy(update={"trajectory_id": shown.id})
    matrix = MultiFormatWriter({"openai": Path("never")}, STATES.__getitem__, SplitSettings(), FormatSettings())
    with pytest.raises(RunError, match=r"format openai: no row to export \(openai_tool_name 1\)"), matrix:
        matrix.add(task, shown, verdict, spec)
    assert not Path("never").exists()


SIDES = {"human": 0, "observation": 0, "gpt": 1, "function_call": 1}


def read_sharegpt(line: dict) -> list[tuple]:
    """As LLaMA-Factory documents and reads it: strict sides, thought first, calls as JSON or between the markers."""
    read = [("system", line["system"])]
    for index, turn in enumerate(line["conversations"]):
        assert turn.keys() == {"from", "value"}
        assert SIDES[turn["from"]] == index % 2, "LLaMA-Factory skips rows whose sides do not alternate"
        value = turn["value"]
        thought = re.match(r"<think>\n(.*?)\n</think>\n\n", value, re.DOTALL)
        value = value[thought.end() :] if thought else value
        reasoning = thought.group(1) if thought else None
        if turn["from"] == "function_call":
            marked = re.search(r"<tool_call>(.*?)</tool_call>", value, re.DOTALL)
            calls = json.loads(marked.group(1) if marked else value)
            said = value.replace(marked.group(0), "").removesuffix("\n") if marked else ""
            calls = calls if isinstance(calls, list) else [calls]
            read.append(("assistant", said, reasoning, [(call["name"], call["arguments"]) for call in calls]))
        elif turn["from"] == "observation":
            read += [("tool", part) for part in value.split("\n</tool_response>\n<tool_response>\n")]
        elif turn["from"] == "gpt":
            read.append(("assistant", value, reasoning, []))
        else:
            read.append(("user", value))
    return read


def test_sharegpt_is_what_llama_factory_reads(tmp_path):
    write(tmp_path, "sharegpt")
    info = json.loads((tmp_path / "sharegpt" / "dataset_info.json").read_text())["trajsmith_train"]
    found = lines(tmp_path / "sharegpt" / info["file_name"])
    for line, trajectory in zip(found, trajectories().values(), strict=True):
        expected = []
        for message in trajectory.messages:
            if message.role == "assistant":
                calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
                expected.append(("assistant", message.content, message.reasoning_content, calls))
            else:
                expected.append((message.role, message.content))
        assert read_sharegpt(line) == expected
        assert json.loads(line["tools"]) == [tool["function"] for tool in tools_of(trajectory)]
    assert info["columns"]["messages"] in found[0] and info["tags"]["function_tag"] == "function_call"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param("a <tool_call> b", "sharegpt_marker_in_text", id="marker"),
        pytest.param("x\n</tool_response>\n<tool_response>\ny", "sharegpt_ambiguous_result", id="results"),
    ],
)
def test_sharegpt_refuses_what_would_be_read_otherwise(content, reason):
    from trajsmith.export.formats.sharegpt import _assistant, _result

    with pytest.raises(RecordDropped) as dropped:
        if reason == "sharegpt_marker_in_text":
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"x": content}}}
            _assistant({"role": "assistant", "content": "", "tool_calls": [call]})
        else:
            _result(content)
    assert dropped.value.reason == reason


def test_verl_sft_columns_are_exact_through_pandas(tmp_path):
    """verl reads with pandas and the pyarrow backend; its struct columns would gain null keys, text cannot."""
    import pandas

    write(tmp_path, "verl_sft", count=5)
    frame = pandas.concat(
        pandas.read_parquet(path, dtype_backend="pyarrow")
        for path in sorted((tmp_path / "verl_sft" / "data").glob("train-*"))
    )
    for row in frame.to_dict("records"):
        trajectory = trajectories(5)[row["trajectory_id"]]
        assert messages_of(json.loads(row["messages"])) == trajectory.messages
        assert json.loads(row["tools"]) == tools_of(trajectory)
        assert row["enable_thinking"] is True
    reader = (tmp_path / "verl_sft" / "verl_dataset.py").read_text()
    compile(reader, "verl_dataset.py", "exec")


def test_verl_reader_gives_the_records(tmp_path, monkeypatch):
    """The dataset class beside the data, on a base class that reads as verl's does."""
    import sys
    from types import ModuleType

    import pandas

    class MultiTurnSFTDataset:
        messages_key = "messages"

        def __init__(self, files):
            self.files = files
            self._read_files_and_process()

        def _read_files_and_process(self):
            self.dataframe = pandas.concat(pandas.read_parquet(f, dtype_backend="pyarrow") for f in self.files)
            self.messages, self.tools = self.dataframe["messages"].tolist(), self.dataframe["tools"].tolist()

        def _build_messages(self, example):
            return example[self.messages_key]

    base = ModuleType("verl.utils.dataset.multiturn_sft_dataset")
    base.MultiTurnSFTDataset = MultiTurnSFTDataset
    for name in ("verl", "verl.utils", "verl.utils.dataset"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, base.__name__, base)
    write(tmp_path, "verl_sft", count=3)
    space: dict = {}
    exec((tmp_path / "verl_sft" / "verl_dataset.py").read_text(), space)
    made = space["JsonColumns"](sorted((tmp_path / "verl_sft" / "data").glob("*.parquet")))
    for number, trajectory in enumerate(trajectories(3).values()):
        built = made._build_messages(made.dataframe.iloc[number].to_dict())
        assert messages_of(built) == messages_of(made.messages[number]) == trajectory.messages
        assert made.tools[number] == tools_of(trajectory)


def test_verl_rl_rows_have_the_documented_shape(tmp_path):
    """verl's RLHFDataset reads with datasets and takes prompt, data_source, reward_model and extra_info."""
    write(tmp_path, "verl_rl")
    tasks = {item[0].id: item[0] for item in make_items(12)}
    for row in load(tmp_path / "verl_rl", tmp_path / "c")["train"]:
        extra = row["extra_info"]
        assert row.keys() == {"data_source", "agent_name", "prompt", "ability", "reward_model", "extra_info"}
        assert Task.from_line(row["reward_model"]["ground_truth"]) == tasks[extra["task_id"]]
        assert row["reward_model"]["style"] == "rule"
        assert json.loads(extra["state"]) == STATES["s0"]
        assert all(message.keys() == {"role", "content"} for message in row["prompt"])
        assert (extra["split"], extra["environment"]) == ("train", row["data_source"])
        assert row["agent_name"] == "trajsmith"
    for file in ("agent_loop.yaml", "tools.yaml"):
        settings = yaml.safe_load((tmp_path / "verl_rl" / file).read_text("utf-8"))
        assert "trajsmith.pipeline.verl_agent." in json.dumps(settings)
    (tool,) = settings["tools"]
    assert tool["tool_schema"]["function"]["description"] == MESSAGE_USER.description


@pytest.mark.parametrize("name", PARQUET)
def test_features_are_the_declared_ones(tmp_path, name):
    from trajsmith.export.columns import build_features

    write(tmp_path, name, count=2)
    assert load(tmp_path / name, tmp_path / "c")["train"].features == build_features(FORMATS.get(name).columns)


@pytest.mark.parametrize("name", [name for name, made in FORMATS.load_all().items() if not made.compares])
def test_every_format_is_written_in_splits(tmp_path, name):
    split = SplitSettings(held_out=("clinic",), validation=0.4)
    matrix = write(tmp_path, name, count=40, split=split)
    loaded = load(tmp_path / name, tmp_path / "c")
    assert {key: len(rows) for key, rows in loaded.items()} == matrix.writers[name].splits
    assert set(loaded) == set(SPLITS)


def test_a_format_without_rows_does_not_keep_the_others_from_being_written(tmp_path, monkeypatch):
    monkeypatch.setattr("trajsmith.export.formats.openai.MAX_TOOLS", 1)
    with pytest.raises(RunError, match=r"format openai: no row to export \(openai_too_many_tools 12\)"):
        write(tmp_path, "openai", "trl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trl"]
