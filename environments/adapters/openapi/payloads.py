"""Find the record or list of records in an answer or a body."""

from dataclasses import dataclass
from typing import Literal

from trajsmith.environments.adapters.openapi.naming import normalize_name, normalize_words, to_singular
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.value_generation import Path
from trajsmith.records import JsonObject

_LISTS = normalize_words(
    "data items item results result records record list content value values entries rows elements embedded"
)
_BESIDE = normalize_words("links meta included jsonapi errors error status code requestid pagination paging warnings")
_RECORDS = normalize_words("data item result record payload value entity attributes")
_ROLES = {
    "total": normalize_words("total totalcount totalitems totalresults totalelements totalrecords totalhits found"),
    "count": normalize_words("count itemcount resultcount numberofelements returned length"),
    "limit": normalize_words("limit perpage pagesize size pagelimit itemsperpage maxresults"),
    "offset": normalize_words("offset skip start startindex"),
    "page": normalize_words("page currentpage pagenumber pageindex"),
    "pages": normalize_words("totalpages pages pagecount lastpage"),
    "more": normalize_words("hasmore hasnext hasnextpage more ismore"),
    "before": normalize_words("hasprevious hasprev hasprevpage"),
    "cursor": normalize_words("nextcursor nextpagetoken cursor endcursor nextmarker continuation nexttoken"),
    "next": normalize_words("next nextpage nexturl nextlink"),
    "previous": normalize_words("previous prev previouspage prevurl previouslink prevlink"),
    "here": normalize_words("href self url selflink"),
    "success": normalize_words("success ok successful acknowledged deleted removed done"),
    "message": normalize_words("message msg detail description info"),
}
_SHARE = 0.5
"""Part of a schema's properties that must be a table's for the schema to show its records."""


@dataclass(frozen=True)
class RecordPayload:
    """The records inside an answer."""

    kind: Literal["record", "list"]
    path: Path
    """Names of the properties that lead to it; empty if it is the answer itself."""
    schema: JsonObject
    """Schema of one record."""


def is_record(dialect: Dialect, schema: JsonObject) -> bool:
    """Return True for objects with properties, and for choices between such."""
    looked = dialect.look(schema)
    if dialect.properties(looked):
        return True
    branches = [
        branch for branch in (*looked.get("oneOf", ()), *looked.get("anyOf", ())) if branch.get("type") != "null"
    ]
    return bool(branches) and all(is_record(dialect, branch) for branch in branches)


def find_item_schema(dialect: Dialect, schema: JsonObject) -> JsonObject | None:
    """Return the schema of the items, if the schema is a list of records."""
    looked = dialect.look(schema)
    choices = looked.get("anyOf", ()) if len(looked.get("anyOf", ())) == 2 else ()  # a list or null
    for branch in (looked, *choices, *reversed(looked.get("allOf", ()))):
        items = dialect.look(branch).get("items")
        if isinstance(items, dict) and is_record(dialect, items):
            return items
    return None


def find_list(dialect: Dialect, schema: JsonObject | None, noun: str, depth: int = 0) -> RecordPayload | None:
    """Return the list of records in an answer, if the answer is about one."""
    if schema is None:
        return None
    items = find_item_schema(dialect, schema)
    if items is not None:
        return RecordPayload("list", (), items)
    properties = dialect.properties(schema)
    lists = {
        name: item_schema
        for name, child in properties.items()
        if (item_schema := find_item_schema(dialect, child)) is not None
    }
    named = [
        name for name in lists if normalize_name(name) in (normalize_name(noun), normalize_name(to_singular(noun)))
    ]
    usual = [name for name in lists if normalize_name(name) in _LISTS]
    others = [name for name in properties if name not in lists and find_role(name) is None]
    bare = list(lists) if len(lists) == 1 and depth == 0 and len(others) <= 1 else []
    is_record_itself = _has_identity(properties, noun) and len(others) > 1
    for name in (*named, *usual, *bare) if not is_record_itself else ():
        return RecordPayload("list", (name,), lists[name])
    for name, child in properties.items() if depth == 0 else ():
        if normalize_name(name) in _LISTS | {normalize_name(noun)} and dialect.properties(child):
            inner = find_list(dialect, child, noun, 1)
            if inner is not None:
                return RecordPayload("list", (name, *inner.path), inner.schema)
    return None


def find_record(dialect: Dialect, schema: JsonObject | None, noun: str) -> RecordPayload | None:
    """Return the record in an answer or body."""
    if schema is None or not is_record(dialect, schema):
        return None
    properties = dialect.properties(schema)
    if not _has_identity(properties, noun):
        names = [name for name, child in properties.items() if is_record(dialect, child)]
        inner = [name for name in names if normalize_name(name) in _RECORDS | {normalize_name(to_singular(noun))}]
        others = [name for name in properties if name not in inner and find_role(name) is None]
        if len(inner) == 1 and all(normalize_name(name) in _BESIDE for name in others):
            return RecordPayload("record", (inner[0],), properties[inner[0]])
    return RecordPayload("record", (), schema)


def _has_identity(properties: JsonObject, noun: str) -> bool:
    own = {"id", "gid", "uuid", "uid", "key", normalize_name(to_singular(noun)) + "id", normalize_name(noun) + "id"}
    return any(normalize_name(name) in own for name in properties)


def overlaps_known(dialect: Dialect, schema: JsonObject, known: JsonObject) -> bool:
    """Return True if at least half of the schema's properties are known ones."""
    names = dialect.properties(schema).keys()
    return bool(names) and len(names & known.keys()) >= _SHARE * len(names)


def find_role(name: str) -> str | None:
    """Return the role of a property that stands beside the records."""
    key = normalize_name(name)
    return next((role for role, names in _ROLES.items() if key in names), None)
