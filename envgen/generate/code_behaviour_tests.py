"""The tests of trash and archive, of summaries, and of who may do what."""

from collections.abc import Iterator

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, ToolBlueprint
from trajsmith.envgen.generate.code_behaviours import name_bin, name_total


def render_first(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> str:
    """Return a record that a tool may be tried on: not the person who is signed in."""
    table, signed = f"play.state.{entity.table}", blueprint.signed_in
    if signed is None or signed.table != entity.table:
        return f"first({table})"
    return f"next(one for key, one in {table}.items() if key != play.state.signed_in)"


def render_own(operation: ToolBlueprint, entity: Entity) -> str:
    """Return statements that make `record` one that the person who is signed in may change."""
    lines = f"\n    record.{operation.belongs} = play.state.signed_in" if operation.belongs else ""
    return lines + (f"\n    record.{entity.bin} = False" if entity.bin else "")


def find_update_values(operation: ToolBlueprint, entity: Entity) -> str:
    """Return an argument that an update may be called with."""
    if operation.action != "update":
        return ""
    for name in operation.fields:
        column = entity.column(name)
        if column.kind == "text" and column.pool:
            return f', "{name}": {str(column.pool[0])!r}'
    return ""


def render_behaviour_tests(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> Iterator[str]:
    """Yield the tests of one tool."""
    yield from _render_bin_tests(blueprint, operation, entity)
    yield from _render_permission_tests(blueprint, operation, entity)
    if operation.action == "summarize":
        yield _render_summary_test(operation, entity)
    if operation.action == "whoami":
        signed = blueprint.signed_in
        shown = 'result["full_name"] == play.state.signed_in'
        if signed is not None and signed.table:
            shown = f'result == play.state.{signed.table}[play.state.signed_in].model_dump(mode="json")'
        yield f"""def test_{operation.name}(play: Any) -> None:
    result = play.call("{operation.name}", {{}}).content
    assert {shown}
"""


def _render_bin_tests(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> Iterator[str]:
    table, key, name, place = f"play.state.{entity.table}", entity.key, operation.name, ""
    if not entity.bin:
        return
    place, record = name_bin(entity), render_first(blueprint, operation, entity)
    free = render_own(operation, entity) + _render_state(operation, entity)
    if operation.action == "discard":
        lonely = _render_lonely(blueprint, entity)
        yield f"""def test_{name}_keeps_the_record_in_the_{place}(play: Any) -> None:
    record = {record}{free}{lonely}
    result = play.call("{name}", {{"{key}": record.{key}}})
    assert result.ok, result.text
    kept = {table}[str(record.{key})]
    assert kept.{entity.bin} is True
    again = play.call("{name}", {{"{key}": record.{key}}})
    assert again.error == "refused" and "already" in again.text
"""
    if operation.action == "restore":
        yield f"""def test_{name}_needs_the_{place}(play: Any) -> None:
    record = {record}{free}
    result = play.call("{name}", {{"{key}": record.{key}}})
    assert result.error == "refused" and "is not in the {place}" in result.text
    record = {table}[str(record.{key})]
    record.{entity.bin} = True
    assert play.call("{name}", {{"{key}": record.{key}}}).content["{entity.bin}"] is False
"""
    if operation.action in ("update", "move") and not operation.column.startswith("is_"):
        yield f"""def test_{name}_changes_nothing_in_the_{place}(play: Any) -> None:
    record = {record}{free}
    record.{entity.bin} = True
    before = play.dump()
    result = play.call("{name}", {{"{key}": record.{key}{find_update_values(operation, entity)}}})
    assert result.error == "refused" and "{place}" in result.text
    assert play.dump() == before
"""
    if operation.action == "list" and not operation.needed:
        needs = f'"{operation.search}": "", ' if operation.search_needed else ""
        if operation.search_needed:
            return
        yield f"""def test_{name}_leaves_out_the_{place}(play: Any) -> None:
    record = {record}
    record.{entity.bin} = True
    shown = play.call("{name}", {{{needs}"limit": 100}}).content["result"]
    assert record.{key} not in [one["{key}"] for one in shown]
    binned = play.call("{name}", {{{needs}"limit": 100, "{entity.bin}": True}}).content["result"]
    assert record.{key} in [one["{key}"] for one in binned]
"""


def _render_lonely(blueprint: Blueprint, entity: Entity) -> str:
    """Return statements after which nothing belongs to `record`; who is signed in stays, and belongs to another one."""
    signed = "" if blueprint.signed_in is None else blueprint.signed_in.table
    lines = {}
    for other, column in blueprint.referrers(entity.table):
        if other.table == entity.table:
            continue
        lines[other.table] = f"\n    play.state.{other.table}.clear()"
        if other.table == signed and column.references == entity.table:
            elsewhere = f"next(one for one in play.state.{entity.table}.values() if one is not record)"
            lines[other.table] = (
                f"\n    elsewhere = {elsewhere}"
                f"\n    for one in play.state.{signed}.values():\n        one.{column.name} = elsewhere.{entity.key}"
            )
    return "".join(lines.values())


def _render_state(operation: ToolBlueprint, entity: Entity) -> str:
    """Return statements that put `record` into a state in which the tool may be used."""
    lines = ""
    if operation.only_while and entity.status is not None:
        lines += f"\n    record.{entity.status.name} = {operation.only_while[0]!r}"
    return lines + (f"\n    record.{operation.unless} = False" if operation.unless else "")


def _render_permission_tests(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> Iterator[str]:
    signed, table, key, name = blueprint.signed_in, f"play.state.{entity.table}", entity.key, operation.name
    if signed is None:
        return
    arguments = f'"{key}": record.{key}{find_update_values(operation, entity)}'
    if operation.roles and operation.action != "create":
        record = render_first(blueprint, operation, entity)
        yield f"""def test_{name}_needs_a_role(play: Any) -> None:
    record = {record}
    play.state.{signed.table}[play.state.signed_in].{signed.role} = {_find_other_role(blueprint, operation)!r}
    before = play.dump()
    result = play.call("{name}", {{{arguments}}})
    assert result.error == "refused" and "this needs" in result.text
    assert play.dump() == before
"""
    if operation.belongs:
        yield f"""def test_{name}_is_for_the_{operation.belongs}_only(play: Any) -> None:
    record = first({table}){_render_state(operation, entity)}
    record.{operation.belongs} = "Somebody Else"
    before = play.dump()
    result = play.call("{name}", {{{arguments}}})
    assert result.error == "refused" and "belongs to" in result.text
    assert play.dump() == before
"""
    if signed.table == entity.table and operation.action in ("delete", "discard", "move"):
        yield f"""def test_{name}_spares_who_is_signed_in(play: Any) -> None:
    record = {table}[play.state.signed_in]{_render_state(operation, entity)}
    before = play.dump()
    result = play.call("{name}", {{"{key}": record.{key}}})
    assert result.error == "refused"
    assert play.dump() == before
"""


def _find_other_role(blueprint: Blueprint, operation: ToolBlueprint) -> str:
    """Return a role that may not call the tool."""
    signed = blueprint.signed_in
    assert signed is not None
    choices = blueprint.entity(signed.table).column(signed.role).choices
    return next(one for one in choices if one not in operation.roles)


def _render_summary_test(operation: ToolBlueprint, entity: Entity) -> str:
    conditions = ["True"]
    if entity.bin:
        conditions.append(f"not one.{entity.bin}")
    if operation.excludes and entity.status is not None:
        conditions.append(f"one.{entity.status.name} not in {operation.excludes!r}")
    lines = f"""def test_{operation.name}(play: Any) -> None:
    counted = [one for one in play.state.{entity.table}.values() if {" and ".join(conditions)}]
    result = play.call("{operation.name}", {{}}).content
    assert result["count"] == len(counted)
"""
    if entity.status is not None:
        none = "" if entity.status.required else f" if one.{entity.status.name} is not None"
        lines += f"    states = [one.{entity.status.name} for one in counted{none}]\n"
        lines += '    assert result["by_status"] == {state: states.count(state) for state in states}\n'
    if operation.measure:
        total = f"sum(one.{operation.measure} or 0 for one in counted)"
        lines += f'    assert result["{name_total(operation)}"] == pytest.approx({total}, abs=0.01)\n'
    for name in operation.fields:
        if not entity.column(name).references:
            continue
        lines += f"""    owners = [one.{name} for one in play.state.{entity.table}.values() if one.{name} is not None]
    owner = next(iter(owners), None)
    if owner is None:
        pytest.skip("no record of the seed state belongs to another")
    narrowed = play.call("{operation.name}", {{"{name}": owner}}).content
    assert narrowed["count"] == sum(one.{name} == owner for one in counted)
"""
        break
    return lines
