"""Run an OpenAPI document as an environment program: operations are tools, resources are state."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from trajsmith.environments.adapters.openapi.document_model import RequestRefused
from trajsmith.environments.adapters.openapi.document_reading import read_document
from trajsmith.environments.adapters.openapi.document_references import OpenApiDocument, UnsupportedFeature
from trajsmith.environments.adapters.openapi.error_responses import build_error_response
from trajsmith.environments.adapters.openapi.model_builder import BuildResult, ModelBuilder, find_response_fault
from trajsmith.environments.adapters.openapi.operation_derivation import DerivedOperation
from trajsmith.environments.adapters.openapi.schema_presentation import build_result_schema, present_schema
from trajsmith.environments.adapters.openapi.seed_states import build_seed_state
from trajsmith.environments.adapters.openapi.store import ResourceStore, find_dangling, to_key
from trajsmith.environments.adapters.openapi.tables import GENERATED_ID, RESERVED
from trajsmith.environments.programs import StateChange
from trajsmith.environments.session import ToolResult
from trajsmith.environments.tool_actors import check_user_tools
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    InputError,
    JsonObject,
    JsonValue,
    ToolAnnotations,
    ToolSpec,
    content_hash,
    derive_seed,
    environment_boundary,
)

_STARTS = 64
"""Initial states that are kept parsed."""


def load(payload: JsonObject) -> "OpenApiProgram":
    """Derive an environment from a document.

    Raises:
        InputError: The document is none, leads out of its file, or nothing of it can be played.
    """
    file = payload["file"]
    try:
        document = OpenApiDocument(read_document(payload["text"], file), file)
        include = payload["include"]
        built = ModelBuilder(document).build(None if include is None else set(include), set(payload["exclude"]))
        return OpenApiProgram(payload, document, built)
    except RecursionError as error:
        raise InputError(f"{file}: nested too deeply") from error
    except UnsupportedFeature as error:
        raise InputError(f"{file}: {error}") from error


class OpenApiProgram:
    """Environment program derived from an OpenAPI document.

    Attributes:
        notes: What was decided, and what was left out with the reason; one line each.
    """

    def __init__(self, payload: JsonObject, document: OpenApiDocument, built: BuildResult) -> None:
        self.built = built
        self.wrapped: set[str] = set()
        """Tools whose answer is no object."""
        self._name: str = payload["name"]
        self._sizes: Mapping[str, int] = payload["states"]
        self._parsed: dict[bytes, JsonObject] = {}
        self.notes = [f"{label}: left out: {reason}" for label, reason in built.left_out.items()]
        self.notes += [
            f"{derived.operation.label}: {note}" for derived in built.derived.values() for note in derived.notes
        ]
        self.notes += [*built.notes, *sorted({*built.model.requests.dropped, *built.model.responses.dropped})]
        self.spec = self._describe(payload, document)
        self.actors = {tool.name: tool.actor for tool in self.spec.tools}
        check_user_tools(payload["file"], payload["user"], self.actors)

    def states(self, seed: int) -> list[JsonObject]:
        """Return as many states of each size as the settings say.

        Raises:
            EnvironmentFault: No valid record was found for one of the tables.
        """
        try:
            return [
                build_seed_state(self.built.model, size, derive_seed(seed, self._name, size, number) % 2**31)
                for size, count in self._sizes.items()
                for number in range(count)
            ]
        except UnsupportedFeature as reason:
            raise self._fault(str(reason)) from reason

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> "OpenApiSession":
        """Start a session at a state; sessions share what they do not write."""
        parts = self._parsed.get(state)
        if parts is None:
            parts = self._parse_state(state)
            if len(self._parsed) >= _STARTS:
                self._parsed.clear()
            self._parsed[state] = parts
        return OpenApiSession(self, ResourceStore(self.built.model.tables, _apply_changes(parts, changes)))

    # States

    def _parse_state(self, state: bytes) -> JsonObject:
        """Parse a state.

        Raises:
            EnvironmentFault: It is no state of this environment.
        """
        try:
            parts = orjson.loads(state)
        except orjson.JSONDecodeError as error:
            raise self._fault(f"not JSON: {error}") from error
        fault = self._structure_fault(parts) or next(self._record_faults(parts), None)
        if fault is not None:
            raise self._fault(fault)
        checked: JsonObject = parts
        return checked

    def _structure_fault(self, parts: JsonValue) -> str | None:
        wanted = {*RESERVED, *self.built.model.tables}
        if not isinstance(parts, dict) or parts.keys() != wanted:
            return f"a state has exactly the parts {', '.join(sorted(wanted))}"
        if not isinstance(parts["now"], str) or not isinstance(parts["seed"], int):
            return "now must be a time as text, seed an integer"
        counters = parts["counters"]
        if not isinstance(counters, dict) or not all(isinstance(number, int) for number in counters.values()):
            return "counters must be an object of integers"
        for name in self.built.model.tables:
            table = parts[name]
            if not isinstance(table, dict) or not all(isinstance(record, dict) for record in table.values()):
                return f"{name} must be an object of records"
        return None

    def _record_faults(self, parts: JsonObject) -> Any:
        model = self.built.model
        store = ResourceStore(model.tables, parts)
        yield from find_dangling(model.tables.values(), parts)
        for table in model.tables.values():
            for key, record in parts[table.name].items():
                if table.identity != GENERATED_ID and to_key(record.get(table.identity)) != key:
                    yield f"{table.name}/{key}: its {table.identity} is {record.get(table.identity)!r}"
                with environment_boundary(self._name):
                    fault = model.find_record_fault(store, table, record)
                if fault is not None:
                    yield f"{table.name}/{key}: {fault}"

    def _fault(self, message: str) -> EnvironmentFault:
        return EnvironmentFault("state", self._name, message)

    # Description

    def _describe(self, payload: JsonObject, document: OpenApiDocument) -> EnvironmentSpec:
        info = document.root.get("info")
        info = info if isinstance(info, dict) else {}
        words = [str(info[key]).strip() for key in ("title", "description") if info.get(key)]
        tools = tuple(self._tool(derived, payload["user"]) for derived in self.built.derived.values())
        return EnvironmentSpec(
            name=self._name,
            version=content_hash([payload["text"], [tool.model_dump(mode="json") for tool in tools]], 16),
            description="\n".join(words),
            domain=payload["domain"],
            policy=payload["policy"],
            tools=tools,
            state_schema=self._state_schema(),
            source=f"openapi:{payload['file']}",
        )

    def _tool(self, derived: DerivedOperation, user: list[str] | None) -> ToolSpec:
        model, operation = self.built.model, derived.operation
        output = None
        if operation.answer.schema is not None:
            output, wrapped = build_result_schema(operation.answer.schema, model.responses)
            if wrapped:
                self.wrapped.add(operation.tool)
        return ToolSpec(
            server=self._name,
            name=operation.tool,
            description=operation.description,
            input_schema=present_schema(derived.inputs.schema, model.requests),
            output_schema=output,
            annotations=ToolAnnotations(
                read_only_hint=derived.reads, destructive_hint=None if derived.reads else operation.method == "delete"
            ),
            actor=operation.find_actor(user),
        )

    def _state_schema(self) -> JsonObject:
        properties: JsonObject = {
            "now": {"type": "string", "format": "date-time"},
            "counters": {"type": "object", "additionalProperties": {"type": "integer"}},
            "seed": {"type": "integer"},
        }
        for table in self.built.model.tables.values():
            text = f"Every {table.noun} by its {'key' if table.identity == GENERATED_ID else table.identity}."
            properties[table.name] = {
                "type": "object",
                "description": text,
                "additionalProperties": {"type": "object"},
            }
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }


def _apply_changes(parts: JsonObject, changes: Sequence[StateChange]) -> JsonObject:
    """Parts after changes; what did not change is shared."""
    merged = dict(parts)
    own: set[str] = set()
    for name, key, text in changes:
        if key is None:
            merged[name] = None if text is None else orjson.loads(text)
            own.add(name)
            continue
        if name not in own:
            merged[name] = dict(merged[name])
            own.add(name)
        if text is None:
            merged[name].pop(key, None)
        else:
            merged[name][key] = orjson.loads(text)
    return merged


class OpenApiSession:
    """Session; tables that it does not write are shared with others."""

    def __init__(self, program: OpenApiProgram, store: ResourceStore) -> None:
        self._program = program
        self._store = store

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Call an operation; a refusal leaves the state as it was."""
        built, name = self._program.built, self._program.spec.name
        derived = built.derived.get(tool)
        if derived is None or self._program.actors[tool] != actor:
            return ToolResult.refusal("unknown_tool", f"unknown tool: {tool}")
        fault = built.model.find_fault(derived.inputs.schema, arguments, request=True)
        if fault is not None:
            return build_error_response(built.model, derived.operation, "invalid_arguments", 400, fault)
        self._store.begin()
        try:
            with environment_boundary(name, tool):
                return self._run_operation(derived, arguments)
        except EnvironmentFault:
            self._store.undo()
            raise

    def _run_operation(self, derived: DerivedOperation, arguments: JsonObject) -> ToolResult:
        model, name, tool = self._program.built.model, self._program.spec.name, derived.operation.tool
        try:
            answer = derived.action.run(model, self._store, arguments)
        except RequestRefused as reason:
            self._store.undo()
            return build_error_response(model, derived.operation, "refused", reason.status, str(reason))
        except UnsupportedFeature as reason:
            raise EnvironmentFault(
                "output_schema", self._program.spec.name, str(reason), derived.operation.tool
            ) from reason
        fault = find_response_fault(model, derived.operation, answer)
        if fault is not None:
            raise EnvironmentFault("output_schema", name, fault, tool)
        return ToolResult({"result": answer} if tool in self._program.wrapped else answer)

    def changes(self) -> list[StateChange]:
        """Return records and counters that were written since the last call."""
        return self._store.changes()
