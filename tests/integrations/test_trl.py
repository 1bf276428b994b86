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
