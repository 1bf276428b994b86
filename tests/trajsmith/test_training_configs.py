"""The configurations that are shipped for training load without torch."""

from pathlib import Path

import pytest

from train_grpo import GrpoConfig
from train_sft import SftConfig
from trajectory import InputError
from trajsmith.evaluating import EvalConfig
from trajsmith.settings import load_settings

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
    [("sft_qwen3.yaml", SftConfig, "SFTConfig"), ("grpo_qwen3.yaml", GrpoConfig, "GRPOConfig")],
)
def test_trl_knows_every_setting(file, model, kind):
    pytest.importorskip("trl.trainer", reason="trl is missing: pip install -e '.[train]'")
    import dataclasses

    import trl

    known = {field.name for field in dataclasses.fields(getattr(trl, kind))}
    assert set(load_settings(CONFIGS / file, model).trainer) <= known
