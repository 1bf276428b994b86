"""Tasks, environments and rewards of a run in the shape of TRL's experimental specs."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trajsmith.api.runs import Run
from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.pipeline.eval_contexts import RunEvalContexts, list_training_tasks, open_eval_contexts
from trajsmith.records import InputError, JsonObject, Task
from trajsmith.train_grpo.trainer import build_trainer_class
from trajsmith.train_grpo.training import build_episode_classes, build_prompt_dataset, build_reward_function
from trajsmith.train_sft.libraries import require_train
from trajsmith.usersim import PlaySettings
from trajsmith.verify.rewards import REWARDS

if TYPE_CHECKING:
    from datasets import Dataset


class TrajsmithSpec:
    """Tasks of a run for GRPO: `train_dataset`, `environment_factory`, `reward_funcs`, as TRL's `HarborSpec` has them.

    Pass them to `spec.trainer_class`, a subclass of TRL's `GRPOTrainer` that takes the same arguments and plays whole
    dialogues: the simulated user answers, and each task shows its tools by their own schemas.

    What it does not do yet:

    * TRL's stock `GRPOTrainer` cannot use these environments: it derives tool schemas from Python signatures, which
      tools that come as JSON Schema do not have, and it ends an episode at the first message without a call, where a
      dialogue goes on with the user's next message.
    * `AsyncGRPOTrainer` is not supported, since the episodes run in a thread of this process.
    * The user is the scripted one, and a stopped training is not resumed; `trajsmith grpo` does both.

    Args:
        run: Run, or run directory, that has the tasks.
        rewards: Names of rewards, those of plug-ins and of `trajsmith.verify.rewards.REWARDS.register` among them.
        split: Which tasks of the run.
        limit: At most this many tasks of each environment.
        max_steps: Messages of the model per turn.
        strict_format: End an episode also at a call of a tool that is not shown, or that its schema refuses.

    Raises:
        InputError: A reward is unknown, or the run has no such tasks.

    Example:
        >>> from trl import GRPOConfig
        >>> with trajsmith.TrajsmithSpec("runs/quickstart", rewards=["rubric"]) as spec:
        ...     trainer = spec.trainer_class(
        ...         model="Qwen/Qwen3-0.6B",
        ...         args=GRPOConfig(max_completion_length=8192),
        ...         train_dataset=spec.train_dataset,
        ...         environment_factory=spec.environment_factory,
        ...         reward_funcs=spec.reward_funcs,
        ...     )
        ...     trainer.train()
    """

    def __init__(
        self,
        run: Run | Path | str,
        *,
        rewards: Sequence[str] = ("composite",),
        split: Literal["train", "validation", "test", "all"] = "train",
        limit: int | None = None,
        max_steps: int = 12,
        strict_format: bool = False,
    ) -> None:
        self._run = run if isinstance(run, Run) else Run(run)
        self._rewards = rewards
        for reward in rewards:
            REWARDS.get(reward)
        self.tasks: list[Task] = list_training_tasks(self._run.directory, split, limit)
        """Tasks that are played."""
        if not self.tasks:
            raise InputError(f"{self._run.path} has no tasks in split {split!r}")
        self._play = PlaySettings(max_steps=max_steps)
        self._strict_format = strict_format
        self._background = BackgroundLoop()

    @cached_property
    def train_dataset(self) -> "Dataset":
        """One row per task: `prompt` (system message and first request), `task_id`, `environment`."""
        return build_prompt_dataset(self.tasks, self._contexts)

    @property
    def environment_factory(self) -> dict[str, type]:
        """Column `environment` to the class whose instances play the episodes of these tasks."""
        return self._classes[0]

    @property
    def tool_schemas(self) -> dict[str, list[JsonObject]]:
        """Column `environment` to the tools that its prompts show, as OpenAI functions."""
        return self._classes[1]

    @property
    def reward_funcs(self) -> list[Callable[..., list[float | None]]]:
        """Rewards in TRL's form; None where the environment or the user broke, which teaches nothing."""
        return [build_reward_function(reward) for reward in self._rewards]

    @property
    def trainer_class(self) -> Callable[..., Any]:
        """TRL's `GRPOTrainer` for these episodes; takes its arguments, and `window` and `turn_weight` of `GrpoConfig`.

        Raises:
            InputError: The train extra is missing; the text has the command that installs it.
        """
        require_train("grpo")
        return partial(build_trainer_class(), background=self._background, schemas=self.tool_schemas)

    def close(self) -> None:
        """End the episodes that are under way; the trainer cannot be used after it."""
        self._background.close()

    def __enter__(self) -> "TrajsmithSpec":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _contexts(self) -> RunEvalContexts:
        return self._background.run(open_eval_contexts(self._run.directory))

    @cached_property
    def _classes(self) -> tuple[dict[str, type], dict[str, list[JsonObject]]]:
        return build_episode_classes(self.tasks, self._contexts, self._background, self._play, self._strict_format)
