"""The code that makes seed states: the same for the same seed, references that exist, real rows where there are any."""

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, SharedOwner, SignedIn, TableColumn
from trajsmith.envgen.generate.code_seed_times import find_phases, render_end, render_phases, render_start
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.envgen.generate.rules import find_spans

_STATE_WEIGHTS = {
    "active": 8, "published": 6, "open": 6, "running": 6, "ready": 6, "available": 6, "enabled": 6, "online": 8,
    "ok": 8, "live": 6, "verified": 6, "subscribed": 8, "confirmed": 5, "paid": 5, "delivered": 5, "completed": 4,
    "sent": 4,
    "succeeded": 6, "accepted": 4, "approved": 3, "merged": 4, "in_progress": 3, "closed": 3, "done": 4, "resolved": 3,
    "public": 6, "enrolled": 6, "archived": 1, "suspended": 1, "cancelled": 1, "rejected": 1, "blocked": 1,
    "terminated": 1, "revoked": 1, "expired": 1, "withdrawn": 1, "removed": 1, "frozen": 1, "locked": 1, "disabled": 1,
    "retired": 1, "bounced": 1, "deleted": 1, "lost": 1, "inactive": 1,
}  # fmt: skip
"""States to how frequent they are in seed states; others are in between."""
_OWN = frozenset({"address", "phone", "serial_number", "sku"})
"""Columns in which hardly two records have the same."""
FEW_NAMES = range(4, 24)
"""Numbers of names of which no two records of a table have the same; a table with more may have more records."""
_SIZES = '{"small": 8, "medium": 24, "large": 80}'


def render_seed_code(blueprint: Blueprint) -> str:
    """Return the functions and data that stand below the environment's class."""
    real = any(entity.rows for entity in blueprint.entities)
    parts = [_render_helpers(blueprint), _render_rows(blueprint) if real else _render_pools(blueprint)]
    parts += [_render_row_choice(blueprint)] if real else []
    parts += [_count_rows(entity) if real else _render_record(blueprint, entity) for entity in blueprint.entities]
    return "\n\n".join([*parts, _render_make_state(blueprint, real)])


def _render_helpers(blueprint: Blueprint) -> str:
    lines = [f"NOW = datetime(2026, 3, 2, 9, 0)\nCOUNTS = {_SIZES}"]
    lines += [_render_key_function(entity) for entity in blueprint.entities if entity.key_style != "counted"]
    if any(operation.search for operation in blueprint.operations):
        lines.append(
            "def _mentions(text: str, *values: str | None) -> bool:\n"
            '    """True if one of the values has the text in it, in any case."""\n'
            "    return any(value is not None and text.lower() in value.lower() for value in values)"
        )
    compared = {first.kind for entity in blueprint.entities for first, _ in find_spans(entity)}
    compared |= {entity.column(name).kind for entity in blueprint.entities for name in entity.ahead}
    compared |= {blueprint.entity(o.table).column(one.column).kind for o in blueprint.operations for one in o.ranges}
    if "moment" in compared:
        lines.append(
            "def _moment(value: datetime) -> datetime:\n"
            '    """A time that can be compared with others: those without a zone are UTC."""\n'
            "    return value.replace(tzinfo=UTC) if value.tzinfo is None else value"
        )
    lines += render_phases(blueprint)
    if any(column.names for entity in blueprint.entities for column in entity.columns):
        lines.append(
            "def _pick_name(names: list[str], number: int) -> str:\n"
            '    """Return the name of record `number` of an owner; a number tells those apart that repeat."""\n'
            "    turn, place = divmod(number, len(names))\n"
            '    return f"{names[place]} {turn + 1}" if turn else names[place]'
        )
    return "\n\n".join(lines)


def name_key_function(entity: Entity) -> str:
    """Return the name of the function that makes keys of an entity of their numbers."""
    return f"_make_{entity.noun}_key"


