"""What of an episode is learnt: samples per message with a window of history, advantages per user turn."""

import asyncio
from types import SimpleNamespace

import pytest
import speaking

from trajsmith.export.history import apply_window
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.train_grpo.credit import (
    ModelStep,
    compute_rewards_to_go,
    compute_step_advantages,
    compute_turn_advantages,
    compute_turn_rewards,
)
from trajsmith.usersim import PlaySettings

CONFIG = """
name: talk
seed: 11
run: {run}
environments: [{{library: smart_home, states: {{small: 2}}}}]
sample: {{count: 6, length: [4, 6]}}
ground: {{min_calls: 3}}
write: {{direct: 0.5, mean_calls: 2, policy: false}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Direct tasks and conversations of several turns."""
    folder = tmp_path_factory.mktemp("talk")
    (folder / "line.yaml").write_text(CONFIG.format(run=folder / "run"))
    settings = load_config(folder / "line.yaml")
    made = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(made))
    return made


def needs(*packages):
    for needed in packages:
        pytest.importorskip(needed, reason=f"{needed} is missing: pip install -e '.[train]'")


# Credit


def test_rewards_to_go_look_ahead_only():
    assert compute_rewards_to_go([1.0, 0.0, 1.0]) == pytest.approx([2 / 3, 0.5, 1.0])


def test_turns_are_compared_with_the_same_turn_of_their_group():
    found = compute_turn_advantages([[1.0, 0.0], [1.0, 1.0], None, [0.0, 0.0], [0.0, 0.0], None], 3)
    assert found[0][1] == pytest.approx(-found[1][1]) and found[1][1] > 0.7
    assert found[2] == [] and found[3] == found[4] == [0.0, 0.0]


@pytest.mark.parametrize(("weight", "expected"), [(0.0, [1.0, 1.0]), (1.0, [0.5, -0.5]), (0.5, [0.75, 0.25])])
def test_advantages_of_messages_mix_episode_and_turn(weight, expected):
    steps = [[ModelStep([1], [2], 0, 0), ModelStep([1], [3], 1, 4)]]
    assert compute_step_advantages(steps, [1.0], [[0.5, -0.5]], weight) == [expected]


def test_turns_earn_by_their_checks_and_a_broken_format_costs_its_own(run):
    task, record, verdict = next(one for one in join_verdicts(run) if len(one[0].turns) > 1)
    turns = len(task.turns)
    assert compute_turn_rewards(record, verdict, turns) == [1.0] * turns
    cut = verdict.model_copy(update={"turns": verdict.turns[:1], "outcome": "partial"})
    assert compute_turn_rewards(record, cut, turns) == [1.0] + [0.0] * (turns - 1)
    broken = record.model_copy(update={"stop_reason": "agent_gave_up", "turns": record.turns[:2]})
    assert compute_turn_rewards(broken, cut, turns) == [1.0, -1.0] + [0.0] * (turns - 2)
    unknown = verdict.model_copy(update={"outcome": "environment_error"})
    assert compute_turn_rewards(record, unknown, turns) is None


def test_a_model_plays_the_user_in_episodes(run, tmp_path, monkeypatch):
    from running_server import RunningServer

    from trajsmith.pipeline.eval_contexts import open_simulated_users
    from trajsmith.train_grpo import GrpoConfig
    from trajsmith.train_grpo.rollouts import Rollout

    monkeypatch.setenv(speaking.RUN, str(run.path))
    task = next(one for one in split_tasks(run, "all") if one.mode == "conversation")
    ground = asyncio.run(open_eval_contexts(run))[task.environments[0]]
    with RunningServer(script=speaking.__file__) as server:
        models = {"local": {"model": "test-model", "base_url": server.url}}
        settings = GrpoConfig.model_validate(
            {"model": "m", "run": run.path, "out": tmp_path, "episode_tokens": 9, "user": "local", "models": models}
        )
        with open_simulated_users(settings) as (users, background):
            rollout = Rollout(task, ground, PlaySettings(max_steps=2), users=users)
            rollout.start(background)
            rollout.finish("Let me look into that.")
            _, played, _ = rollout.verdict()
        assert server.stats()["answered"] > 0
    assert played.models == {"agent": "policy", "user": "test-model"}
    assert (tmp_path / "usage.jsonl").read_bytes().count(b'"purpose":"user"') > 0


# Samples


