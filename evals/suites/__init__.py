"""Suites: public benchmarks that are judged by their own package, in an environment of its own."""

from trajsmith.evals.suites.conversations import build_baseline_script, build_conversation_player, build_model_script
from trajsmith.evals.suites.players import BASELINES, SuitePlayer, build_baseline, build_model_player
from trajsmith.evals.suites.suite import (
    SUITES,
    AnySuite,
    CallRecord,
    CallSuite,
    ConversationSuite,
    Suite,
    SuitePlay,
    SuiteTask,
)
from trajsmith.evals.suites.unavailable import UNAVAILABLE

__all__ = [
    "BASELINES",
    "SUITES",
    "UNAVAILABLE",
    "AnySuite",
    "CallRecord",
    "CallSuite",
    "ConversationSuite",
    "Suite",
    "SuitePlay",
    "SuitePlayer",
    "SuiteTask",
    "build_baseline",
    "build_baseline_script",
    "build_conversation_player",
    "build_model_player",
    "build_model_script",
]
