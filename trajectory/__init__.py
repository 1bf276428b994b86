"""The records that flow through trajsmith, their ids and the error vocabulary."""

from trajectory.canonical import JsonObject, JsonValue, canonical_json, content_hash, derive_seed, hash_bytes
from trajectory.chain import Chain, Dependency
from trajectory.environment import EnvironmentSpec
from trajectory.errors import (
    Dropped,
    EnvironmentFault,
    InputError,
    RunError,
    ToolError,
    TrajsmithError,
    environment_boundary,
)
from trajectory.message import FunctionCall, Message, ToolCall
from trajectory.record import Frozen, Record, first_fault
from trajectory.rollout import CallEvent, Trajectory, TurnSpan, Usage
from trajectory.summary import StageSummary, Summary
from trajectory.task import (
    AnswerCheck,
    Check,
    Composite,
    Constant,
    FromDefault,
    FromOutput,
    FromUser,
    GoldCall,
    GroundedChain,
    Known,
    Persona,
    Provenance,
    Selector,
    StateCheck,
    Task,
    Turn,
    UntouchedCheck,
)
from trajectory.tool import Actor, ToolAnnotations, ToolSpec
from trajectory.verdict import CheckOutcome, Verdict

__all__ = [
    "Actor",
    "AnswerCheck",
    "CallEvent",
    "Chain",
    "Check",
    "CheckOutcome",
    "Composite",
    "Constant",
    "Dependency",
    "Dropped",
    "EnvironmentFault",
    "EnvironmentSpec",
    "FromDefault",
    "FromOutput",
    "FromUser",
    "Frozen",
    "FunctionCall",
    "GoldCall",
    "GroundedChain",
    "InputError",
    "JsonObject",
    "JsonValue",
    "Known",
    "Message",
    "Persona",
    "Provenance",
    "Record",
    "RunError",
    "Selector",
    "StageSummary",
    "StateCheck",
    "Summary",
    "Task",
    "ToolAnnotations",
    "ToolCall",
    "ToolError",
    "ToolSpec",
    "Trajectory",
    "TrajsmithError",
    "Turn",
    "TurnSpan",
    "UntouchedCheck",
    "Usage",
    "Verdict",
    "canonical_json",
    "content_hash",
    "derive_seed",
    "environment_boundary",
    "first_fault",
    "hash_bytes",
]
