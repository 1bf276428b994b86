"""Native environments in the form of AWM: a FastAPI server over SQLite, with schema and rows.

The rules stay those of the class, which stands in the server's file: a request reads the rows, calls the method, and
writes the rows that changed. So the server behaves as the class does, and needs trajsmith installed where it runs.
"""

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from trajsmith.envcheck import ConformanceRecord
from trajsmith.environments import EnvironmentSource
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.sources import EnvironmentSettings, open_source
from trajsmith.export.atomic_folder import AtomicFolder
from trajsmith.export.environment_publication import RecordedEnvironment, open_published_source
from trajsmith.records import EnvironmentFault, EnvironmentSpec, InputError, JsonObject, ToolSpec, to_one_line

TEMPLATE = Path(__file__).parent / "templates" / "awm_server.py.txt"
FILES = ("gen_envs.jsonl", "gen_db.jsonl", "gen_sample.jsonl", "environments.yaml")
PARTS = "state_parts"
"""Table of what the state holds beside its tables, such as its clock."""
KEY = "@key"
_CLASS = re.compile(r"^class (\w+)\(.*\bEnvironment\[", re.MULTILINE)
_SQL_TYPES = {"string": "TEXT", "integer": "INTEGER", "number": "REAL", "boolean": "INTEGER"}

ColumnForm = Literal["plain", "flag", "json"]
"""How a value stands in its column: as it is, as 0 or 1, or as JSON."""


@dataclass(frozen=True)
class AwmEnvironment:
    """One environment in AWM's form."""

    name: str
    code: str
    tables: list[tuple[str, str]]
    """Name and statement of each table."""
    rows: list[tuple[str, list[str]]]
    """Name of each table, and the statements that fill it."""
    columns: dict[str, dict[str, ColumnForm]]
    words: dict[str, str]
    """What no server says in this form: description, domain, policy."""
    calls: int


def export_awm(
    recorded: Sequence[RecordedEnvironment], folder: Path, tell: Callable[[str], None] = lambda line: None
) -> dict[str, list[str]]:
    """Write environments in AWM's form, and make their recorded calls on both forms; what differs is left out.

    Args:
        folder: Where the files are written; an older export there is replaced.
        tell: Called with a line for each environment.

    Returns:
        Environments that were left out, with the reasons.

    Raises:
        InputError: No environment can be exported.
    """
    built, left_out = list[AwmEnvironment](), dict[str, list[str]]()
    sources = {one.verdict.name: open_published_source(one.folder / f"{one.verdict.name}.py") for one in recorded}
    try:
        for one in recorded:
            try:
                built.append(asyncio.run(_build(one, sources[one.verdict.name])))
            except InputError as error:
                left_out[one.verdict.name] = [str(error)]
        write_awm_environments(built, folder)
        for form, one in [(form, one) for form in built for one in recorded if one.verdict.name == form.name]:
            exported = open_awm_source(folder, form.name)
            try:
                differences = asyncio.run(compare_forms(sources[form.name], exported, one.record, form))
            finally:
                exported.close()
            if differences:
                left_out[form.name] = differences
            tell(f"{form.name}: {differences[0] if differences else f'{form.calls} recorded calls give the same'}")
        same = [form for form in built if form.name not in left_out]
        if not same:
            name, reasons = next(iter(left_out.items()))
            raise InputError(f"no environment can be exported: {name}: {reasons[0]}")
        if len(same) < len(built):
            write_awm_environments(same, folder)
    finally:
        for source in sources.values():
            source.close()
    return left_out


async def _build(one: RecordedEnvironment, source: SandboxSource) -> AwmEnvironment:
    """Build the form of an environment from the last of the initial states that calls were recorded from."""
    spec, episode = await source.spec(), one.record.episodes[-1]
    states = await source.states(episode.start.seed)
    code = (one.folder / f"{one.verdict.name}.py").read_text("utf-8")
    return build_awm_environment(spec, code, states[episode.start.index], len(episode.calls))


