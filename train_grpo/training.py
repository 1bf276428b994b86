"""`trajsmith grpo`: tasks become prompts, episodes are played and judged, and their rewards train the model."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trajsmith.environments.arguments import ArgumentValidator
from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.evals import EvalContext
from trajsmith.models import CheckpointInfo, read_checkpoint_info
from trajsmith.models.precision import choose_training_dtype
from trajsmith.models.transformers_engine import open_model
from trajsmith.records import InputError, JsonObject, Message, Task, ToolStyle, render_tools
from trajsmith.train_grpo.factory import build_class_name, build_environment_class
from trajsmith.train_grpo.loop import build_template_row
from trajsmith.train_grpo.rewards import compute_episode_reward
from trajsmith.train_grpo.rollouts import Rollout
from trajsmith.train_grpo.settings import GrpoConfig
from trajsmith.train_grpo.trainer import build_trainer_class
from trajsmith.train_sft.checkpoint import (
    open_training_tokenizer,
    save_atomically,
    translate_write_errors,
)
from trajsmith.train_sft.libraries import build_trainer_arguments, require_train
from trajsmith.train_sft.training import build_lora_config, check_resume, merge_adapters, read_dtype, write_metrics
from trajsmith.usersim import PlaySettings, UserFactory, build_scripted_user, render_system_prompt

if TYPE_CHECKING:
    from datasets import Dataset


def build_prompt_rows(tasks: Sequence[Task], grounds: Mapping[str, EvalContext]) -> list[JsonObject]:
    """Build one row per task: the prompt of its dialogue, and its environment class."""
    rows = []
    for task in tasks:
        ground = grounds[task.environments[0]]
        system = render_system_prompt(ground.spec, task, ground.state(task.initial_state))
        prompt = [Message(role="system", content=system), Message(role="user", content=task.turns[0].query)]
        rows.append(
            {
                "prompt": [build_template_row(one) for one in prompt],
                "task_id": task.id,
                "environment": build_class_name(task),
            }
        )
    return rows


def build_prompt_dataset(tasks: Sequence[Task], grounds: Mapping[str, EvalContext]) -> "Dataset":
    """Build the training dataset of these tasks: columns `prompt`, `task_id`, `environment`."""
    from datasets import Dataset, Features, Json, List, Value

    features = Features({"prompt": List(Json()), "task_id": Value("string"), "environment": Value("string")})
    return Dataset.from_list(build_prompt_rows(tasks, grounds), features=features)


def build_episode_classes(
    tasks: Sequence[Task],
    grounds: Mapping[str, EvalContext],
    background: BackgroundLoop,
    play: PlaySettings,
    strict_format: bool = False,
    users: UserFactory = build_scripted_user,
    tools: ToolStyle = "full",
) -> tuple[dict[str, type], dict[str, list[JsonObject]]]:
    """Build the classes for TRL's `environment_factory` and the OpenAI functions of their tools, by class name.

    Args:
        tasks: Tasks that are played.
        grounds: Environments of the tasks.
        background: Where episodes run.
        play: Limits of an episode.
        strict_format: End an episode also at a call that the schema refuses.
        users: Who plays the user.
        tools: How the tools are shown.
    """
    by_id = {task.id: task for task in tasks}
    used = {task.environments[0] for task in tasks} if strict_format else set()
    strict = {name: ArgumentValidator(grounds[name].spec) for name in used}

    def make(task: Task) -> Rollout:
        name = task.environments[0]
        return Rollout(task, grounds[name], play, strict.get(name), users)

    classes: dict[str, type] = {}
    schemas: dict[str, list[JsonObject]] = {}
    for task in tasks:
        name = build_class_name(task)
        shown = task.find_shown_specs(grounds[task.environments[0]].spec.tools)
        classes[name] = build_environment_class(name, task.shown_tools, by_id, make, background)
        schemas[name] = render_tools([tool.as_function() for tool in shown], tools)
    return classes, schemas


def check_settings(config: GrpoConfig) -> Any:
    """Return TRL's `GRPOConfig`, made before any work.

    Raises:
        InputError: The extra is missing, or a setting of `trainer` or `lora` is unknown, of another type or refused.
    """
    require_train("grpo")
    from trl import GRPOConfig

    build_lora_config(config.lora)
    return build_trainer_arguments(
        GRPOConfig,
        config.trainer,
        model=config.model,
        output_dir=str(config.out / "checkpoints"),
        report_to=list(config.report_to) or "none",
        max_completion_length=config.episode_tokens,
    )


def train(
    config: GrpoConfig,
    tasks: Sequence[Task],
    grounds: Mapping[str, EvalContext],
    resume: bool = False,
    users: UserFactory = build_scripted_user,
    background: BackgroundLoop | None = None,
) -> None:
    """Train and save.

    Args:
        users: Who plays the user in the episodes.
        background: Where the episodes run; one of its own if not given.

    Raises:
        InputError: Tasks, model or settings cannot be used.
        RunError: The disk is full; checkpoints are kept.
    """
    arguments, checkpoint = check_settings(config), check_resume(config.out, resume)
    if not tasks:
        raise InputError(f"{config.run} has no tasks in split 'train'")
    tokenizer = open_training_tokenizer(config.model)
    own = background or BackgroundLoop()
    try:
        trainer = build_trainer(config, arguments, tokenizer, tasks, grounds, own, users)
        with translate_write_errors(config.out):
            trainer.train(resume_from_checkpoint=checkpoint)
            info = build_checkpoint_info(config, len(tasks))
            dtype = read_dtype(config.model)
            save_atomically(merge_adapters(trainer, config.lora), tokenizer, config.out, info, dtype)
            write_metrics(trainer.state.log_history, config.out)
    finally:
        if background is None:
            own.close()


def build_checkpoint_info(config: GrpoConfig, tasks: int) -> CheckpointInfo:
    """Build the notes of the finished model: those of the model before it, and this training."""
    before = read_checkpoint_info(config.model)
    settings = config.model_dump(
        mode="json", include={"reward", "max_steps", "history", "turn_weight", "trainer", "lora"}
    )
    training = {"kind": "grpo", "tasks": tasks, "settings": settings}
    return CheckpointInfo(
        origin=before.origin, tools=config.tools or before.tools, training=(*before.training, training)
    )


def build_trainer(
    config: GrpoConfig,
    arguments: Any,
    tokenizer: Any,
    tasks: Sequence[Task],
    grounds: Mapping[str, EvalContext],
    background: BackgroundLoop,
    users: UserFactory = build_scripted_user,
) -> Any:
    """The trainer with its data, environments and reward."""
    play = PlaySettings(max_steps=config.max_steps)
    style = config.tools or read_checkpoint_info(config.model).tools
    classes, schemas = build_episode_classes(tasks, grounds, background, play, config.strict_format, users, style)
    return build_trainer_class()(
        model=open_model(config.model, choose_training_dtype(config.model)),
        args=arguments,
        train_dataset=build_prompt_dataset(tasks, grounds),
        processing_class=tokenizer,
        environment_factory=classes,
        reward_funcs=[build_reward_function(config.reward)],
        peft_config=build_lora_config(config.lora),
        background=background,
        schemas=schemas,
        window=config.history,
        turn_weight=config.turn_weight,
    )


def build_reward_function(name: str) -> Any:
    """Build the reward function in TRL's form, for the episodes of a batch."""

    def score(environments: Sequence[Any], **_: Any) -> list[float | None]:
        rewards = []
        for environment in environments:
            rollout = environment._rollout
            done = rollout.verdict()
            rewards.append(None if done is None else compute_episode_reward(name, rollout.task, done[1], done[2]))
        return rewards

    score.__name__ = name
    return score
