"""From grounded chains to tasks: persona, turns, queries, what the user knows, checks."""

from querygen.author import PERSONA, REFINE, WRITE, Author, AuthorSettings
from querygen.duplicates import Earlier
from querygen.gates import Gates
from querygen.write import TaskWriter, WriteSettings

__all__ = [
    "PERSONA",
    "REFINE",
    "WRITE",
    "Author",
    "AuthorSettings",
    "Earlier",
    "Gates",
    "TaskWriter",
    "WriteSettings",
]
