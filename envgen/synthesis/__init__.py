"""Environments from a theme, written by language models and kept only if execution shows that they work.

Proposal, tasks and rules, state model, tools, seed states, tests, doctor, repair, semantic examination, acceptance: the
loops of EnvFactory 3.2, EnvScaler 3, AWM 3 and Agent-World 3.1 in one (`loop.py`).
"""

from envgen.synthesis.funnel import Funnel
from envgen.synthesis.loop import Loop
from envgen.synthesis.parts import UnitTest
from envgen.synthesis.playing import run_tests
from envgen.synthesis.records import Outcome
from envgen.synthesis.settings import STAGES, StageRole, StageRoles, SynthesisSettings
from envgen.synthesis.several import synthesise

__all__ = [
    "STAGES",
    "Funnel",
    "Loop",
    "Outcome",
    "StageRole",
    "StageRoles",
    "SynthesisSettings",
    "UnitTest",
    "run_tests",
    "synthesise",
]
