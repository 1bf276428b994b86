"""From JSON schemas to columns, with the values that seed states draw from."""

import random
import re
from datetime import datetime
from typing import Any

from trajsmith.envgen.generate.blueprint import ColumnKind, Scalar, TableColumn
from trajsmith.envgen.generate.identifiers import to_identifier, to_words
from trajsmith.environments import count_check_time
from trajsmith.environments.adapters.openapi.document_references import OpenApiDocument, UnsupportedFeature
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.value_generation import OmitValue, ValueContext, ValueGenerator
from trajsmith.environments.adapters.openapi.vocabulary import NEUTRAL, SENTENCES
from trajsmith.environments.schema_patterns import LONGEST_PATTERN, matches_pattern
from trajsmith.phrasing import singularize, with_article
from trajsmith.records import JsonObject, derive_seed

NOW = datetime(2026, 3, 2, 9, 0)
"""The clock of seed states."""
POOL_SIZE = 12
"""Values of a column that are made."""
_TRIES = 3 * POOL_SIZE
_AUTOMATIC = re.compile(r"^(created|updated|modified|inserted)(_(at|on|time|date))?$|^(date|time)_created$")
_WORDS = ("note", "description", "comment", "summary", "message", "content", "text", "body")
_OPENING = frozenset({"open", "opens", "opening", "start", "starts", "from"})
_CLOSING = frozenset({"close", "closes", "closing", "end", "ends", "to", "until"})


class ColumnBuilder:
    """Builder of the columns of one document."""

    def __init__(self, dialect: Dialect, nested: bool = False) -> None:
        """Read schemas of a dialect; records inside records only if they may be nested."""
        self._nested = nested
        self._dialect = dialect
        self._maker = ValueGenerator(dialect)

    def column(self, label: str, schema: JsonObject, noun: str, required: bool, name: str = "") -> TableColumn | str:
        """Return a property as a column, or the reason why it cannot be one."""
        looked = self._looked(schema)
        kind = self._kind(looked)
        if kind is None and self._nested:
            part = self.record(label, looked, name or to_identifier(label), required and not self._may_be_null(schema))
            if part is not None:
                return part
        if kind is None:
            inside = _is_kind(looked, "object")
            return (
                "an object inside the record" if inside else with_article(str(looked.get("type", "value of any kind")))
            )
        name = name or to_identifier(label)
        automatic = kind in ("moment", "date") and bool(_AUTOMATIC.match(name))
        low, high = _find_bounds(looked, kind)
        pattern, longest = looked.get("pattern"), looked.get("maxLength")
        return TableColumn(
            name=name,
            kind=kind,
            label=label,
            description=_first_sentence(looked.get("description") or schema.get("description")),
            required=required and not self._may_be_null(schema),
            choices=_find_choices(looked) if kind == "choice" else (),
            low=low,
            high=high,
            shortest=looked.get("minLength") if kind == "text" else None,
            longest=longest if kind == "text" and isinstance(longest, int) else None,
            pattern=pattern if kind == "text" and isinstance(pattern, str) and _is_usable_pattern(pattern) else "",
            automatic=automatic,
            pool=() if automatic else self._pool(name, label, looked, kind, noun),
        )

    def record(self, label: str, looked: JsonObject, name: str, required: bool) -> TableColumn | None:
        """Return the records inside a record as a column; None if they have nothing that can be a column."""
        many = looked.get("type") == "array" and isinstance(looked.get("items"), dict)
        one = self._looked(looked["items"]) if many else looked
        properties = self._dialect.all_properties(one) if _is_kind(one, "object") else {}
        needed, inner = self._dialect.required(one), dict[str, TableColumn]()
        flat = ColumnBuilder(self._dialect)
        for key, child in properties.items():
            column = flat.column(key, child, singularize(name), key in needed, to_identifier(key, taken=inner))
            if isinstance(column, TableColumn):
                inner[column.name] = column.model_copy(update={"automatic": False})
        kind: ColumnKind = "records" if many else "record"
        about, columns = _first_sentence(looked.get("description")), tuple(inner.values())
        return TableColumn(
            name=name, kind=kind, label=label, description=about, required=required, columns=columns,
            shortest=looked.get("minItems") if many else None, longest=looked.get("maxItems") if many else None,
        ) if inner else None  # fmt: skip

    def _looked(self, schema: JsonObject) -> JsonObject:
        looked = {**self._dialect.look(schema), **{k: v for k, v in schema.items() if k != "$ref"}}
        for key in ("anyOf", "oneOf", "allOf"):
            branches = [branch for branch in looked.get(key, ()) if branch.get("type") != "null"]
            if branches and (len(branches) == 1 or "type" not in looked):
                scalars = [branch for branch in map(self._looked, branches) if self._kind(branch)]
                rest = {k: v for k, v in looked.items() if k != key}
                return {**(scalars or [self._looked(branches[0])])[0], **rest}
        return looked

    def _kind(self, looked: JsonObject) -> ColumnKind | None:
        kind = looked.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), None)
        if _find_choices(looked):
            return "choice"
        if kind in ("string", "integer", "number", "boolean"):
            plain: dict[str, ColumnKind] = {"string": "text", "integer": "whole", "number": "number", "boolean": "flag"}
            timed: dict[Any, ColumnKind] = {"date": "date", "date-time": "moment"}
            return timed.get(looked.get("format"), "text") if kind == "string" else plain[kind]
        if kind == "array" and isinstance(looked.get("items"), dict):
            return "texts" if self._kind(self._looked(looked["items"])) in ("text", "choice") else None
        return "text" if kind is None and not looked.keys() - {"description", "title", "examples", "example"} else None

    def _may_be_null(self, schema: JsonObject) -> bool:
        looked = self._dialect.look(schema)
        kind = looked.get("type")
        branches = [*looked.get("anyOf", ()), *looked.get("oneOf", ())]
        return (isinstance(kind, list) and "null" in kind) or any(one.get("type") == "null" for one in branches)

    def _pool(self, name: str, label: str, looked: JsonObject, kind: ColumnKind, noun: str) -> tuple[Scalar, ...]:
        """Different values that fit; fewer where there are no more."""
        if kind in ("choice", "flag", "date", "moment"):
            return ()
        hours = _invent_hours(name, looked)
        if hours:
            return hours
        distinct: dict[Scalar, None] = {}
        for number in range(_TRIES):
            rng = random.Random(derive_seed(0, noun, name, number))
            try:
                value = self._maker.make(
                    {**looked, "type": _TYPES[kind]}, (label,), ValueContext(noun, number + 1, rng, NOW)
                )
            except (UnsupportedFeature, OmitValue):
                break
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str | int | float) and not (isinstance(one, str) and not _fits(one, looked, kind)):
                    distinct[one] = None
            if len(distinct) >= POOL_SIZE:
                break
        free = kind == "text" and not looked.keys() & {"pattern", "format"} and len(distinct) < 4
        if free:
            longest = looked.get("maxLength") or 1000
            distinct.update(
                dict.fromkeys(
                    text for text in _invent_texts(name, noun) if _fits(text, looked, kind) and len(text) <= longest
                )
            )
        return tuple(distinct)[:POOL_SIZE]


