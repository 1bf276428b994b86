"""The configurations that are shipped for training load without torch."""

import json
from pathlib import Path

import pytest

from trajsmith.pipeline.arena_config import ArenaConfig
from trajsmith.pipeline.evaluation import EvalConfig
from trajsmith.pipeline.yaml_settings import load_settings
from trajsmith.records import InputError
from trajsmith.train_grpo import GrpoConfig
from trajsmith.train_sft import DpoConfig, SftConfig

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.parametrize(
    ("file", "model"),
    [
        ("sft_qwen3.yaml", SftConfig),
        ("grpo_qwen3.yaml", GrpoConfig),
        ("train_demo_sft.yaml", SftConfig),
        ("train_demo_more.yaml", SftConfig),
        ("train_demo_grpo.yaml", GrpoConfig),
        ("train_demo_eval.yaml", EvalConfig),
        ("dpo_qwen3.yaml", DpoConfig),
        ("pretrained_sft.yaml", SftConfig),
        ("pretrained_dpo.yaml", DpoConfig),
        ("pretrained_grpo.yaml", GrpoConfig),
        ("pretrained_eval.yaml", EvalConfig),
        ("arena_demo.yaml", ArenaConfig),
        ("arena_demo_start.yaml", SftConfig),
    ],
)
def test_shipped_configurations_load(file, model):
    assert isinstance(load_settings(CONFIGS / file, model), model)


def test_misspelt_keys_name_the_nearest(tmp_path):
    file = tmp_path / "sft.yaml"
    file.write_text("model: m\ndataset: d\nout: o\nmax_lenght: 5\n")
    with pytest.raises(InputError, match="max_length"):
        load_settings(file, SftConfig)


@pytest.mark.train
@pytest.mark.parametrize(
    ("file", "model", "kind"),
    [
        ("sft_qwen3.yaml", SftConfig, "SFTConfig"),
        ("dpo_qwen3.yaml", DpoConfig, "DPOConfig"),
        ("pretrained_dpo.yaml", DpoConfig, "DPOConfig"),
        ("grpo_qwen3.yaml", GrpoConfig, "GRPOConfig"),
    ],
)
def test_trl_knows_every_setting(file, model, kind):
    pytest.importorskip("trl.trainer", reason="trl is missing: pip install -e '.[train]'")
    import dataclasses

    import trl

    known = {field.name for field in dataclasses.fields(getattr(trl, kind))}
    assert set(load_settings(CONFIGS / file, model).trainer) <= known


@pytest.mark.train
@pytest.mark.parametrize("trainer", [{"learning_rat": 1e-3}, {"learning_rate": "fast"}], ids=["unknown", "type"])
@pytest.mark.parametrize("options", [["--dry-run"], []], ids=["dry run", "start"])
def test_settings_of_the_trainer_are_checked_before_the_dataset_is_read(tmp_path, trajsmith, trainer, options):
    pytest.importorskip("trl.trainer", reason="trl is missing: pip install -e '.[train]'")
    file, values = tmp_path / "sft.yaml", {"scratch": {}, "dataset": str(tmp_path / "none"), "max_length": 9}
    file.write_text(json.dumps(values | {"out": str(tmp_path / "model"), "trainer": trainer}))
    said = trajsmith("sft", file, *options)
    assert said.code == 2 and "trainer.learning_rat" in said.err and said.err.count("\n") == 1
    assert not (tmp_path / "model").exists()


@pytest.mark.train
def test_settings_of_grpo_are_checked_before_the_run_is_opened(tmp_path, trajsmith):
    pytest.importorskip("trl.trainer", reason="trl is missing: pip install -e '.[train]'")
    file, values = tmp_path / "grpo.yaml", {"model": "m", "run": str(tmp_path / "none"), "episode_tokens": 9}
    file.write_text(json.dumps(values | {"out": str(tmp_path / "model"), "trainer": {"num_generations": "two"}}))
    said = trajsmith("grpo", file)
    assert said.code == 2 and "trainer.num_generations: input should be a valid integer" in said.err
    assert not (tmp_path / "model").exists()


def test_constrained_calls_are_another_question_and_for_local_models_only():
    plain = EvalConfig(model="m", run="r", out="o")
    bound = EvalConfig(model="m", run="r", out="o", constrained=True)
    assert "constrained" not in plain.question(), "results of before stay those of the same question"
    assert bound.question() == plain.question() | {"constrained": True}
    served = {"qwen": {"model": "Qwen/Qwen3-4B", "base_url": "http://localhost:8000/v1"}}
    with pytest.raises(InputError, match="constrained is for a model on this machine"):
        EvalConfig(model="qwen", models=served, run="r", out="o", constrained=True)
