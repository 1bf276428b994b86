"""Group a document's paths into resource collections and find the schema of each resource."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.naming import normalize_name, normalize_words, to_snake_case
from trajsmith.environments.adapters.openapi.operations import Operation
from trajsmith.environments.adapters.openapi.payloads import RecordPayload, find_list, find_record
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect

Prefix = tuple[str, ...]
"""Segments of a path with "{}" for every parameter."""

_PARAMETER = re.compile(r"\{([^{}]+)\}")
_NOISE = re.compile(r"v\d+(\.\d+)*|\d+(\.\d+)*|api|rest")
_VIEWS = normalize_words("list all search index browse find query discover export")


@dataclass(frozen=True)
class PathStep:
    """Path parameter and the collection that it selects from."""

    prefix: Prefix
    parameter: str


@dataclass(frozen=True)
class ParsedPath:
    """Parsed path."""

    segments: Prefix
    """With "{}" for every parameter."""
    steps: tuple[PathStep, ...]
    verb: str
    """What follows a colon in the last segment, as in "/orders/{id}:cancel"."""

    @property
    def ends_in_item(self) -> bool:
        return bool(self.steps) and self.steps[-1].prefix == self.segments[:-1]

    @property
    def last(self) -> str:
        return self.segments[-1]


def parse_path(path: str) -> ParsedPath:
    """Parse a path.

    Raises:
        LeftOut: A segment mixes text and parameters.
    """
    if "#" in path or "?" in path:
        raise UnsupportedFeature("its path has a fragment or a query: it is another path's operation")
    segments: list[str] = []
    steps: list[PathStep] = []
    verb = ""
    parts = [part for part in path.strip("/").split("/") if part]
    for number, part in enumerate(parts):
        if number == len(parts) - 1 and re.fullmatch(r"[^:]+:[A-Za-z]\w*", part):
            part, _, verb = part.partition(":")
        match = _PARAMETER.fullmatch(part)
        if match:
            steps.append(PathStep(tuple(segments), match[1]))
            segments.append("{}")
        elif "{" in part:
            raise UnsupportedFeature(f"segment {part!r} mixes text and parameters")
        else:
            segments.append(part)
    if not segments:
        raise UnsupportedFeature("the root path names no resource")
    return ParsedPath(tuple(segments), tuple(steps), to_snake_case(verb))


def build_noun(prefix: Prefix) -> str:
    """Return the noun of a collection's items, from its path, in snake case."""
    words = [part for part in prefix if part != "{}" and not _NOISE.fullmatch(part)]
    if not words:
        return "items"
    if len(words) > 1 and normalize_name(words[-1]) in _VIEWS:
        return to_snake_case(words[-2])
    return to_snake_case(words[-1])


@dataclass
class ResourceCollection:
    """Resource collection: the operations on it and on its items."""

    prefix: Prefix
    noun: str
    single: bool = False
    """True if there is no list: one record per parent, or one at all."""
    steps: tuple[PathStep, ...] = ()
    """How the collection itself is reached."""
    item: str | None = None
    """Name of the parameter that picks one item."""
    on_list: list[Operation] = field(default_factory=list)
    on_item: list[Operation] = field(default_factory=list)
    payloads: list[RecordPayload] = field(default_factory=list)
    """What answers show of its records, the fullest first."""

    @property
    def is_root(self) -> bool:
        return "{}" not in self.prefix

    @property
    def has(self) -> set[str]:
        """Methods, those on an item with a star."""
        return {op.method for op in self.on_list} | {f"{op.method}*" for op in self.on_item}


def find_collections(
    operations: Iterable[Operation], dialect: Dialect, left_out: dict[str, str]
) -> list[ResourceCollection]:
    """Return all collections, those reached by fewer parameters first."""
    routes: dict[str, ParsedPath] = {}
    readable: list[Operation] = []
    for operation in operations:
        try:
            routes[operation.path] = parse_path(operation.path)
            readable.append(operation)
        except UnsupportedFeature as reason:
            left_out[operation.label] = str(reason)
    collections: dict[Prefix, ResourceCollection] = {}
    by_path: dict[str, list[Operation]] = {}
    for operation in readable:
        by_path.setdefault(operation.path, []).append(operation)
    for path, here in by_path.items():
        _add_operation(collections, routes[path], here, dialect)
    for family in collections.values():
        family.payloads = _find_payloads(family, dialect)
    return sorted(collections.values(), key=lambda family: family.prefix.count("{}"))


def _add_operation(
    collections: dict[Prefix, ResourceCollection], route: ParsedPath, operations: list[Operation], dialect: Dialect
) -> None:
    reading = next((operation for operation in operations if operation.method == "get"), None)
    lists = reading is not None and find_list(dialect, reading.answer.schema, build_noun(route.segments)) is not None
    if route.verb:
        return
    if route.ends_in_item and not lists:
        prefix = route.segments[:-1]
        family = collections.setdefault(prefix, ResourceCollection(prefix, build_noun(prefix), steps=route.steps[:-1]))
        family.item = route.steps[-1].parameter
        family.single = False
        family.on_item.extend(operations)
        return
    known = route.segments in collections
    family = collections.setdefault(
        route.segments, ResourceCollection(route.segments, build_noun(route.segments), steps=route.steps)
    )
    family.single = not known and not lists and reading is not None
    family.on_list.extend(operations)


def _find_payloads(family: ResourceCollection, dialect: Dialect) -> list[RecordPayload]:
    """Records that answers show: of one item, of the list, of what writes give back."""
    rank = {"get": 0, "post": 2, "patch": 3, "put": 3, "delete": 9}
    payloads: list[tuple[int, RecordPayload]] = []
    for operation in family.on_item:
        payload = find_record(dialect, operation.answer.schema, family.noun)
        if payload is not None and operation.method != "delete":
            payloads.append((rank[operation.method], payload))
    for operation in family.on_list:
        listed = None if family.single else find_list(dialect, operation.answer.schema, family.noun)
        if operation.method == "get" and listed is not None:
            payloads.append((1, listed))
        elif operation.method != "delete":
            payload = find_record(dialect, operation.answer.schema, family.noun)
            if payload is not None:
                payloads.append((rank[operation.method], payload))
    return [payload for _, payload in sorted(payloads, key=lambda pair: pair[0])]
