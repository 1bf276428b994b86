"""Source of the episodes of a training: which tasks are played, in which environments, and how."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trajsmith.environments.arguments import ArgumentValidator
from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.evals import EvalContext
from trajsmith.records import JsonObject, Message, Task, ToolSpec, ToolStyle, Trajectory, Verdict, render_tools
from trajsmith.train_grpo.loop import build_template_row
from trajsmith.train_grpo.rewards import ACCEPTED
from trajsmith.train_grpo.rollouts import Rollout
from trajsmith.usersim import PlaySettings, UserFactory, build_scripted_user, render_system_prompt
from trajsmith.verify import VerifySettings
from trajsmith.verify.rewards import find_step_rewards

if TYPE_CHECKING:
    from datasets import Dataset

MESSAGE_USER = ToolSpec(
    server="user",
    name="message_user",
    description="Say something to the user: a question, or the answer. Returns what the user says next.",
    input_schema={
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What you say, word for word."}},
        "required": ["text"],
        "additionalProperties": False,
    },
)
"""Tool of frameworks that know no second speaker: what is said to the user is a call of it."""


@dataclass(frozen=True)
class EpisodeResult:
    """An episode that is over, as reward functions get it."""

    task: Task
    trajectory: Trajectory | None
    """None if the environment did not start: nothing can be said of the model."""
    verdict: Verdict | None
    seconds: float
    """Time that the trainer waited for it; of a batch that was waited for together, its share."""
    turn: int | None = None
    """User turn that is learnt, from 0; None for the whole episode."""


class EpisodeSource:
    """Makes the episodes of a set of tasks.

    Args:
        tasks: Tasks that are played.
        grounds: Environments of the tasks.
        background: Where episodes run.
        play: Limits of an episode.
        strict_format: End an episode also at a call that the schema refuses.
        users: Who plays the user.
        tools: How the tools are shown.
        rewards: Rewards that the episodes are for; those of single calls need labels, which take runs of their own.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        grounds: Mapping[str, EvalContext],
        background: BackgroundLoop,
        play: PlaySettings,
        strict_format: bool = False,
        users: UserFactory = build_scripted_user,
        tools: ToolStyle = "full",
        rewards: Collection[str] = (),
    ) -> None:
        self.tasks = {task.id: task for task in tasks}
        self.grounds = grounds
        self.background = background
        self.play = play
        self.strict_format = strict_format
        self.users = users
        self.style: ToolStyle = tools
        self.labels_steps = bool(find_step_rewards(name for name in rewards if name != ACCEPTED))

    def open_episode(self, task_id: str) -> Rollout:
        """Return a new episode of a task, not started."""
        task = self.tasks[task_id]
        name = task.environments[0]
        ground = self.grounds[name]
        if self.labels_steps:
            ground = replace(ground, verify=VerifySettings(step_labels=True))
        return Rollout(task, ground, self.play, self._validators.get(name), self.users)

    def list_shown_tools(self, task: Task) -> tuple[ToolSpec, ...]:
        """Return the tools that a task shows, in their order."""
        return task.find_shown_specs(self.grounds[task.environments[0]].spec.tools)

    def render_tools(self, task: Task) -> list[JsonObject]:
        """Return the tools that a task shows, as OpenAI functions."""
        return render_tools([tool.as_function() for tool in self.list_shown_tools(task)], self.style)

    def build_prompt_rows(self) -> list[JsonObject]:
        """Build one row per task: `prompt` (system message and first request), `task_id`, `environment`."""
        return [
            {"prompt": self._build_prompt(task), "task_id": task.id, "environment": build_class_name(task)}
            for task in self.tasks.values()
        ]

    def build_prompt_dataset(self) -> "Dataset":
        """Build the training dataset of the tasks.

        The request names its task, too: TRL gives a rollout function the prompts, and no other column.
        """
        from datasets import Dataset, Features, Json, List, Value

        features = Features({"prompt": List(Json()), "task_id": Value("string"), "environment": Value("string")})
        return Dataset.from_list(self.build_prompt_rows(), features=features)

    def _build_prompt(self, task: Task) -> list[JsonObject]:
        ground = self.grounds[task.environments[0]]
        system = render_system_prompt(ground.spec, task, ground.state(task.initial_state))
        prompt = [Message(role="system", content=system), Message(role="user", content=task.turns[0].query)]
        rows = [build_template_row(message) for message in prompt]
        return [*rows[:-1], rows[-1] | {"task_id": task.id}]

    @cached_property
    def _validators(self) -> dict[str, ArgumentValidator]:
        used = {task.environments[0] for task in self.tasks.values()} if self.strict_format else set()
        return {name: ArgumentValidator(self.grounds[name].spec) for name in used}


OpenSource = Callable[[], EpisodeSource]
"""Gives the source of this process; it can be pickled, unlike the source."""


def build_class_name(task: Task) -> str:
    """Return the name of an environment and the tools that it shows; TRL renders tools once per name."""
    foreign = {tool.name: f"{tool.server}." for tool in task.distractors}
    names = ",".join(foreign.get(name, "") + name for name in task.shown_tools)
    return f"{task.environments[0]}:{names}"


def needs_user(task: Task) -> bool:
    """Return True if the simulated user may have to speak after the first request."""
    return task.mode == "conversation" or len(task.turns) > 1 or bool(task.user_tools)


def get_result(rollout: Rollout, seconds: float | None = None, turn: int | None = None) -> EpisodeResult:
    """Return the result of an episode that is over.

    Args:
        rollout: The episode.
        seconds: Time that was spent waiting for it; None is what it measured itself.
        turn: User turn that is learnt.
    """
    done: tuple[Any, Trajectory, Verdict] | None = rollout.verdict()
    waited = rollout.seconds if seconds is None else seconds
    if done is None:
        return EpisodeResult(rollout.task, None, None, waited, turn)
    return EpisodeResult(rollout.task, done[1], done[2], waited, turn)