def _render_key_function(entity: Entity) -> str:
    """Return a function that gives every number another key, none of which tells the next."""
    whole = entity.column(entity.key).kind == "whole"
    values = {
        "digits": ["value = 1000 + number * 5477 % 9000"],
        "hex": ["value = number * 2654435761 % 2**32"],
        "letters": [
            'value, text = number * 387420489 % 31**5, ""',
            "for _ in range(5):",
            "    value, place = divmod(value, 31)",
            '    text += "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"[place]',
        ],
    }[entity.key_style]
    texts = {"digits": "{value}", "hex": "{value:08x}", "letters": "{text}"}[entity.key_style]
    result = "value" if whole else f'f"{entity.prefix}{texts}"'
    head = f"def {name_key_function(entity)}(number: int) -> {'int' if whole else 'str'}:"
    doc = f'    """Return the key of {to_words(entity.noun)} number {{number}}."""'.replace("{number}", "n")
    return "\n".join([head, doc, *(f"    {line}" for line in values), f"    return {result}"])


def _pool_name(entity: Entity, column: TableColumn) -> str:
    return f"{entity.noun}_{column.name}".upper() + "S"


def _render_pools(blueprint: Blueprint) -> str:
    lines = []
    for entity in [part for whole in blueprint.entities for part in (whole, *whole.parts)]:
        for column in entity.columns:
            if column.pool and not column.references:
                lines.append(f"{_pool_name(entity, column)} = {list(column.pool)!r}")
            if column.values:
                lines.append(f"{_name_values(entity, column)} = {dict(column.values)!r}")
            if column.names:
                names = {owner: list(own) for owner, own in column.names}
                lines.append(f"{_pool_name(entity, column)}_BY_OWNER = {names!r}")
    return "\n".join(lines)


def _render_record(blueprint: Blueprint, entity: Entity) -> str:
    key = entity.column(entity.key)
    key_code = f"{entity.start} + place" if key.kind == "whole" else f'f"{entity.prefix}{{{entity.start} + place}}"'
    if entity.is_named:
        key_code = f"{_pool_name(entity, key)}[place - 1]"
    elif entity.key_style != "counted":
        key_code = f"{name_key_function(entity)}({entity.start} + place)"
    values = [f"{entity.key}={entity.key}"]
    labels = _find_label_columns(entity)
    later = {last.name: first for first, last in find_spans(entity)}
    lines = [
        f"def _make_{entity.table}(rng: random.Random, state: {blueprint.cls}State, wanted: int) -> None:",
        f"    for place in range(1, {_render_count(entity)} + 1):",
        f"        {entity.key} = {key_code}",
    ]
    waiting = list[tuple[TableColumn, SharedOwner]]()
    for column in _order_columns(entity):
        if column.name == entity.key:
            continue
        values.append(f"{column.name}={column.name}")
        shared = next((one for one in entity.shared_owners if one.column == column.name), None)
        if shared is not None:
            waiting.append((column, shared))
            continue
        if waiting and not column.references:
            lines += _render_shared_owners(blueprint, entity, waiting)
            waiting = []
        value = _render_dated(entity, column, later.get(column.name))
        if not value and column.name in later and column.required and later[column.name].required:
            value = f"{later[column.name].name} + timedelta(days=rng.randint(1, 20))"
        elif not value:
            value = _render_value(blueprint, entity, column, column.name in labels)
            if column.name in later:
                value = "None"
        if entity.quota is not None and entity.quota.column == column.name and "rng.choice([" in value:
            head, _, keys = value.partition("rng.choice(")
            lines += [f"        owners = {keys[:-1]}", "        if not owners:", "            break"]
            value = f"{head}rng.choice(owners)"
        lines.append(f"        {column.name} = {value}")
    lines += _render_shared_owners(blueprint, entity, waiting)
    lines.append(f"        {entity.noun}_made = {entity.cls}({', '.join(values)})")
    return "\n".join([*lines, f"        state.{entity.table}[str({entity.key})] = {entity.noun}_made"])


def _order_columns(entity: Entity) -> list[TableColumn]:
    """Return the columns in the order in which they are drawn: owners, status and name decide about others."""
    status, columns = entity.status, [column for column in entity.columns if column.name != entity.key]
    ends = {last.name for _, last in find_spans(entity)}

    def rank(column: TableColumn) -> int:
        if column.references:
            return 0
        if status is not None and column.name == status.name:
            return 1
        return 2 if column.name == entity.label else 4 if column.name in ends else 3

    return sorted(columns, key=rank)


