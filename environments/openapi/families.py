"""The collections of a document: which paths speak of the same things, and what one of these things looks like."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from environments.openapi.dialect import Dialect
from environments.openapi.operations import Operation
from environments.openapi.payloads import Payload, find_list, find_record
from environments.openapi.references import LeftOut
from environments.openapi.words import kinds_of, plain, snake
from trajectory import JsonObject

Prefix = tuple[str, ...]
"""Segments of a path with "{}" for every parameter."""

_PARAMETER = re.compile(r"\{([^{}]+)\}")
_NOISE = re.compile(r"v\d+(\.\d+)*|\d+(\.\d+)*|api|rest")
_VIEWS = kinds_of("list all search index browse find query discover export")


@dataclass(frozen=True)
class Step:
    """A parameter in a path, and the collection that it picks from."""

    prefix: Prefix
    parameter: str


@dataclass(frozen=True)
class Route:
    """A path taken apart."""

    segments: Prefix
    """With "{}" for every parameter."""
    steps: tuple[Step, ...]
    verb: str
    """What follows a colon in the last segment, as in "/orders/{id}:cancel"."""

    @property
    def ends_in_item(self) -> bool:
        return bool(self.steps) and self.steps[-1].prefix == self.segments[:-1]

    @property
    def last(self) -> str:
        return self.segments[-1]


def route_of(path: str) -> Route:
    """Take a path apart.

    Raises:
        LeftOut: A segment mixes text and parameters.
    """
    if "#" in path or "?" in path:
        raise LeftOut("its path has a fragment or a query: it is another path's operation")
    segments: list[str] = []
    steps: list[Step] = []
    verb = ""
    parts = [part for part in path.strip("/").split("/") if part]
    for number, part in enumerate(parts):
        if number == len(parts) - 1 and re.fullmatch(r"[^:]+:[A-Za-z]\w*", part):
            part, _, verb = part.partition(":")
        found = _PARAMETER.fullmatch(part)
        if found:
            steps.append(Step(tuple(segments), found[1]))
            segments.append("{}")
        elif "{" in part:
            raise LeftOut(f"segment {part!r} mixes text and parameters")
        else:
            segments.append(part)
    if not segments:
        raise LeftOut("the root path names no resource")
    return Route(tuple(segments), tuple(steps), snake(verb))


def noun_of(prefix: Prefix) -> str:
    """What a collection's path calls its things, in snake case."""
    words = [part for part in prefix if part != "{}" and not _NOISE.fullmatch(part)]
    if not words:
        return "items"
    if len(words) > 1 and plain(words[-1]) in _VIEWS:
        return snake(words[-2])
    return snake(words[-1])


@dataclass
class Family:
    """One collection: the operations on it and on its items."""

    prefix: Prefix
    noun: str
    single: bool = False
    """True if there is no list: one record per parent, or one at all."""
    steps: tuple[Step, ...] = ()
    """How the collection itself is reached."""
    item: str | None = None
    """Name of the parameter that picks one item."""
    on_list: list[Operation] = field(default_factory=list)
    on_item: list[Operation] = field(default_factory=list)
    payloads: list[Payload] = field(default_factory=list)
    """What answers show of its records, the fullest first."""

    @property
    def is_root(self) -> bool:
        return "{}" not in self.prefix

    @property
    def has(self) -> set[str]:
        """Methods, those on an item with a star."""
        return {op.method for op in self.on_list} | {f"{op.method}*" for op in self.on_item}


def families_of(operations: Iterable[Operation], dialect: Dialect, left_out: dict[str, str]) -> list[Family]:
    """All collections, those reached by fewer parameters first."""
    routes: dict[str, Route] = {}
    kept: list[Operation] = []
    for operation in operations:
        try:
            routes[operation.path] = route_of(operation.path)
            kept.append(operation)
        except LeftOut as reason:
            left_out[operation.label] = str(reason)
    found: dict[Prefix, Family] = {}
    by_path: dict[str, list[Operation]] = {}
    for operation in kept:
        by_path.setdefault(operation.path, []).append(operation)
    for path, here in by_path.items():
        _add(found, routes[path], here, dialect)
    for family in found.values():
        family.payloads = _payloads(family, dialect)
    return sorted(found.values(), key=lambda family: family.prefix.count("{}"))


def _add(found: dict[Prefix, Family], route: Route, operations: list[Operation], dialect: Dialect) -> None:
    reading = next((operation for operation in operations if operation.method == "get"), None)
    lists = reading is not None and find_list(dialect, reading.answer.schema, noun_of(route.segments)) is not None
    if route.verb:
        return
    if route.ends_in_item and not lists:
        prefix = route.segments[:-1]
        family = found.setdefault(prefix, Family(prefix, noun_of(prefix), steps=route.steps[:-1]))
        family.item = route.steps[-1].parameter
        family.single = False
        family.on_item.extend(operations)
        return
    known = route.segments in found
    family = found.setdefault(route.segments, Family(route.segments, noun_of(route.segments), steps=route.steps))
    family.single = not known and not lists and reading is not None
    family.on_list.extend(operations)


def _payloads(family: Family, dialect: Dialect) -> list[Payload]:
    """Records that answers show: of one item, of the list, of what writes give back."""
    rank = {"get": 0, "post": 2, "patch": 3, "put": 3, "delete": 9}
    found: list[tuple[int, Payload]] = []
    for operation in family.on_item:
        payload = find_record(dialect, operation.answer.schema, family.noun)
        if payload is not None and operation.method != "delete":
            found.append((rank[operation.method], payload))
    for operation in family.on_list:
        listed = None if family.single else find_list(dialect, operation.answer.schema, family.noun)
        if operation.method == "get" and listed is not None:
            found.append((1, listed))
        elif operation.method != "delete":
            payload = find_record(dialect, operation.answer.schema, family.noun)
            if payload is not None:
                found.append((rank[operation.method], payload))
    return [payload for _, payload in sorted(found, key=lambda pair: pair[0])]


def body_record(operation: Operation, dialect: Dialect, noun: str) -> tuple[tuple[str, ...], JsonObject] | None:
    """Where in a request's body the record is, and its schema."""
    payload = find_record(dialect, operation.body, noun)
    return None if payload is None else (payload.path, payload.schema)
