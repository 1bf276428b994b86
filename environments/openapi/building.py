"""From a document's text to everything that a program needs, tried out before anybody relies on it."""

import random
from dataclasses import dataclass

from environments.openapi.derive import Derivation, Kept
from environments.openapi.dialect import Dialect
from environments.openapi.families import families_of
from environments.openapi.model import Model, Refused
from environments.openapi.operations import Operation, Reader
from environments.openapi.reads import GettingPart
from environments.openapi.references import Document, LeftOut
from environments.openapi.relations import Relations
from environments.openapi.sampling import sample
from environments.openapi.seeding import NoRecords, seed_state
from environments.openapi.showing import Viewer
from environments.openapi.store import Store
from environments.openapi.tables import Tables
from environments.openapi.values import Maker
from environments.openapi.writes import Deleting, Unlinking, UpdatingPart
from trajectory import InputError, JsonObject, JsonValue, derive_seed

TRIALS = 6
"""Calls that every operation is tried with at load."""
_TRIAL_SEED = 7


@dataclass
class Built:
    """A document as a running model."""

    model: Model
    kept: dict[str, Kept]
    """Operations by tool name."""
    left_out: dict[str, str]
    """Reasons by operation, as "GET /path"."""
    notes: list[str]


class Builder:
    """Builds a model; tables of which no valid record can be made are taken out, and with them what needs them."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._requests = Dialect(document, "request")
        self._responses = Dialect(document, "response")
        reader = Reader(document, self._requests, self._responses)
        self._operations = reader.operations()
        self._unread = dict(reader.left_out)
        self._reader_notes = reader.notes
        self._without: dict[str, str] = {}

    def build(self, names: set[str] | None, excluded: set[str]) -> Built:
        """Build until what is left can be seeded and called.

        Args:
            names: The operations to keep, by operationId, tool or label; None keeps all.

        Raises:
            InputError: A name fits no operation, or nothing is left.
        """
        chosen = self._chosen(names, excluded)
        while True:
            built = self._once(chosen)
            try:
                state = seed_state(built.model, "small", _TRIAL_SEED)
            except NoRecords as reason:
                self._without[reason.table] = str(reason)
                continue
            self._try(built, state)
            self._agree(built)
            break
        if not built.kept:
            reasons = "; ".join(f"{label}: {reason}" for label, reason in list(built.left_out.items())[:3])
            raise InputError(f"{self._document.file}: no operation can be played: {reasons}")
        return built

    def _chosen(self, names: set[str] | None, excluded: set[str]) -> set[str]:
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

    def _once(self, chosen: set[str]) -> Built:
        left_out = dict(self._unread)
        families = families_of(self._operations, self._responses, left_out)
        tables = Tables(families, self._responses, self._requests)
        for name, reason in self._without.items():
            tables.discard(name, reason)
        relations = Relations(tables, self._responses)
        viewer = Viewer(tables.all, self._responses)
        model = Model(tables.all, self._requests, self._responses, viewer, Maker(self._responses))
        derivation = Derivation(model, tables, relations, families, self._base())
        kept: dict[str, Kept] = {}
        for operation in self._operations:
            if operation.label in left_out:
                continue
            try:
                kept[operation.tool] = derivation.kept(operation)
            except LeftOut as reason:
                left_out[operation.label] = str(reason)
        self._prune(model, kept)
        kept = {tool: one for tool, one in kept.items() if one.operation.label in chosen}
        left_out = {label: reason for label, reason in left_out.items() if label in chosen or "{" not in label}
        return Built(model, kept, left_out, list(self._reader_notes))

    def _base(self) -> str:
        servers = self._document.root.get("servers")
        url = servers[0].get("url") if isinstance(servers, list) and servers and isinstance(servers[0], dict) else None
        return url.rstrip("/") if isinstance(url, str) and url.startswith("http") else "https://example.com"

    def _prune(self, model: Model, kept: dict[str, Kept]) -> None:
        """Take out tables that no operation reaches and no record means."""
        needed = {level.table for one in kept.values() for level in one.action.chain.levels}
        needed |= {one.action.table.name for one in kept.values()}
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

    def _agree(self, built: Built) -> None:
        """Have records checked against every answer that shows them; leave out answers that no record fits."""
        own = {name: id(table.families[0].payloads[0].schema) for name, table in built.model.tables.items()}
        for _ in built.model.tables:
            built.model.shown = _shown(built)
            try:
                seed_state(built.model, "small", _TRIAL_SEED)
                return
            except NoRecords as reason:
                for tool, kept in list(built.kept.items()):
                    payload = kept.action.reply.payload
                    if kept.action.table.name == reason.table and payload and id(payload.schema) != own[reason.table]:
                        del built.kept[tool]
                        built.left_out[kept.operation.label] = f"its answer does not agree with others: {reason}"

    def _try(self, built: Built, state: JsonObject) -> None:
        for tool, kept in list(built.kept.items()):
            reason = _trial(built.model, kept, state)
            if reason is not None:
                del built.kept[tool]
                built.left_out[kept.operation.label] = reason


def _shown(built: Built) -> dict[str, list[JsonObject]]:
    found: dict[str, dict[str, JsonObject]] = {}
    for kept in built.kept.values():
        payload = kept.action.reply.payload
        if payload is not None and not isinstance(kept.action, GettingPart | UpdatingPart):
            name = built.model.responses.component(payload.schema) or str(id(payload.schema))
            found.setdefault(kept.action.table.name, {})[name] = payload.schema
    return {name: list(schemas.values()) for name, schemas in found.items()}


def _trial(model: Model, kept: Kept, state: JsonObject) -> str | None:
    """Why an operation cannot be relied on, or None."""
    refused = ""
    for number in range(TRIALS):
        store = Store(model.tables, state)
        rng = random.Random(derive_seed(_TRIAL_SEED, kept.operation.label, number))
        try:
            arguments = sample(kept, model, store, rng)
            fault = model.fault(kept.inputs.schema, arguments, request=True)
            if fault is not None:
                refused = f"no arguments found that fit: {fault}"
                continue
            answer = kept.action.run(model, store, arguments)
        except Refused as reason:
            refused = str(reason)
            continue
        except LeftOut as reason:
            return str(reason)
        fault = answer_fault(model, kept.operation, answer)
        if fault is not None:
            return f"its answer would not fit the document: {fault}"
        return None
    return None if isinstance(kept.action, Deleting | Unlinking) else f"no call succeeds: {refused}"


def answer_fault(model: Model, operation: Operation, answer: JsonValue) -> str | None:
    """How an answer violates the document, or None."""
    return None if operation.answer.schema is None else model.fault(operation.answer.schema, answer)
