"""What a user says about an AWM environment, and what of its files goes to the program.

The reference publishes many environments as JSON Lines, one scenario a line: `gen_envs.jsonl` (`scenario`,
`full_code`), `gen_db.jsonl` (`scenario`, `db_schema`: tables with `ddl` and `indexes`) and `gen_sample.jsonl`
(`scenario`, `sample_data`: tables with `insert_statements`). A server that its command line started leaves a directory
with `server_code.py` and `initial.db`. Both are read as they are; single files of SQL work, too.
"""

import base64
import importlib.util
import re
from pathlib import Path

from trajsmith.environments.file_reading import read_json, read_text, require_objects
from trajsmith.records import FrozenModel, InputError, JsonObject, SourcePath, install_command

PRELOAD = (
    "asyncio", "sqlite3", "fastapi", "fastapi.routing", "fastapi.openapi.utils", "fastapi.responses",
    "fastapi.encoders", "fastapi.exceptions", "fastapi.middleware.cors", "starlette.middleware.base",
    "starlette.exceptions", "anyio", "anyio.to_thread", "anyio._backends._asyncio", "sqlalchemy", "sqlalchemy.orm",
    "sqlalchemy.orm.session", "sqlalchemy.pool", "sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.sqlite.pysqlite",
    "sqlalchemy.ext.declarative", "sqlalchemy.ext.hybrid", "sqlalchemy.exc", "sqlalchemy.sql", "sqlalchemy.types",
    "jsonschema_rs", "yaml", "trajsmith.environments.adapters.awm.program",
)  # fmt: skip
"""Modules that a worker must have imported before it is locked down."""
EXTRA = ("fastapi", "sqlalchemy")
_ENVS, _DB, _SAMPLE = "gen_envs.jsonl", "gen_db.jsonl", "gen_sample.jsonl"
_DATABASES = (".db", ".sqlite", ".sqlite3")


class AwmSettings(FrozenModel):
    """A generated server with its database."""

    server: SourcePath
    """The server's code (`server_code.py`), or the file of many of them (`gen_envs.jsonl`)."""
    scenario: str | None = None
    """Which scenario of a file of many."""
    ddl: SourcePath | None = None
    """Its tables: SQL, or `gen_db.jsonl`. Left out, the one beside `gen_envs.jsonl`, or as the server makes them."""
    data: SourcePath | None = None
    """Its rows: SQL, `gen_sample.jsonl`, or a SQLite file. Left out, `gen_sample.jsonl` or `initial.db` beside it."""
    name: str | None = None
    """Name of the environment; the scenario's or the file's if left out."""
    description: str = ""
    """What the environment is; the server's own title and description if left out."""
    domain: str = ""
    """Domain path, for example "media/music"."""
    policy: str = ""
    """Rules that the agent must obey, markdown."""


def normalize_scenario_name(scenario: str) -> str:
    """A scenario's name as the reference spells it in file names."""
    return re.sub(r"_+", "_", re.sub(r"[^a-z0-9_]", "_", scenario.lower())).strip("_")


def get_environment_name(settings: AwmSettings) -> str:
    """The environment's name: what the settings say, the scenario's, or the file's."""
    stem = settings.server.stem if settings.server.stem != "server_code" else settings.server.absolute().parent.name
    return normalize_scenario_name(settings.name or settings.scenario or stem) or "awm"


def discover(directory: Path) -> list[AwmSettings]:
    """All scenarios of a directory that has the reference's `gen_envs.jsonl`.

    Raises:
        InputError: There is none.
    """
    return [AwmSettings(server=directory / _ENVS, scenario=name) for name in _lines(directory / _ENVS)]


