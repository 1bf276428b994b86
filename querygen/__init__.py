"""From grounded chains to tasks: persona, turns, queries, what the user knows, checks."""

from trajsmith.querygen.author import PERSONA, REFINE, WRITE, AuthorSettings, ModelTaskAuthor
from trajsmith.querygen.duplicates import EarlierRequests
from trajsmith.querygen.programs import ProgramSettings, ground_program, load_composed, prove_python
from trajsmith.querygen.query_gates import QueryGates
from trajsmith.querygen.state_first import (
    PROPOSE,
    StateEdit,
    StateFirstSettings,
    StateProposer,
    ground_goal,
    ground_proposal,
    learn_edits,
)
from trajsmith.querygen.write import TaskWriter, WriteSettings

__all__ = [
    "PERSONA",
    "PROPOSE",
    "REFINE",
    "WRITE",
    "AuthorSettings",
    "EarlierRequests",
    "ModelTaskAuthor",
    "ProgramSettings",
    "QueryGates",
    "StateEdit",
    "StateFirstSettings",
    "StateProposer",
    "TaskWriter",
    "WriteSettings",
    "ground_goal",
    "ground_program",
    "ground_proposal",
    "learn_edits",
    "load_composed",
    "prove_python",
]
