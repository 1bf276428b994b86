"""Evaluation of models on tasks: episodes on live environments, scores with intervals."""

from arena.episodes import Episode, Ground, play_episode
from arena.evaluate import EvalSettings, evaluate
from arena.roles import Complete, ModelAgent, Reply
from arena.scores import Score, score_episodes, wilson

__all__ = [
    "Complete",
    "Episode",
    "EvalSettings",
    "Ground",
    "ModelAgent",
    "Reply",
    "Score",
    "evaluate",
    "play_episode",
    "score_episodes",
    "wilson",
]
