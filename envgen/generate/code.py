"""A blueprint as the Python of a native environment."""

from envgen.generate.blueprint import Blueprint, Column, Entity, final_choices
from envgen.generate.code_checks import check_method
from envgen.generate.code_seeds import seed_code
from envgen.generate.code_tools import tool_code
from envgen.generate.rules import policy
from envgen.generate.spelling import quoted, words

_PYTHON = {
    "text": "str", "whole": "int", "number": "float", "flag": "bool", "date": "date", "moment": "datetime",
    "texts": "list[str]",
}  # fmt: skip


def environment_code(blueprint: Blueprint) -> str:
    """The text of the environment's file, not yet formatted."""
    return "\n\n".join(
        [
            _head(blueprint),
            *(alias for entity in blueprint.entities for alias in _aliases(entity)),
            *(_model(entity) for entity in blueprint.entities),
            _state(blueprint),
            _environment(blueprint),
            seed_code(blueprint),
        ]
    )


def apart(blueprint: Blueprint) -> Blueprint:
    """The blueprint with classes that are called like nothing else in the file."""
    aliases = {type_name(entity, column) for entity in blueprint.entities for column in entity.columns}
    entities = tuple(
        entity.model_copy(update={"cls": f"{entity.cls}Record"}) if entity.cls in aliases else entity
        for entity in blueprint.entities
    )
    cls, taken = blueprint.cls, {entity.cls for entity in entities} | aliases
    while cls in taken or f"{cls}State" in taken:
        cls += "Environment"
    return blueprint.model_copy(update={"cls": cls, "entities": entities})


def type_name(entity: Entity, column: Column) -> str:
    """How the type of a column is called."""
    if column.kind == "choice" or constraints(column):
        return entity.cls + "".join(part.capitalize() for part in column.name.split("_"))
    return _PYTHON[column.kind]


def constraints(column: Column) -> list[str]:
    """What values of a column keep to, as arguments of `Field`."""
    found = []
    if column.kind == "text" and not column.references:
        found.append(f"min_length={column.shortest or 1}")
        if column.longest is not None:
            found.append(f"max_length={column.longest}")
        if column.pattern:
            found.append(f"pattern={column.pattern!r}")
    if column.kind in ("whole", "number") and not column.references:
        for bound, mark in ((column.low, "ge"), (column.high, "le")):
            if bound is not None:
                found.append(f"{mark}={int(bound) if float(bound).is_integer() else bound}")
    if column.pool and column.kind in ("text", "whole", "number") and not column.references and found:
        found.append(f"examples={list(column.pool[:4])!r}")
    return found


def _head(blueprint: Blueprint) -> str:
    source = blueprint.source
    licence = f" Licence as stated there: {_safe(source.licence)}." if source.licence else ""
    return f'''"""{_safe(blueprint.title)}.

Written by `trajsmith env gen` from {source.kind}: {_safe(source.name)} ({source.digest[:12]}).{licence}
"""

import random
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from environments.native import Environment, EnvironmentState, StateModel, tool
from trajectory import ToolError
'''


def _aliases(entity: Entity) -> list[str]:
    found = []
    for column in entity.columns:
        name = type_name(entity, column)
        if column.kind == "choice":
            found.append(f"{name} = Literal[{', '.join(map(repr, column.choices))}]")
        elif constraints(column) and column.name != entity.key:
            found.append(f"{name} = Annotated[{_PYTHON[column.kind]}, Field({', '.join(constraints(column))})]")
    return found


def _model(entity: Entity) -> str:
    lines = [
        f"class {entity.cls}(StateModel):",
        f'    """{_safe(entity.description) or words(entity.noun).capitalize()}."""',
        "",
    ]
    for column in entity.columns:
        plain = _PYTHON["text"] if column.name == entity.key and column.kind == "text" else type_name(entity, column)
        kind = plain if column.name != entity.key else _PYTHON[column.kind]
        optional = "" if column.required else " | None"
        lines.append(f"    {column.name}: {kind}{optional}")
        if column.description:
            lines.append(f'    """{_safe(column.description)}"""')
    return "\n".join(lines)


def _state(blueprint: Blueprint) -> str:
    lines = [
        f"class {blueprint.cls}State(EnvironmentState):",
        f'    """Everything that {_safe(blueprint.title)} knows."""',
        "",
    ]
    lines += [f"    {entity.table}: dict[str, {entity.cls}] = {{}}" for entity in blueprint.entities]
    return "\n".join(lines)


def _environment(blueprint: Blueprint) -> str:
    finals = [
        f"{entity.noun.upper()}_FINAL = ({', '.join(map(repr, final_choices(entity)))},)"
        for entity in blueprint.entities
        if final_choices(entity)
    ]
    body = [
        *finals,
        f"class {blueprint.cls}(Environment[{blueprint.cls}State]):",
        f'    """{_safe(blueprint.title)}."""',
        "",
        f"    name = {blueprint.name!r}",
        f"    domain = {blueprint.domain!r}",
        f'    policy = """\n{policy(blueprint)}\n    """',
        "",
        "    @classmethod",
        f"    def seed_state(cls, size: str, seed: int) -> {blueprint.cls}State:",
        "        return make_state(size, seed)",
        "",
    ]
    body += [tool_code(blueprint, operation, type_name) for operation in blueprint.operations]
    body += [check_method(blueprint, entity) for entity in blueprint.entities if _is_written(blueprint, entity)]
    return "\n".join(body)


def _is_written(blueprint: Blueprint, entity: Entity) -> bool:
    return any(one.table == entity.table and one.action in ("create", "update") for one in blueprint.operations)


def _safe(text: str) -> str:
    """A sentence of a docstring, without its full stop."""
    return quoted(text).rstrip(".")
