"""The tests that lie beside a generated environment: each tool once as meant, once as its rules forbid."""

from collections.abc import Iterator

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, TableColumn, ToolBlueprint
from trajsmith.envgen.generate.code_behaviour_tests import (
    find_update_values,
    render_behaviour_tests,
    render_first,
    render_own,
)
from trajsmith.envgen.generate.tool_docstrings import find_linked, name_linked_key

_CALL_AS_USER = '''

def call_as_user(play: Any, tool: str, arguments: dict[str, Any]) -> Any:
    """The user's call; the agent does not have the tool."""
    assert play.call(tool, arguments).error == "unknown_tool"
    return play.call(tool, arguments, "user")
'''


def render_test_code(blueprint: Blueprint, file: str) -> str:
    """Return the source of a pytest file, not yet formatted."""
    parts = [_render_head(blueprint, file)]
    for operation in blueprint.operations:
        parts += list(_render_tests(blueprint, operation, blueprint.entity(operation.table)))
    code = "\n\n".join(parts) + "\n"
    users = [operation.name for operation in blueprint.operations if operation.actor == "user"]
    for name in users:
        code = code.replace(f'play.call("{name}", ', f'call_as_user(play, "{name}", ')
    return code + _CALL_AS_USER if users else code


def _render_head(blueprint: Blueprint, file: str) -> str:
    return f'''"""Tests of {file}: run them with pytest in this folder."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

SPEC = importlib.util.spec_from_file_location("{blueprint.name}", Path(__file__).with_name("{file}"))
assert SPEC is not None and SPEC.loader is not None
MODULE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MODULE)


@pytest.fixture
def play() -> Any:
    {_render_play(blueprint)}


def first(table: dict[str, Any]) -> Any:
    return next(iter(table.values()))


def complete(table: dict[str, Any], *names: str) -> list[Any]:
    """Records that have all of these fields."""
    return [one for one in table.values() if all(getattr(one, name) is not None for name in names)]


def plain(record: Any, *names: str) -> dict[str, Any]:
    """Fields of a record as JSON, those that it has."""
    said = record.model_dump(mode="json")
    return {{name: value for name, value in said.items() if name in names and value is not None}}


def changed_or_refused(play: Any, before: bytes, result: Any) -> None:
    """A call that was answered has left a trace, a refused one none."""
    assert result.error in (None, "refused"), result.text
    assert (play.dump() != before) == result.ok


def test_seed_states_are_the_same_for_the_same_seed() -> None:
    make = MODULE.{blueprint.cls}.seed_state
    assert make("small", 3) == make("small", 3)
    assert make("small", 3) != make("small", 4)
'''


def _render_play(blueprint: Blueprint) -> str:
    """Return the body of a fixture in which the person who is signed in may do everything."""
    fresh = f'MODULE.{blueprint.cls}(MODULE.{blueprint.cls}.seed_state("medium", 1))'
    signed = blueprint.signed_in
    if signed is None or not signed.table:
        return f"return {fresh}"
    person = f"made.state.{signed.table}[made.state.signed_in]"
    return f"made = {fresh}\n    {person}.{signed.role} = {signed.roles[0]!r}\n    return made"


