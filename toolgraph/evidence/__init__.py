"""Evidence beside the schemas: execution and recorded calls, one rule that combines them, and a graph that shows it."""

from trajsmith.toolgraph.evidence.environment_evidence import collect_evidence
from trajsmith.toolgraph.evidence.execution import ExecutionEvidence, execute_all_links, execute_links
from trajsmith.toolgraph.evidence.graph_evidence import GraphEvidence, apply_evidence, compute_schema_scores
from trajsmith.toolgraph.evidence.recorded_flows import RecordedEvidence, mine_recordings
from trajsmith.toolgraph.evidence.recordings import Recording, read_recordings
from trajsmith.toolgraph.settings import ExecutionSettings

__all__ = [
    "ExecutionEvidence",
    "ExecutionSettings",
    "GraphEvidence",
    "RecordedEvidence",
    "Recording",
    "apply_evidence",
    "collect_evidence",
    "compute_schema_scores",
    "execute_all_links",
    "execute_links",
    "mine_recordings",
    "read_recordings",
]
