"""Evaluation of models on tasks: episodes on live environments, scores with intervals."""

from trajsmith.evals.benchmarks import BENCHMARKS, Benchmark, BenchmarkName
from trajsmith.evals.chat_model import ChatEvaluatedModel
from trajsmith.evals.episodes import Episode, EvalContext, play_episode
from trajsmith.evals.evaluate import EvalSettings, evaluate
from trajsmith.evals.roles import (
    CallableModel,
    CompletionFn,
    EvaluatedAgent,
    EvaluatedModel,
    ModelOutput,
    RoleUserFactory,
    UserFactory,
    create_scripted_user,
)
from trajsmith.evals.scores import Score, compute_wilson_interval, score_episodes

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "BenchmarkName",
    "CallableModel",
    "ChatEvaluatedModel",
    "CompletionFn",
    "Episode",
    "EvalContext",
    "EvalSettings",
    "EvaluatedAgent",
    "EvaluatedModel",
    "ModelOutput",
    "RoleUserFactory",
    "Score",
    "UserFactory",
    "compute_wilson_interval",
    "create_scripted_user",
    "evaluate",
    "play_episode",
    "score_episodes",
]
