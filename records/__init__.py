"""The records that flow through trajsmith, their ids and the error vocabulary.

Each name is imported when it is first used, so that a command that only prints its help loads no models of records.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trajsmith.records.answers import AnswerFact, RequestedInfo
    from trajsmith.records.attempt import Difficulty, ScoredPlay, SolverAttempt
    from trajsmith.records.bounded_templates import walk_tree
    from trajsmith.records.bounds import LONGEST_NAME, PlainName, Seed, shorten_name
    from trajsmith.records.canonical import (
        DEEPEST_JSON,
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
        is_too_deep,
    )
    from trajsmith.records.chain import Chain, Dependency
    from trajsmith.records.chat_tokens import find_chat_token
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
        FaultKind,
        InputError,
        ModelFault,
        ModelFaultKind,
        RecordDropped,
        RunError,
        ToolError,
        TrajsmithError,
        environment_boundary,
    )
    from trajsmith.records.extras import install_command
    from trajsmith.records.garbage_collection import raise_gc_threshold, reduce_gc_frequency, skip_last_collection
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
    from trajsmith.records.journal import (
        AppendFile,
        StepJournal,
        count_records,
        read_entries,
        read_lines,
        read_records,
        read_whole_records,
    )
    from trajsmith.records.links import open_no_follow, refuse_link, refuse_links
    from trajsmith.records.message import FunctionCall, Message, ToolCall
    from trajsmith.records.paths import HUB, SourcePath, SourceReference
    from trajsmith.records.record import (
        FrozenModel,
        Record,
        add_checksum,
        check_order,
        format_first_error,
        read_stored,
        strip_checksum,
    )
    from trajsmith.records.record_compression import (
        CompressedOutput,
        compress_records,
        open_output,
        restore_records,
    )
    from trajsmith.records.record_files import (
        RecordSource,
        build_compressed_path,
        find_form,
        has_records,
        iter_placed_lines,
        open_records,
        remove_records,
    )
    from trajsmith.records.record_lookup import RecordLookup
    from trajsmith.records.registry import PluginSource, Registry, list_program_plugins
    from trajsmith.records.rubric import Criterion, CriterionOutcome, LeftOut, Topic
    from trajsmith.records.secrets import find_secret, known_secrets, redact_key_shapes, redact_secrets
    from trajsmith.records.solution import ProgramSolution, TaskSource
    from trajsmith.records.storage import (
        SAME_COMMAND,
        ensure_writable,
        open_whole_file,
        storage_boundary,
        write_whole_file,
    )
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
    from trajsmith.records.template_sandbox import RENDER_ERRORS, build_page_policy, template_environment
    from trajsmith.records.text import (
        dump_json_line,
        escape_controls,
        format_error_line,
        quote_lines,
        suggest_names,
        to_one_line,
        truncate_text,
    )
    from trajsmith.records.tool import Actor, ConfirmationRule, ToolAnnotations, ToolSpec, check_confirmation_rule
    from trajsmith.records.tool_rendering import ToolStyle, render_tools
    from trajsmith.records.traces import TraceCall, TraceDialogue, TraceTask
    from trajsmith.records.tracing import SpanAttributes, trace_operation
    from trajsmith.records.trajectory import CallEvent, InjectedFault, RepairOrigin, Trajectory, TurnSpan
    from trajsmith.records.user_cache import UserCache
    from trajsmith.records.verdict import (
        CheckOutcome,
        JudgeOpinion,
        Outcome,
        PrunedCall,
        StepLabel,
        TurnVerdict,
        Verdict,
    )
    from trajsmith.records.views import read_view
    from trajsmith.records.writer_lock import WriterLock
    from trajsmith.records.yaml_text import compose_yaml

_NAMES = {
    "answers": "AnswerFact RequestedInfo",
    "attempt": "Difficulty ScoredPlay SolverAttempt",
    "bounds": "LONGEST_NAME PlainName Seed shorten_name",
    "canonical": (
        "DEEPEST_JSON JsonObject JsonValue canonical_json compute_entry_weight compute_part_digest "
        "compute_parts_digest compute_state_digest compute_table_digest content_hash derive_seed hash_bytes is_too_deep"
    ),
    "bounded_templates": "walk_tree",
    "chain": "Chain Dependency",
    "chat_tokens": "find_chat_token",
    "checks": (
        "AnswerCheck Check CheckAudit CodeCheck InstalledCheck NondeterminismMask Origin PolicyCheck StateCheck "
        "UntouchedCheck"
    ),
    "directory_tools": "CALL_TOOL DIRECTORY_TOOLS LIST_TOOLS SEARCH_TOOLS TOOL_SEARCH TWO_LEVEL",
    "environment": "EnvironmentSpec PolicyRule",
    "errors": (
        "BudgetExceeded EnvironmentFault FaultKind InputError ModelFault ModelFaultKind RecordDropped RunError "
        "ToolError TrajsmithError environment_boundary"
    ),
    "extras": "install_command",
    "garbage_collection": "raise_gc_threshold reduce_gc_frequency skip_last_collection",
    "grounded": (
        "Composite Constant FromDefault FromOutput FromUser GoldCall GroundedChain Provenance Selector UserFact"
    ),
    "journal": ("AppendFile StepJournal count_records read_entries read_lines read_records read_whole_records"),
    "links": "open_no_follow refuse_link refuse_links",
    "message": "FunctionCall Message ToolCall",
    "paths": "HUB SourcePath SourceReference",
    "record": "FrozenModel Record add_checksum check_order format_first_error read_stored strip_checksum",
    "record_compression": "CompressedOutput compress_records open_output restore_records",
    "record_files": (
        "RecordSource build_compressed_path find_form has_records iter_placed_lines open_records remove_records"
    ),
    "record_lookup": "RecordLookup",
    "registry": "PluginSource Registry list_program_plugins",
    "secrets": "find_secret known_secrets redact_key_shapes redact_secrets",
    "rubric": "Criterion CriterionOutcome LeftOut Topic",
    "solution": "ProgramSolution TaskSource",
    "storage": "SAME_COMMAND ensure_writable open_whole_file storage_boundary write_whole_file",
    "summary": "FaultSummary JudgeSummary StageSummary Summary UsageSummary",
    "task": "MAX_FACTS Persona Perturbation RefusedMember Task TaskHeader ToolSearch Turn list_answer_facts",
    "template_sandbox": "RENDER_ERRORS build_page_policy template_environment",
    "text": "dump_json_line escape_controls format_error_line quote_lines suggest_names to_one_line truncate_text",
    "tool": "Actor ConfirmationRule ToolAnnotations ToolSpec check_confirmation_rule",
    "tool_rendering": "ToolStyle render_tools",
    "traces": "TraceCall TraceDialogue TraceTask",
    "tracing": "SpanAttributes trace_operation",
    "trajectory": "CallEvent InjectedFault RepairOrigin Trajectory TurnSpan",
    "user_cache": "UserCache",
    "verdict": "CheckOutcome JudgeOpinion Outcome PrunedCall StepLabel TurnVerdict Verdict",
    "views": "read_view",
    "writer_lock": "WriterLock",
    "yaml_text": "compose_yaml",
}
"""Module to the public names that it defines."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "CALL_TOOL",
    "DEEPEST_JSON",
    "DIRECTORY_TOOLS",
    "HUB",
    "LIST_TOOLS",
    "LONGEST_NAME",
    "MAX_FACTS",
    "RENDER_ERRORS",
    "SAME_COMMAND",
    "SEARCH_TOOLS",
    "TOOL_SEARCH",
    "TWO_LEVEL",
    "Actor",
    "AnswerCheck",
    "AnswerFact",
    "AppendFile",
    "BudgetExceeded",
    "CallEvent",
    "Chain",
    "Check",
    "CheckAudit",
    "CheckOutcome",
    "CodeCheck",
    "Composite",
    "CompressedOutput",
    "ConfirmationRule",
    "Constant",
    "Criterion",
    "CriterionOutcome",
    "Dependency",
    "Difficulty",
    "EnvironmentFault",
    "EnvironmentSpec",
    "FaultKind",
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
    "LeftOut",
    "Message",
    "ModelFault",
    "ModelFaultKind",
    "NondeterminismMask",
    "Origin",
    "Outcome",
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
    "RecordLookup",
    "RecordSource",
    "RefusedMember",
    "Registry",
    "RepairOrigin",
    "RequestedInfo",
    "RunError",
    "ScoredPlay",
    "Seed",
    "Selector",
    "SolverAttempt",
    "SourcePath",
    "SourceReference",
    "SpanAttributes",
    "StageSummary",
    "StateCheck",
    "StepJournal",
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
    "Topic",
    "TraceCall",
    "TraceDialogue",
    "TraceTask",
    "Trajectory",
    "TrajsmithError",
    "Turn",
    "TurnSpan",
    "TurnVerdict",
    "UntouchedCheck",
    "UsageSummary",
    "UserCache",
    "UserFact",
    "Verdict",
    "WriterLock",
    "add_checksum",
    "build_compressed_path",
    "build_page_policy",
    "canonical_json",
    "check_confirmation_rule",
    "check_order",
    "compose_yaml",
    "compress_records",
    "compute_entry_weight",
    "compute_part_digest",
    "compute_parts_digest",
    "compute_state_digest",
    "compute_table_digest",
    "content_hash",
    "count_records",
    "derive_seed",
    "dump_json_line",
    "ensure_writable",
    "environment_boundary",
    "escape_controls",
    "find_chat_token",
    "find_form",
    "find_secret",
    "format_error_line",
    "format_first_error",
    "has_records",
    "hash_bytes",
    "install_command",
    "is_too_deep",
    "iter_placed_lines",
    "known_secrets",
    "list_answer_facts",
    "list_program_plugins",
    "open_no_follow",
    "open_output",
    "open_records",
    "open_whole_file",
    "quote_lines",
    "raise_gc_threshold",
    "read_entries",
    "read_lines",
    "read_records",
    "read_stored",
    "read_view",
    "read_whole_records",
    "redact_key_shapes",
    "redact_secrets",
    "reduce_gc_frequency",
    "refuse_link",
    "refuse_links",
    "remove_records",
    "render_tools",
    "restore_records",
    "shorten_name",
    "skip_last_collection",
    "storage_boundary",
    "strip_checksum",
    "suggest_names",
    "template_environment",
    "to_one_line",
    "trace_operation",
    "truncate_text",
    "walk_tree",
    "write_whole_file",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module and keep it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