def _render_shared_owners(
    blueprint: Blueprint, entity: Entity, waiting: list[tuple[TableColumn, SharedOwner]]
) -> list[str]:
    """Return statements that give a record the owner of what it belongs to."""
    lines = list[str]()
    for waiter, link in waiting:
        through = entity.column(link.through)
        place_of = f"str({through.name})" if through.kind == "whole" else through.name
        owner = f"state.{blueprint.entity(through.references).table}[{place_of}].{link.there}"
        fallback = _render_value(blueprint, entity, waiter, False)
        lines.append(f"        {waiter.name} = None if {through.name} is None else {owner}")
        if waiter.required:
            lines += [f"        if {waiter.name} is None:", f"            {waiter.name} = {fallback}"]
    return lines


def _render_dated(entity: Entity, column: TableColumn, first: TableColumn | None) -> str:
    """Return an expression for a date that lies where the record's status says; empty for others."""
    status = entity.status
    if status is None:
        return ""
    drawn = status.name if status.required else f"{status.name} or {status.choices[0]!r}"
    if first is not None:
        known = find_phases(entity, first)
        value = render_end(entity, first, column, drawn) if known else ""
        missing = f"None if {first.name} is None else " if not first.required else ""
        return value and (missing or ("" if column.required else "None if rng.random() < 0.2 else ")) + value
    if not find_phases(entity, column):
        return ""
    return ("" if column.required else "None if rng.random() < 0.2 else ") + render_start(entity, column, drawn)


def _render_count(entity: Entity) -> str:
    """Return how many records are made: not more than there are names."""
    label = entity.column(entity.label) if entity.label else None
    if label is None or label.names or any("@" in str(value) for value in label.pool):
        return "wanted"
    if not label.pool or not (label.unique or len(label.pool) in FEW_NAMES):
        return "wanted"
    return f"min(wanted, len({_pool_name(entity, label)}))"


def _find_label_columns(entity: Entity) -> set[str]:
    """Columns whose values tell records apart."""
    return {
        c.name
        for c in entity.columns
        if c.unique
        or c.name == entity.label
        or c.name in ("name", "title", "label", "email", "username", "slug", "code")
    }


def _render_value(blueprint: Blueprint, entity: Entity, column: TableColumn, distinct: bool) -> str:
    if column.name == entity.bin:
        return "False" if blueprint.referrers(entity.table) else "rng.random() < 0.12"
    value_code = _render_plain_value(blueprint, entity, column, distinct)
    if any(one.belongs == column.name and one.table == entity.table for one in blueprint.operations):
        value_code = f"state.signed_in if rng.random() < 0.5 else {value_code}"
        return value_code if column.required else f"None if rng.random() < 0.1 else {value_code}"
    if column.values:
        beside = f"{_name_values(entity, column)}.get({column.beside})"
        if _is_remark(column) and not column.required:
            return beside
        value_code = f"{beside} or {value_code}"
    if column.required or column.automatic or value_code == "None":
        return value_code
    share = 0.1 if column.references else 0.5 if _is_remark(column) else 0.2
    return f"None if rng.random() < {share} else {value_code}"


def _is_remark(column: TableColumn) -> bool:
    """Return True for a column of sentences, which few records have."""
    return column.kind == "text" and any(str(value).endswith(".") for value in column.pool)


def _name_values(entity: Entity, column: TableColumn) -> str:
    return f"{entity.noun}_{column.name}_by_{column.beside}".upper()


def _render_owned_name(blueprint: Blueprint, entity: Entity, column: TableColumn) -> str:
    """Return an expression for a name that fits the record's owner and that no other record of the owner has."""
    owner = entity.column(column.owner)
    above = blueprint.entity(owner.references)
    key = f"str({owner.name})" if owner.kind == "whole" else owner.name
    whose = f"state.{above.table}[{key}].{above.label}"
    number = f"sum(one.{owner.name} == {owner.name} for one in state.{entity.table}.values())"
    names = f"{_pool_name(entity, column)}_BY_OWNER.get({whose}, {_pool_name(entity, column)})"
    return f"_pick_name({names}, {number})"


