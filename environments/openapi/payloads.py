"""Where in an answer or a body the record or the list of records is."""

from dataclasses import dataclass
from typing import Literal

from environments.openapi.dialect import Dialect
from environments.openapi.values import Path
from environments.openapi.words import kinds_of, plain, singular
from trajectory import JsonObject

_LISTS = kinds_of(
    "data items item results result records record list content value values entries rows elements embedded"
)
_BESIDE = kinds_of("links meta included jsonapi errors error status code requestid pagination paging warnings")
_RECORDS = kinds_of("data item result record payload value entity attributes")
_ROLES = {
    "total": kinds_of("total totalcount totalitems totalresults totalelements totalrecords totalhits found"),
    "count": kinds_of("count itemcount resultcount numberofelements returned length"),
    "limit": kinds_of("limit perpage pagesize size pagelimit itemsperpage maxresults"),
    "offset": kinds_of("offset skip start startindex"),
    "page": kinds_of("page currentpage pagenumber pageindex"),
    "pages": kinds_of("totalpages pages pagecount lastpage"),
    "more": kinds_of("hasmore hasnext hasnextpage more ismore"),
    "before": kinds_of("hasprevious hasprev hasprevpage"),
    "cursor": kinds_of("nextcursor nextpagetoken cursor endcursor nextmarker continuation nexttoken"),
    "next": kinds_of("next nextpage nexturl nextlink"),
    "previous": kinds_of("previous prev previouspage prevurl previouslink prevlink"),
    "here": kinds_of("href self url selflink"),
    "success": kinds_of("success ok successful acknowledged deleted removed done"),
    "message": kinds_of("message msg detail description info"),
}
_SHARE = 0.5
"""Part of a schema's properties that must be a table's for the schema to show its records."""


@dataclass(frozen=True)
class Payload:
    """The records inside an answer."""

    kind: Literal["record", "list"]
    path: Path
    """Names of the properties that lead to it; empty if it is the answer itself."""
    schema: JsonObject
    """Schema of one record."""


def is_record(dialect: Dialect, schema: JsonObject) -> bool:
    """True for objects with properties, and for choices between such."""
    looked = dialect.look(schema)
    if dialect.properties(looked):
        return True
    branches = [
        branch for branch in (*looked.get("oneOf", ()), *looked.get("anyOf", ())) if branch.get("type") != "null"
    ]
    return bool(branches) and all(is_record(dialect, branch) for branch in branches)


def items_of(dialect: Dialect, schema: JsonObject) -> JsonObject | None:
    """Schema of the items, if the schema is a list of records."""
    looked = dialect.look(schema)
    choices = looked.get("anyOf", ()) if len(looked.get("anyOf", ())) == 2 else ()  # a list or null
    for branch in (looked, *choices, *reversed(looked.get("allOf", ()))):
        items = dialect.look(branch).get("items")
        if isinstance(items, dict) and is_record(dialect, items):
            return items
    return None


def find_list(dialect: Dialect, schema: JsonObject | None, noun: str, depth: int = 0) -> Payload | None:
    """The list of records in an answer, if the answer is about one."""
    if schema is None:
        return None
    items = items_of(dialect, schema)
    if items is not None:
        return Payload("list", (), items)
    properties = dialect.properties(schema)
    lists = {name: found for name, child in properties.items() if (found := items_of(dialect, child)) is not None}
    named = [name for name in lists if plain(name) in (plain(noun), plain(singular(noun)))]
    usual = [name for name in lists if plain(name) in _LISTS]
    others = [name for name in properties if name not in lists and role_of(name) is None]
    bare = list(lists) if len(lists) == 1 and depth == 0 and len(others) <= 1 else []
    is_record_itself = _has_identity(properties, noun) and len(others) > 1
    for name in (*named, *usual, *bare) if not is_record_itself else ():
        return Payload("list", (name,), lists[name])
    for name, child in properties.items() if depth == 0 else ():
        if plain(name) in _LISTS | {plain(noun)} and dialect.properties(child):
            inner = find_list(dialect, child, noun, 1)
            if inner is not None:
                return Payload("list", (name, *inner.path), inner.schema)
    return None


def find_record(dialect: Dialect, schema: JsonObject | None, noun: str) -> Payload | None:
    """The record in an answer or body."""
    if schema is None or not is_record(dialect, schema):
        return None
    properties = dialect.properties(schema)
    if not _has_identity(properties, noun):
        names = [name for name, child in properties.items() if is_record(dialect, child)]
        inner = [name for name in names if plain(name) in _RECORDS | {plain(singular(noun))}]
        others = [name for name in properties if name not in inner and role_of(name) is None]
        if len(inner) == 1 and all(plain(name) in _BESIDE for name in others):
            return Payload("record", (inner[0],), properties[inner[0]])
    return Payload("record", (), schema)


def _has_identity(properties: JsonObject, noun: str) -> bool:
    own = {"id", "gid", "uuid", "uid", "key", plain(singular(noun)) + "id", plain(noun) + "id"}
    return any(plain(name) in own for name in properties)


def overlap(dialect: Dialect, schema: JsonObject, known: JsonObject) -> bool:
    """True if at least half of the schema's properties are known ones."""
    names = dialect.properties(schema).keys()
    return bool(names) and len(names & known.keys()) >= _SHARE * len(names)


def role_of(name: str) -> str | None:
    """What a property beside the records is there for."""
    key = plain(name)
    return next((role for role, names in _ROLES.items() if key in names), None)
