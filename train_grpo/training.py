"""`trajsmith grpo`: tasks become prompts, episodes are played and judged, and their rewards train the model."""

from collections.abc import Mapping, Sequence
from typing import Any

from arena import Ground, Users, scripted_user
from environments.arguments import ArgumentChecks
from environments.blocking import Background
from train_grpo.factory import class_name, environment_class
from train_grpo.loop import row_of
from train_grpo.rewards import REWARDS
from train_grpo.rollouts import Rollout
from train_grpo.settings import GrpoConfig
from train_grpo.trainer import trainer_class
from train_sft.checkpoint import open_model, ready_tokenizer, save_whole, writing
from train_sft.stack import require_train, trainer_arguments
from train_sft.training import check_resume, finished, lora_config, write_metrics
from trajectory import InputError, JsonObject, Message, Task
from usersim import PlaySettings, system_prompt


def prompt_rows(tasks: Sequence[Task], grounds: Mapping[str, Ground]) -> list[JsonObject]:
    """One row per task: the prompt that its dialogue begins with, and which class of environment plays it."""
    rows = []
    for task in tasks:
        ground = grounds[task.environments[0]]
        system = system_prompt(ground.spec, task, ground.state(task.initial_state))
        prompt = [Message(role="system", content=system), Message(role="user", content=task.turns[0].query)]
        rows.append({"prompt": [row_of(one) for one in prompt], "task_id": task.id, "environment": class_name(task)})
    return rows


def check_settings(config: GrpoConfig) -> Any:
    """Return TRL's `GRPOConfig`, made before any work.

    Raises:
        InputError: The extra is missing, or a setting of `trainer` or `lora` is unknown, of another type or refused.
    """
    require_train("grpo")
    from trl import GRPOConfig

    lora_config(config.lora)
    return trainer_arguments(
        GRPOConfig,
        config.trainer,
        output_dir=str(config.out / "checkpoints"),
        report_to=list(config.report_to) or "none",
        max_completion_length=config.episode_tokens,
    )


def train(
    config: GrpoConfig,
    tasks: Sequence[Task],
    grounds: Mapping[str, Ground],
    resume: bool = False,
    users: Users = scripted_user,
    background: Background | None = None,
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
    tokenizer = ready_tokenizer(config.model)
    own = background or Background()
    try:
        trainer = make_trainer(config, arguments, tokenizer, tasks, grounds, own, users)
        with writing(config.out):
            trainer.train(resume_from_checkpoint=checkpoint)
            save_whole(finished(trainer, config.lora), tokenizer, config.out)
            write_metrics(trainer.state.log_history, config.out)
    finally:
        if background is None:
            own.close()


def make_trainer(
    config: GrpoConfig,
    arguments: Any,
    tokenizer: Any,
    tasks: Sequence[Task],
    grounds: Mapping[str, Ground],
    background: Background,
    users: Users = scripted_user,
) -> Any:
    """The trainer with its data, environments and reward."""
    from datasets import Dataset, Features, Json, List, Value

    by_id, play = {task.id: task for task in tasks}, PlaySettings(max_steps=config.max_steps)
    used = {task.environments[0] for task in tasks} if config.strict_format else set()
    strict = {name: ArgumentChecks(grounds[name].spec) for name in used}

    def make(task: Task) -> Rollout:
        name = task.environments[0]
        return Rollout(task, grounds[name], play, strict.get(name), users)

    classes, schemas = {}, {}
    for task in tasks:
        name = class_name(task)
        known = {tool.name: tool for tool in grounds[task.environments[0]].spec.tools}
        classes[name] = environment_class(name, task.exposed_tools, by_id, make, background)
        schemas[name] = [known[tool].as_function() for tool in task.exposed_tools]
    features = Features({"prompt": List(Json()), "task_id": Value("string"), "environment": Value("string")})
    return trainer_class()(
        model=open_model(config.model),
        args=arguments,
        train_dataset=Dataset.from_list(prompt_rows(tasks, grounds), features=features),
        processing_class=tokenizer,
        environment_factory=classes,
        reward_funcs=[reward_function(config.reward)],
        peft_config=lora_config(config.lora),
        background=background,
        schemas=schemas,
        window=config.history,
        turn_weight=config.turn_weight,
    )


def reward_function(name: str) -> Any:
    """The reward as TRL calls it, on the episodes of a batch."""
    reward = REWARDS[name]

    def score(environments: Sequence[Any], **_: Any) -> list[float | None]:
        found = []
        for environment in environments:
            done = environment._rollout.verdict()
            found.append(None if done is None else reward(done[1], done[2]))
        return found

    score.__name__ = name
    return score
