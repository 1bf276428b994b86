"""Values that calls are tried with: rows that belong together, SQL, and plain values by the name of a parameter."""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.resources import files
from typing import Any

from trajsmith.grounding import SchemaField, get_tool_noun, is_identifier, list_allowed_numbers, split_name
from trajsmith.grounding.hints import Hints, read_hints
from trajsmith.grounding.schema_values import fit_value
from trajsmith.phrasing.yaml_files import read_yaml
from trajsmith.records import JsonObject, ToolSpec

SHARE = 4
"""Rows of a kind that one initial state has; each begins one row later, so that all have some in common."""
STATES = 3
"""Initial states that are made; the rows behind theirs are for what users ask for."""
FRESH = STATES + SHARE
"""The first row that no initial state has."""
WRITTEN = date(2026, 3, 2)
"""The day on which the values of `values.yaml` are today's."""
_DAY = re.compile(r"\b2026-\d\d-\d\d")
_SQL_NAMES = frozenset({"query", "sql", "statement"})
_SQL_WORDS = frozenset({"sql", "sqlite", "duckdb", "postgres", "mysql", "database", "select", "insert"})
MOST_REFERENCES = 12
_FEW = (3, 5, 2, 10)
_COUNTS = frozenset({"limit", "count", "max", "page", "size", "top", "n"})
_RANGE_ENDS = frozenset({"end", "until", "to"})
SEARCHES = frozenset({"query", "q", "keyword", "search", "term", "text", "needle"})


@dataclass(frozen=True)
class ValueProposal:
    """Values for one parameter, and where they come from."""

    values: tuple[Any, ...]
    origin: str
    """`schema`, `hint`, `reference`, `row`, `sql` or `plain`."""


@functools.cache
def load_values(today: date | None = None) -> Any:
    """Return the rows and plain values of `values.yaml`, with days as they lie around today.

    A live server runs on the clock of the machine, and many refuse days that are over.
    """
    moved = (today or datetime.now(UTC).date()) - WRITTEN
    text = files(__package__).joinpath("values.yaml").read_text(encoding="utf-8")
    return read_yaml(_DAY.sub(lambda match: (date.fromisoformat(match[0]) + moved).isoformat(), text))


@functools.cache
def load_sql() -> Any:
    """Return the tables and statements of `sql.yaml`."""
    return read_yaml(files(__package__).joinpath("sql.yaml").read_text(encoding="utf-8"))


def takes_sql(tool: ToolSpec, field: SchemaField) -> str | None:
    """Return which statements a parameter takes: `create`, `write`, `select` or `any`; None for no SQL."""
    if not set(split_name(field.name)) & _SQL_NAMES or (field.types and "string" not in field.types):
        return None
    text = f"{tool.name} {tool.server} {tool.description} {field.description}".lower()
    words = set(text.replace(",", " ").replace("_", " ").replace(".", " ").split())
    if not words & _SQL_WORDS:
        return None
    if {"create", "table"} <= words and "select" not in words:
        return "create"
    if words & {"insert", "update", "delete"} and not ({"read", "only"} <= words or "readonly" in words):
        return "any" if "select" in words and "delete" in words else "write"
    return "select" if words & {"select", "read"} else "any"


def list_statements(kind: str) -> list[str]:
    """Return the statements of a kind that users ask for."""
    kinds = ("select", "write", "create") if kind == "any" else (kind,)
    return [entry["sql"] for name in kinds for entry in load_sql()[name]]


def list_said_statements() -> dict[str, tuple[str, ...]]:
    """Return what a user says for each statement."""
    return {entry["sql"]: (entry["say"],) for kind in ("select", "write", "create") for entry in load_sql()[kind]}


def find_kind(tool: ToolSpec, names: Sequence[str] = ()) -> JsonObject | None:
    """Return the kind of thing that a tool is about, by its name, else by its server's and its description."""
    sources = [
        [word for name in names for word in split_name(name)],
        list(get_tool_noun(tool.name)),
        list(split_name(tool.server)),
        list(split_name("_".join(tool.description.split(".")[0].lower().replace("-", " ").split()[:10]))),
    ]
    for words in sources:
        for word in words:
            for kind in load_values()["kinds"].values():
                if word in kind["words"]:
                    return dict(kind)
    return None


def match_row_key(kind: JsonObject, field: SchemaField) -> str | None:
    """Return the key of a kind's rows that fits a parameter; None if none does."""
    words = split_name(field.name)
    best: tuple[int, str] | None = None
    for key in kind["rows"][0]:
        same = load_values()["same"].get(key, [key])
        ranks = [same.index(word) + (0 if word == words[-1] else 3) for word in words if word in same]
        if ranks and (best is None or min(ranks) < best[0]):
            best = (min(ranks), key)
    return best[1] if best else None