def _render_tests(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> Iterator[str]:
    table, key, name = f"play.state.{entity.table}", entity.key, operation.name
    missing = "-1" if entity.column(key).kind == "whole" else '"nothing"'
    if operation.action == "get" and operation.column:
        yield f"""def test_{name}(play: Any) -> None:
    for record in complete({table}, "{operation.column}")[:5]:
        shown = play.call("{name}", {{"{key}": record.{key}}})
        assert shown.content == record.{operation.column}.model_dump(mode="json")
"""
    elif operation.action == "get":
        yield f"""def test_{name}(play: Any) -> None:
    record = first({table})
    assert play.call("{name}", {{"{key}": record.{key}}}).content == record.model_dump(mode="json")
"""
    if operation.action in ("get", "delete", "move", "discard", "restore"):
        yield f"""def test_{name}_refuses_what_is_not_there(play: Any) -> None:
    result = play.call("{name}", {{"{key}": {missing}}})
    assert result.error == "refused" and "not found" in result.text
"""
    if operation.action == "list" and operation.owner:
        yield _render_owned_list_test(operation, entity, blueprint.entity(operation.owner))
    elif operation.action == "list":
        yield _render_list_test(operation, entity, table)
    if operation.action in ("link", "unlink"):
        other, argument = find_linked(blueprint, operation), name_linked_key(blueprint, operation)
        yield f"""def test_{name}_changes_or_refuses(play: Any) -> None:
    for record in list({table}.values())[:5]:
        before, other = play.dump(), first(play.state.{other.table}).{other.key}
        result = play.call("{name}", {{"{key}": record.{key}, "{argument}": other}})
        changed_or_refused(play, before, result)
    result = play.call("{name}", {{"{key}": first({table}).{key}, "{argument}": "nothing"}})
    assert result.error == "refused" and "not found" in result.text
"""
    if operation.action == "create":
        yield _render_create_test(operation, entity, table)
        yield from _render_rule_tests(blueprint, operation, entity, table)
    yield from _render_guard_tests(blueprint, operation, entity, table)
    yield from render_behaviour_tests(blueprint, operation, entity)
    if operation.action == "update" and operation.column:
        yield f"""def test_{name}_changes_or_refuses(play: Any) -> None:
    records = list({table}.values())
    for record in complete({table}, "{operation.column}")[1:6]:
        before, given = play.dump(), plain(record.{operation.column}{_join_names(operation.fields)})
        changed_or_refused(play, before, play.call("{name}", {{"{key}": records[0].{key}, **given}}))
"""
    elif operation.action == "update":
        yield f"""def test_{name}_needs_a_change(play: Any) -> None:
    record = first({table}){_render_free_state(operation, entity)}{render_own(operation, entity)}
    result = play.call("{name}", {{"{key}": record.{key}}})
    assert result.error == "refused" and "nothing to change" in result.text
"""
        yield _render_update_test(operation, entity, table)
    if operation.action in ("delete", "move", "discard", "restore"):
        yield f"""def test_{name}_changes_or_refuses(play: Any) -> None:
    for record in list({table}.values())[:5]:
        before = play.dump()
        changed_or_refused(play, before, play.call("{name}", {{"{key}": record.{key}}}))
"""


def _render_list_test(operation: ToolBlueprint, entity: Entity, table: str) -> str:
    required_names = _join_names(operation.needed)
    if operation.search_needed:
        text = entity.label or next(c.name for c in entity.columns if c.kind == "text" and not c.references)
        return f"""def test_{operation.name}(play: Any) -> None:
    for record in [one for one in {table}.values(){_render_shown(entity, " if")}][:5]:
        found = play.call("{operation.name}", {{"{operation.search}": record.{text}, "limit": 100}}).content["result"]
        assert record.model_dump(mode="json") in found
    assert play.call("{operation.name}", {{"{operation.search}": "no such text"}}).content["result"] == []
"""
    return f"""def test_{operation.name}(play: Any) -> None:
    for record in complete({table}{required_names})[:5]:
        given = plain(record{required_names})
        found = play.call("{operation.name}", {{**given, "limit": 100}}).content["result"]
        same = [one for one in {table}.values() if plain(one{required_names}) == given{_render_shown(entity)}]
        expected = [one.model_dump(mode="json") for one in {_render_order(entity)}]
        assert found == expected[:100]
"""


def _render_order(entity: Entity) -> str:
    """Return records `same` in the order in which a list shows them."""
    return "same" if entity.key_style == "counted" else f"sorted(same, key=lambda one: one.{entity.key})"


def _render_shown(entity: Entity, joint: str = " and") -> str:
    """Return the condition that a record `one` is not in the trash."""
    return f"{joint} not one.{entity.bin}" if entity.bin else ""


def _render_owned_list_test(operation: ToolBlueprint, entity: Entity, owner: Entity) -> str:
    return f"""def test_{operation.name}(play: Any) -> None:
    for owner in list(play.state.{owner.table}.values())[:5]:
        found = play.call("{operation.name}", {{"{owner.key}": owner.{owner.key}, "limit": 100}}).content["result"]
        assert {{one["{entity.key}"] for one in found}} == set(owner.{operation.column} or [])
"""


def _render_create_test(operation: ToolBlueprint, entity: Entity, table: str) -> str:
    names = _join_names(operation.fields)
    new_key = ""
    if entity.key_is_given:
        new_key = f'    given["{entity.key}"] = {_render_new_key(entity)}\n'
    distinct = "".join(
        f'    given["{column.name}"] = f"{{given.get({column.name!r}, {column.name!r})}}-new"\n'
        for column in _render_unique_test(operation, entity)
    )
    return f"""def test_{operation.name}(play: Any) -> None:
    records = complete({table}{_join_names(operation.needed)})
    if not records:
        pytest.skip("no record of the seed state has all that a new one needs")
    given = plain(records[0]{names})
{new_key}{distinct}{_render_days_ahead(operation, entity)}    count = len({table})
    result = play.call("{operation.name}", given)
    assert result.ok, result.text
    assert len({table}) == count + 1
    assert given.items() <= result.content.items()
"""


def _render_new_key(entity: Entity) -> str:
    """Return a key that no record has."""
    return "987654" if entity.column(entity.key).kind == "whole" else repr("new-key")


def _render_days_ahead(operation: ToolBlueprint, entity: Entity) -> str:
    """Return statements that set the days of `given` that must not be over."""
    lines = ""
    for name in entity.ahead:
        day = "2027-02-01" if entity.column(name).kind == "date" else "2027-02-01T10:00:00"
        if name in operation.fields:
            lines += f'    given.update({{"{name}": "{day}"}} if "{name}" in given else {{}})\n'
    return lines


def _render_rule_tests(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity, table: str) -> Iterator[str]:
    """Return tests that what a new record must not be is refused and leaves no trace."""
    names, needed = _join_names(operation.fields), _join_names(operation.needed)
    broken: list[tuple[str, str, str, str]] = []
    if entity.quota is not None and entity.quota.column in operation.fields:
        column = entity.quota.column
        broken.append(
            (
                "quota",
                column,
                f"""
    owner = given["{column}"] = records[0].{column}
    filler = records[0]
    for number in range({entity.quota.most} - sum(one.{column} == owner for one in {table}.values())):
        {table}[f"filler {{number}}"] = filler.model_copy(update={{"{entity.key}": f"filler {{number}}"}})
"""
                if entity.column(entity.key).kind != "whole"
                else f"""
    owner = given["{column}"] = records[0].{column}
    filler = records[0]
    for number in range({entity.quota.most} - sum(one.{column} == owner for one in {table}.values())):
        {table}[str(-1 - number)] = filler.model_copy(update={{"{entity.key}": -1 - number}})
""",
                "already",
            )
        )
    for limit in entity.limits:
        if limit.column in operation.fields:
            broken.append(
                (
                    "limit",
                    limit.column,
                    f"""
    given["{limit.column}"] = {limit.most + 1:g}
""",
                    "more than",
                )
            )
    for name in entity.ahead:
        if name in operation.fields:
            day = "2026-01-05" if entity.column(name).kind == "date" else "2026-01-05T10:00:00"
            broken.append(
                (
                    "past",
                    name,
                    f"""
    given["{name}"] = "{day}"
""",
                    "over already",
                )
            )
    for link in entity.shared_owners:
        if {link.column, link.through} <= set(operation.fields):
            through, owner = entity.column(link.through), blueprint.entity(entity.column(link.column).references)
            other = blueprint.entity(through.references)
            change = f"""
    keys = [one.{owner.key} for one in play.state.{owner.table}.values()]
    whole = [one for one in play.state.{other.table}.values() if one.{link.there} is not None]
    if not whole or len(keys) < 2:
        pytest.skip("no record of the seed state belongs to another")
    given["{link.through}"] = whole[0].{other.key}
    given["{link.column}"] = next(key for key in keys if key != whole[0].{link.there})
"""
            broken.append(("owner", link.column, change, "belongs to another"))
    for kind, column, change, text in broken:
        yield f"""def test_{operation.name}_keeps_the_{kind}_of_{column}(play: Any) -> None:
    records = complete({table}{needed})
    if not records:
        pytest.skip("no record of the seed state has all that a new one needs")
    given = plain(records[0]{names}){_render_new_names(operation, entity)}
{_render_days_ahead(operation, entity).rstrip()}{change}
    before = play.dump()
    result = play.call("{operation.name}", given)
    assert result.error == "refused" and "{text}" in result.text, result.text
    assert play.dump() == before
"""


def _render_new_names(operation: ToolBlueprint, entity: Entity) -> str:
    key = f'\n    given["{entity.key}"] = {_render_new_key(entity)}' if entity.key_is_given else ""
    return key + "".join(
        f'\n    given["{column.name}"] = f"{{given.get({column.name!r}, {column.name!r})}}-new"'
        for column in _render_unique_test(operation, entity)
    )


def _render_guard_tests(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity, table: str) -> Iterator[str]:
    """Return tests that a record in the wrong state stays as it is."""
    others = () if entity.status is None else [c for c in entity.status.choices if c not in operation.only_while]
    cases = []
    if operation.only_while and entity.status is not None and others:
        others = [one for one in others if one != operation.sets]
        if others:
            cases.append((entity.status.name, repr(others[0]), "this needs"))
    if operation.unless:
        cases.append((operation.unless, "True", "is"))
    for column, value, text in cases:
        arguments = find_update_values(operation, entity)
        yield f"""def test_{operation.name}_respects_{column}(play: Any) -> None:
    record = {render_first(blueprint, operation, entity)}{render_own(operation, entity)}
    record.{column} = {value}
    before = play.dump()
    result = play.call("{operation.name}", {{"{entity.key}": record.{entity.key}{arguments}}})
    assert result.error == "refused" and "{text}" in result.text
    assert play.dump() == before
"""


def _render_free_state(operation: ToolBlueprint, entity: Entity) -> str:
    """Return statements that put `record` into a state in which it may be changed."""
    lines = []
    if operation.only_while and entity.status is not None:
        lines.append(f"\n    record.{entity.status.name} = {operation.only_while[0]!r}")
    if operation.unless:
        lines.append(f"\n    record.{operation.unless} = False")
    return "".join(lines)


def _render_update_test(operation: ToolBlueprint, entity: Entity, table: str) -> str:
    names = _join_names(operation.fields)
    return f"""def test_{operation.name}(play: Any) -> None:
    records = list({table}.values())
    for record in records[1:6]:
        before = play.dump()
        given = {{"{entity.key}": records[0].{entity.key}, **plain(record{names})}}
        changed_or_refused(play, before, play.call("{operation.name}", given))
"""


def _render_unique_test(operation: ToolBlueprint, entity: Entity) -> list[TableColumn]:
    columns = [entity.column(name) for name in operation.fields]
    return [column for column in columns if column.unique and column.kind == "text" and column.name != entity.key]


def _join_names(names: tuple[str, ...]) -> str:
    return "".join(f', "{name}"' for name in names)
