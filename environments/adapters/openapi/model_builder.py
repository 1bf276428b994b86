"""Build a document's model and try its operations before anybody relies on them."""

import random
from dataclasses import dataclass

from trajsmith.environments.adapters.openapi.argument_sampling import sample_arguments
from trajsmith.environments.adapters.openapi.document_model import DocumentModel, RequestRefused
from trajsmith.environments.adapters.openapi.document_references import OpenApiDocument, UnsupportedFeature
from trajsmith.environments.adapters.openapi.operation_derivation import DerivedOperation, OperationDerivation
from trajsmith.environments.adapters.openapi.operations import Operation, OperationReader
from trajsmith.environments.adapters.openapi.read_actions import GetPropertyAction
from trajsmith.environments.adapters.openapi.record_rendering import RecordRenderer
from trajsmith.environments.adapters.openapi.relations import ReferenceFinder
from trajsmith.environments.adapters.openapi.resource_collections import find_collections
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.seed_states import NoValidRecord, build_seed_state
from trajsmith.environments.adapters.openapi.store import ResourceStore
from trajsmith.environments.adapters.openapi.tables import TableDerivation
from trajsmith.environments.adapters.openapi.value_generation import ValueGenerator
from trajsmith.environments.adapters.openapi.write_actions import DeleteAction, UnlinkAction, UpdatePropertyAction
from trajsmith.records import InputError, JsonObject, JsonValue, derive_seed

TRIAL_CALLS = 6
"""Calls that every operation is tried with at load."""
_TRIAL_SEED = 7


@dataclass
class BuildResult:
    """Model of a document, with the operations that became tools."""

    model: DocumentModel
    derived: dict[str, DerivedOperation]
    """Operations by tool name."""
    left_out: dict[str, str]
    """Reasons by operation, as "GET /path"."""
    notes: list[str]


class ModelBuilder:
    """Builder of a model; tables without a valid record are removed together with what needs them."""

    def __init__(self, document: OpenApiDocument) -> None:
        self._document = document
        self._requests = Dialect(document, "request")
        self._responses = Dialect(document, "response")
        reader = OperationReader(document, self._requests, self._responses)
        self._operations = reader.operations()
        self._unread = dict(reader.left_out)
        self._reader_notes = reader.notes
        self._without: dict[str, str] = {}

    def build(self, names: set[str] | None, excluded: set[str]) -> BuildResult:
        """Build until what is left can be seeded and called.

        Args:
            names: The operations to keep, by operationId, tool or label; None keeps all.

        Raises:
            InputError: A name fits no operation, or nothing is left.
        """
        chosen = self._choose_operations(names, excluded)
        while True:
            built = self._build_once(chosen)
            try:
                state = build_seed_state(built.model, "small", _TRIAL_SEED)
            except NoValidRecord as reason:
                self._without[reason.table] = str(reason)
                continue
            self._try(built, state)
            self._agree(built)
            break
        if not built.derived:
            reasons = "; ".join(f"{label}: {reason}" for label, reason in list(built.left_out.items())[:3])
            raise InputError(f"{self._document.file}: no operation can be played: {reasons}")
        return built

    def _choose_operations(self, names: set[str] | None, excluded: set[str]) -> set[str]:
        known: dict[str, str] = {label: label for label in self._unread}
        for operation in self._operations:
            known.update(dict.fromkeys((operation.tool, operation.identifier, operation.label), operation.label))
        unknown = sorted(((names or set()) | excluded) - known.keys())
        if unknown:
            raise InputError(
                f"{self._document.file}: there is no operation {unknown[0]!r}; "
                f"there are {', '.join(operation.tool for operation in self._operations[:12])}"
            )
        wanted = set(known.values()) if names is None else {known[name] for name in names}
        return wanted - {known[name] for name in excluded}

    def _build_once(self, chosen: set[str]) -> BuildResult:
        left_out = dict(self._unread)
        families = find_collections(self._operations, self._responses, left_out)
        tables = TableDerivation(families, self._responses, self._requests)
        for name, reason in self._without.items():
            tables.discard(name, reason)
        relations = ReferenceFinder(tables, self._responses)
        viewer = RecordRenderer(tables.all, self._responses)
        model = DocumentModel(tables.all, self._requests, self._responses, viewer, ValueGenerator(self._responses))
        derivation = OperationDerivation(model, tables, relations, families, self._base())
        derived: dict[str, DerivedOperation] = {}
        for operation in self._operations:
            if operation.label in left_out:
                continue
            try:
                derived[operation.tool] = derivation.derived(operation)
            except UnsupportedFeature as reason:
                left_out[operation.label] = str(reason)
        self._prune(model, derived)
        derived = {tool: one for tool, one in derived.items() if one.operation.label in chosen}
        left_out = {label: reason for label, reason in left_out.items() if label in chosen or "{" not in label}
        return BuildResult(model, derived, left_out, list(self._reader_notes))

    def _base(self) -> str:
        servers = self._document.root.get("servers")
        url = servers[0].get("url") if isinstance(servers, list) and servers and isinstance(servers[0], dict) else None
        return url.rstrip("/") if isinstance(url, str) and url.startswith("http") else "https://example.com"

    def _prune(self, model: DocumentModel, derived: dict[str, DerivedOperation]) -> None:
        """Take out tables that no operation reaches and no record means."""
        needed = {level.table for one in derived.values() for level in one.action.chain.levels}
        needed |= {one.action.table.name for one in derived.values()}
        waiting = list(needed)
        while waiting:
            for reference in model.tables[waiting.pop()].references:
                if reference.table not in needed:
                    needed.add(reference.table)
                    waiting.append(reference.table)
        for name in list(model.tables):
            if name not in needed:
                del model.tables[name]

    # Trying

    def _agree(self, built: BuildResult) -> None:
        """Have records checked against every answer that shows them; leave out answers that no record fits."""
        own = {name: id(table.families[0].payloads[0].schema) for name, table in built.model.tables.items()}
        for _ in built.model.tables:
            built.model.shown = _find_shown_schemas(built)
            try:
                build_seed_state(built.model, "small", _TRIAL_SEED)
                return
            except NoValidRecord as reason:
                for tool, derived in list(built.derived.items()):
                    payload = derived.action.reply.payload
                    if (
                        derived.action.table.name == reason.table
                        and payload
                        and id(payload.schema) != own[reason.table]
                    ):
                        del built.derived[tool]
                        built.left_out[derived.operation.label] = f"its answer does not agree with others: {reason}"

    def _try(self, built: BuildResult, state: JsonObject) -> None:
        for tool, derived in list(built.derived.items()):
            reason = _try_operation(built.model, derived, state)
            if reason is not None:
                del built.derived[tool]
                built.left_out[derived.operation.label] = reason


