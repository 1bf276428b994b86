"""`trajsmith dpo`: a dry run that shows a pair, steps of training, a card that says what was learnt."""

import json

import pytest

import trajsmith as ts
from trajsmith.models import read_checkpoint_info
from trajsmith.records import InputError
from trajsmith.train_sft import DpoConfig

pytestmark = pytest.mark.train

CONFIG = {
    "name": "pairs",
    "seed": 3,
    "environments": [{"library": "smart_home", "states": {"small": 2}}],
    "sample": {"count": 32, "length": [1, 3]},
    "ground": {"min_calls": 1},
    "write": {"shown_tools": 3, "policy": False},
    "play": {"candidates": 2, "faulty": 1},
    "export": {"formats": ["dpo"], "split": {"validation": 0.5}},
}
QUIET = {"disable_tqdm": True, "logging_steps": 1, "dataloader_pin_memory": False}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    for needed in ("torch", "transformers", "trl", "peft"):
        pytest.importorskip(needed, reason=f"{needed} is missing: pip install -e '.[train]'")
    return ts.run(CONFIG, run=tmp_path_factory.mktemp("pairs") / "run")


@pytest.fixture(scope="module")
def model(run, tmp_path_factory):
    import torch

    torch.set_num_threads(1)  # a model this small only waits for other threads
    from trajsmith.train_sft import ScratchSettings, SftConfig
    from trajsmith.train_sft.training import train

    out = tmp_path_factory.mktemp("pairs") / "model"
    small = ScratchSettings(hidden=32, layers=1, heads=2, vocabulary=600)
    trainer = QUIET | {"max_steps": 1, "save_strategy": "no"}
    train(SftConfig(scratch=small, dataset=run.path, out=out, tools="compact", max_length=9000, trainer=trainer))
    return out


def build_config(run, model, out, **more):
    trainer = QUIET | {"max_steps": 2, "per_device_train_batch_size": 2, "save_steps": 1, "learning_rate": 1e-3}
    settings = {"model": str(model), "dataset": run.path, "out": out, "max_length": 9000, "trainer": trainer}
    return DpoConfig.model_validate(settings | more)


def test_steps_with_adapters_and_validation(run, model, tmp_path):
    from trajsmith.train_sft.preference import train

    lora = {"r": 4, "target_modules": "all-linear"}
    plan = train(build_config(run, model, tmp_path / "dpo", lora=lora, validation={"rows": 4, "every": 1}))
    assert len(plan.rows) > 3 and plan.validation and 0 < plan.compared < plan.tokens
    assert all(len(tool["function"]) <= 3 for tool in plan.rows[0]["tools"])
    log = [json.loads(line) for line in (tmp_path / "dpo/metrics.jsonl").read_text().splitlines()]
    assert {"rewards/accuracies", "loss"} <= set(log[0]) and any("eval_loss" in entry for entry in log)
    info = read_checkpoint_info(str(tmp_path / "dpo"))
    assert [one["kind"] for one in info.training] == ["sft", "dpo"] and info.tools == "compact"
    assert info.training[1]["pairs"] == len(plan.rows) and sum(info.training[1]["mistakes"].values()) == len(plan.rows)
    card = (tmp_path / "dpo/README.md").read_text()
    assert "Training 2: dpo" in card and "| pairs |" in card


def test_a_stopped_training_goes_on(run, model, tmp_path):
    from trajsmith.train_sft.preference import train

    config = build_config(run, model, tmp_path / "dpo")
    train(config)
    (tmp_path / "dpo/config.json").unlink()
    with pytest.raises(InputError, match="continue with --resume"):
        train(config)
    longer = config.model_copy(update={"trainer": config.trainer | {"max_steps": 3}})
    train(longer, resume=True)
    log = [json.loads(line) for line in (tmp_path / "dpo/metrics.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in log if "loss" in entry] == [1, 2, 3]


def test_a_dry_run_shows_a_pair(run, model, tmp_path):
    from typer.testing import CliRunner

    from trajsmith.cli.app import app

    config = build_config(run, model, tmp_path / "dpo")
    (tmp_path / "dpo.yaml").write_text(config.model_dump_json(exclude_defaults=True))
    done = CliRunner().invoke(app, ["dpo", str(tmp_path / "dpo.yaml"), "--dry-run"])
    assert done.exit_code == 0, done.output
    assert "mistake: " in done.output and "chosen: {" in done.output and "final_state" in done.output
    assert "pairs, " in done.output and "compared" in done.output and not (tmp_path / "dpo").exists()


def test_pairs_that_cannot_be_used_are_one_line(run, model, tmp_path):
    from trajsmith.train_sft.preference import prepare_preference

    with pytest.raises(InputError, match=r"longer_than_max_length\): raise max_length"):
        prepare_preference(build_config(run, model, tmp_path, max_length=20))
    with pytest.raises(InputError, match="`trajsmith dpo` trains on the format dpo: export it with --format dpo"):
        prepare_preference(build_config(run, model, tmp_path, dataset=run.path / "dataset"))
    with pytest.raises(InputError, match=r"run `trajsmith export .* --format dpo`"):
        prepare_preference(build_config(run, model, tmp_path, dataset=tmp_path / "none"))


def test_trl_trains_on_the_unpaired_rows(run, model, tmp_path):
    """The format `kto` as it is exported, in TRL's own trainer."""
    from datasets import load_dataset
    from transformers import AutoTokenizer
    from trl import KTOConfig, KTOTrainer
    from typer.testing import CliRunner

    from trajsmith.cli.app import app

    folder = tmp_path / "kto"
    assert CliRunner().invoke(app, ["export", str(run.path), "--format", "kto", "--out", str(folder)]).exit_code == 0
    rows = load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert set(rows["label"]) == {True, False}
    args = KTOConfig(
        output_dir=str(tmp_path / "out"), max_steps=1, per_device_train_batch_size=2, report_to="none", use_cpu=True,
        bf16=False, gradient_checkpointing=False, save_strategy="no", disable_tqdm=True, max_length=4000,
    )  # fmt: skip
    tokenizer = AutoTokenizer.from_pretrained(str(model))
    trainer = KTOTrainer(model=str(model), args=args, train_dataset=rows, processing_class=tokenizer)
    trainer.train()
    assert trainer.state.global_step == 1
