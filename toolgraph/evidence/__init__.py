"""Evidence beside the schemas: execution and recorded calls, one rule that combines them, and a graph that shows it."""

from toolgraph.evidence.apply import Evidence, schema_scores, with_evidence
from toolgraph.evidence.execution import Executed, execute, execute_all
from toolgraph.evidence.mining import Mined, mine
from toolgraph.evidence.recordings import Recording, read_recordings
from toolgraph.settings import ExecutionSettings

__all__ = [
    "Evidence",
    "Executed",
    "ExecutionSettings",
    "Mined",
    "Recording",
    "execute",
    "execute_all",
    "mine",
    "read_recordings",
    "schema_scores",
    "with_evidence",
]
