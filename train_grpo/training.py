"""`trajsmith grpo`: tasks become prompts, episodes are played and judged, and their rewards train the model."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.evals import EvalContext
from trajsmith.models import CheckpointInfo, read_checkpoint_info
from trajsmith.records import InputError, Task
from trajsmith.train_grpo.episodes import EpisodeSource
from trajsmith.train_grpo.pass_rates import select_by_pass_rate
from trajsmith.train_grpo.reward_functions import EpisodeReward
from trajsmith.train_grpo.rollout_function import DialogueRollouts
from trajsmith.train_grpo.settings import GrpoConfig
from trajsmith.train_sft.checkpoint import (
    open_training_model,
    open_training_tokenizer,
    save_result,
    translate_write_errors,
)
from trajsmith.train_sft.libraries import (
    build_lora_config,
    build_trainer_arguments,
    require_train,
    restrict_logits_to_loss_tokens,
)
from trajsmith.train_sft.training import check_resume
from trajsmith.usersim import PlaySettings, UserFactory, build_scripted_user


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
    if config.pass_rates is not None:
        tasks = select_by_pass_rate(tasks, config.pass_rates, config.run)
    check_enough_tasks(arguments, tasks)
    tokenizer = open_training_tokenizer(config.model)
    own = background or BackgroundLoop()
    try:
        trainer = build_trainer(config, arguments, tokenizer, tasks, grounds, own, users)
        with translate_write_errors(config.out):
            start = time.process_time()
            trainer.train(resume_from_checkpoint=checkpoint)
            seconds = time.process_time() - start
            save_result(trainer, tokenizer, config, build_checkpoint_info(config, len(tasks)), seconds)
    finally:
        if background is None:
            own.close()


def check_enough_tasks(arguments: Any, tasks: Sequence[Task]) -> None:
    """Refuse a training of fewer tasks than one step takes: TRL would end it before the first step.

    Raises:
        InputError: There are fewer.
    """
    episodes, group = arguments.generation_batch_size, arguments.num_generations
    if len(tasks) < episodes // group:
        raise InputError(
            f"{len(tasks)} tasks to train on, and a step takes {episodes // group} ({episodes} episodes, {group} of "
            "each task): take more tasks (limit), widen pass_rates, or lower trainer.gradient_accumulation_steps"
        )


def build_checkpoint_info(config: GrpoConfig, tasks: int) -> CheckpointInfo:
    """Build the notes of the finished model: those of the model before it, and this training."""
    before = read_checkpoint_info(config.model)
    settings = config.model_dump(
        mode="json", include={"reward", "max_steps", "history", "turn_weight", "pass_rates", "trainer", "lora"}
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
    """Build TRL's trainer with its data, episodes and reward."""
    from trl import GRPOTrainer

    play = PlaySettings(max_steps=config.max_steps)
    restrict_logits_to_loss_tokens()
    style = config.tools or read_checkpoint_info(config.model).tools
    episodes = EpisodeSource(tasks, grounds, background, play, config.strict_format, users, style, (config.reward,))
    return GRPOTrainer(
        model=open_training_model(config.model, adapters=config.lora is not None),
        args=arguments,
        train_dataset=episodes.build_prompt_dataset(),
        processing_class=tokenizer,
        rollout_func=DialogueRollouts(lambda: episodes, config.history, config.turn_weight, config.message_tokens),
        reward_funcs=[EpisodeReward(config.reward, lambda: episodes, config.turn_weight)],
        peft_config=build_lora_config(config.lora),
    )
