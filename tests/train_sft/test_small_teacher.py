"""A small model, made and trained here, as the teacher behind a real server: sampled text all the way to the mask."""

import asyncio
import json
from collections import Counter

import pytest

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import Task, Trajectory, Verdict
from trajsmith.records.journal import read_records

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers", "trl", "peft"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")

LINE = """
name: small-teacher
seed: 5
environments: [{{library: smart_home, states: {{small: 1}}}}]
sample: {{count: 2, length: [1, 1], method: random_walk}}
ground: {{min_calls: 1}}
write: {{mean_calls: 3, direct: 1.0, shown_tools: 1, policy: false}}
{more}
"""
TEACHER = """
play: {{candidates: 4, temperatures: [0, 1.3, 1.7, 2.0], max_steps: 4}}
models: {{small: {{model: small, base_url: "{url}", timeout: 60}}}}
roles: {{agent: small}}
"""
TRAINER = {
    "max_steps": 100, "per_device_train_batch_size": 2, "learning_rate": 1e-2, "lr_scheduler_type": "constant",
    "logging_steps": 20, "save_strategy": "no", "seed": 0, "disable_tqdm": True, "dataloader_pin_memory": False,
}  # fmt: skip


def line(folder, name, more=""):
    """A finished run."""
    (folder / f"{name}.yaml").write_text(LINE.format(more=more))
    settings = load_config(folder / f"{name}.yaml", [f"run={folder / name}"])
    run = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(run))
    return run


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A model that knows the dialogues of a scripted run by heart."""
    import torch

    from trajsmith.train_sft import ScratchSettings, SftConfig
    from trajsmith.train_sft.training import train

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("small")
    small = ScratchSettings(hidden=64, layers=2, heads=2, vocabulary=700)
    config = SftConfig(
        scratch=small, dataset=line(folder, "scripted").path, out=folder / "model", max_length=2000, trainer=TRAINER
    )
    train(config)
    return folder / "model"


@pytest.fixture(scope="module")
def taught(checkpoint, tmp_path_factory):
    """The same tasks, played by that model behind a server."""
    import small_model
    from running_server import SERVER, RunningServer

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(small_model.MODEL, str(checkpoint))
        with RunningServer(script=str(SERVER.with_name("small_model.py")), model="small") as server:
            yield line(tmp_path_factory.mktemp("taught"), "taught", TEACHER.format(url=server.url))


def trajectories(run):
    return list(read_records(run.file("trajectories.jsonl"), Trajectory))


def test_what_it_knows_by_heart_is_accepted(taught):
    tasks = list(read_records(taught.file("tasks.jsonl"), Task))
    verdicts = {one.trajectory_id: one for one in read_records(taught.file("verdicts.jsonl"), Verdict)}
    played = trajectories(taught)
    assert len(played) == len(verdicts) == 4 * len(tasks) > 0
    greedy = [verdicts[one.id] for one in played if one.candidate == 0]
    assert any(verdict.accepted for verdict in greedy)
    assert {one.models["agent"] for one in played} == {"small"}


def test_no_verdict_is_without_a_reason(taught):
    for verdict in read_records(taught.file("verdicts.jsonl"), Verdict):
        assert verdict.accepted or verdict.reasons


def test_calls_that_cannot_be_read_are_answered_and_never_made(taught):
    errors = Counter(event.error for one in trajectories(taught) for event in one.events)
    assert errors[None] > 0 and errors["malformed"] > 0
    for one in trajectories(taught):
        for event in one.events:
            if event.error == "malformed":
                assert event.effect is None and event.arguments == {}
                told = [m.content for m in one.messages[event.message :] if m.role == "tool"]
                assert any("You wrote" in text or "names no tool" in text for text in told)


def test_only_what_the_model_said_is_learnt_from_its_rows(taught, checkpoint):
    from trajsmith.export.loss_mask import MaskPreview
    from trajsmith.models.transformers_engine import open_tokenizer
    from trajsmith.train_sft.training import read_rows

    preview = MaskPreview(open_tokenizer(str(checkpoint)))
    rows = read_rows(taught.path)
    assert rows
    for row in rows:
        masked = preview.inspect_row(row, row["id"])
        learnt = "".join(piece.text for piece in masked.pieces if piece.loss)
        rest = "".join(piece.text for piece in masked.pieces if not piece.loss)
        assert "<tool_call>" in learnt and "<tool_response>" not in learnt
        assert "<tool_response>" in rest and 0 < masked.trained < masked.tokens


def test_reasoning_is_kept_apart_from_what_is_said(checkpoint):
    import small_model

    from trajsmith.models.serialization import parse_reply
    from trajsmith.train_sft.checkpoint import open_training_tokenizer

    tokenizer = open_training_tokenizer(str(checkpoint))
    prefix = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Lights off."}], add_generation_prompt=True, return_dict=False
    )

    def read(text):
        message = small_model.message_of(tokenizer, prefix, tokenizer(text)["input_ids"], None)
        return parse_reply(json.dumps({"choices": [{"message": {"role": "assistant", **message}}]}).encode())

    call = '<tool_call>\n{"name": "set_light", "arguments": {"on": false}}\n</tool_call><|im_end|>'
    good = read(f"<think>\nOne call.\n</think>\n\n{call}")
    assert good.message.reasoning_content == "One call."
    assert good.message.tool_calls[0].function.arguments == {"on": False} and not good.malformed
    bad = read(f"<think>\nOne call.\n</think>\n\n{call.replace('false}}', 'fal')}")
    assert bad.message.reasoning_content == "One call." and bad.message.tool_calls is None
    assert (bad.malformed[0].name, bad.malformed[0].text) == ("set_light", '{"on": fal')
