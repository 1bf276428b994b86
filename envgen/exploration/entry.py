"""From what an exploration found out to a full entry of the configuration, and what to say about it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.envgen.exploration.findings import ExploredTool, Findings, list_search_words
from trajsmith.envgen.exploration.refusals import infer_refusals
from trajsmith.envgen.exploration.values import (
    FRESH,
    SEARCHES,
    list_statements,
    propose_values,
    takes_sql,
)
from trajsmith.envgen.exploration.words import write_phrasebook
from trajsmith.environments.adapters.mcp import McpSettings
from trajsmith.environments.adapters.mcp.settings import (
    ObserveSettings,
    StateSettings,
    ToolFilter,
)
from trajsmith.grounding import SchemaField, get_array_item, is_identifier, list_output_fields, split_name
from trajsmith.records import JsonObject, JsonValue, canonical_json

_MOST_EXAMPLES = 12
_MOST_KEYS = 40
"""Keys of an object from which on it is taken for a map."""
_DEEPEST = 6


@dataclass(frozen=True)
class ExploredEntry:
    """An entry that says what the exploration found out."""

    settings: McpSettings
    notes: tuple[str, ...]
    """What was inferred, a line each."""
    usable: int
    """Tools that agents get."""


def compose_entry(settings: McpSettings, findings: Findings) -> ExploredEntry:
    """Return the full entry of an explored server. What the settings say already is kept."""
    tools = [tool for tool in findings.tools.values() if not tool.without]
    left_out = [tool for tool in findings.tools.values() if tool.without]
    refusals = infer_refusals(findings.refused, findings.accepted_texts)
    outputs = {
        tool.spec.name: schema
        for tool in tools
        if not _has_fields(tool) and (schema := infer_schema(tool.samples)) is not None
    }
    observe = [
        ObserveSettings(tool=name, label=name, drop=findings.drop.get(name, []))
        for name in findings.watched
        if name in {tool.spec.name for tool in tools} and findings.states
    ]
    examples = {
        f"{tool.spec.name}.{leaf.name}": values
        for tool in tools
        for leaf in tool.fields
        if (values := _list_examples(tool, leaf, findings))
    }
    read_only = [tool.spec.name for tool in tools if _only_reads(tool)]
    workspace = settings.workspace.model_copy(
        update={
            "ignore": [*settings.workspace.ignore, *findings.ignored],
            "databases": [
                *settings.workspace.databases,
                *(name for name in findings.databases if name not in findings.ignored),
            ],
            "drop": [*settings.workspace.drop, *findings.file_times],
        }
    )
    states = {name: StateSettings(calls=list(calls)) for name, calls in findings.states.items()}
    update: dict[str, Any] = {
        "explore": None,
        "explored": True,
        "literals": settings.literals or findings.literals,
        "description": settings.description or _first_sentence(findings.instructions),
        "policy": settings.policy or findings.instructions.strip()[:2000],
        "read_only": settings.read_only or read_only,
        "tools": ToolFilter(
            include=settings.tools.include,
            exclude=[*settings.tools.exclude, *(tool.spec.name for tool in left_out)],
            user=settings.tools.user,
        ),
        "refusals": settings.refusals or refusals,
        "workspace": workspace,
        "observe": settings.observe or observe,
        "outputs": {**outputs, **settings.outputs},
        "parameter_examples": {**examples, **settings.parameter_examples},
        "states": settings.states or states,
        "phrases": settings.phrases or write_phrasebook(tools, findings.instructions),
    }
    notes = list(_list_notes(findings, tools, left_out, refusals, observe))
    return ExploredEntry(settings.model_copy(update=update), tuple(notes), len(tools))


def _list_notes(
    findings: Findings,
    tools: Sequence[ExploredTool],
    left_out: Sequence[ExploredTool],
    refusals: Sequence[str],
    observe: Sequence[ObserveSettings],
) -> Sequence[str]:
    writes = [tool.spec.name for tool in tools if tool.changed]
    notes = [
        f"{findings.server}: {len(tools)} of {len(findings.tools)} tools are used, after {findings.calls} calls",
        f"change the state: {', '.join(writes) or 'none'}",
    ]
    if findings.states:
        notes.append(
            f"initial states: {', '.join(f'{name} ({len(calls)} calls)' for name, calls in findings.states.items())}"
        )
    else:
        notes.append("initial states: one, the server as it starts")
    if observe:
        notes.append(f"the state is what these show: {', '.join(call.tool for call in observe)}")
    if findings.databases:
        notes.append(f"the state has the rows of: {', '.join(findings.databases)}")
    if findings.ignored:
        notes.append(f"files that differ after each start are no state: {', '.join(findings.ignored[:6])}")
    notes += [f"refusals begin with: {pattern}" for pattern in refusals]
    notes += [f"left out: {tool.spec.name}: {tool.without}" for tool in left_out]
    if findings.ended:
        notes.append(f"the exploration ended {findings.ended}: the rest of the server is not known")
    return notes


def _only_reads(tool: ExploredTool) -> bool:
    return tool.kind == "read" and not tool.changed and tool.spec.annotations.read_only_hint is None


def _has_fields(tool: ExploredTool) -> bool:
    fields = list_output_fields(tool.spec)
    return len(fields) > 1 or any(field.name != "result" for field in fields)


def infer_schema(samples: Sequence[JsonValue]) -> JsonObject | None:
    """Return a schema of the fields that results have; None where they are no objects or lists."""
    structured = [sample for sample in samples if isinstance(sample, dict | list)]
    if not structured or len(structured) < len(samples):
        return None
    return _infer(structured, 0)


def _infer(values: Sequence[JsonValue], depth: int) -> JsonObject:
    present = [value for value in values if value is not None]
    if not present or depth > _DEEPEST:
        return {}
    if all(isinstance(value, dict) for value in present):
        keys = list(dict.fromkeys(key for value in present if isinstance(value, dict) for key in value))
        if len(keys) > _MOST_KEYS:
            return {"type": "object"}
        children: JsonObject = {
            key: _infer([value[key] for value in present if isinstance(value, dict) and key in value], depth + 1)
            for key in keys
        }
        return {"type": "object", "properties": children}
    if all(isinstance(value, list) for value in present):
        items = [item for value in present if isinstance(value, list) for item in value[:20]]
        return {"type": "array", "items": _infer(items, depth + 1)}
    names = {_name_type(value) for value in present}
    return {"type": names.pop()} if len(names) == 1 else {"type": "number"} if names == {"integer", "number"} else {}


def _name_type(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _list_examples(tool: ExploredTool, leaf: SchemaField, findings: Findings) -> list[JsonValue]:
    """Return values that a user may ask for: not those of the initial states."""
    origins = {origin.get(leaf.path) for _, _, origin in tool.good} - {None}
    statements = takes_sql(tool.spec, leaf)
    if statements:
        return list(list_statements(statements))
    if not origins or leaf.choices or leaf.schema.get("examples"):
        return []
    if tool.kind == "read" and set(split_name(leaf.name)) & SEARCHES and "string" in (leaf.types or {"string"}):
        words = list_search_words(sorted(findings.shared)) or list_search_words(findings.texts)
        if words:
            return list(words)
    if origins <= {"reference"}:
        used = [leaves[leaf.path] for _, leaves, _ in tool.good if leaf.path in leaves]
        flat = [item for value in used for item in (value if isinstance(value, list) else [value])]
        common = [value for value in flat if isinstance(value, str) and value in findings.shared]
        return [] if is_identifier(leaf.name) else list(dict.fromkeys(common))[:_MOST_EXAMPLES]
    target = get_array_item(leaf, tool.spec.input_schema) or leaf
    learnt = findings.hints.get((tool.spec.name, leaf.path))
    values: list[JsonValue] = []
    for number in range(FRESH, FRESH + _MOST_EXAMPLES):
        proposals = propose_values(tool.spec, target, number, (), learnt, creates=True)
        chosen = next((one for one in proposals if one.origin in origins), None)
        if chosen is not None:
            values += chosen.values if chosen.origin in ("plain", "hint", "schema") else chosen.values[:1]
    once = list({canonical_json(value): value for value in values}.values())
    return once[: 40 if origins == {"plain"} else _MOST_EXAMPLES]


def _first_sentence(text: str) -> str:
    plain = re.sub(r"[#*_`]+", "", " ".join(text.split()))
    first = re.split(r"(?<=[.!?])\s", plain, maxsplit=1)[0]
    return first if len(first) <= 200 else ""
