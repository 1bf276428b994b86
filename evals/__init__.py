"""Evaluation of models on tasks: episodes on live environments, scores with intervals."""

from trajsmith.evals.benchmarks import BENCHMARKS, Benchmark, BenchmarkName
from trajsmith.evals.episodes import Episode, EvalContext, play_episode
from trajsmith.evals.evaluate import EvalSettings, evaluate, read_episodes
from trajsmith.evals.scores import Score, compute_wilson_interval, score_episodes
from trajsmith.evals.transcripts import PlayedEpisode, is_evaluation, read_transcripts, store_tasks, write_gallery

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "BenchmarkName",
    "Episode",
    "EvalContext",
    "EvalSettings",
    "PlayedEpisode",
    "Score",
    "compute_wilson_interval",
    "evaluate",
    "is_evaluation",
    "play_episode",
    "read_episodes",
    "read_transcripts",
    "score_episodes",
    "store_tasks",
    "write_gallery",
]
