"""Episodes beside a trainer: they score as evaluation does, and one step of training runs on live environments."""

import asyncio

import pytest

from trajsmith.models import ChatReply, MalformedCall
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import FunctionCall, Message, ToolCall
from trajsmith.train_grpo.rewards import compute_episode_reward
from trajsmith.usersim import PlaySettings
from trajsmith.verify.rewards import REWARDS

CONFIG = """
name: grpo
seed: 5
run: {run}
environments: [{{library: smart_home, states: {{small: 2}}}}]
sample: {{count: 6, length: [1, 2], method: random_walk}}
ground: {{min_calls: 1}}
write: {{mean_calls: 3, direct: 1.0, shown_tools: 2, policy: false}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grpo")
    (folder / "line.yaml").write_text(CONFIG.format(run=folder / "run"))
    settings = load_config(folder / "line.yaml")
    made = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(made))
    return made


def play(rollouts, trajectories, background):
    """Answer every question with what the recorded trajectory says there."""
    from trajsmith.train_grpo.rollouts import collect_next_steps, send_replies

    for rollout in rollouts:
        rollout.start(background)
    active = list(zip(rollouts, trajectories, strict=True))
    while active:
        steps = collect_next_steps(background, [rollout for rollout, _ in active])
        going = [(pair, step) for pair, step in zip(active, steps, strict=True) if step is not None]
        replies = [(rollout, ChatReply(message=record.messages[len(step)])) for (rollout, record), step in going]
        send_replies(background, replies)
        active = [pair for pair, _ in going]


def test_gold_transcripts_of_a_batch_score_as_in_the_run(run):
    from trajsmith.environments.blocking import BackgroundLoop
    from trajsmith.pipeline.record_joins import join_verdicts
    from trajsmith.train_grpo.rollouts import Rollout

    known = list(join_verdicts(run))
    grounds, background = asyncio.run(open_eval_contexts(run)), BackgroundLoop()
    rollouts = [Rollout(task, grounds[task.environments[0]], PlaySettings()) for task, _, _ in known]
    try:
        play(rollouts, [record for _, record, _ in known], background)
        found = [rollout.verdict() for rollout in rollouts]
    finally:
        background.close()
    names = [name for name in REWARDS.names() if REWARDS.get(name).__module__.startswith("trajsmith.")]
    for (episode, played, judgement), (task, record, verdict) in zip(found, known, strict=True):
        assert episode.passed and played.final_state == record.final_state
        assert played.messages == record.messages
        assert (judgement.checks, judgement.outcome) == (verdict.checks, verdict.outcome)
        earned = {name: compute_episode_reward(name, task, played, judgement) for name in names}
        assert earned == dict.fromkeys(names, 1.0) | {"steps": None}, "steps needs labels, which nobody asked for"


def test_a_broken_format_ends_the_episode_at_once(run):
    from trajsmith.environments.blocking import BackgroundLoop
    from trajsmith.train_grpo.rollouts import Rollout, collect_next_steps, send_replies

    task = next(split_tasks(run, "all"))
    grounds, background = asyncio.run(open_eval_contexts(run)), BackgroundLoop()
    rollout = Rollout(task, grounds[task.environments[0]], PlaySettings())
    try:
        rollout.start(background)
        assert [message.role for message in collect_next_steps(background, [rollout])[0]] == ["system", "user"]
        malformed = MalformedCall(id="call_0", name="", text="{", error="the call is no JSON")
        message = Message(role="assistant", content="<tool_call>{")
        send_replies(background, [(rollout, ChatReply(message=message, malformed=(malformed,)))])
        assert collect_next_steps(background, [rollout]) == [None]
        _, played, verdict = rollout.verdict()
    finally:
        background.close()
    assert compute_episode_reward("format_outcome", task, played, verdict) == -1.0
    assert compute_episode_reward("composite", task, played, verdict) < 1.0


CALLS = {
    "unknown tool": ("no_such_tool", {}),
    "wrong arguments": (None, {"no_such_argument": 1}),
}


@pytest.mark.parametrize(("name", "arguments"), CALLS.values(), ids=CALLS)
def test_strict_format_ends_an_episode_where_the_schema_is_broken(run, name, arguments):
    from trajsmith.environments.arguments import ArgumentValidator
    from trajsmith.environments.blocking import BackgroundLoop
    from trajsmith.train_grpo.rollouts import Rollout, collect_next_steps, send_replies

    task = next(split_tasks(run, "all"))
    grounds, background = asyncio.run(open_eval_contexts(run)), BackgroundLoop()
    ground = grounds[task.environments[0]]
    function = FunctionCall(name=name or task.exposed_tools[0], arguments=arguments)
    said = ChatReply(message=Message(role="assistant", tool_calls=(ToolCall(id="call_1", function=function),)))
    strict = Rollout(task, ground, PlaySettings(), ArgumentValidator(ground.spec))
    lenient = Rollout(task, ground, PlaySettings())
    try:
        for rollout in (strict, lenient):
            rollout.start(background)
        collect_next_steps(background, [strict, lenient])
        send_replies(background, [(strict, said), (lenient, said)])
        ended, going = collect_next_steps(background, [strict, lenient])
        _, played, verdict = strict.verdict()
    finally:
        background.close()
    assert ended is None and going[-1].role == "tool"
    assert compute_episode_reward("format_outcome", task, played, verdict) == -1.0
    assert played.events == ()


@pytest.mark.train
def test_steps_of_training_run_on_live_environments(run, tmp_path, monkeypatch):
    for needed in ("torch", "transformers", "trl", "peft"):
        pytest.importorskip(needed, reason=f"{needed} is missing: pip install -e '.[train]'")
    from trajsmith.train_grpo import GrpoConfig
    from trajsmith.train_grpo.training import train
    from trajsmith.train_sft import ScratchSettings, SftConfig
    from trajsmith.train_sft.training import train as tune

    for registered in ("_things", "_modules", "_loaded"):
        monkeypatch.setattr(REWARDS, registered, dict(getattr(REWARDS, registered)))

    @REWARDS.register("few_messages")
    def few_messages(evidence, settings):
        return None if evidence.is_undecidable else 1 / (1 + evidence.calls)

    trainer = {"max_steps": 1, "disable_tqdm": True, "logging_steps": 1, "dataloader_pin_memory": False}
    small = ScratchSettings(hidden=32, layers=1, heads=2, vocabulary=600)
    first = tmp_path / "sft"
    tune(
        SftConfig(
            scratch=small, dataset=run.path, out=first, max_length=4000, trainer=trainer | {"save_strategy": "no"}
        )
    )
    settings = GrpoConfig(
        model=str(first), run=run.path, out=tmp_path / "grpo", reward="few_messages", episode_tokens=48, max_steps=2,
        trainer=trainer | {"per_device_train_batch_size": 4, "num_generations": 2, "save_strategy": "no"},
    )  # fmt: skip
    train(settings, list(split_tasks(run, "train")), asyncio.run(open_eval_contexts(run)))
    metrics = (tmp_path / "grpo/metrics.jsonl").read_text()
    assert (
        '"rewards/few_messages/mean"' in metrics and '"episode/calls"' in metrics and '"environment/seconds"' in metrics
    )
    assert (tmp_path / "grpo/model.safetensors").is_file()


@pytest.mark.train
def test_tokens_of_a_batch_are_those_of_the_whole_conversation_and_only_the_models_are_learnt(run):
    """The trainer's loop with gold messages in place of a model's: ids equal one rendering of the transcript."""
    for needed in ("torch", "transformers", "trl"):
        pytest.importorskip(needed, reason=f"{needed} is missing: pip install -e '.[train]'")
    from trajsmith.environments.blocking import BackgroundLoop
    from trajsmith.pipeline.record_joins import join_verdicts
    from trajsmith.train_grpo.loop import EpisodeLoop, build_template_row
    from trajsmith.train_grpo.rollouts import Rollout
    from trajsmith.train_sft.checkpoint import set_templates
    from trajsmith.train_sft.scratch import train_tokenizer
    from trajsmith.train_sft.training import read_rows

    known = list(join_verdicts(run))
    tokenizer = set_templates(train_tokenizer(read_rows(run.path), 600), "scratch")
    grounds, background = asyncio.run(open_eval_contexts(run)), BackgroundLoop()
    tools, prompts, gold = [], [], []
    for task, record, _ in known:
        specs = {tool.name: tool for tool in grounds[task.environments[0]].spec.tools}
        tools.append([specs[name].as_function() for name in task.exposed_tools])
        rows = [build_template_row(message) for message in record.messages]
        whole, texts = tokenizer.apply_chat_template(rows, tools=tools[-1], return_dict=False), []
        for index, message in enumerate(record.messages):
            if message.role == "assistant":
                options = {"tools": tools[-1], "return_dict": False}
                start = len(tokenizer.apply_chat_template(rows[:index], add_generation_prompt=True, **options))
                stop = whole.index(tokenizer.eos_token_id, start) + 1
                texts.append(whole[start:stop])
        prompts.append(
            tokenizer.apply_chat_template(rows[:2], tools=tools[-1], add_generation_prompt=True, return_dict=False)
        )
        gold.append((whole, texts))
    asked = {tuple(prompt): index for index, prompt in enumerate(prompts)}

    def generate(contexts, *_):
        made = []
        for context in contexts:
            index = next(number for prompt, number in asked.items() if tuple(context[: len(prompt)]) == prompt)
            made.append(
                next(text for text in gold[index][1] if gold[index][0][: len(context) + len(text)] == context + text)
            )
        return made, None

    rollouts = [Rollout(task, grounds[task.environments[0]], PlaySettings()) for task, _, _ in known]
    rows = [[build_template_row(message) for message in record.messages[:2]] for _, record, _ in known]
    try:
        loop = EpisodeLoop(rollouts, rows, tools, tokenizer, generate, background, 4000)
        episodes = loop.run()
    finally:
        background.close()
    for prompt, episode, (whole, texts) in zip(prompts, episodes, gold, strict=True):
        assert episode.prompt_ids == prompt
        assert prompt + episode.ids == whole[: len(prompt) + len(episode.ids)]
        assert [token for token, mark in zip(episode.ids, episode.mask, strict=True) if mark] == [
            token for text in texts for token in text
        ]
    assert all(rollout.verdict()[0].passed for rollout in rollouts)
