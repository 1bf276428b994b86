"""The records that flow through trajsmith, their ids and the error vocabulary.

Each name is imported when it is first used, so that a command that only prints its help loads no models of records.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trajsmith.records.answers import AnswerFact, RequestedInfo
    from trajsmith.records.attempt import Difficulty, ScoredPlay, SolverAttempt
    from trajsmith.records.bounds import PlainName, Seed
    from trajsmith.records.canonical import (
        JsonObject,
        JsonValue,
        canonical_json,
        compute_entry_weight,
        compute_part_digest,
        compute_parts_digest,
        compute_state_digest,
        compute_table_digest,
        content_hash,
        derive_seed,
        hash_bytes,
    )
    from trajsmith.records.chain import Chain, Dependency
    from trajsmith.records.checks import (
        AnswerCheck,
        Check,
        CheckAudit,
        CodeCheck,
        InstalledCheck,
        NondeterminismMask,
        Origin,
        PolicyCheck,
        StateCheck,
        UntouchedCheck,
    )
    from trajsmith.records.directory_tools import (
        CALL_TOOL,
        DIRECTORY_TOOLS,
        LIST_TOOLS,
        SEARCH_TOOLS,
        TOOL_SEARCH,
        TWO_LEVEL,
    )
    from trajsmith.records.environment import EnvironmentSpec, PolicyRule
    from trajsmith.records.errors import (
        BudgetExceeded,
        EnvironmentFault,
        InputError,
        ModelFault,
        RecordDropped,
        RunError,
        ToolError,
        TrajsmithError,
        environment_boundary,
    )
    from trajsmith.records.extras import install_command
    from trajsmith.records.grounded import (
        Composite,
        Constant,
        FromDefault,
        FromOutput,
        FromUser,
        GoldCall,
        GroundedChain,
        Provenance,
        Selector,
        UserFact,
    )
    from trajsmith.records.message import FunctionCall, Message, ToolCall
    from trajsmith.records.paths import SourcePath, SourceReference
    from trajsmith.records.record import FrozenModel, Record, format_first_error
    from trajsmith.records.registry import PluginSource, Registry, list_program_plugins
    from trajsmith.records.solution import ProgramSolution, TaskSource
    from trajsmith.records.summary import FaultSummary, JudgeSummary, StageSummary, Summary, UsageSummary
    from trajsmith.records.task import (
        MAX_FACTS,
        Persona,
        Perturbation,
        RefusedMember,
        Task,
        TaskHeader,
        ToolSearch,
        Turn,
        list_answer_facts,
    )
    from trajsmith.records.tool import Actor, ConfirmationRule, ToolAnnotations, ToolSpec
    from trajsmith.records.tool_rendering import ToolStyle, render_tools
    from trajsmith.records.trajectory import CallEvent, InjectedFault, Trajectory, TurnSpan
    from trajsmith.records.verdict import CheckOutcome, JudgeOpinion, PrunedCall, StepLabel, TurnVerdict, Verdict

_NAMES = {
    "answers": "AnswerFact RequestedInfo",
    "attempt": "Difficulty ScoredPlay SolverAttempt",
    "bounds": "PlainName Seed",
    "canonical": (
        "JsonObject JsonValue canonical_json compute_entry_weight compute_part_digest compute_parts_digest "
        "compute_state_digest compute_table_digest content_hash derive_seed hash_bytes"
    ),
    "chain": "Chain Dependency",
    "checks": (
        "AnswerCheck Check CheckAudit CodeCheck InstalledCheck NondeterminismMask Origin PolicyCheck "
        "StateCheck UntouchedCheck"
    ),
    "directory_tools": "CALL_TOOL DIRECTORY_TOOLS LIST_TOOLS SEARCH_TOOLS TOOL_SEARCH TWO_LEVEL",
    "environment": "EnvironmentSpec PolicyRule",
    "errors": (
        "BudgetExceeded EnvironmentFault InputError ModelFault RecordDropped RunError ToolError "
        "TrajsmithError environment_boundary"
    ),
    "extras": "install_command",
    "grounded": (
        "Composite Constant FromDefault FromOutput FromUser GoldCall GroundedChain Provenance Selector UserFact"
    ),
    "message": "FunctionCall Message ToolCall",
    "paths": "SourcePath SourceReference",
    "record": "FrozenModel Record format_first_error",
    "registry": "PluginSource Registry list_program_plugins",
    "summary": "FaultSummary JudgeSummary StageSummary Summary UsageSummary",
    "solution": "ProgramSolution TaskSource",
    "task": "MAX_FACTS Persona Perturbation RefusedMember Task TaskHeader ToolSearch Turn list_answer_facts",
    "tool": "Actor ConfirmationRule ToolAnnotations ToolSpec",
    "tool_rendering": "ToolStyle render_tools",
    "trajectory": "CallEvent InjectedFault Trajectory TurnSpan",
    "verdict": "CheckOutcome JudgeOpinion PrunedCall StepLabel TurnVerdict Verdict",
}
"""Module to the public names that it defines."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "CALL_TOOL",
    "DIRECTORY_TOOLS",
    "LIST_TOOLS",
    "MAX_FACTS",
    "SEARCH_TOOLS",
    "TOOL_SEARCH",
    "TWO_LEVEL",
    "Actor",
    "AnswerCheck",
    "AnswerFact",
    "BudgetExceeded",
    "CallEvent",
    "Chain",
    "Check",
    "CheckAudit",
    "CheckOutcome",
    "CodeCheck",
    "Composite",
    "ConfirmationRule",
    "Constant",
    "Dependency",
    "Difficulty",
    "EnvironmentFault",
    "EnvironmentSpec",
    "FaultSummary",
    "FromDefault",
    "FromOutput",
    "FromUser",
    "FrozenModel",
    "FunctionCall",
    "GoldCall",
    "GroundedChain",
    "InjectedFault",
    "InputError",
    "InstalledCheck",
    "JsonObject",
    "JsonValue",
    "JudgeOpinion",
    "JudgeSummary",
    "Message",
    "ModelFault",
    "NondeterminismMask",
    "Origin",
    "Persona",
    "Perturbation",
    "PlainName",
    "PluginSource",
    "PolicyCheck",
    "PolicyRule",
    "ProgramSolution",
    "Provenance",
    "PrunedCall",
    "Record",
    "RecordDropped",
    "RefusedMember",
    "Registry",
    "RequestedInfo",
    "RunError",
    "ScoredPlay",
    "Seed",
    "Selector",
    "SolverAttempt",
    "SourcePath",
    "SourceReference",
    "StageSummary",
    "StateCheck",
    "StepLabel",
    "Summary",
    "Task",
    "TaskHeader",
    "TaskSource",
    "ToolAnnotations",
    "ToolCall",
    "ToolError",
    "ToolSearch",
    "ToolSpec",
    "ToolStyle",
    "Trajectory",
    "TrajsmithError",
    "Turn",
    "TurnSpan",
    "TurnVerdict",
    "UntouchedCheck",
    "UsageSummary",
    "UserFact",
    "Verdict",
    "canonical_json",
    "compute_entry_weight",
    "compute_part_digest",
    "compute_parts_digest",
    "compute_state_digest",
    "compute_table_digest",
    "content_hash",
    "derive_seed",
    "environment_boundary",
    "format_first_error",
    "hash_bytes",
    "install_command",
    "list_answer_facts",
    "list_program_plugins",
    "render_tools",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module and keep it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
