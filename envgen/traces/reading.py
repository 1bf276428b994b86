"""Read recordings of any known format into calls with results, tool definitions and a policy, without secrets."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trajsmith.envgen.traces.har import fits_har, read_har
from trajsmith.envgen.traces.recordings import CallRecording, RecordedDialogue, ToolDefinition, convert_dialogue
from trajsmith.envgen.traces.redaction import Redactor
from trajsmith.records import InputError, JsonObject, RecordDropped, is_too_deep, to_one_line
from trajsmith.verify.traces import load_documents, read_dialogues

LARGEST_FILE = 512_000_000
MOST_TOOLS = 400


def read_recording(files: Sequence[Path], form: str = "auto") -> CallRecording:
    """Read recordings; what cannot be read is left out with a reason.

    Raises:
        InputError: A file is in no known format, or no call with a result is left.
    """
    recording = CallRecording([])
    redactor = Redactor()
    for file in files:
        if file.is_file() and file.stat().st_size > LARGEST_FILE:
            raise InputError(f"{file} is larger than {LARGEST_FILE // 1_000_000} MB: split it")
        documents = load_documents(file)
        first = next((one for one in documents if not isinstance(one, RecordDropped)), None)
        if form == "har" or (form == "auto" and fits_har(first)):
            _add_har(recording, file, documents, redactor)
            continue
        for where, dialogue in read_dialogues(file, form, needs_user=False):
            if isinstance(dialogue, RecordDropped):
                recording.left_out.append((where, to_one_line(f"{dialogue.reason} {dialogue.detail}", 120)))
                continue
            converted = convert_dialogue(dialogue, recording.left_out)
            if converted.calls:
                recording.dialogues.append(_redact_dialogue(converted, redactor))
        for document in documents:
            for name, definition in find_definitions(document):
                if len(recording.tools) < MOST_TOOLS and name not in recording.tools:
                    recording.tools[name] = _redact_definition(definition, redactor)
    if not any(dialogue.calls for dialogue in recording.dialogues):
        names = ", ".join(file.name for file in files)
        raise InputError(f"{names}: no call with a result: give recordings that hold tool results")
    if redactor.count:
        recording.left_out.append(("secrets", f"{redactor.count} values were replaced by [redacted]"))
    return recording


def _add_har(recording: CallRecording, file: Path, documents: list[Any], redactor: Redactor) -> None:
    for document in documents:
        if not fits_har(document):
            recording.left_out.append((file.name, "it is no HAR document"))
            continue
        for page, calls, definitions in read_har(document, recording.left_out):
            recording.dialogues.append(_redact_dialogue(RecordedDialogue(f"{file.name}:{page}", calls), redactor))
            for name, definition in definitions.items():
                recording.tools.setdefault(name, definition)


def _redact_dialogue(dialogue: RecordedDialogue, redactor: Redactor) -> RecordedDialogue:
    calls = [
        type(call)(call.tool, redactor.redact(call.arguments), redactor.redact(call.result), call.failed)
        for call in dialogue.calls
    ]
    return RecordedDialogue(dialogue.name, calls, dialogue.task, dialogue.reward, redactor.redact(dialogue.messages))


def _redact_definition(definition: ToolDefinition, redactor: Redactor) -> ToolDefinition:
    schema = definition.input_schema
    return ToolDefinition(
        redactor.redact(definition.description), _redact_schema(schema, redactor) if schema else None, definition.reads
    )


def _redact_schema(value: Any, redactor: Redactor) -> Any:
    """Return a schema without secrets; a property may be called `token`, and its schema is no secret."""
    if isinstance(value, dict):
        return {name: _redact_schema(inner, redactor) for name, inner in value.items()}
    if isinstance(value, list):
        return [_redact_schema(inner, redactor) for inner in value]
    return redactor.redact(value)


def find_definitions(document: Any) -> Iterator[tuple[str, ToolDefinition]]:
    """Yield the tool definitions of a document, wherever its format has them."""
    if isinstance(document, list):
        for one in document[:5000]:
            yield from find_definitions(one)
        return
    if not isinstance(document, dict):
        return
    info, parameters, agent = (document.get(n) for n in ("info", "responses_create_params", "agent"))
    environment = info.get("environment_info") if isinstance(info, dict) else None
    places = [
        document.get("tools"), document.get("functions"),
        environment.get("tool_defs") if isinstance(environment, dict) else None,
        parameters.get("tools") if isinstance(parameters, dict) else None,
        agent.get("tool_definitions") if isinstance(agent, dict) else None,
    ]  # fmt: skip
    for listed in places:
        listed = list(listed.values()) if isinstance(listed, dict) else listed
        for one in listed if isinstance(listed, list) else ():
            read = _read_definition(one)
            if read is not None:
                yield read


def _read_definition(value: Any) -> tuple[str, ToolDefinition] | None:
    function: JsonObject | None = value.get("function", value) if isinstance(value, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or is_too_deep(function):
        return None
    schema = function.get("parameters", function.get("input_schema"))
    fits = isinstance(schema, dict) and isinstance(schema.get("properties"), dict)
    fields = schema["properties"] if fits and isinstance(schema, dict) else {}
    small = len(fields) <= 60 and all(isinstance(name, str) and len(name) <= 60 for name in fields)
    return function["name"], ToolDefinition(
        str(function.get("description") or "")[:4000], schema if fits and small else None
    )
