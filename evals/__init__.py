"""Evaluation of models on tasks: episodes on live environments, scores with intervals."""

from trajsmith.evals.benchmarks import BENCHMARKS, Benchmark, BenchmarkName
from trajsmith.evals.episodes import Episode, EvalContext, play_episode
from trajsmith.evals.evaluate import EvalSettings, evaluate, read_episodes
from trajsmith.evals.scores import Score, compute_wilson_interval, score_episodes

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "BenchmarkName",
    "Episode",
    "EvalContext",
    "EvalSettings",
    "Score",
    "compute_wilson_interval",
    "evaluate",
    "play_episode",
    "read_episodes",
    "score_episodes",
]
