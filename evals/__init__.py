"""Evaluation of models on tasks: episodes on live environments, scores with intervals, difficulty by solvers."""

from trajsmith.evals.attribution import Attribution, RoundRows, attribute_gains, count_shares
from trajsmith.evals.bench import PLAYS, BenchPlay
from trajsmith.evals.benchmarks import BENCHMARKS, Benchmark, BenchmarkName
from trajsmith.evals.causes import FailedTrace, read_traces, summarize_causes
from trajsmith.evals.difficulty import (
    ATTEMPTS,
    UNMEASURED,
    TaskDifficulty,
    measure_difficulty,
    read_attempts,
)
from trajsmith.evals.episodes import Episode, EvalContext, play_episode
from trajsmith.evals.evaluate import EvalSettings, evaluate, read_episodes
from trajsmith.evals.leaderboard import (
    build_leaderboard,
    export_bfcl,
    format_cell,
    read_bench_results,
    render_leaderboard,
)
from trajsmith.evals.observations import EpisodeObservation, list_groups
from trajsmith.evals.readings import AmbiguousTask, TaskReading, find_ambiguous_tasks
from trajsmith.evals.scores import Score, compute_wilson_interval, score_episodes
from trajsmith.evals.solvers import ModelSolver, ScriptedSolver, Solver, attempt_task
from trajsmith.evals.suites import SUITES, UNAVAILABLE
from trajsmith.evals.transcripts import PlayedEpisode, is_evaluation, read_transcripts, store_tasks, write_gallery
from trajsmith.evals.wrong_steps import find_first_wrong_step

__all__ = [
    "ATTEMPTS",
    "BENCHMARKS",
    "PLAYS",
    "SUITES",
    "UNAVAILABLE",
    "UNMEASURED",
    "AmbiguousTask",
    "Attribution",
    "BenchPlay",
    "Benchmark",
    "BenchmarkName",
    "Episode",
    "EpisodeObservation",
    "EvalContext",
    "EvalSettings",
    "FailedTrace",
    "ModelSolver",
    "PlayedEpisode",
    "RoundRows",
    "Score",
    "ScriptedSolver",
    "Solver",
    "TaskDifficulty",
    "TaskReading",
    "attempt_task",
    "attribute_gains",
    "build_leaderboard",
    "compute_wilson_interval",
    "count_shares",
    "evaluate",
    "export_bfcl",
    "find_ambiguous_tasks",
    "find_first_wrong_step",
    "format_cell",
    "is_evaluation",
    "list_groups",
    "measure_difficulty",
    "play_episode",
    "read_attempts",
    "read_bench_results",
    "read_episodes",
    "read_traces",
    "read_transcripts",
    "render_leaderboard",
    "score_episodes",
    "store_tasks",
    "summarize_causes",
    "write_gallery",
]