def build_awm_environment(spec: EnvironmentSpec, code: str, state: JsonObject, calls: int = 0) -> AwmEnvironment:
    """Build the server, the schema and the rows of a native environment.

    Args:
        spec: Its spec.
        code: Its file.
        state: The initial state that becomes the rows.
        calls: Calls that were recorded from it.

    Raises:
        InputError: It cannot be told in rows.
    """
    classes = _CLASS.findall(code)
    if len(classes) != 1:
        raise InputError(f"{spec.name}: its file has {len(classes)} classes of environments, and one is exported")
    columns, types = _read_tables(spec)
    if PARTS in columns:
        raise InputError(f"{spec.name}: a table is named {PARTS}, which the form needs for itself")
    shape: JsonObject = {
        "tables": columns,
        "queries": {tool.name: _list_queries(tool) for tool in spec.tools if _is_query(tool)},
        "actors": {tool.name: tool.actor for tool in spec.tools},
    }
    for part in (shape, document := _build_document(spec)):
        if '"""' in orjson.dumps(part).decode():
            raise InputError(f"{spec.name}: a description holds three quotes, which end a text in Python")
    server = TEMPLATE.read_text("utf-8").format(
        shape=orjson.dumps(shape).decode(), document=orjson.dumps(document).decode(), cls=classes[0]
    )
    tables = [(PARTS, f'CREATE TABLE "{PARTS}" ("name" TEXT PRIMARY KEY, "value" TEXT NOT NULL)')]
    parts = {name: value for name, value in state.items() if name not in columns}
    rows = [(PARTS, [_insert(PARTS, {"name": name, "value": json.dumps(value)}) for name, value in parts.items()])]
    for table, forms in columns.items():
        listed = ", ".join(f"{_quote(name)} {types[table][name]}" for name in forms)
        tables.append((table, f'CREATE TABLE {_quote(table)} ("{KEY}" TEXT PRIMARY KEY, {listed})'))
        statements = []
        for key, row in sorted(state[table].items()):  # sessions start from states with sorted keys
            values = {name: _encode(row.get(name), form) for name, form in forms.items()}
            statements.append(_insert(table, {KEY: key, **values}))
        rows.append((table, statements))
    words = {"description": spec.description, "domain": spec.domain, "policy": spec.policy}
    return AwmEnvironment(spec.name, code.rstrip() + "\n" + server, tables, rows, columns, words, calls)


def write_awm_environments(environments: Sequence[AwmEnvironment], folder: Path) -> None:
    """Write environments as AWM publishes them: a line each in three files, and entries for a configuration."""
    import yaml

    lines: dict[str, list[JsonObject]] = {name: [] for name in FILES[:3]}
    for one in environments:
        tables = [{"name": name, "ddl": ddl, "indexes": []} for name, ddl in one.tables]
        rows = [{"table_name": name, "insert_statements": statements} for name, statements in one.rows]
        lines[FILES[0]].append({"scenario": one.name, "full_code": one.code})
        lines[FILES[1]].append({"scenario": one.name, "db_schema": {"tables": tables}})
        lines[FILES[2]].append({"scenario": one.name, "sample_data": {"tables": rows}})
    entries = [{"awm": {"server": FILES[0], "scenario": one.name, **one.words}} for one in environments]
    with AtomicFolder(folder, FILES) as target:
        for file, content in lines.items():
            target.attach(file, b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in content))
        target.attach(
            FILES[3], yaml.safe_dump({"environments": entries}, sort_keys=False, allow_unicode=True, width=118)
        )


def open_awm_source(folder: Path, name: str) -> SandboxSource:
    """Return the source of an exported environment, read by the adapter for AWM, in the sandbox."""
    source = open_source(EnvironmentSettings.model_validate({"awm": {"server": folder / FILES[0], "scenario": name}}))
    assert isinstance(source, SandboxSource)
    return source


