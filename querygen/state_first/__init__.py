"""Tasks that start from a change of the state (EnvScaler 4.1, AWM 3.2): goal first, then a solver finds the calls."""

from trajsmith.querygen.state_first.edits import StateEdit, learn_edits
from trajsmith.querygen.state_first.goals import StateGoal, draw_goal
from trajsmith.querygen.state_first.grounding import StateFirstSettings, ground_goal, ground_proposal
from trajsmith.querygen.state_first.proposals import PROPOSE, StateProposer

__all__ = [
    "PROPOSE",
    "StateEdit",
    "StateFirstSettings",
    "StateGoal",
    "StateProposer",
    "draw_goal",
    "ground_goal",
    "ground_proposal",
    "learn_edits",
]
