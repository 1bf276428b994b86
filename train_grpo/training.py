"""`trajsmith grpo`: tasks become prompts, episodes are played and judged, and their rewards train the model."""

from collections.abc import Mapping, Sequence
from typing import Any

from arena import Ground
from environments.blocking import Background
from train_grpo.rewards import REWARDS
from train_grpo.rollouts import Rollout, environment_class
from train_grpo.settings import GrpoConfig
from train_grpo.trainer import row_of, trainer_class
from train_sft.checkpoint import newest_checkpoint, open_model, ready_tokenizer, save_whole
from train_sft.stack import require_train, trainer_arguments
from train_sft.training import finished, lora_config, write_metrics
from trajectory import InputError, JsonObject, Message, RunError, Task
from usersim import PlaySettings, system_prompt


def prompt_rows(tasks: Sequence[Task], grounds: Mapping[str, Ground]) -> list[JsonObject]:
    """One row per task: the prompt that its dialogue begins with, and which class of environment plays it.

    Raises:
        InputError: A task needs a user who understands what the model asks.
    """
    rows = []
    for task in tasks:
        if task.mode != "direct":
            raise InputError(
                f"{task.id} is a conversation: the scripted user cannot read a model's questions; "
                "train on direct tasks (write.direct: 1)"
            )
        ground = grounds[task.environments[0]]
        system = system_prompt(ground.spec, task, ground.state(task.initial_state))
        prompt = [Message(role="system", content=system), Message(role="user", content=task.turns[0].query)]
        rows.append({"prompt": [row_of(one) for one in prompt], "task_id": task.id, "environment": class_name(task)})
    return rows


def class_name(task: Task) -> str:
    """Tasks of one environment that show the same tools share a class, since TRL renders tools per class."""
    return f"{task.environments[0]}:{','.join(task.exposed_tools)}"


def train(config: GrpoConfig, tasks: Sequence[Task], grounds: Mapping[str, Ground], resume: bool = False) -> None:
    """Train and save.

    Raises:
        InputError: Tasks, model or settings cannot be used.
        RunError: The disk is full; checkpoints are kept.
    """
    require_train("grpo")
    if not tasks:
        raise InputError(f"{config.run} has no tasks in split 'train'")
    from trl import GRPOConfig

    arguments = trainer_arguments(
        GRPOConfig,
        config.trainer,
        output_dir=str(config.out / "checkpoints"),
        report_to=list(config.report_to) or "none",
        max_completion_length=config.episode_tokens,
    )
    checkpoint = newest_checkpoint(config.out)
    if resume and checkpoint is None:
        raise InputError(f"{config.out} has no checkpoint to go on from: start without --resume")
    if checkpoint and not resume:
        raise InputError(f"{config.out} holds checkpoints: go on with --resume, or name another folder as out")
    tokenizer = ready_tokenizer(config.model)
    background = Background()
    try:
        trainer = make_trainer(config, arguments, tokenizer, tasks, grounds, background)
        trainer.train(resume_from_checkpoint=checkpoint if resume else None)
        save_whole(finished(trainer, config.lora), tokenizer, config.out)
        write_metrics(trainer.state.log_history, config.out)
    except OSError as error:
        raise RunError(f"{config.out}: {error.strerror or error}; go on with --resume") from error
    finally:
        background.close()


def make_trainer(
    config: GrpoConfig,
    arguments: Any,
    tokenizer: Any,
    tasks: Sequence[Task],
    grounds: Mapping[str, Ground],
    background: Background,
) -> Any:
    """The trainer with its data, environments and reward."""
    from datasets import Dataset, Features, Json, List, Value

    by_id, play = {task.id: task for task in tasks}, PlaySettings(max_steps=config.max_steps)

    def make(task: Task) -> Rollout:
        return Rollout(task, grounds[task.environments[0]], play)

    classes, schemas = {}, {}
    for task in tasks:
        name = class_name(task)
        known = {tool.name: tool for tool in grounds[task.environments[0]].spec.tools}
        classes[name] = environment_class(name, task.exposed_tools, by_id, make)
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
    )


def reward_function(name: str) -> Any:
    """The reward as TRL calls it, on the episodes of a batch."""
    reward = REWARDS[name]

    def score(environments: Sequence[Any], **_: Any) -> list[float | None]:
        found = []
        for environment in environments:
            rollout: Rollout = environment._rollout
            found.append(None if rollout.done is None else reward(rollout.done[1], rollout.done[2]))
        return found

    score.__name__ = name
    return score