def build_payload(settings: AwmSettings) -> JsonObject:
    """Everything that the program needs, as plain JSON. Files are read, never run.

    Raises:
        InputError: A file is missing or is not what its place asks for, or the extra is not installed.
    """
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"environments of AWM need {' and '.join(missing)}: {install_command('awm')}")
    many = settings.server.suffix == ".jsonl"
    scenario, entry = _entry(settings.server, settings.scenario) if many else (None, {})
    code = entry.get("full_code") if scenario else read_text(settings.server)
    if not isinstance(code, str) or not code.strip():
        raise InputError(f"{settings.server}: there is no code" + (f" for scenario {scenario!r}" if scenario else ""))
    named = settings.model_copy(update={"scenario": settings.scenario or scenario})
    ddl, data = _find_beside(settings.ddl, settings.server, (_DB,) if many else ()), settings.data
    data = _find_beside(data, settings.server, (_SAMPLE,) if many else ("initial.db",))
    return {
        "name": get_environment_name(named),
        "file": f"{normalize_scenario_name(scenario)}.py" if scenario else settings.server.name,
        "code": code,
        "ddl": None if ddl is None else _ddl(ddl, scenario),
        "data": None if data is None else _data(data, scenario),
        "description": settings.description,
        "domain": settings.domain,
        "policy": settings.policy,
    }


def _find_beside(explicit: Path | None, server: Path, names: tuple[str, ...]) -> Path | None:
    beside = [server.parent / name for name in names if (server.parent / name).is_file()]
    return explicit if explicit is not None else next(iter(beside), None)


def _lines(path: Path) -> dict[str, JsonObject]:
    """The lines of a JSON Lines file by scenario, in the reference's spelling."""
    entries: dict[str, JsonObject] = {}
    for number, entry in enumerate(read_json(path), 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("scenario"), str):
            raise InputError(f"{path}: entry {number} has no `scenario`")
        entries[normalize_scenario_name(entry["scenario"])] = entry
    if not entries:
        raise InputError(f"{path}: there are no scenarios")
    return entries


def _entry(path: Path, scenario: str | None) -> tuple[str, JsonObject]:
    """The scenario of this name, or the only one: its name in the reference's spelling, and its line."""
    known = _lines(path)
    name = next(iter(known)) if scenario is None and len(known) == 1 else normalize_scenario_name(scenario or "")
    if name in known:
        return name, known[name]
    some = ", ".join(list(known)[:5]) + (", ..." if len(known) > 5 else "")
    if scenario is None:
        raise InputError(f"{path} has {len(known)} scenarios: set `scenario` to one of {some}")
    raise InputError(f"{path}: there is no scenario {scenario!r}; there are {some}")


def _ddl(path: Path, scenario: str | None) -> JsonObject:
    """Statements that make the tables, each with a word on where it stands."""
    if path.suffix not in (".jsonl", ".json"):
        return {"sql": read_text(path), "file": path.name}
    tables = _tables(path, scenario, "db_schema")
    statements = [
        [f"{path.name}: table {table.get('name', '?')}", sql]
        for table in tables
        for sql in (table.get("ddl"), *table.get("indexes", ()), *table.get("examples", ()))
        if isinstance(sql, str)
    ]
    return {"statements": statements, "file": path.name}


def _data(path: Path, scenario: str | None) -> JsonObject:
    """Statements that fill the tables, or a whole SQLite file."""
    if path.suffix in _DATABASES:
        try:
            return {"database": base64.b64encode(path.read_bytes()).decode(), "file": path.name}
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error}") from error
    if path.suffix not in (".jsonl", ".json"):
        return {"sql": read_text(path), "file": path.name}
    statements = [
        [f"{path.name}: rows of {table.get('table_name', '?')}", sql]
        for table in _tables(path, scenario, "sample_data")
        for sql in table.get("insert_statements", ())
        if isinstance(sql, str)
    ]
    return {"statements": statements, "file": path.name}


def _tables(path: Path, scenario: str | None, key: str) -> list[JsonObject]:
    if path.suffix == ".jsonl":
        entries = _entry(path, scenario)[1].get(key)
    else:
        entries = read_json(path)
        entries = entries.get(key, entries) if isinstance(entries, dict) else entries
    tables = entries.get("tables") if isinstance(entries, dict) else None
    return require_objects(tables, f"{path}: `{key}` has no list of `tables`")
