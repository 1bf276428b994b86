"""From grounded chains to tasks: persona, turns, queries, what the user knows, checks."""

from trajsmith.querygen.author import PERSONA, REFINE, WRITE, AuthorSettings, ModelTaskAuthor
from trajsmith.querygen.duplicates import EarlierRequests
from trajsmith.querygen.programs import (
    WRITE_PROGRAM,
    ProgramSettings,
    ProgramWriter,
    ground_program,
    ground_written_program,
    prove_python,
)
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
    "WRITE_PROGRAM",
    "AuthorSettings",
    "EarlierRequests",
    "ModelTaskAuthor",
    "ProgramSettings",
    "ProgramWriter",
    "QueryGates",
    "StateEdit",
    "StateFirstSettings",
    "StateProposer",
    "TaskWriter",
    "WriteSettings",
    "ground_goal",
    "ground_program",
    "ground_proposal",
    "ground_written_program",
    "learn_edits",
    "prove_python",
]
