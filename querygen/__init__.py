"""From grounded chains to tasks: persona, turns, queries, what the user knows, checks."""

from trajsmith.querygen.author import PERSONA, REFINE, WRITE, AuthorSettings, ModelTaskAuthor
from trajsmith.querygen.duplicates import EarlierRequests
from trajsmith.querygen.programs import ProgramSettings, ground_program, load_composed, prove_python
from trajsmith.querygen.query_gates import QueryGates
from trajsmith.querygen.state_first import StateEdit, StateFirstSettings, ground_goal, learn_edits
from trajsmith.querygen.write import TaskWriter, WriteSettings

__all__ = [
    "PERSONA",
    "REFINE",
    "WRITE",
    "AuthorSettings",
    "EarlierRequests",
    "ModelTaskAuthor",
    "ProgramSettings",
    "QueryGates",
    "StateEdit",
    "StateFirstSettings",
    "TaskWriter",
    "WriteSettings",
    "ground_goal",
    "ground_program",
    "learn_edits",
    "load_composed",
    "prove_python",
]
