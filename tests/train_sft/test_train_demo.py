"""The demonstration's configurations fit together, and its figures are drawn from what trainers log."""

import importlib.util
import json
from pathlib import Path

import pytest

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.evaluation import EvalConfig
from trajsmith.pipeline.yaml_settings import load_settings
from trajsmith.train_grpo import GrpoConfig
from trajsmith.train_sft import SftConfig

ROOT = Path(__file__).parents[2]


def test_training_uses_environment_a_and_evaluation_knows_b():
    data, other = (load_config(ROOT / "configs" / f"train_demo_{name}.yaml") for name in ("data", "other"))
    sft = load_settings(ROOT / "configs/train_demo_sft.yaml", SftConfig)
    grpo = load_settings(ROOT / "configs/train_demo_grpo.yaml", GrpoConfig)
    asked = load_settings(ROOT / "configs/train_demo_eval.yaml", EvalConfig)
    more = load_settings(ROOT / "configs/train_demo_more.yaml", SftConfig)
    assert more.model == str(sft.out) and more.dataset == sft.dataset
    assert sft.dataset == grpo.run == asked.run == data.run != other.run
    assert grpo.model == asked.model == str(sft.out)
    assert {one.library for one in data.environments}.isdisjoint(one.library for one in other.environments)
    assert data.export.split.test > 0 and data.write.direct == other.write.direct == 1.0


def test_the_pretrained_model_is_tested_on_environments_that_it_was_not_trained_on():
    from trajsmith.train_sft.demo_model import DEFAULT_FOLDER

    names = ("data", "held_out", "foreign")
    runs = {name: load_config(ROOT / "configs" / f"pretrained_{name}.yaml") for name in names}
    sft = load_settings(ROOT / "configs/pretrained_sft.yaml", SftConfig)
    grpo = load_settings(ROOT / "configs/pretrained_grpo.yaml", GrpoConfig)
    asked = load_settings(ROOT / "configs/pretrained_eval.yaml", EvalConfig)
    assert sft.model == str(DEFAULT_FOLDER) and grpo.model == asked.model == str(sft.out)
    trained = runs["data"]
    assert [share.dataset for share in sft.shares] == [trained.run]
    assert grpo.run == asked.run == runs["data"].run
    seen = {one.library for one in trained.environments}
    unseen = {one.library or one.python for name in ("held_out", "foreign") for one in runs[name].environments}
    assert len(seen) == 6 and len(unseen) == 3 and seen.isdisjoint(unseen)
    assert trained.export.split.test > 0 and trained.export.split.validation > 0
    assert sft.tools == asked.tools == "compact" and grpo.tools is None


def benchmark(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_curves_leave_out_the_summary_and_average_over_the_steps_before(tmp_path):
    demo = benchmark("train_demo")
    log = tmp_path / "metrics.jsonl"
    log.write_text('{"step":1,"loss":2.0}\n{"step":2,"loss":1.0}\n{"step":2,"loss":1.5,"train_runtime":3.0}\n')
    entries = demo.read_log(log)
    assert [entry["loss"] for entry in entries] == [2.0, 1.0]
    assert demo.running_mean([4.0, 2.0, 0.0, 2.0], 3) == [4.0, 3.0, 2.0, pytest.approx(4 / 3)]
    pytest.importorskip("matplotlib", reason="matplotlib is missing: pip install -e '.[train]'")
    demo.draw(entries, demo.CURVES["sft"][:1] * 2, "fine-tuned", tmp_path / "curve.png", 1)
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_of_the_pretrained_model_has_the_public_benchmark_and_what_each_training_cost(tmp_path, capsys):
    demo, bench = benchmark("pretrained_demo"), tmp_path / "eval-sft-bfcl"
    for folder in ("sft", "eval-sft-bfcl"):
        (tmp_path / folder).mkdir()
    score = {"tasks": 80, "pass1": 0.45, "low": 0.346, "high": 0.559, "errors": {"value_error:string": 30}}
    (bench / "results.json").write_text(json.dumps({"scores": [score, {"category": "multiple"}]}))
    report = {"run": "data", "rows": 2022, "matched": {"text": 2, "calls": 1}}
    (bench / "contamination.json").write_text(json.dumps([report]))
    end = {"step": 150, "train_runtime": 1800.0, "train_cpu_seconds": 3540.0, "train_loss": 0.4}
    log = [{"step": 150, "loss": 0.2, "num_tokens": 612345.0}, end]
    (tmp_path / "sft/metrics.jsonl").write_text("\n".join(map(json.dumps, log)))
    demo.print_table(tmp_path)
    demo.print_trainings(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "BFCL" in line and "not evaluated" not in line] == [
        "| fine-tuned | BFCL v4, simple and multiple, by its own checker | 80 | 45.0 % | 34.6 to 55.9 |  "
        "| value_error:string 30; 3 of 2022 rows hold its tasks |"
    ]
    assert lines[-1] == "| fine-tuned | 150 | 612,345 | 59 min | 30 min |"


@pytest.mark.parametrize(
    "value", ["D18", "on", "2026-11-24", "Hiro Dubois", "lock", 40, 18.5, True], ids=lambda value: str(value)
)
def test_a_mistaken_argument_is_another_of_the_same_kind(value):
    import random

    other = benchmark("_noise").other
    for seed in range(20):
        changed = other(value, random.Random(seed))
        assert changed != value and isinstance(changed, type(value))
