"""A training that a launcher started as two processes: one model, one log, the loss of one process with all rows."""

import json
import os
import subprocess
import sys

import pytest

from tests.train_sft.test_sft_training import TRAINER, config, folder  # noqa: F401  (a fixture)
from trajsmith.pipeline.yaml_settings import dump_settings

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers", "trl", "peft"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")


IN_ORDER = """
import sys

from trajsmith.cli.app import main
from trajsmith.train_sft import shared_prefix

shared_prefix.count_processes = lambda: 2
sys.exit(main())
"""
"""The command with the order of batches that two processes have, whatever their number is."""


def train_in(processes, settings, place):
    """Train in a number of processes; return what was printed and the log of the trainer."""
    place.mkdir()
    path = place / "sft.yaml"
    path.write_text(dump_settings(settings))
    command = place / "train.py"
    command.write_text(IN_ORDER)
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    done = subprocess.run(
        [sys.executable, *launch, str(command), "sft", str(path)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = (settings.out / "metrics.jsonl").read_text().splitlines()
    return done.stdout, [json.loads(line) for line in lines]


@pytest.mark.parametrize("shared", [False, True], ids=["rows", "shared_prefixes"])
def test_two_processes_train_as_one_with_all_rows(folder, tmp_path, shared):  # noqa: F811
    from trajsmith.models import read_checkpoint_info

    more = {} if shared else {"train_sampling_strategy": "random"}
    logs = {}
    for processes in (1, 2):
        parts = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2 // processes, "max_steps": 2}
        settings = config(
            folder,
            out=tmp_path / f"model{processes}",
            share_prefix=shared,
            trainer=TRAINER | {"save_steps": 1} | parts | more,
        )
        printed, logs[processes] = train_in(processes, settings, tmp_path / f"work{processes}")
        assert printed.count("model: ") == 1
        assert read_checkpoint_info(str(settings.out)).training[-1]["steps"] == 2
        assert not list(tmp_path.glob(".*.saving"))
    for one, two in zip(*logs.values(), strict=True):
        assert set(one) == set(two)
        for name in ("loss", "grad_norm", "num_tokens"):
            assert two.get(name, 0) == pytest.approx(one.get(name, 0), rel=1e-4)
    losses = [entry["loss"] for entry in logs[2] if "loss" in entry]
    assert len(losses) == 2 and losses[0] != losses[1]
