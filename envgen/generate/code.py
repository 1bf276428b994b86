"""Render a blueprint as the Python source of a native environment."""

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, TableColumn, find_final_choices
from trajsmith.envgen.generate.code_behaviours import render_extra_models
from trajsmith.envgen.generate.code_checks import render_check_method
from trajsmith.envgen.generate.code_seeds import render_seed_code
from trajsmith.envgen.generate.code_tools import render_tool_code
from trajsmith.envgen.generate.identifiers import quote_text, to_words
from trajsmith.envgen.generate.rules import render_policy

_PYTHON = {
    "text": "str", "whole": "int", "number": "float", "flag": "bool", "date": "date", "moment": "datetime",
    "texts": "list[str]",
}  # fmt: skip


def render_environment_code(blueprint: Blueprint) -> str:
    """Return the source of the environment's file, not yet formatted."""
    models = [one for entity in blueprint.entities for one in (*entity.parts, entity)]
    return "\n\n".join(
        [
            _render_head(blueprint),
            *(alias for one in models for alias in _render_aliases(one)),
            *(_render_model(one, is_part=one not in blueprint.entities) for one in models),
            *render_extra_models(blueprint),
            _render_state(blueprint),
            _render_environment(blueprint),
            render_seed_code(blueprint),
        ]
    )


def rename_colliding_classes(blueprint: Blueprint) -> Blueprint:
    """Return the blueprint with class names that collide with nothing else in the file."""
    parts = [part for entity in blueprint.entities for part in entity.parts]
    aliases = {build_type_name(one, column) for one in (*blueprint.entities, *parts) for column in one.columns}
    aliases |= {part.cls for part in parts}
    entities, classes = list[Entity](), set[str]()
    for entity in blueprint.entities:
        if entity.cls in aliases or classes & {part.cls for part in entity.parts}:
            entity = entity.model_copy(update={"cls": f"{entity.cls}Record"})
        classes |= {entity.cls, *(part.cls for part in entity.parts)}
        entities.append(entity)
    cls, taken = blueprint.cls, classes | aliases
    while cls in taken or f"{cls}State" in taken:
        cls += "Environment"
    return blueprint.model_copy(update={"cls": cls, "entities": tuple(entities)})


def build_type_name(entity: Entity, column: TableColumn) -> str:
    """Return the name of a column's type in the generated code."""
    if column.columns:
        cls = entity.part(column).cls
        limits = (("min_length", column.shortest), ("max_length", column.longest))
        field = ", ".join(f"{name}={limit}" for name, limit in limits if limit)
        many = f"Annotated[list[{cls}], Field({field})]" if field else f"list[{cls}]"
        return many if column.kind == "records" else cls
    if column.kind == "choice" or build_field_constraints(column):
        return entity.cls + "".join(part.capitalize() for part in column.name.split("_"))
    return _PYTHON[column.kind]


def build_field_constraints(column: TableColumn) -> list[str]:
    """Return a column's value constraints as arguments of `Field`."""
    arguments = []
    if column.kind == "text" and not column.references:
        arguments.append(f"min_length={column.shortest or 1}")
        if column.longest is not None:
            arguments.append(f"max_length={column.longest}")
        if column.pattern:
            arguments.append(f"pattern={column.pattern!r}")
    if column.kind in ("whole", "number") and not column.references:
        for bound, mark in ((column.low, "ge"), (column.high, "le")):
            if bound is not None:
                arguments.append(f"{mark}={int(bound) if float(bound).is_integer() else bound}")
    examples = column.examples or column.pool[:4]
    if examples and column.kind in ("text", "whole", "number") and not column.references and arguments:
        arguments.append(f"examples={list(examples[:6])!r}")
    return arguments


def _render_head(blueprint: Blueprint) -> str:
    source = blueprint.source
    licence = f" Licence as stated there: {_strip_full_stop(source.licence)}." if source.licence else ""
    return f'''"""{_strip_full_stop(blueprint.title)}.

Written by `trajsmith env gen` from {source.kind}: {_strip_full_stop(source.name)} ({source.digest[:12]}).{licence}
"""

import random
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from trajsmith import Environment, EnvironmentState, StateModel, ToolError, tool
'''


def _render_aliases(entity: Entity) -> list[str]:
    lines = []
    for column in entity.columns:
        name = build_type_name(entity, column)
        if column.kind == "choice":
            lines.append(f"{name} = Literal[{', '.join(map(repr, column.choices))}]")
        elif build_field_constraints(column) and column.name != entity.key:
            lines.append(
                f"{name} = Annotated[{_PYTHON[column.kind]}, Field({', '.join(build_field_constraints(column))})]"
            )
    return lines


def _render_model(entity: Entity, is_part: bool) -> str:
    """Return the class of a record; whoever gives a part of a record may leave out what is not required."""
    lines = [
        f"class {entity.cls}(StateModel):",
        f'    """{_strip_full_stop(entity.description) or to_words(entity.noun).capitalize()}."""',
        "",
    ]
    for column in entity.columns:
        plain = (
            _PYTHON["text"] if column.name == entity.key and column.kind == "text" else build_type_name(entity, column)
        )
        kind = plain if column.name != entity.key else _PYTHON[column.kind]
        optional = "" if column.required else " | None = None" if is_part else " | None"
        lines.append(f"    {column.name}: {kind}{optional}")
        if column.description:
            lines.append(f'    """{_strip_full_stop(column.description)}"""')
    return "\n".join(lines)


def _render_state(blueprint: Blueprint) -> str:
    lines = [
        f"class {blueprint.cls}State(EnvironmentState):",
        f'    """Everything that {_strip_full_stop(blueprint.title)} knows."""',
        "",
    ]
    lines += [f"    {entity.table}: dict[str, {entity.cls}] = {{}}" for entity in blueprint.entities]
    if blueprint.signed_in is not None:
        lines += ['    signed_in: str = ""', '    """Who is signed in."""']
    return "\n".join(lines)


def _render_environment(blueprint: Blueprint) -> str:
    finals = [
        f"{entity.noun.upper()}_FINAL = ({', '.join(map(repr, find_final_choices(entity)))},)"
        for entity in blueprint.entities
        if find_final_choices(entity)
    ]
    body = [
        *finals,
        f"class {blueprint.cls}(Environment[{blueprint.cls}State]):",
        f'    """{_strip_full_stop(blueprint.title)}."""',
        "",
        f"    name = {blueprint.name!r}",
        f"    domain = {blueprint.domain!r}",
        f'    policy = """\n{render_policy(blueprint)}\n    """',
        "",
        "    @classmethod",
        f"    def seed_state(cls, size: str, seed: int) -> {blueprint.cls}State:",
        "        return make_state(size, seed)",
        "",
    ]
    body += [render_tool_code(blueprint, operation, build_type_name) for operation in blueprint.operations]
    body += [render_check_method(blueprint, entity) for entity in blueprint.entities if _is_written(blueprint, entity)]
    return "\n".join(body)


def _is_written(blueprint: Blueprint, entity: Entity) -> bool:
    return any(one.table == entity.table and one.action in ("create", "update") for one in blueprint.operations)


def _strip_full_stop(text: str) -> str:
    """Return a sentence for a docstring without its full stop."""
    return quote_text(text).rstrip(".")
