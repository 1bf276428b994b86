"""A tool as its file has it, beside what the metadata says of it; where they disagree, the file is what counts."""

from dataclasses import dataclass
from typing import Any

from trajsmith.environments.arguments import validate_schema
from trajsmith.environments.schemas import wrap_schema
from trajsmith.environments.signatures import FunctionSignature
from trajsmith.environments.tool_actors import find_tool_actor
from trajsmith.records import Actor, InputError, JsonObject, ToolAnnotations, ToolSpec

_SILENT = ToolAnnotations()
_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}


@dataclass(frozen=True)
class ToolDescription:
    """Description of a tool, merged from its code and its metadata.

    Attributes:
        notes: Where metadata and file disagree.
    """

    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    actor: Actor
    notes: tuple[str, ...] = ()

    def tool(self, server: str, name: str, annotations: ToolAnnotations = _SILENT) -> ToolSpec:
        """The tool's specification."""
        return ToolSpec(
            server=server,
            name=name,
            description=self.description,
            input_schema=self.input_schema,
            output_schema=self.output_schema,
            annotations=annotations,
            actor=self.actor,
        )


def merge_tool_metadata(
    name: str, signature: FunctionSignature, description: str | None, metadata: JsonObject | None
) -> ToolDescription:
    """Merge a tool's signature and its metadata; the code wins where they disagree.

    Args:
        name: The tool.
        signature: What the file says.
        description: Given where the file registers the tool, or None.
        metadata: The tool's entry in the metadata, or None.

    Raises:
        InputError: The metadata names an unknown actor.
    """
    own = description or signature.description
    if metadata is None:
        return ToolDescription(own, signature.input_schema, signature.output_schema, find_tool_actor(name, own))
    text = metadata.get("description")
    inputs, notes = _inputs(name, signature, metadata.get("input_schema"))
    output, more = _output(name, signature, metadata.get("output_schema"))
    described = text if isinstance(text, str) and text else own
    return ToolDescription(described, inputs, output, find_tool_actor(name, described, metadata), (*notes, *more))


def _inputs(name: str, signature: FunctionSignature, declared: Any) -> tuple[JsonObject, list[str]]:
    """The metadata's input schema if it fits the signature, else the signature's with the metadata's descriptions."""
    own = signature.input_schema
    if declared is None:
        return own, []
    checked = _checked(declared, f"tool {name}: the metadata's input_schema")
    if isinstance(checked, str):
        return own, [checked]
    notes = [f"tool {name}: {difference}" for difference in _input_differences(own, checked)]
    return (_described(own, checked), notes) if notes else ({"properties": {}, **checked}, [])


def _input_differences(own: JsonObject, declared: JsonObject) -> list[str]:
    ours, theirs = own["properties"], declared.get("properties") or {}
    needed, named = set(own.get("required") or ()), set(declared.get("required") or ())
    notes = [f"parameter {key} is in the metadata, but not in the code" for key in theirs if key not in ours]
    notes += [f"parameter {key} is in the code, but not in the metadata" for key in ours if key not in theirs]
    for key in ours.keys() & theirs.keys():
        if (key in needed) != (key in named):
            notes.append(f"parameter {key} is {'required' if key in needed else 'optional'} in the code, "
                         f"but {'required' if key in named else 'optional'} in the metadata")  # fmt: skip
        takes, offered = collect_json_types(ours[key]), collect_json_types(theirs[key])
        if takes and offered and not offered <= (takes | {"integer"} if "number" in takes else takes):
            notes.append(f"parameter {key} is {_or(takes)} in the code, but {_or(offered)} in the metadata")
    return sorted(notes)


def _described(own: JsonObject, declared: JsonObject) -> JsonObject:
    described = dict(own["properties"])
    for key, value in (declared.get("properties") or {}).items():
        if key in described and isinstance(value, dict) and value.get("description"):
            described[key] = {**described[key], "description": value["description"]}
    return {**own, "properties": described}


def _output(name: str, signature: FunctionSignature, declared: Any) -> tuple[JsonObject | None, list[str]]:
    """The metadata's output schema if the result can have it, else what the code says."""
    if not declared:
        return signature.output_schema, []
    checked = _checked(declared, f"tool {name}: the metadata's output_schema")
    if isinstance(checked, str):
        return signature.output_schema, [checked]
    if signature.text:  # tools that return nothing answer with a sentence instead; the metadata then says nothing
        described = ", ".join(checked.get("properties") or ())
        note = f"tool {name}: the metadata says it returns an object with {described}, the code returns text"
        return None, [note] if described else []
    kinds = collect_json_types(checked)
    return checked if not kinds or kinds == {"object"} else wrap_schema(checked), []


def _checked(schema: Any, where: str) -> JsonObject | str:
    """The schema, or what is wrong with it."""
    if not isinstance(schema, dict):
        return f"{where} is no JSON Schema: it is no object"
    try:
        return validate_schema(schema, where)
    except InputError as error:
        return str(error)


def collect_json_types(schema: Any) -> set[str]:
    """The types of value that a schema lets pass, as far as it says; empty where it says nothing."""
    if not isinstance(schema, dict):
        return set()
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    if isinstance(kind, list):
        return set(kind)
    for choices in (schema.get("anyOf"), schema.get("oneOf")):
        if isinstance(choices, list):
            types = [collect_json_types(choice) for choice in choices]
            return set().union(*types) if all(types) else set()
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return {_TYPES[type(value)] for value in values}


def _or(types: set[str]) -> str:
    return " or ".join(sorted(types))