def _render_plain_value(blueprint: Blueprint, entity: Entity, column: TableColumn, distinct: bool) -> str:
    if column.references:
        return _render_reference(blueprint, entity, column)
    if column.names:
        return _render_owned_name(blueprint, entity, column)
    if column.columns:
        part = entity.part(column)
        values = ", ".join(f"{one.name}={_render_value(blueprint, part, one, False)}" for one in part.columns)
        construction = f"{part.cls}({values})"
        low = max(1, column.shortest or 1)
        high = min(low + 2, column.longest or low + 2)
        return (
            f"[{construction} for _ in range(rng.randint({low}, {high}))]" if column.kind == "records" else construction
        )
    if column.follows:
        return f"f\"{{{column.follows}.lower().replace(' ', '.')}}@example.com\""
    if column.when:
        sign = "-" if column.when == "past" else "+"
        if column.kind == "date":
            return f"(NOW {sign} timedelta(days=rng.randint(1, 90))).date()"
        return f"NOW {sign} timedelta(days=rng.randint(1, 60), minutes=30 * rng.randint(-4, 18))"
    if column.automatic or column.kind == "moment":
        ago = "NOW - timedelta(days=rng.randint(1, 200), minutes=rng.randint(-540, 0))"
        return ago if column.kind == "moment" else f"({ago}).date()"
    if column.kind == "date":
        return "(NOW + timedelta(days=rng.randint(-120, 60))).date()"
    if column.kind == "flag":
        return "rng.random() < 0.5"
    if column.kind == "choice":
        choices = ", ".join(map(repr, column.choices))
        if column.name in ("status", "state") and len(column.choices) > 1:
            weights = ", ".join(str(_STATE_WEIGHTS.get(choice, 2)) for choice in column.choices)
            return f"rng.choices([{choices}], [{weights}])[0]"
        return f"rng.choice([{choices}])"
    if not column.pool:
        return "[]" if column.kind == "texts" else "None" if not column.required else repr(_find_least(column))
    pool = _pool_name(entity, column)
    if column.kind == "texts":
        return f"rng.sample({pool}, min(len({pool}), rng.randint(1, 2)))"
    if column.name in _OWN or _is_remark(column):
        return f"{pool}[(place - 1) % len({pool})]"
    if distinct and column.kind == "text" and not column.pattern and column.longest is None:
        return _render_numbered_pool(pool, column)
    return f"rng.choice({pool})"


def _render_numbered_pool(pool: str, column: TableColumn) -> str:
    """Values of a pool, told apart by a number once all are used."""
    first = f"{pool}[(place - 1) % len({pool})]"
    if any("@" in str(value) for value in column.pool):
        return f'{first} if place <= len({pool}) else f"n{{place}}.{{{first}}}"'
    if not column.unique:
        return first
    return f'{first} if place <= len({pool}) else f"{{{first}}} {{1 + (place - 1) // len({pool})}}"'


def _find_least(column: TableColumn) -> str | int | float:
    if column.kind == "text":
        return "x" * (column.shortest or 1)
    return int(column.low or 1) if column.kind == "whole" else float(column.low or 1)


def _render_reference(blueprint: Blueprint, entity: Entity, column: TableColumn) -> str:
    target = blueprint.entity(column.references)
    order = [one.table for one in blueprint.entities]
    if order.index(target.table) > order.index(entity.table):
        return "[]" if column.kind == "texts" and column.required else "None"
    keys = f"[one.{target.key} for one in state.{target.table}.values()]"
    deletes = any(one.table == target.table and one.action in ("delete", "discard") for one in blueprint.operations)
    if deletes and target.table != entity.table and column.kind != "texts":
        keys += f"[: max(1, len(state.{target.table}) * 5 // 6)]"  # nothing belongs to the last ones
    if column.kind == "texts":
        return f"rng.sample({keys}, min(len(state.{target.table}), 2))"
    if entity.quota is not None and entity.quota.column == column.name and target.table != entity.table:
        count = f"sum(one.{column.name} == key for one in state.{entity.table}.values())"
        keys = f"[key for key in {keys} if {count} < {entity.quota.most - 1}]"
    if target.table == entity.table:
        return f"rng.choice({keys}) if state.{target.table} else None"
    return f"rng.choice({keys})"


def _render_rows(blueprint: Blueprint) -> str:
    lines = []
    for entity in blueprint.entities:
        lines.append(f"{entity.table.upper()}_ROWS = [\n" + "".join(f"    {row!r},\n" for row in entity.rows) + "]")
        lines.append(f'"""{", ".join(entity.names)}"""')
    return "\n".join(lines)