def _find_shown_schemas(built: BuildResult) -> dict[str, list[JsonObject]]:
    by_table: dict[str, dict[str, JsonObject]] = {}
    for derived in built.derived.values():
        payload = derived.action.reply.payload
        if payload is not None and not isinstance(derived.action, GetPropertyAction | UpdatePropertyAction):
            name = built.model.responses.component(payload.schema) or str(id(payload.schema))
            by_table.setdefault(derived.action.table.name, {})[name] = payload.schema
    return {name: list(schemas.values()) for name, schemas in by_table.items()}


def _try_operation(model: DocumentModel, derived: DerivedOperation, state: JsonObject) -> str | None:
    """Return the reason why an operation cannot be relied on, or None."""
    refused = ""
    for number in range(TRIAL_CALLS):
        store = ResourceStore(model.tables, state)
        rng = random.Random(derive_seed(_TRIAL_SEED, derived.operation.label, number))
        try:
            arguments = sample_arguments(derived, model, store, rng)
            fault = model.find_fault(derived.inputs.schema, arguments, request=True)
            if fault is not None:
                refused = f"no arguments found that fit: {fault}"
                continue
            answer = derived.action.run(model, store, arguments)
        except RequestRefused as reason:
            refused = str(reason)
            continue
        except UnsupportedFeature as reason:
            return str(reason)
        try:
            fault = find_response_fault(model, derived.operation, answer)
        except UnsupportedFeature as reason:
            return str(reason)
        if fault is not None:
            return f"its answer would not fit the document: {fault}"
        return None
    return None if isinstance(derived.action, DeleteAction | UnlinkAction) else f"no call succeeds: {refused}"


def find_response_fault(model: DocumentModel, operation: Operation, answer: JsonValue) -> str | None:
    """Return how an answer violates the document, or None."""
    return None if operation.answer.schema is None else model.find_fault(operation.answer.schema, answer)
