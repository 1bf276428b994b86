"""TRL's environments and rewards of a run give our verdicts, and its stock trainer takes them with conversations."""

import pytest
from other_side import read_version

import trajsmith as ts

pytestmark = [pytest.mark.servers, pytest.mark.train]
for _needed in ("torch", "transformers", "trl"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")


def play(environment, row, transcript):
    """Make the calls as TRL's loop does: by the methods of the environment; it answers calls of no method itself."""
    environment.reset(**row)
    for line in transcript["lines"]:
        method = getattr(environment, line["tool"], None)
        try:
            if method is not None:
                method(**line["arguments"])
        except TypeError:
            continue


def build_completion(lines):
    """Return the messages of a transcript as TRL hands them to reward functions."""
    messages = []
    for line in lines:
        call = {"type": "function", "function": {"name": line["tool"], "arguments": line["arguments"]}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "name": line["tool"], "content": "{}"})
    return messages


def test_get_reward_is_the_verdict(run, transcripts, checked):
    options = {"split": "all", "user_tool": True, "max_steps": 100}
    with ts.TrajsmithSpec(run.path, environment_reward="accepted", **options) as spec:
        rows = {row["task_id"]: row for row in spec.train_dataset}
        environments = {name: factory() for name, factory in spec.environment_factory.items()}
        same = 0
        for transcript in transcripts:
            row = rows[transcript["task_id"]]
            environment = environments[row["environment"]]
            play(environment, row, transcript)
            same += environment.get_reward() == float(transcript["accepted"])
    checked("trl", read_version("trl"), "environment_factory, get_reward", same, len(transcripts))


def test_reward_functions_of_completions_are_the_verdicts(run, transcripts, checked):
    """As `AsyncGRPOTrainer` does, which has no environments in the process of its rewards."""
    with ts.TrajsmithSpec(run.path, rewards=["accepted"], split="all", user_tool=True, max_steps=100) as spec:
        (reward,) = spec.reward_funcs
        completions = [build_completion(transcript["lines"]) for transcript in transcripts]
        ids = [transcript["task_id"] for transcript in transcripts]
        scores = reward(prompts=[[]] * len(ids), completions=completions, task_id=ids)
    same = sum(score == float(one["accepted"]) for score, one in zip(scores, transcripts, strict=True))
    checked("trl", read_version("trl"), "reward_funcs of completions", same, len(transcripts))


STEPS = 10


@pytest.mark.timeout(900)
def test_stock_trainer_hardly_waits_for_environments(run, tmp_path, checked):
    """Ten steps on a CPU with a small model made here, whose steps are as short as they can be."""
    import time

    from trl import GRPOConfig, GRPOTrainer

    from trajsmith.train_sft import ScratchSettings, SftConfig
    from trajsmith.train_sft.training import train

    quiet = {"disable_tqdm": True, "logging_steps": 1, "dataloader_pin_memory": False, "save_strategy": "no"}
    small = ScratchSettings(hidden=64, layers=2, heads=4, vocabulary=800)
    model = tmp_path / "model"
    train(SftConfig(scratch=small, dataset=run.path, out=model, max_length=4000, trainer=quiet | {"max_steps": 2}))
    with ts.TrajsmithSpec(run.path, rewards=["accepted"], split="all", user_tool=False, max_steps=2) as spec:
        arguments = GRPOConfig(
            output_dir=str(tmp_path / "grpo"), max_steps=STEPS, per_device_train_batch_size=4, num_generations=2,
            max_completion_length=64, report_to="none", use_cpu=True, bf16=False, **quiet,
        )  # fmt: skip
        trainer = GRPOTrainer(
            model=str(model), args=arguments, train_dataset=spec.train_dataset, rollout_func=spec.rollout_func,
            reward_funcs=spec.reward_funcs,
        )  # fmt: skip
        assert type(trainer) is GRPOTrainer
        start = time.perf_counter()
        trainer.train()
        whole = time.perf_counter() - start
    logged = [row["environment/seconds"] for row in trainer.state.log_history if "environment/seconds" in row]
    assert trainer.state.global_step == len(logged) == STEPS
    share = sum(logged) / whole
    assert share < 0.05, f"waited {sum(logged):.2f} s of {whole:.2f} s for environments"
    checked("trl", read_version("trl"), "stock GRPOTrainer, waits < 5 % for environments", STEPS, STEPS)
