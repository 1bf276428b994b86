"""Evaluation of models on tasks: episodes on live environments, scores with intervals."""

from arena.episodes import Episode, Ground, play_episode
from arena.evaluate import EvalSettings, evaluate
from arena.roles import Complete, Fixed, ModelAgent, ModelUsers, Player, Reply, Users, scripted_user
from arena.scores import Score, score_episodes, wilson
from arena.served import ServedPlayer

__all__ = [
    "Complete",
    "Episode",
    "EvalSettings",
    "Fixed",
    "Ground",
    "ModelAgent",
    "ModelUsers",
    "Player",
    "Reply",
    "Score",
    "ServedPlayer",
    "Users",
    "evaluate",
    "play_episode",
    "score_episodes",
    "scripted_user",
    "wilson",
]
