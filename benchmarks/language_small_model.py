"""A real small model behind a real server as the teacher: how far its sampled text gets.

    python benchmarks/language_small_model.py [MODEL] [--dialogues 120] [--temperature 0.7] [--rows 600] [--steps 200]

MODEL is a checkpoint of `trajsmith sft` on the rows of `configs/train_demo_data.yaml`; without one, a model is made and
trained here on some of them first. It is served over HTTP (`tests/language_server/small_model.py`) and plays the agent
of new tasks of the same environment through the same client as any hosted model. Needs the train extra.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVER = ROOT / "tests" / "language_server"
sys.path[:0] = [str(ROOT), str(SERVER)]

from running_server import RunningServer  # noqa: E402 - beside the tests
from small_model import MODEL  # noqa: E402

from trajsmith.export.loss_mask import MaskPreview  # noqa: E402
from trajsmith.models.transformers_engine import open_tokenizer  # noqa: E402
from trajsmith.pipeline.config import load_config  # noqa: E402
from trajsmith.pipeline.run_directory import RunDirectory  # noqa: E402
from trajsmith.pipeline.runner import run_pipeline  # noqa: E402
from trajsmith.pipeline.yaml_settings import dump_settings  # noqa: E402
from trajsmith.records import RunError, Trajectory, Verdict  # noqa: E402
from trajsmith.records.journal import read_records  # noqa: E402
from trajsmith.train_sft.settings import ScratchSettings, SftConfig  # noqa: E402
from trajsmith.train_sft.training import read_rows, train  # noqa: E402

LINE = """
name: small-model
seed: {seed}
environments: [{{library: smart_home, states: {{small: 48}}}}]
sample: {{count: {count}, length: [1, 2], method: random_walk}}
ground: {{min_calls: 1}}
write: {{mean_calls: 3, direct: 1.0, shown_tools: 2, policy: false}}
"""
TEACHER = """
play: {{max_steps: 6, temperatures: [{temperature}]}}
models: {{small: {{model: small, base_url: "{url}", concurrency: 2, timeout: 120}}}}
roles: {{agent: small}}
"""
TRAINER = {
    "per_device_train_batch_size": 8, "learning_rate": 3e-3, "warmup_steps": 10, "lr_scheduler_type": "cosine",
    "weight_decay": 0.05, "logging_steps": 50, "save_strategy": "no", "seed": 0, "disable_tqdm": True,
    "dataloader_pin_memory": False,
}  # fmt: skip
TAUGHT, NEW = 7, 1011
"""Seeds of the rows and of the tasks that are played: not the same tasks."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--dialogues", type=int, default=120)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = arguments.model or taught(folder, arguments.rows, arguments.steps)
        os.environ[MODEL] = str(model.resolve())
        with RunningServer(script=str(SERVER / "small_model.py"), model="small") as server:
            teacher = TEACHER.format(url=server.url, temperature=arguments.temperature)
            run = line(folder, "played", LINE.format(seed=NEW, count=arguments.dialogues) + teacher)
            show(run, model, server.stats())


def taught(folder: Path, rows: int, steps: int) -> Path:
    """A model that was trained on scripted dialogues for a while."""
    run = line(folder, "scripted", LINE.format(seed=TAUGHT, count=rows))
    small = ScratchSettings(hidden=96, layers=2, heads=4)
    trainer = TRAINER | {"max_steps": steps}
    train(SftConfig(scratch=small, dataset=run.path, out=folder / "model", max_length=1024, trainer=trainer))
    return folder / "model"


def line(folder: Path, name: str, config: str) -> RunDirectory:
    (folder / f"{name}.yaml").write_text(config)
    settings = load_config(folder / f"{name}.yaml", [f"run={folder / name}"])
    run = RunDirectory.create(settings.run, dump_settings(settings))
    try:
        asyncio.run(run_pipeline(run))
    except RunError as error:  # nothing was accepted: that is a result, too
        print(error)
    return run


def show(run: RunDirectory, model: Path, stats: dict[str, int]) -> None:
    played = list(read_records(run.file("trajectories.jsonl"), Trajectory))
    verdicts = list(read_records(run.file("verdicts.jsonl"), Verdict))
    events = [event for one in played for event in one.events]
    replies = [message for one in played for message in one.messages if message.role == "assistant"]
    print(f"{len(played)} dialogues, {sum(one.accepted for one in verdicts)} accepted, {stats['requests']} requests")
    print(f"outcomes: {counted(one.outcome for one in verdicts)}")
    print(f"why not accepted: {counted(one.reasons[0] for one in verdicts if not one.accepted)}")
    print(f"ends: {counted(one.stop_reason for one in played)}; faults: {counted(one.fault for one in played)}")
    print(f"{len(events)} calls: {counted(event.error or 'made' for event in events)}")
    print(f"{len(replies)} messages, {sum(bool(one.reasoning_content) for one in replies)} with reasoning")
    rows = read_rows(run.path) if any(one.accepted for one in verdicts) else []
    preview = MaskPreview(open_tokenizer(str(model)))
    masks = [preview.inspect_row(row, str(row["id"])) for row in rows]
    tokens, learnt = sum(one.tokens for one in masks), sum(one.trained for one in masks)
    print(f"{len(masks)} rows pass the mask preview: {tokens} tokens, {learnt} in the loss")


def counted(names: Iterable[object]) -> dict[str, int]:
    return dict(Counter(str(name) for name in names if name).most_common())


if __name__ == "__main__":
    main()
