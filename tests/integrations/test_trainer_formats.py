"""Rows for verl, LLaMA-Factory, unsloth and axolotl, loaded by their own classes: what the agent wrote is learnt."""

import json

import orjson
import pytest
from other_side import run_script

from trajsmith.api.datasets import export_dataset
from trajsmith.api.runs import load_run
from trajsmith.pipeline.dataset_selection import iter_accepted

pytestmark = pytest.mark.servers


def is_learnt(row, messages):
    """Return True if all texts and calls of the agent are in the loss, and results and the user's texts are not."""
    own = [message for message in messages if message.role == "assistant"]
    names = [call.function.name for message in own for call in message.tool_calls or ()]
    others = [message.content for message in messages if message.role == "user"]
    return (
        all((message.content or "") in row["learnt"] for message in own)
        and all(f'"name": "{name}"' in row["learnt"] for name in names)
        and all(text in row["text"] and text not in row["learnt"] for text in others)
    )


def match(rows, run):
    """Count the accepted conversations of a run that one of the rows holds."""
    accepted = [judged.trajectory.messages for judged in iter_accepted(run)]
    assert len(rows) == len(accepted) > 5
    return sum(any(is_learnt(row, messages) for row in rows) for messages in accepted)


@pytest.mark.timeout(600)
def test_verl_loads_rows(run, tmp_path, checked):
    for name in ("verl_sft", "verl_rl"):
        export_dataset(load_run(run.path), out=tmp_path / name, format=name)
    *rows, about = run_script("verl", "read_verl.py", tmp_path / "verl_sft", tmp_path / "verl_rl")
    learnt = [row for row in rows if row["kind"] == "sft"]
    checked(
        "verl", about["version"], "MultiTurnSFTDataset with the class beside the data", match(learnt, run), len(learnt)
    )
    tasks = [row for row in rows if row["kind"] == "rl"]
    known = {judged.task.id for judged in iter_accepted(run)}
    right = sum(
        row["task"] == row["task_id"]
        and row["task_id"] in known
        and row["prompt"][-1]["role"] == "user"
        and row["tools"] > 0
        for row in tasks
    )
    assert len(tasks) == len(known)
    checked("verl", about["version"], "RLHFDataset", right, len(tasks))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["text", "tool"])
def test_verl_agent_loop_gets_the_verdicts(run, transcripts, tmp_path, checked, way):
    """By its worker, that loads our agent loop and tools by their files, and by its reward manager."""
    export_dataset(load_run(run.path), out=tmp_path / "rows", format="verl_rl")
    chosen = transcripts if way == "text" else transcripts[:5]
    (tmp_path / "transcripts.jsonl").write_bytes(b"\n".join(orjson.dumps(transcript) for transcript in chosen))
    arguments = (tmp_path / "rows", tmp_path / "transcripts.jsonl", run.path, way)
    *results, about = run_script("verl", "loop_verl.py", *arguments)
    assert len(results) == len(chosen) and {True, False} == {transcript["accepted"] for transcript in chosen}
    scores = {"reward": 0, "again": 0}
    for result, transcript in zip(results, chosen, strict=True):
        for key in scores:
            scores[key] += result[key] == float(transcript["accepted"])
        made = result["transcript"]
        assert made[: len(transcript["lines"])] == transcript["lines"][: len(made)]
        calls = [json.dumps({"name": line["tool"], "arguments": line["arguments"]}) for line in made]
        texts = [line["arguments"].get("text") for line in made]
        spoken = [line["tool"] == "message_user" and way == "text" for line in made]
        for call, text, is_text in zip(calls, texts, spoken, strict=True):
            assert (text if is_text else call) in result["learnt"]
        heard = [message["content"] for message in transcript["messages"] if message["role"] == "user"]
        assert all(text not in result["learnt"] for text in heard[1:] if way == "text" and len(text) > 20)
    name = "agent loop" if way == "text" else "agent loop, user by tools.yaml"
    checked("verl", about["version"], f"AgentLoopWorker, {name}", scores["reward"], len(chosen))
    checked("verl", about["version"], "NaiveRewardManager, compute_score", scores["again"], len(chosen))


@pytest.mark.timeout(600)
def test_llama_factory_loads_rows(run, tmp_path, checked):
    export_dataset(load_run(run.path), out=tmp_path / "rows", format="sharegpt")
    entries = orjson.loads((tmp_path / "rows" / "dataset_info.json").read_bytes())
    *rows, about = run_script("llamafactory", "read_llamafactory.py", tmp_path / "rows", *entries)
    checked("LLaMA-Factory", about["version"], "get_dataset, template qwen3", match(rows, run), len(rows))


@pytest.mark.timeout(900)
def test_unsloth_trains_on_rows(run, tmp_path, checked):
    """Two steps on a CPU with random weights; its own mask leaves the agent's texts and calls in the loss."""
    export_dataset(load_run(run.path), out=tmp_path / "rows", format="json_text")
    *rows, about = run_script("unsloth", "read_unsloth.py", tmp_path / "rows")
    checked("unsloth", about["version"], "train_on_responses_only of SFTTrainer", match(rows, run), len(rows))
    results = [
        message.content
        for judged in iter_accepted(run)
        for message in judged.trajectory.messages
        if message.role == "tool"
    ]
    long = {text for text in results if len(text) > 40}
    assert long and not [text for text in long if any(text in row["learnt"] for row in rows)]
    checked("unsloth", about["version"], "steps on a CPU", about["steps"], 2)


@pytest.mark.timeout(600)
def test_axolotl_loads_rows(run, checked):
    *rows, about = run_script("axolotl", "read_axolotl.py", run.path / "dataset")
    checked("axolotl", about["version"], "load_cfg, load_datasets, chat_template", match(rows, run), len(rows))
