"""Reward functions in TRL's form, for every way in which its trainers play episodes."""

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trajsmith.models import ChatReply
from trajsmith.records import CriterionOutcome
from trajsmith.train_grpo.credit import compute_rewards_to_go, compute_turn_rewards
from trajsmith.train_grpo.episodes import MESSAGE_USER, EpisodeResult, OpenSource, get_result
from trajsmith.train_grpo.loop import parse_completion
from trajsmith.train_grpo.rewards import ACCEPTED, compute_episode_reward
from trajsmith.train_grpo.rollouts import build_text_reply
from trajsmith.verify import JudgedPlay, drop_common_criteria

Rubric = tuple[CriterionOutcome, ...]
"""Outcomes of the criteria of one episode."""


class EpisodeReward:
    """One reward as TRL's `reward_funcs` take it; it can be pickled.

    Three trainers, three sources of the episode: our rollout function hands over `episodes`, `GRPOTrainer` with
    `environment_factory` hands over `environments`, and `AsyncGRPOTrainer`, whose environments live in another process,
    hands over what the model wrote, which is played again.

    Args:
        name: Of the reward, among `trajsmith.verify.rewards.REWARDS`.
        source: Gives the source of the episodes.
        turn_weight: Weight of what the turn that is learnt earned, beside the whole episode.
        logs: Log how long the trainer waited for environments; for one of several rewards.
    """

    def __init__(self, name: str, source: OpenSource, turn_weight: float = 0.0, logs: bool = True) -> None:
        self.__name__ = name
        self.source = source
        self.turn_weight = turn_weight
        self.logs = logs

    def __call__(
        self,
        completions: Sequence[Sequence[Mapping[str, Any]]],
        episodes: Sequence[EpisodeResult] | None = None,
        environments: Sequence[Any] | None = None,
        task_id: Sequence[str] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **_: Any,
    ) -> list[float | None]:
        """Return the reward of each episode; None where the environment or the user broke, which teaches nothing."""
        if episodes is None and environments is not None:
            pairs = zip(environments, completions, strict=True)
            episodes = [environment._finish(get_last_text(messages)) for environment, messages in pairs]
        replayed = episodes is None
        if episodes is None:
            pairs = zip(task_id or (), completions, strict=True)
            episodes = [self._replay(task, messages) for task, messages in pairs]
        if self.logs and log_metric is not None:
            log_metric("environment/seconds", sum(episode.seconds for episode in episodes))
            for name, value in count_calls(episodes).items():
                log_metric(name, value)
        if self.__name__ != ACCEPTED:
            episodes = compare_episodes(episodes, spread=not replayed)
            if self.logs and log_metric is not None:
                for name, value in count_criteria(episodes).items():
                    log_metric(name, value)
        return [self.score(episode) for episode in episodes]

    def score(self, episode: EpisodeResult) -> float | None:
        """Return the reward of one episode."""
        if episode.trajectory is None or episode.verdict is None:
            return None
        whole = compute_episode_reward(self.__name__, episode.task, episode.trajectory, episode.verdict)
        if episode.turn is None or whole is None:
            return whole
        turns = compute_turn_rewards(episode.trajectory, episode.verdict, len(episode.task.turns))
        if turns is None:
            return None
        return (1 - self.turn_weight) * whole + self.turn_weight * compute_rewards_to_go(turns)[episode.turn]

    def _replay(self, task_id: str, messages: Sequence[Mapping[str, Any]]) -> EpisodeResult:
        source = self.source()
        rollout = source.open_episode(task_id)
        rollout.start(source.background)
        replies = [parse_completion(message, number) for number, message in enumerate(messages)]
        rollout.replay([part for reply in replies if reply is not None for part in _split_user_calls(reply)])
        return get_result(rollout)


def compare_episodes(episodes: Sequence[EpisodeResult], spread: bool = True) -> list[EpisodeResult]:
    """Return the episodes with the criteria left out that all episodes of a task in the batch meet, or none does.

    Args:
        episodes: Episodes of this process.
        spread: The batch may be spread over the processes of a training, all of which come here together; otherwise
            the episodes of a task are all in this one.
    """
    compared = list(episodes)
    groups: dict[str, list[tuple[int, JudgedPlay]]] = {}
    for number, episode in enumerate(episodes):
        if episode.trajectory is not None and episode.verdict is not None:
            groups.setdefault(episode.task.id, []).append((number, (episode.trajectory, episode.verdict)))
    own = [(task_id, verdict.rubric) for task_id, members in groups.items() for _, (_, verdict) in members]
    rubrics: dict[str, list[Rubric]] = {}
    for task_id, rubric in gather_rubrics(own) if spread else own:
        rubrics.setdefault(task_id, []).append(rubric)
    for task_id, members in groups.items():
        task = episodes[members[0][0]].task
        judged = drop_common_criteria(task, [play for _, play in members], rubrics=rubrics[task_id])
        for (number, _), (_, verdict) in zip(members, judged, strict=True):
            compared[number] = replace(episodes[number], verdict=verdict)
    return compared


def gather_rubrics(own: list[tuple[str, Rubric]]) -> list[tuple[str, Rubric]]:
    """Return tasks and outcomes of all processes of a training: TRL compares a group of episodes over all of them.

    Every process must call this, also one without outcomes, or the others wait for it.
    """
    if "torch.distributed" not in sys.modules:
        return own
    from torch import distributed

    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() == 1:
        return own
    parts: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(parts, own)
    return [each for part in parts for each in part]


def count_criteria(episodes: Sequence[EpisodeResult]) -> dict[str, float]:
    """Return the mean number of criteria of an episode that count, that are dropped, and that would need a judge."""
    rubrics = [episode.verdict.rubric for episode in episodes if episode.verdict is not None]
    left = Counter(each.left_out for rubric in rubrics for each in rubric)
    plays = max(1, len(rubrics))
    return {
        "rubric/counted": left[""] / plays,
        "rubric/dropped": (left["met_by_all"] + left["met_by_none"]) / plays,
        "rubric/no_judge": left["no_judge"] / plays,
    }


def _split_user_calls(reply: ChatReply) -> list[ChatReply]:
    """Return a message with calls of `message_user` as one message per call, the texts as said to the user."""
    calls = reply.message.tool_calls or ()
    if not any(call.function.name == MESSAGE_USER.name for call in calls):
        return [reply]
    return [
        build_text_reply(str(call.function.arguments.get("text", "")))
        if call.function.name == MESSAGE_USER.name
        else ChatReply(message=reply.message.model_copy(update={"content": "", "tool_calls": (call,)}))
        for call in calls
    ]


def get_last_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a completion's last message if it is the model's; empty if the episode was cut before it."""
    last = messages[-1] if messages else {}
    return str(last.get("content") or "") if last.get("role") == "assistant" and not last.get("tool_calls") else ""


def count_calls(episodes: Sequence[EpisodeResult]) -> dict[str, float]:
    """Return the mean number of calls of an episode, and the share that was refused."""
    events = [event for episode in episodes if episode.trajectory for event in episode.trajectory.events]
    failed = sum(not event.ok for event in events)
    return {"episode/calls": len(events) / max(1, len(episodes)), "episode/refused": failed / max(1, len(events))}