async def compare_forms(
    native: EnvironmentSource, exported: EnvironmentSource, record: ConformanceRecord, form: AwmEnvironment
) -> list[str]:
    """Make the recorded calls on both forms, and return what differs: tools, results, refusals, or rows."""
    episode = record.episodes[-1]
    try:
        tools = [{tool.name for tool in (await source.spec()).tools} for source in (native, exported)]
        if tools[0] != tools[1]:
            return [f"these tools are in one form only: {', '.join(sorted(tools[0] ^ tools[1]))}"]
        first, second = await native.open(), await exported.open()
        await first.reset((await native.states(episode.start.seed))[episode.start.index])
        await second.reset((await exported.states(0))[0])
        for number, call in enumerate(episode.calls, 1):
            one = await first.call(call.tool, call.arguments, call.actor)
            other = await second.call(call.tool, call.arguments, call.actor)
            # both refuse arguments that break their schema, each in the words of its own validator
            if one.error != other.error or (one.error != "invalid_arguments" and one.content != other.content):
                return [
                    to_one_line(f"call {number}, {call.tool}, gives {other.content}, and natively {one.content}", 300)
                ]
        rows = await second.snapshot()
        if await first.snapshot() != restore_state(rows, form.columns):
            return ["the calls lead to another state"]
        await first.close()
        await second.close()
    except EnvironmentFault as fault:
        return [f"it breaks: {to_one_line(fault, 300)}"]
    return []


def restore_state(rows: JsonObject, columns: dict[str, dict[str, ColumnForm]]) -> JsonObject:
    """Return the rows of an exported environment as the state of its class."""
    state: JsonObject = {row["name"]: json.loads(row["value"]) for row in rows[PARTS].values()}
    for table, forms in columns.items():
        state[table] = {
            row[KEY]: {name: _decode(row[name], form) for name, form in forms.items()} for row in rows[table].values()
        }
    return state


def _read_tables(spec: EnvironmentSpec) -> tuple[dict[str, dict[str, ColumnForm]], dict[str, dict[str, str]]]:
    """Return the form and the SQL type of each column, by table.

    Raises:
        InputError: The state has no table.
    """
    definitions = spec.state_schema.get("$defs", {})

    def resolve(schema: JsonObject) -> JsonObject:
        reference = schema.get("$ref", "")
        return definitions.get(reference.rpartition("/")[2], schema) if reference else schema

    forms: dict[str, dict[str, ColumnForm]] = {}
    types: dict[str, dict[str, str]] = {}
    for table, schema in spec.state_schema.get("properties", {}).items():
        row = (
            resolve(schema.get("additionalProperties") or {})
            if isinstance(schema.get("additionalProperties"), dict)
            else {}
        )
        if "properties" not in row:
            continue
        forms[table], types[table] = {}, {}
        for name, column in row["properties"].items():
            kinds = _find_kinds(resolve(column), resolve)
            kind = next(iter(kinds)) if len(kinds) == 1 else ""
            forms[table][name] = "flag" if kind == "boolean" else "plain" if kind in _SQL_TYPES else "json"
            types[table][name] = _SQL_TYPES.get(kind, "TEXT")
    if not forms:
        raise InputError(f"{spec.name}: its state has no table of records, so there is nothing to put in a database")
    return forms, types


def _find_kinds(schema: JsonObject, resolve: Any) -> set[str]:
    """Return the JSON types that a value may have, null aside; an unknown one is the empty text."""
    if "anyOf" in schema:
        return {kind for part in schema["anyOf"] for kind in _find_kinds(resolve(part), resolve)} - {"null"}
    kind = schema.get("type", "string" if all(isinstance(one, str) for one in schema.get("enum", (0,))) else "")
    return {kind} if isinstance(kind, str) else {""}


