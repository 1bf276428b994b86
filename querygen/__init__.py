"""From grounded chains to tasks: persona, turns, queries, what the user knows, checks."""

from querygen.write import TaskWriter, WriteSettings

__all__ = ["TaskWriter", "WriteSettings"]