@pytest.mark.train
def test_samples_fill_up_without_anything_learnt():
    needs("torch")
    from trajsmith.train_grpo.samples import build_step_samples, spread_advantages

    steps = [[ModelStep([1, 2, 3], [4, 5], 0, 0, [-1.0, -2.0]), ModelStep([1], [6], 1, 4, [-3.0])]]
    found = build_step_samples(steps, [[0.5, -1.0]], [True], pad=0, parts=4, device="cpu")
    assert found["prompt_ids"].tolist() == [[1, 2, 3], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert found["completion_ids"].tolist() == [[4, 5], [6, 0], [0, 0], [0, 0]]
    assert found["tool_mask"].tolist() == [[1, 1], [1, 0], [0, 0], [0, 0]]
    assert found["advantages"].tolist() == [0.5, -1.0, 0.0, 0.0]
    assert found["drawn"].tolist() == [[-1.0, -2.0], [-3.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    import torch

    assert spread_advantages(steps, [[0.5, -1.0]], torch.zeros(1, 6)).tolist() == [[0.5, 0.5, 0.0, 0.0, -1.0, 0.0]]


class GoldModel:
    """Generates the messages of recorded trajectories, whatever of the history it is shown."""

    def __init__(self, tokenizer, known, tools):
        self.texts, self.prompts, self.shown = [], [], []
        for (_, record, _), schemas in zip(known, tools, strict=True):
            rows = [message.model_dump(mode="json", exclude_none=True) for message in record.messages]
            options = {"tools": schemas, "return_dict": False}
            whole = tokenizer.apply_chat_template(rows, **options)
            starts = [
                len(tokenizer.apply_chat_template(rows[:index], add_generation_prompt=True, **options))
                for index, row in enumerate(rows)
                if row["role"] == "assistant"
            ]
            self.texts.append([whole[start : whole.index(tokenizer.eos_token_id, start) + 1] for start in starts])
            self.prompts.append(whole[: starts[0]])
        self.made = [1] * len(known)

    def __call__(self, contexts, *_):
        found = []
        for context in contexts:
            index = next(at for at, prompt in enumerate(self.prompts) if context[: len(prompt)] == prompt)
            self.shown.append((index, self.made[index], context))
            found.append(list(self.texts[index][self.made[index]]))
            self.made[index] += 1
        return found, None


@pytest.mark.train
def test_the_model_sees_what_rows_with_the_same_window_show(run):
    needs("torch", "transformers", "trl")
    from trajsmith.environments.blocking import BackgroundLoop
    from trajsmith.train_grpo.loop import EpisodeLoop
    from trajsmith.train_grpo.rollouts import Rollout
    from trajsmith.train_sft.checkpoint import set_templates
    from trajsmith.train_sft.scratch import train_tokenizer
    from trajsmith.train_sft.training import read_rows

    known = [one for one in join_verdicts(run) if one[0].mode == "direct"]
    tokenizer = set_templates(train_tokenizer(read_rows(run.path), 600), "scratch")
    grounds, background = asyncio.run(open_eval_contexts(run)), BackgroundLoop()
    specs = [{tool.name: tool for tool in grounds[task.environments[0]].spec.tools} for task, _, _ in known]
    tools = [
        [spec[name].as_function() for name in one[0].exposed_tools] for spec, one in zip(specs, known, strict=True)
    ]
    model = GoldModel(tokenizer, known, tools)
    rollouts = [Rollout(task, grounds[task.environments[0]], PlaySettings()) for task, _, _ in known]
    trainer = SimpleNamespace(
        background=background, environments=[SimpleNamespace(_rollout=one) for one in rollouts], _tokenizer=tokenizer,
        processing_class=tokenizer, chat_template=tokenizer.chat_template, max_completion_length=9000,
        _generate_single_turn=model, _env_tools=dict(enumerate(tools)), _batch_environments=list(range(len(known))),
    )  # fmt: skip
    first = [list(texts[0]) for texts in model.texts]
    try:
        loop = EpisodeLoop(trainer, model.prompts, first, [[{}] for _ in known], None, window=1)
        loop.run()
        assert all(rollout.verdict()[0].passed for rollout in rollouts)
    finally:
        background.close()
    cut = 0
    for index, number, context in model.shown:
        rows = [message.model_dump(mode="json", exclude_none=True) for message in known[index][1].messages]
        start = [at for at, row in enumerate(rows) if row["role"] == "assistant"][number]
        kept = apply_window(rows, start, 1)
        cut += len(kept) < start
        options = {"tools": tools[index], "return_dict": False, "add_generation_prompt": True}
        assert context == tokenizer.apply_chat_template(kept, **options)
    assert cut > 0
    for said, texts in zip(loop.steps, model.texts, strict=True):
        assert [step.ids for step in said] == texts


@pytest.mark.train
@pytest.mark.parametrize(
    "more",
    [{"history": 1, "turn_weight": 0.5}, {"turn_weight": 1.0}, {"history": 3}],
    ids=["window and turns", "turns", "window"],
)
def test_steps_of_training_with_conversations(run, tmp_path, more):
    needs("torch", "transformers", "trl", "peft")
    from trajsmith.train_grpo import GrpoConfig
    from trajsmith.train_grpo.training import train
    from trajsmith.train_sft import ScratchSettings, SftConfig
    from trajsmith.train_sft.training import train as tune

    trainer = {"max_steps": 1, "disable_tqdm": True, "logging_steps": 1, "dataloader_pin_memory": False}
    small = ScratchSettings(hidden=32, layers=1, heads=2, vocabulary=600)
    start = tmp_path / "sft"
    tune(
        SftConfig(
            scratch=small, dataset=run.path, out=start, max_length=9000, trainer=trainer | {"save_strategy": "no"}
        )
    )
    settings = GrpoConfig(
        model=str(start), run=run.path, out=tmp_path / "grpo", reward="checks", episode_tokens=200, max_steps=3, **more,
        trainer=trainer | {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "num_generations": 2,
                           "num_iterations": 2, "max_steps": 2, "beta": 0.01, "save_strategy": "no"},
    )  # fmt: skip
    tasks = list(split_tasks(run, "train"))
    assert {task.mode for task in tasks} == {"direct", "conversation"}
    train(settings, tasks, asyncio.run(open_eval_contexts(run)))
    metrics = (tmp_path / "grpo/metrics.jsonl").read_text()
    assert '"environment/seconds"' in metrics and '"kl"' in metrics
