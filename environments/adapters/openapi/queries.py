"""Interpret the query parameters of a list - filter, search, range, sort, page - by names and schemas."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from trajsmith.environments.adapters.openapi.naming import normalize_name, normalize_words, to_singular, to_snake_case
from trajsmith.environments.adapters.openapi.operations import OperationParameter
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.tables import ResourceTable
from trajsmith.environments.adapters.openapi.value_generation import Path
from trajsmith.records import JsonObject

_PAGING = {
    "limit": normalize_words("limit perpage pagesize size max maxresults maxitems top first take results pagelimit"),
    "offset": normalize_words("offset skip start startindex startat"),
    "page": normalize_words("page pagenumber pageindex p"),
    "cursor": normalize_words(
        "cursor pagetoken nexttoken after startingafter continuationtoken nextcursor nextpagetoken marker"
    ),
}
_SEARCH = normalize_words("q query search keyword keywords term searchterm text searchtext querystring name_like")
_SORT = normalize_words("sort sortby orderby order sortfield sortkey ordering")
_DIRECTION = normalize_words("order sortorder sortdirection direction dir orderdirection sortdir")
_NAMES = ("id", "slug", "username", "login", "name", "code", "key", "title", "email")
_RANGE = re.compile(
    r"^(?:(min|minimum|max|maximum)_(.+)|(.+?)_(min|minimum|max|maximum|gte|gt|lte|lt|from|to|after|before|since|until|start|end))$"
)
_BRACKETS = re.compile(r"^(.+?)[\[.](gte|gt|lte|lt|min|max|after|before)\]?$")
_EDGES = normalize_words("since until from to after before startdate enddate datefrom dateto fromdate todate start end")
_LOW = normalize_words("min minimum gte gt from after since start")
_DATES = ("date", "createdat", "created", "timestamp", "updatedat")
_DEPTH = 3

FilterTest = Literal["equal", "any", "search", "contains", "at_least", "above", "at_most", "below", "key"]


@dataclass(frozen=True)
class FilterCondition:
    """Parameter that filters the list."""

    parameter: str
    test: FilterTest
    paths: tuple[Path, ...]


@dataclass
class ListQuery:
    """Interpreted parameters of one list."""

    conditions: list[FilterCondition] = field(default_factory=list)
    paging: dict[str, OperationParameter] = field(default_factory=dict)
    """By role: limit, offset, page, cursor."""
    sort: OperationParameter | None = None
    direction: OperationParameter | None = None
    fields: dict[str, Path] = field(default_factory=dict)
    """What can be sorted by, in the spelling of `plain`."""
    unknown: list[OperationParameter] = field(default_factory=list)
    """Parameters whose meaning is nowhere said."""


class QueryInterpreter:
    """Interpreter of query parameters for the records of one table."""

    def __init__(
        self, table: ResourceTable, tables: dict[str, ResourceTable], dialect: Dialect, requests: Dialect
    ) -> None:
        self._table = table
        self._dialect = dialect
        self._requests = requests
        self._tables = tables
        self.places = dict(self._places(table.schema, (), table))

    def query(self, parameters: list[OperationParameter]) -> ListQuery:
        """Understand the parameters of a list."""
        query = ListQuery(fields={alias: path for alias, path in self.places.items() if "*" not in path})
        for parameter in parameters:
            if not (self._page(parameter, query) or self._sorting(parameter, query)):
                condition = self.condition(parameter)
                if condition is None:
                    query.unknown.append(parameter)
                else:
                    query.conditions.append(condition)
        if query.direction is not None and query.sort is None:
            query.unknown.append(query.direction)
            query.direction = None
        return query

    def condition(self, parameter: OperationParameter) -> FilterCondition | None:
        """Return a parameter's filter condition, or None if nothing indicates one."""
        name = parameter.name
        path = self.place(name)
        looked = self._requests.look(parameter.schema)
        if looked.get("type") == "object":
            return None
        if path is not None:
            return FilterCondition(name, "any" if looked.get("type") == "array" else "equal", (path,))
        if normalize_name(name) in ("ids", self._table.noun + "ids"):
            return FilterCondition(name, "key", ())
        if normalize_name(name) in _SEARCH:
            texts = tuple(path for path in dict.fromkeys(self.places.values()) if self._is_text(path))
            return FilterCondition(name, "search", texts) if texts else None
        for suffix in ("_contains", "_like", "_search"):
            path = (
                self.place(to_snake_case(name).removesuffix(suffix)) if to_snake_case(name).endswith(suffix) else None
            )
            if path is not None:
                return FilterCondition(name, "contains", (path,))
        return self._bound(name)

    def place(self, name: str) -> Path | None:
        """Return the property that a name refers to."""
        key = normalize_name(name)
        return (
            self.places.get(key)
            or self.places.get(normalize_name(to_singular(to_snake_case(name))))
            or self.places.get(key + "s")
        )

    def _page(self, parameter: OperationParameter, query: ListQuery) -> bool:
        looked = self._requests.look(parameter.schema)
        if looked.get("format") in ("date", "date-time"):
            return False
        for role, names in _PAGING.items():
            if (
                normalize_name(parameter.name.removeprefix("$")) in names
                and self.places.get(normalize_name(parameter.name)) is None
            ):
                numeric = looked.get("type") in ("integer", "number", None)
                if role not in query.paging and (numeric or role == "cursor"):
                    query.paging[role] = parameter
                    return True
        return False

    def _sorting(self, parameter: OperationParameter, query: ListQuery) -> bool:
        if self.places.get(normalize_name(parameter.name)) is not None:
            return False
        key = normalize_name(parameter.name.removeprefix("$"))
        enum = [value for value in self._requests.look(parameter.schema).get("enum", ()) if isinstance(value, str)]
        words = {value.lower() for value in enum}
        if key in _DIRECTION and ((words <= {"asc", "desc", "ascending", "descending"} and words) or key != "order"):
            query.direction = parameter
            return True
        if key in _SORT and all(parse_sort(value, query.fields) is not None for value in enum):
            query.sort = parameter
            return True
        return False

    def _bound(self, name: str) -> FilterCondition | None:
        spelled = to_snake_case(name)
        brackets = _BRACKETS.match(name)
        match = _RANGE.match(spelled)
        if brackets:
            base, edge = brackets[1], brackets[2]
        elif normalize_name(name) in _EDGES:
            base, edge = "", re.sub(r"_?date_?", "", spelled)
        elif match:
            base, edge = match[2] or match[3], match[1] or match[4]
        else:
            return None
        path = self.place(base) if base and base != "date" else None
        if path is None:
            path = next(
                (p for suffix in ("at", "date", "on", "time") if base and (p := self.place(base + suffix))), None
            )
        if path is None and (not base or base == "date"):
            path = self._only_date(edge)
        if path is None:
            return None
        strict = edge in ("gt", "lt")
        low = edge in _LOW
        return FilterCondition(
            name, ("above" if strict else "at_least") if low else ("below" if strict else "at_most"), (path,)
        )

    def _only_date(self, edge: str) -> Path | None:
        """The date that an unnamed bound is about: the only one, or the one of the record's making."""
        dates = list(dict.fromkeys(path for path in self.places.values() if self._is_date(path)))
        named = [path for path in dates if normalize_name(path[-1]) in _DATES]
        if len(dates) == 1:
            return dates[0]
        if edge in ("since", "until", "after", "before"):
            named.sort(key=lambda path: _DATES.index(normalize_name(path[-1])))
        return named[0] if named else None

    # Places in the record

    def _places(self, schema: JsonObject, at: Path, table: ResourceTable) -> Iterator[tuple[str, Path]]:
        """Aliases of every place, deeper ones first, so that the shallow ones win."""
        here: list[tuple[str, Path]] = []
        for name, child in self._dialect.all_properties(schema).items():
            path = (*at, name)
            looked = self._dialect.look(child)
            items = looked.get("items")
            inner = self._dialect.look(items) if isinstance(items, dict) else looked
            if not self._dialect.all_properties(inner):
                place = (*path, "*") if isinstance(items, dict) else path
                here.extend((normalize_name(alias), place) for alias in _build_aliases(path))
            yield from self._below(child, path, table)
        yield from here

    def _below(self, schema: JsonObject, path: Path, table: ResourceTable) -> Iterator[tuple[str, Path]]:
        looked = self._dialect.look(schema)
        items = looked.get("items")
        if isinstance(items, dict):
            path, looked = (*path, "*"), self._dialect.look(items)
        names = self._dialect.all_properties(looked)
        if not names or len(path) > _DEPTH:
            return
        yield from self._places(looked, path, table)
        own = [name for key in _NAMES for name in names if normalize_name(name) == key]
        if own:  # the name of the whole means its id or name
            yield normalize_name(next(part for part in reversed(path) if part != "*")), (*path, own[0])

    def _schema_at(self, path: Path) -> JsonObject:
        schema = self._table.schema
        for part in path:
            looked = self._dialect.look(schema)
            schema = looked.get("items", {}) if part == "*" else self._dialect.all_properties(looked).get(part, {})
        return self._dialect.look(schema)

    def _is_text(self, path: Path) -> bool:
        schema = self._schema_at(path)
        return (
            "string" in (schema.get("type") or ()) and schema.get("format") in (None, "email") and "enum" not in schema
        )

    def _is_date(self, path: Path) -> bool:
        return self._schema_at(path).get("format") in ("date", "date-time")


def _build_aliases(path: Path) -> set[str]:
    names = [part for part in path if part != "*"]
    return {names[-1], "".join(names), "".join(names[-2:])}


def parse_sort(value: str, fields: dict[str, Path]) -> tuple[Path, bool] | None:
    """Return the property that a sort value names, and True if it is descending."""
    text = value.strip()
    down = text.startswith("-")
    name, _, way = re.sub(r"[:, ]+|_(?=(asc|desc)$)", "\0", text.lstrip("+-"), count=1).partition("\0")
    if way and way.lower() not in ("asc", "desc", "ascending", "descending"):
        return None
    path = fields.get(normalize_name(name))
    return None if path is None else (path, down or way.lower().startswith("desc"))
