"""Tasks, environments and rewards of a run in the shape of TRL's experimental specs."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trajsmith.api.runs import Run
from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.pipeline.eval_contexts import list_training_tasks, open_eval_contexts
from trajsmith.pipeline.hub_runs import open_run
from trajsmith.records import InputError, JsonObject, Task, ToolStyle
from trajsmith.train_grpo import (
    DialogueRollouts,
    EpisodeFactory,
    EpisodeReward,
    EpisodeSource,
    build_class_name,
    build_factories,
    check_reward,
    needs_user,
)
from trajsmith.usersim import PlaySettings

if TYPE_CHECKING:
    from datasets import Dataset

SplitName = Literal["train", "validation", "test", "all"]


class RunEpisodes:
    """Gives the episodes of a run; pickled, it opens the same run again in the process where it is used."""

    def __init__(
        self,
        path: Path,
        split: SplitName,
        limit: int | None,
        conversations: bool,
        play: PlaySettings,
        strict_format: bool,
        tools: ToolStyle,
        rewards: Sequence[str],
    ) -> None:
        self.path = path
        self.split: SplitName = split
        self.limit = limit
        self.conversations = conversations
        self.play = play
        self.strict_format = strict_format
        self.tools: ToolStyle = tools
        self.rewards = rewards
        self._source: EpisodeSource | None = None

    def list_tasks(self) -> list[Task]:
        """Return the tasks that are played.

        Raises:
            InputError: The run has none.
        """
        tasks = list_training_tasks(open_run(self.path), self.split)
        if not tasks:
            raise InputError(f"{self.path} has no tasks in split {self.split!r}")
        chosen = tasks if self.conversations else [task for task in tasks if not needs_user(task)]
        if not chosen:
            raise InputError(f"{self.path}: all {len(tasks)} tasks are conversations: leave conversations at True")
        if self.limit is None:
            return chosen
        groups = defaultdict[str, list[Task]](list)
        for task in chosen:
            groups[task.environments[0]].append(task)
        first = {task.id for group in groups.values() for task in group[: self.limit]}
        return [task for task in chosen if task.id in first]

    def __call__(self) -> EpisodeSource:
        if self._source is None:
            background = BackgroundLoop()
            contexts = background.run(open_eval_contexts(open_run(self.path)))
            self._source = EpisodeSource(
                self.list_tasks(),
                contexts,
                background,
                self.play,
                self.strict_format,
                tools=self.tools,
                rewards=self.rewards,
            )
        return self._source

    def close(self) -> None:
        """End the episodes that are under way; the next use opens the run again."""
        if self._source is not None:
            self._source.background.close()
            self._source = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_source": None}


class TrajsmithSpec:
    """Tasks of a run for TRL's `GRPOTrainer`, as TRL's own `HarborSpec` and `OpenRewardSpec` give theirs.

    Pass `train_dataset` and `reward_funcs` to the trainer, and one of these two:

    * `rollout_func` plays whole dialogues: the simulated user answers, tools are shown by their own schemas, and what
      the model did not write is masked (`env_mask`). For all tasks.
    * `environment_factory` lets TRL drive the calls, and works in `AsyncGRPOTrainer` too. TRL makes the tools' schemas
      from Python signatures and ends an episode at the first message without a call, so conversations need
      `user_tool=True`: then what is said to the user is a call of `message_user`, as in other frameworks.

    Everything can be pickled; another process opens the run again.

    Args:
        run: Run, or run directory, that has the tasks; `hub:owner/name` takes those of a dataset on the Hub.
        rewards: Names of rewards: `accepted` (1 for a play that the pipeline accepts, else 0), or of those of
            `trajsmith.verify.rewards`, with those of plug-ins and of `REWARDS.register` there.
        environment_reward: Reward that the environments of `environment_factory` give by `get_reward`, in place of
            `reward_funcs`, which is empty then. TRL does not tell an environment a last message that is no call, so
            without `user_tool` take one that looks at no answer: `state` or `trajectory`.
        user_tool: Give the environments of `environment_factory` a tool `message_user`, with which the model answers
            the user and asks: tasks with a simulated user can be played there then, and `get_reward` knows the answers.
        split: Which tasks of the run.
        limit: At most this many tasks of each environment.
        conversations: Include tasks in which the simulated user speaks after the first request.
        max_steps: Messages of the model per turn.
        strict_format: End an episode also at a call of a tool that is not shown, or that its schema refuses.
        tools: How `rollout_func` shows the tools, `full` or `compact`: as the model was trained before.
        history: Assistant turns of history that the model sees in `rollout_func`, as in `GrpoConfig`.
        turn_weight: Weight of a user turn's own reward in `rollout_func`, as in `GrpoConfig`.
        message_tokens: Limit of one message in `rollout_func`.

    Raises:
        InputError: A reward is unknown, or the run has no such tasks.

    Example:
        >>> from trl import GRPOConfig, GRPOTrainer
        >>> with trajsmith.TrajsmithSpec("runs/quickstart", rewards=["rubric"]) as spec:
        ...     trainer = GRPOTrainer(
        ...         model="Qwen/Qwen3-0.6B",
        ...         args=GRPOConfig(max_completion_length=8192),
        ...         train_dataset=spec.train_dataset,
        ...         rollout_func=spec.rollout_func,
        ...         reward_funcs=spec.reward_funcs,
        ...     )
        ...     trainer.train()
    """

    def __init__(
        self,
        run: Run | Path | str,
        *,
        rewards: Sequence[str] = ("composite",),
        environment_reward: str | None = None,
        user_tool: bool = False,
        split: SplitName = "train",
        limit: int | None = None,
        conversations: bool = True,
        max_steps: int = 12,
        strict_format: bool = False,
        tools: ToolStyle = "full",
        history: int | None = None,
        turn_weight: float = 0.0,
        message_tokens: int | None = None,
    ) -> None:
        path = run.directory.path if isinstance(run, Run) else Path(run)
        names = (*rewards, *([environment_reward] if environment_reward else []))
        for reward in names:
            check_reward(reward)
        play = PlaySettings(max_steps=max_steps)
        self._episodes = RunEpisodes(path, split, limit, conversations, play, strict_format, tools, names)
        self._rewards = () if environment_reward else tuple(rewards)
        self._environment_reward = environment_reward
        self._user_tool = user_tool
        self._turn_weight = turn_weight
        self.tasks: list[Task] = self._episodes.list_tasks()
        """Tasks that are played."""
        self.rollout_func = DialogueRollouts(self._episodes, history, turn_weight, message_tokens)
        """Plays a batch of episodes to their end, with the simulated user."""

    @cached_property
    def train_dataset(self) -> "Dataset":
        """One row per task: `prompt` (system message and first request), `task_id`, `environment`."""
        return self._episodes().build_prompt_dataset()

    @cached_property
    def environment_factory(self) -> dict[str, EpisodeFactory]:
        """Column `environment` to what makes the environments of these tasks.

        Raises:
            InputError: Some tasks are conversations and there is no `user_tool`, or a tool's name or argument is no
                name in Python.
        """
        own = self._environment_reward
        reward = EpisodeReward(own, self._episodes) if own else None
        return build_factories(self.tasks, self._episodes, reward, self._user_tool)

    @property
    def tool_schemas(self) -> dict[str, list[JsonObject]]:
        """Column `environment` to the tools that its prompts show in `rollout_func`, as OpenAI functions."""
        source = self._episodes()
        return {build_class_name(task): source.render_tools(task) for task in self.tasks}

    @property
    def reward_funcs(self) -> list[EpisodeReward]:
        """Rewards in TRL's form; None where the environment or the user broke, which teaches nothing."""
        return [
            EpisodeReward(reward, self._episodes, self._turn_weight, logs=not number)
            for number, reward in enumerate(self._rewards)
        ]

    def close(self) -> None:
        """End the episodes that are under way."""
        self._episodes.close()

    def __enter__(self) -> "TrajsmithSpec":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
