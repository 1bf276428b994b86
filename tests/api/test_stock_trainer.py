"""`TrajsmithSpec` in TRL's own trainers: ten steps on a CPU, in both ways, and in another process."""

import pickle
import subprocess
import sys

import pytest

import trajsmith as ts
from trajsmith.records import InputError

CONFIG = {
    "name": "stock",
    "seed": 9,
    "environments": [{"library": "smart_home", "states": {"small": 2}}],
    "sample": {"count": 16, "length": [1, 2], "method": "random_walk"},
    "ground": {"min_calls": 1},
    "write": {"direct": 0.6, "mean_calls": 3, "shown_tools": 2, "policy": False},
}
QUIET = {"disable_tqdm": True, "logging_steps": 1, "dataloader_pin_memory": False, "save_strategy": "no"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ts.run(CONFIG, run=tmp_path_factory.mktemp("stock") / "run")


@pytest.fixture(scope="module")
def model(run, tmp_path_factory):
    """A small model that has seen a few rows, so that some of its calls can be read."""
    for needed in ("torch", "transformers", "trl", "peft"):
        pytest.importorskip(needed, reason=f"{needed} is missing: pip install -e '.[train]'")
    import torch

    torch.set_num_threads(1)  # a model this small only waits for other threads
    from trajsmith.train_sft import ScratchSettings, SftConfig
    from trajsmith.train_sft.training import train

    out = tmp_path_factory.mktemp("stock") / "model"
    small = ScratchSettings(hidden=32, layers=1, heads=2, vocabulary=600)
    train(SftConfig(scratch=small, dataset=run.path, out=out, max_length=9000, trainer=QUIET | {"max_steps": 2}))
    return out


def train_ten_steps(spec, model, out, **how):
    from trl import GRPOConfig, GRPOTrainer

    args = GRPOConfig(
        output_dir=str(out), max_steps=10, num_generations=2, per_device_train_batch_size=4, max_completion_length=48,
        report_to="none", use_cpu=True, bf16=False, gradient_checkpointing=False, **QUIET,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=str(model), args=args, train_dataset=spec.train_dataset, reward_funcs=spec.reward_funcs, **how
    )
    trainer.train()
    return [entry for entry in trainer.state.log_history if "reward" in entry]


@pytest.mark.train
def test_ten_steps_with_the_rollout_function(run, model, tmp_path):
    with ts.TrajsmithSpec(run, rewards=["composite", "checks"], split="all", max_steps=2) as spec:
        assert {task.mode for task in spec.tasks} == {"direct", "conversation"}
        log = train_ten_steps(spec, model, tmp_path, rollout_func=spec.rollout_func)
    assert len(log) == 10 and all({"rewards/composite/mean", "rewards/checks/mean"} <= set(entry) for entry in log)
    assert all(entry["environment/seconds"] < entry["step_time"] for entry in log)


@pytest.mark.train
def test_ten_steps_with_the_environment_factory(run, model, tmp_path):
    with ts.TrajsmithSpec(run, rewards=["composite"], split="all", conversations=False, max_steps=2) as spec:
        log = train_ten_steps(spec, model, tmp_path, environment_factory=spec.environment_factory)
    assert len(log) == 10 and all("rewards/composite/mean" in entry for entry in log)


@pytest.mark.train
def test_environments_that_give_the_reward_themselves(run, model, tmp_path):
    options = {"split": "all", "conversations": False, "max_steps": 2, "limit": 2}
    with ts.TrajsmithSpec(run, environment_reward="state", **options) as spec:
        assert spec.reward_funcs == []
        log = train_ten_steps(spec, model, tmp_path, environment_factory=spec.environment_factory)
    names = [name for name in log[0] if name.startswith("rewards/smart_home:") and name.endswith("/mean")]
    assert len(log) == 10 and len(names) == len(spec.environment_factory)


def test_conversations_need_the_rollout_function(run):
    with ts.TrajsmithSpec(run, split="all") as spec, pytest.raises(InputError, match="pass rollout_func=spec"):
        _ = spec.environment_factory


def collect_completion(trajectory):
    """The messages after the prompt, as TRL gives them to reward functions."""
    rows = [message.model_dump(mode="json", exclude_none=True) for message in trajectory.messages[2:]]
    for row in rows:
        for call in row.get("tool_calls", ()):
            del call["id"]
    return rows


OTHER_PROCESS = """
import json, pickle, sys
factories, rewards, jobs = pickle.loads(sys.stdin.buffer.read())
scores = []
for environment, task_id, completion in jobs:
    played = factories[environment]()
    played.reset(prompt=[], task_id=task_id)
    for message in completion:
        for call in message.get("tool_calls", ()):
            getattr(played, call["function"]["name"])(**call["function"]["arguments"])
    alone = [reward(prompts=[[]], completions=[completion], task_id=[task_id]) for reward in rewards]
    beside = [reward(prompts=[[]], completions=[completion], environments=[played]) for reward in rewards]
    scores.append([alone, beside])
print(json.dumps(scores))
"""


def test_another_process_plays_and_scores_the_same(run):
    """As `AsyncGRPOTrainer` does: environments and rewards are pickled, and rewards get no environments."""
    with ts.TrajsmithSpec(run, rewards=["composite", "rubric"], split="all", conversations=False) as spec:
        rows = {row["task_id"]: row["environment"] for row in spec.train_dataset}
        gold = [one for one in run.trajectories if one.task_id in rows]
        jobs = [(rows[one.task_id], one.task_id, collect_completion(one)) for one in gold]
        jobs += [(rows[gold[0].task_id], gold[0].task_id, [{"role": "assistant", "content": "I cannot do that."}])]
        blob = pickle.dumps((spec.environment_factory, spec.reward_funcs, jobs))
    done = subprocess.run([sys.executable, "-c", OTHER_PROCESS], input=blob, capture_output=True, check=True)
    import orjson

    *right, wrong = orjson.loads(done.stdout)
    assert right == [[[[1.0], [1.0]], [[1.0], [1.0]]]] * len(gold) and gold
    assert wrong[0] == wrong[1] and wrong[0][1] == [0.0]


@pytest.mark.train
def test_the_asynchronous_trainer_takes_the_same_arguments():
    trainer = pytest.importorskip(
        "trl.experimental.async_grpo", reason="trl.experimental.async_grpo is missing or cannot be imported here"
    ).AsyncGRPOTrainer
    import inspect

    assert {"train_dataset", "environment_factory", "reward_funcs"} <= set(inspect.signature(trainer).parameters)