_TYPES = {"text": "string", "whole": "integer", "number": "number", "texts": "array"}


def _invent_texts(name: str, noun: str) -> list[str]:
    """Return invented texts for a column of which only the name is known."""
    if any(word in name for word in _WORDS):
        return list(SENTENCES)
    return [f"{label} {to_words(noun)}" for label in NEUTRAL]


def build_open_columns() -> ColumnBuilder:
    """Return a column builder for schemas that stand alone, as those of tools do."""
    return ColumnBuilder(Dialect(OpenApiDocument({"openapi": "3.1.0", "paths": {}}, "tools"), "request"))


def _find_choices(looked: JsonObject) -> tuple[str, ...]:
    values = [value for value in looked.get("enum", ()) if value is not None and value != ""]
    texts = bool(values) and all(isinstance(value, str) for value in values) and len(values) <= 40
    return tuple(dict.fromkeys(values)) if texts else ()


def _find_bounds(looked: JsonObject, kind: ColumnKind) -> tuple[float | None, float | None]:
    if kind not in ("whole", "number"):
        return None, None
    least, most = looked.get("minimum"), looked.get("maximum")
    return (least if isinstance(least, int | float) else None, most if isinstance(most, int | float) else None)


def _is_usable_pattern(pattern: str) -> bool:
    """Return True if Pydantic's regex engine accepts the pattern."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    if len(pattern) > LONGEST_PATTERN:
        return False
    with count_check_time():
        try:
            SchemaValidator(core_schema.str_schema(pattern=pattern))
        except SchemaError:
            return False
    return True


def _fits(text: str, looked: JsonObject, kind: ColumnKind) -> bool:
    if kind != "text":
        return bool(text.strip())
    pattern = looked.get("pattern")
    right = not isinstance(pattern, str) or not _is_usable_pattern(pattern) or matches_pattern(pattern, text)
    return (
        right and bool(text.strip()) and (looked.get("minLength") or 0) <= len(text) <= (looked.get("maxLength") or 400)
    )


def _invent_hours(name: str, looked: JsonObject) -> tuple[str, ...]:
    """Times of a day, for a text whose example is a time; empty if it is none, or others are asked for."""
    examples = looked.get("examples") or [""]
    if looked.get("type") != "string" or not re.fullmatch(r"\d\d:\d\d", str(examples[0])):
        return ()
    name_words = set(name.split("_"))
    first, last = (7, 12) if name_words & _OPENING else (15, 21) if name_words & _CLOSING else (8, 20)
    times = tuple(f"{hour:02}:{minute}" for hour in range(first, last) for minute in ("00", "30"))
    return times if all(_fits(time, looked, "text") for time in times) else ()


def _is_kind(looked: JsonObject, kind: str) -> bool:
    return looked.get("type") == kind or "properties" in looked


def _first_sentence(text: Any) -> str:
    """The first sentence of a description, on one line."""
    first = re.split(r"(?<=[.!?])\s|\n", re.sub(r"<[^>]+>|[`*]", "", str(text or "")).strip())[0]
    return " ".join(first.split())[:160].replace('"""', "").replace("\\", "/")