def propose_values(
    tool: ToolSpec,
    field: SchemaField,
    number: int,
    references: Sequence[Any],
    learnt: Hints | None,
    creates: bool,
) -> list[ValueProposal]:
    """Return proposals for a parameter, likeliest first.

    Args:
        tool: The tool.
        field: The parameter, no list.
        number: Row of the kind of thing that is used, so that calls with different numbers differ.
        references: Values that the server gave for it, the likeliest first.
        learnt: What refusals said about the parameter.
        creates: The tool makes a new thing: it gets new values before those that exist.
    """
    return [one for one in _propose(tool, field, number, references, learnt, creates) if one.values]


def _propose(
    tool: ToolSpec,
    field: SchemaField,
    number: int,
    references: Sequence[Any],
    learnt: Hints | None,
    creates: bool,
) -> Iterator[ValueProposal]:
    statements = takes_sql(tool, field)
    if statements:
        yield ValueProposal(_rotate(list_statements(statements), number), "sql")
        return
    if field.choices:
        default = field.schema.get("default")
        others = [one for one in field.choices if one != default]
        usual = [one for one in field.choices if one == default]
        yield ValueProposal(_rotate(others, number) + tuple(usual), "schema")
        return
    examples = field.schema.get("examples")
    if isinstance(examples, list) and examples:
        yield ValueProposal(_rotate(_fit(examples, field), number), "schema")
    if learnt is not None:
        spoken = [*learnt.choices, *learnt.examples]
        yield ValueProposal(_rotate(_fit(spoken, field, learnt.template), number), "hint")
    existing = tuple(_fit(references, field)[:MOST_REFERENCES])
    if not creates or is_identifier(field.name):
        yield ValueProposal(existing, "reference")
    yield from _list_new_values(tool, field, number, learnt)
    yield ValueProposal(existing, "reference")


def _list_new_values(tool: ToolSpec, field: SchemaField, number: int, learnt: Hints | None) -> Iterator[ValueProposal]:
    described = read_hints(field.description)
    template = (learnt and learnt.template) or described.template
    words = split_name(field.name)
    plain = load_values()["plain"]
    if "timezone" in words or {"time", "zone"} <= set(words) or "tz" in words:
        yield ValueProposal(_rotate(plain["timezone"], number * 5 + len(words[0])), "plain")
        return
    yield ValueProposal(_rotate(_fit(described.choices, field, template), number), "hint")
    nameless = tool.model_copy(update={"name": "", "server": "", "description": ""})
    own = find_kind(nameless, [field.name])
    kind = find_kind(tool, field.context if "[" in field.path or "." in field.path else ())
    key = match_row_key(kind, field) if kind else None
    if kind and key:
        yield ValueProposal(_rotate(_fit([row[key] for row in kind["rows"]], field, template), number), "row")
    elif own and not is_identifier(field.name):
        yield ValueProposal(_rotate(_fit([row[own["main"]] for row in own["rows"]], field), number), "row")
    yield ValueProposal(_rotate(_fit(described.examples, field, template), number), "hint")
    known = next((word for word in reversed(words) if word in plain), None)
    if known is None and set(words) & _RANGE_ENDS:
        known = "end"
    if known is not None and (not field.types or "string" in field.types):
        yield ValueProposal(_rotate(_fit(plain[known], field, template), number), "plain")
    yield from _list_by_type(field, number, kind)


def _list_by_type(field: SchemaField, number: int, kind: JsonObject | None) -> Iterator[ValueProposal]:
    if field.types & {"integer", "number"}:
        pool = _FEW if set(split_name(field.name)) & _COUNTS else load_values()["plain"]["number"]
        bounded = _fit(pool, field) or list_allowed_numbers(field.schema, "integer" in field.types)
        yield ValueProposal(_rotate(bounded, number + len(field.name)), "plain")
    elif (not field.types or "string" in field.types) and not is_identifier(field.name):
        chosen = kind or load_values()["kinds"]["note"]
        yield ValueProposal(_rotate(_fit([row[chosen["main"]] for row in chosen["rows"]], field), number), "row")


def _fit(values: Sequence[Any], field: SchemaField, template: str | None = None) -> list[Any]:
    fitted = (fit_value(value, field, template) if not isinstance(value, dict | list) else None for value in values)
    return list({repr(value): value for value in fitted if value is not None}.values())


def _rotate(values: Sequence[Any], number: int) -> tuple[Any, ...]:
    start = number % len(values) if values else 0
    return (*values[start:], *values[:start])
