"""Environments from a theme, written by language models and kept only if execution shows that they work.

Proposal, tasks and rules, state model, tools, seed states, tests, environment checker, repair, semantic examination,
acceptance: the loops of EnvFactory 3.2, EnvScaler 3, AWM 3 and Agent-World 3.1 in one (`loop.py`).
"""

from trajsmith.envgen.synthesis.answer_schemas import UnitTest
from trajsmith.envgen.synthesis.concurrent_themes import synthesize_environments
from trajsmith.envgen.synthesis.execution import run_unit_tests
from trajsmith.envgen.synthesis.funnel import Funnel
from trajsmith.envgen.synthesis.loop import SynthesisLoop
from trajsmith.envgen.synthesis.records import SynthesisOutcome
from trajsmith.envgen.synthesis.settings import STAGES, StageRole, StageRoles, SynthesisSettings

__all__ = [
    "STAGES",
    "Funnel",
    "StageRole",
    "StageRoles",
    "SynthesisLoop",
    "SynthesisOutcome",
    "SynthesisSettings",
    "UnitTest",
    "run_unit_tests",
    "synthesize_environments",
]