def _is_query(tool: ToolSpec) -> bool:
    """Return whether a tool only reads, and takes nothing but values of a query."""
    plain = all(_is_plain(schema) for schema in tool.input_schema.get("properties", {}).values())
    return not tool.declares_write and plain


def _is_plain(schema: JsonObject, listed: bool = False) -> bool:
    """Return whether a value can stand in a query: a plain one, a list of such, or null, which is left out."""
    if "anyOf" in schema:
        return all(_is_plain(part, listed) for part in schema["anyOf"])
    if schema.get("type") == "array":
        return not listed and _is_plain(schema.get("items", {}), listed=True)
    return schema.get("type") in (*_SQL_TYPES, "null")


def _list_queries(tool: ToolSpec) -> JsonObject:
    return dict(tool.input_schema.get("properties", {}))


def _build_document(spec: EnvironmentSpec) -> JsonObject:
    """Return the OpenAPI document of the server: an operation for each tool, with its schemas."""
    components: JsonObject = {}
    paths: JsonObject = {}
    for tool in spec.tools:
        schema = _place_definitions(tool.name, "in", tool.input_schema, components)
        operation: JsonObject = {"operationId": tool.name, "summary": tool.name, "description": tool.description}
        if tool.actor == "user":
            operation["x-trajsmith-actor"] = "user"
        if _is_query(tool):
            operation["parameters"] = [
                {"name": name, "in": "query", "required": name in tool.required, "schema": part,
                 "description": part.get("description", "")}
                for name, part in schema.get("properties", {}).items()
            ]  # fmt: skip
        else:
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        answer: JsonObject = {"description": "The result."}
        if tool.output_schema is not None:
            answer["content"] = {
                "application/json": {"schema": _place_definitions(tool.name, "out", tool.output_schema, components)}
            }
        operation["responses"] = {"200": answer}
        paths[f"/tools/{tool.name}"] = {"get" if _is_query(tool) else "post": operation}
    info = {"title": spec.name, "version": spec.version, "description": spec.description}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": components}}


def _place_definitions(tool: str, side: str, schema: JsonObject, components: JsonObject) -> JsonObject:
    """Return a schema whose definitions stand in the document's components."""
    prefix = f"{tool}_{side}_"
    text = json.dumps({key: value for key, value in schema.items() if key not in ("$defs", "definitions")})
    for name, definition in schema.get("$defs", {}).items():
        components[prefix + name] = _drop_formats(json.loads(_rename_references(json.dumps(definition), prefix)))
    renamed: JsonObject = _drop_formats(json.loads(_rename_references(text, prefix)))
    return renamed


def _drop_formats(schema: Any) -> Any:
    """Return a schema without formats: a native environment does not check them, and its times have no zone."""
    if isinstance(schema, list):
        return [_drop_formats(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _drop_formats(part) for key, part in schema.items() if key != "format" or not isinstance(part, str)}


def _rename_references(text: str, prefix: str) -> str:
    return text.replace('"#/$defs/', f'"#/components/schemas/{prefix}')


def _insert(table: str, row: JsonObject) -> str:
    names = ", ".join(map(_quote, row))
    return f"INSERT INTO {_quote(table)} ({names}) VALUES ({', '.join(map(_write_literal, row.values()))})"


def _write_literal(value: Any) -> str:
    """Return a value as SQL writes it, by SQLite's own rules."""
    if not _literals:
        _literals.append(sqlite3.connect(":memory:", check_same_thread=False))
    return str(_literals[0].execute("SELECT quote(?)", (value,)).fetchone()[0])


_literals: list[sqlite3.Connection] = []


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _encode(value: Any, form: ColumnForm) -> Any:
    if value is None:
        return None
    return json.dumps(value) if form == "json" else int(value) if form == "flag" else value


def _decode(value: Any, form: ColumnForm) -> Any:
    if value is None or form == "plain":
        return value
    return bool(value) if form == "flag" else json.loads(value)