def _render_row_choice(blueprint: Blueprint) -> str:
    """Code that picks rows and what they mean, so that every reference leads somewhere."""
    tables = ", ".join(f'"{entity.table}": {entity.table.upper()}_ROWS' for entity in reversed(blueprint.entities))
    places = ", ".join(f'"{entity.table}": {entity.names.index(entity.key)}' for entity in blueprint.entities)
    links = ", ".join(
        f'("{entity.table}", {number}, "{column.references}")'
        for entity in blueprint.entities
        for number, column in enumerate(entity.columns)
        if column.references
    )
    comma = "," if links else ""
    return f'''TABLES: dict[str, list[tuple]] = {{{tables}}}
KEYS = {{{places}}}
LINKS: tuple[tuple[str, int, str], ...] = ({links}{comma})


def _chosen(rng: random.Random, count: int) -> dict[str, set[str]]:
    """Keys of some rows of every table, and of all rows that those mean."""
    chosen: dict[str, set[str]] = {{}}
    for table, rows in TABLES.items():
        keys = [str(row[KEYS[table]]) for row in rows]
        chosen[table] = set(rng.sample(keys, min(count, len(keys))))
    waiting = [(table, key) for table in chosen for key in sorted(chosen[table])]
    index = {{(table, str(row[KEYS[table]])): row for table, rows in TABLES.items() for row in rows}}
    while waiting:
        table, key = waiting.pop()
        for origin, place, target in LINKS:
            meant = index[table, key][place] if origin == table else None
            if meant is not None and str(meant) not in chosen[target]:
                chosen[target].add(str(meant))
                waiting.append((target, str(meant)))
    return chosen
'''


def _count_rows(entity: Entity) -> str:
    values = []
    for number, column in enumerate(entity.columns):
        value = f"row[{number}]"
        if column.kind in ("date", "moment"):
            read = f"{'date' if column.kind == 'date' else 'datetime'}.fromisoformat({value})"
            value = read if column.required else f"None if {value} is None else {read}"
        values.append(f"{column.name}={value}")
    return "\n".join(
        [
            f"def _read_{entity.noun}(row: tuple) -> {entity.cls}:",
            f"    return {entity.cls}({', '.join(values)})",
        ]
    )


def _render_make_state(blueprint: Blueprint, real: bool) -> str:
    lines = [
        f"def make_state(size: str, seed: int) -> {blueprint.cls}State:",
        '    """An initial state."""',
        "    rng = random.Random(seed)",
        "    count = COUNTS[size]",
        f"    state = {blueprint.cls}State(now=NOW + timedelta(minutes=rng.randint(0, 500)), seed=seed)",
    ]
    if blueprint.signed_in is not None and not blueprint.signed_in.table:
        lines.append(f"    state.signed_in = rng.choice({list(blueprint.signed_in.people)!r})")
    if real:
        lines.append("    chosen = _chosen(rng, count)")
    for number, entity in enumerate(blueprint.entities):
        if real:
            place = entity.names.index(entity.key)
            lines += [
                f"    for row in {entity.table.upper()}_ROWS:",
                f'        if str(row[{place}]) in chosen["{entity.table}"]:',
                f"            state.{entity.table}[str(row[{place}])] = _read_{entity.noun}(row)",
            ]
        else:
            share = "count" if number else "max(4, count // 2)"
            lines.append(f"    _make_{entity.table}(rng, state, {share})")
        if not entity.key_is_given:
            last = entity.start if real else f"{entity.start} + {'count' if number else 'max(4, count // 2)'}"
            lines.append(f'    state.counters["{entity.noun}"] = {last}')
        if blueprint.signed_in is not None and blueprint.signed_in.table == entity.table:
            lines += _render_sign_in(blueprint.signed_in, entity)
    return "\n".join([*lines, "    return state"])


def _render_sign_in(signed: SignedIn, entity: Entity) -> list[str]:
    """Return the choice of the person who is signed in: somebody active, with one of the roles."""
    weights = [3, *(1 for _ in signed.roles[1:])]
    lines = [
        f"    acting = rng.choice(list(state.{entity.table}.values()))",
        f"    acting.{signed.role} = rng.choices({list(signed.roles)!r}, {weights})[0]",
        f"    state.signed_in = str(acting.{entity.key})",
    ]
    status = entity.status
    if status is not None and "active" in status.choices:
        lines.append(f'    acting.{status.name} = "active"')
    return lines
