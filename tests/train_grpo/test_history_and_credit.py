"""What of an episode is learnt: samples per message with a window of history, advantages per user turn."""

import asyncio

import pytest
import speaking

from trajsmith.export.history import apply_window
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.train_grpo.credit import compute_rewards_to_go, compute_turn_rewards
from trajsmith.train_grpo.episodes import EpisodeResult
from trajsmith.train_grpo.reward_functions import EpisodeReward
from trajsmith.train_grpo.samples import EpisodeTokens, build_sample, draw_message, draw_turn
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


def fill_episode():
    """Two messages of the first turn, one of the second."""
    episode = EpisodeTokens([1, 2])
    episode.append([1, 2], [], [3, 4], 0, [-1.0, -2.0])
    episode.append([1, 2, 3, 4, 9], [9], [5], 0, [-3.0])
    episode.append([1, 9, 8], [9, 8], [6, 7], 1, [-4.0, -5.0])
    return episode


def test_all_messages_of_an_episode_are_one_sample():
    sample = build_sample(fill_episode(), None, None, pad=0)
    assert (sample.prompt_ids, sample.completion_ids) == ([1, 2], [3, 4, 9, 5, 9, 8, 6, 7])
    assert sample.mask == [1, 1, 0, 1, 0, 0, 1, 1]
    assert sample.logprobs == [-1.0, -2.0, 0.0, -3.0, 0.0, 0.0, -4.0, -5.0]


def test_a_turn_has_all_before_it_as_prompt():
    first, second = (build_sample(fill_episode(), turn, None, pad=0) for turn in (0, 1))
    assert (first.prompt_ids, first.completion_ids, first.mask) == ([1, 2], [3, 4, 9, 5], [1, 1, 0, 1])
    assert (second.prompt_ids, second.completion_ids, second.mask) == ([1, 2, 3, 4, 9, 5, 9, 8], [6, 7], [1, 1])
    assert second.logprobs == [-4.0, -5.0]


def test_a_drawn_message_has_the_context_that_the_model_saw():
    samples = [build_sample(fill_episode(), None, message, pad=0) for message in range(3)]
    assert [(one.prompt_ids, one.completion_ids) for one in samples] == [
        ([1, 2], [3, 4]), ([1, 2, 3, 4, 9], [5]), ([1, 9, 8], [6, 7])
    ]  # fmt: skip
    assert build_sample(fill_episode(), 1, 5, pad=0).completion_ids == [6, 7]


def test_nothing_is_learnt_of_a_turn_that_was_never_reached():
    sample = build_sample(fill_episode(), 2, None, pad=0)
    assert (sample.completion_ids, sample.mask, sample.logprobs) == ([0], [0], [0.0])


def test_all_episodes_of_a_task_learn_the_same_turn_and_steps_differ():
    assert len({draw_turn("task-1", 3, 5) for _ in range(4)}) == 1
    assert {draw_turn("task-1", 3, step) for step in range(20)} == {0, 1, 2}
    assert len({draw_message("task-1", 5, index) % 7 for index in range(40)}) == 7


def test_the_reward_of_a_turn_is_mixed_into_that_of_its_episode(run):
    task, record, verdict = next(one for one in join_verdicts(run) if len(one[0].turns) > 1)
    cut = verdict.model_copy(update={"turns": verdict.turns[:1], "outcome": "partial"})
    turns = len(task.turns)
    whole = EpisodeReward("rubric", lambda: None).score(EpisodeResult(task, record, cut, 0.0))
    for turn in range(turns):
        episode = EpisodeResult(task, record, cut, 0.0, turn)
        later = compute_rewards_to_go([1.0] + [0.0] * (turns - 1))[turn]
        assert EpisodeReward("rubric", lambda: None, 0.25).score(episode) == pytest.approx(0.75 * whole + 0.25 * later)


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
        self.made = [0] * len(known)

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
    from trajsmith.train_grpo.loop import EpisodeLoop, build_template_row
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
    prompts = [[build_template_row(message) for message in record.messages[:2]] for _, record, _ in known]
    try:
        episodes = EpisodeLoop(rollouts, prompts, tools, tokenizer, model, background, 9000, window=1).run()
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
    for episode, texts in zip(episodes, model.texts, strict=True):
        assert [step.ids for step in episode.steps] == texts


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
