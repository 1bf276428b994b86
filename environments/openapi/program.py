"""An OpenAPI document as a program: its operations are the tools, its resources the state."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from environments.hosting import Change
from environments.openapi.building import Builder, Built, answer_fault
from environments.openapi.derive import Kept
from environments.openapi.model import Refused
from environments.openapi.presenting import presented, result_schema
from environments.openapi.reading import read_document
from environments.openapi.references import Document, LeftOut
from environments.openapi.refusals import refusal
from environments.openapi.seeding import seed_state
from environments.openapi.store import Store, dangling, key_of
from environments.openapi.tables import ID, RESERVED
from environments.session import ToolResult
from trajectory import (
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
        document = Document(read_document(payload["text"], file), file)
        include = payload["include"]
        built = Builder(document).build(None if include is None else set(include), set(payload["exclude"]))
        return OpenApiProgram(payload, document, built)
    except RecursionError as error:
        raise InputError(f"{file}: nested too deeply") from error


class OpenApiProgram:
    """A derived environment.

    Attributes:
        notes: What was decided, and what was left out with the reason; one line each.
    """

    def __init__(self, payload: JsonObject, document: Document, built: Built) -> None:
        self.built = built
        self.wrapped: set[str] = set()
        """Tools whose answer is no object."""
        self._name: str = payload["name"]
        self._sizes: Mapping[str, int] = payload["states"]
        self._parsed: dict[bytes, JsonObject] = {}
        self.notes = [f"{label}: left out: {reason}" for label, reason in built.left_out.items()]
        self.notes += [f"{kept.operation.label}: {note}" for kept in built.kept.values() for note in kept.notes]
        self.notes += [*built.notes, *sorted({*built.model.requests.dropped, *built.model.responses.dropped})]
        self.spec = self._describe(payload, document)

    def states(self, seed: int) -> list[JsonObject]:
        """As many states of each size as the settings say.

        Raises:
            EnvironmentFault: No valid record was found for one of the tables.
        """
        try:
            return [
                seed_state(self.built.model, size, derive_seed(seed, self._name, size, number) % 2**31)
                for size, count in self._sizes.items()
                for number in range(count)
            ]
        except LeftOut as reason:
            raise self._fault(str(reason)) from reason

    def start(self, state: bytes, changes: Sequence[Change] = ()) -> "OpenApiPlay":
        """A play at a state; plays share what they do not write."""
        parts = self._parsed.get(state)
        if parts is None:
            parts = self._checked(state)
            if len(self._parsed) >= _STARTS:
                self._parsed.clear()
            self._parsed[state] = parts
        return OpenApiPlay(self, Store(self.built.model.tables, _after(parts, changes)))

    # States

    def _checked(self, state: bytes) -> JsonObject:
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
        store = Store(model.tables, parts)
        yield from dangling(model.tables.values(), parts)
        for table in model.tables.values():
            for key, record in parts[table.name].items():
                if table.identity != ID and key_of(record.get(table.identity)) != key:
                    yield f"{table.name}/{key}: its {table.identity} is {record.get(table.identity)!r}"
                with environment_boundary(self._name):
                    fault = model.record_fault(store, table, record)
                if fault is not None:
                    yield f"{table.name}/{key}: {fault}"

    def _fault(self, message: str) -> EnvironmentFault:
        return EnvironmentFault("state", self._name, message)

    # Description

    def _describe(self, payload: JsonObject, document: Document) -> EnvironmentSpec:
        info = document.root.get("info")
        info = info if isinstance(info, dict) else {}
        words = [str(info[key]).strip() for key in ("title", "description") if info.get(key)]
        tools = tuple(self._tool(kept) for kept in self.built.kept.values())
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

    def _tool(self, kept: Kept) -> ToolSpec:
        model, operation = self.built.model, kept.operation
        output = None
        if operation.answer.schema is not None:
            output, wrapped = result_schema(operation.answer.schema, model.responses)
            if wrapped:
                self.wrapped.add(operation.tool)
        return ToolSpec(
            server=self._name,
            name=operation.tool,
            description=operation.description,
            input_schema=presented(kept.inputs.schema, model.requests),
            output_schema=output,
            annotations=ToolAnnotations(
                read_only_hint=kept.reads, destructive_hint=None if kept.reads else operation.method == "delete"
            ),
        )

    def _state_schema(self) -> JsonObject:
        properties: JsonObject = {
            "now": {"type": "string", "format": "date-time"},
            "counters": {"type": "object", "additionalProperties": {"type": "integer"}},
            "seed": {"type": "integer"},
        }
        for table in self.built.model.tables.values():
            text = f"Every {table.noun} by its {'key' if table.identity == ID else table.identity}."
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


def _after(parts: JsonObject, changes: Sequence[Change]) -> JsonObject:
    """Parts after changes; what did not change is shared."""
    made = dict(parts)
    own: set[str] = set()
    for name, key, text in changes:
        if key is None:
            made[name] = None if text is None else orjson.loads(text)
            own.add(name)
            continue
        if name not in own:
            made[name] = dict(made[name])
            own.add(name)
        if text is None:
            made[name].pop(key, None)
        else:
            made[name][key] = orjson.loads(text)
    return made


class OpenApiPlay:
    """One play; what it does not write it shares with others."""

    def __init__(self, program: OpenApiProgram, store: Store) -> None:
        self._program = program
        self._store = store

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Call an operation; a refusal leaves the state as it was."""
        built, name = self._program.built, self._program.spec.name
        kept = built.kept.get(tool)
        if kept is None or actor != "assistant":
            return ToolResult.refusal("unknown_tool", f"unknown tool: {tool}")
        fault = built.model.fault(kept.inputs.schema, arguments, request=True)
        if fault is not None:
            return refusal(built.model, kept.operation, "invalid_arguments", 400, fault)
        self._store.begin()
        try:
            with environment_boundary(name, tool):
                return self._answered(kept, arguments)
        except EnvironmentFault:
            self._store.undo()
            raise

    def _answered(self, kept: Kept, arguments: JsonObject) -> ToolResult:
        model, name, tool = self._program.built.model, self._program.spec.name, kept.operation.tool
        try:
            answer = kept.action.run(model, self._store, arguments)
        except Refused as reason:
            self._store.undo()
            return refusal(model, kept.operation, "refused", reason.status, str(reason))
        except LeftOut as reason:
            raise EnvironmentFault(
                "output_schema", self._program.spec.name, str(reason), kept.operation.tool
            ) from reason
        fault = answer_fault(model, kept.operation, answer)
        if fault is not None:
            raise EnvironmentFault("output_schema", name, fault, tool)
        return ToolResult({"result": answer} if tool in self._program.wrapped else answer)

    def changes(self) -> list[Change]:
        """Records and counters that were written since the last time."""
        return self._store.changes()
