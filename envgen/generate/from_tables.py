"""Tables - CSV, JSON, JSON Lines, SQLite - as blueprints: keys, types and references from names and values."""

from pathlib import Path

from trajsmith.envgen.generate.blueprint import (
    Blueprint,
    BlueprintSource,
    Entity,
    Scalar,
    SkippedItem,
    TableColumn,
    ToolBlueprint,
)
from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier, to_noun, to_words
from trajsmith.envgen.generate.table_files import RawTable, read_files
from trajsmith.envgen.generate.value_types import TypedValues, infer_values
from trajsmith.phrasing import normalize_name, with_article
from trajsmith.records import InputError

MAX_ROWS = 150
"""Rows of a table that become part of an environment at most."""
_COLUMNS = 24
_FREE = ("name", "title", "street", "address", "city", "phone", "email")
"""Ends of names of columns whose texts are no fixed set, even if they repeat."""
_UNIQUE = ("email", "username", "login", "slug", "isbn", "sku", "code", "number")


def read_tables(path: Path) -> Blueprint:
    """Read a file, or all files of a directory.

    Raises:
        InputError: There is no table in it.
    """
    raw, left_out, digest = read_files(path)
    tables = [_Table(one, left_out) for one in raw]
    tables = [table for table in tables if table.usable]
    if not tables:
        reasons = "; ".join(f"{one.what}: {one.reason}" for one in left_out[:3])
        raise InputError(f"{path}: no table to make an environment of: {reasons or 'there is none'}")
    _rename_distinct(tables)
    for table in tables:
        table.refer(tables)
    _cut_rows(tables, left_out)
    name = to_identifier(path.stem, "tables")
    title = to_words(name).capitalize()
    return Blueprint(
        name=name,
        cls=to_class_name(name),
        title=title,
        domain=f"tables/{name}",
        source=BlueprintSource(kind="tables", name=path.name, digest=digest, title=title),
        entities=tuple(table.entity() for table in tables),
        operations=tuple(operation for table in tables for operation in _build_operations(table)),
        left_out=tuple(left_out),
    )


class _Table:
    """Table that is being turned into an entity."""

    def __init__(self, raw: RawTable, left_out: list[SkippedItem]) -> None:
        self.raw = raw
        self.table = to_identifier(raw.name, "items")
        self.noun = to_noun(raw.name)
        self.columns: list[TableColumn] = []
        self.values: list[list[Scalar | None]] = []
        taken: set[str] = set()
        for number, label in enumerate(raw.columns if raw.rows else ()):
            typed_values = infer_values([row[number] for row in raw.rows], named=normalize_name(label).endswith(_FREE))
            if typed_values is None:
                left_out.append(SkippedItem(what=f"{raw.name}.{label}", reason="empty, or values of several kinds"))
            elif len(self.columns) >= _COLUMNS:
                left_out.append(SkippedItem(what=f"{raw.name}.{label}", reason=f"more than {_COLUMNS} columns"))
            else:
                name = to_identifier(label, "column", taken)
                taken.add(name)
                self.columns.append(self._column(name, label, typed_values))
                self.values.append(typed_values.values)
        self.usable = bool(self.columns) and bool(raw.rows)
        if not self.usable:
            left_out.append(SkippedItem(what=raw.name, reason="it has no rows"))
            return
        self.key = self._find_key(left_out)

    def _column(self, name: str, label: str, typed_values: TypedValues) -> TableColumn:
        numbers = [
            value for value in typed_values.values if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        negative = typed_values.kind in ("whole", "number") and bool(numbers) and min(numbers) < 0
        filled = [value for value in typed_values.values if value is not None]
        unique = len(filled) > 3 and len(set(filled)) == len(filled) and normalize_name(name).endswith(_UNIQUE)
        return TableColumn(
            name=name,
            kind=typed_values.kind,
            label=label,
            required=None not in typed_values.values,
            choices=typed_values.choices,
            low=-1_000_000 if negative else None,
            unique=unique and typed_values.kind == "text",
            pool=tuple(dict.fromkeys(filled))[:6] if typed_values.kind in ("text", "whole", "number") else (),
        )

    def _find_key(self, left_out: list[SkippedItem]) -> str:
        """The key that is declared, or that names and values show; else rows are counted."""
        declared = [i for i, column in enumerate(self.columns) if column.label in self.raw.key]
        place = declared[0] if len(self.raw.key) == 1 and declared and self._identifies(declared[0]) else None
        if place is None:
            wanted = (
                "id",
                f"{normalize_name(self.noun)}id",
                f"{normalize_name(self.noun)}no",
                f"{normalize_name(self.noun)}code",
                "code",
                "key",
                "slug",
                "uuid",
            )
            named = [i for i, column in enumerate(self.columns) if normalize_name(column.label) in wanted]
            named += [0] if normalize_name(self.columns[0].label).endswith("id") else []
            place = next((i for i in named if self._identifies(i)), None)
        if place is None:
            left_out.append(
                SkippedItem(what=f"{self.raw.name}: key", reason="no column identifies the rows; they are numbered")
            )
            name = to_identifier(f"{self.noun}_id", taken={column.name for column in self.columns})
            self.columns.insert(0, TableColumn(name=name, kind="whole", label=""))
            self.values.insert(0, list(range(1, len(self.raw.rows) + 1)))
            return name
        column = self.columns.pop(place)
        name = f"{self.noun}_id" if normalize_name(column.name) in ("id", "idvalue") else column.name
        self.columns.insert(0, column.model_copy(update={"name": name, "unique": False, "pool": ()}))
        self.values.insert(0, self.values.pop(place))
        return name

    def _identifies(self, place: int) -> bool:
        values = self.values[place]
        return self.columns[place].kind in ("text", "whole") and None not in values and len(set(values)) == len(values)

    def refer(self, tables: "list[_Table]") -> None:
        """Find the columns that hold keys of tables: as declared, or by name where all values are keys there."""
        for place, column in enumerate(self.columns):
            if place == 0 or column.kind not in ("text", "whole"):
                continue
            declared = self.raw.references.get(column.label)
            for target in tables:
                right = target.raw.name == declared if declared else _names_table(column, target)
                same = target.columns[0].kind == column.kind
                if right and same and self._all_in(place, target):
                    update = {"references": target.table, "pool": (), "unique": False, "low": None}
                    self.columns[place] = column.model_copy(update=update)
                    break

    def _all_in(self, place: int, target: "_Table") -> bool:
        known = set(target.values[0])
        return all(value is None or value in known for value in self.values[place])

    def entity(self) -> Entity:
        key = self.columns[0]
        numbers = [value for value in self.values[0] if isinstance(value, int)]
        return Entity(
            table=self.table, noun=self.noun, cls=to_class_name(self.noun), key=self.key,
            key_is_given=key.kind == "text", start=max(numbers, default=0),
            description=f"{with_article(self.noun)} as the table {self.raw.name} has it".capitalize(),
            columns=tuple(self.columns), rows=tuple(zip(*self.values, strict=True)),
        )  # fmt: skip

    def keep(self, places: list[int]) -> None:
        self.values = [[values[place] for place in places] for values in self.values]


def _names_table(column: TableColumn, target: _Table) -> bool:
    name, key = normalize_name(column.name), normalize_name(target.key)
    noun = normalize_name(target.noun)
    return name in (key, f"{noun}id", f"{noun}", f"{noun}code", f"{noun}key") or (
        name.endswith(f"{noun}id") and len(noun) > 2
    )


def _rename_distinct(tables: list[_Table]) -> None:
    """Give tables of one name, or one noun, different ones."""
    names, nouns = set[str](), set[str]()
    for table in tables:
        table.table = to_identifier(table.table, "items", names)
        table.noun = to_identifier(table.noun, "item", nouns)
        names.add(table.table)
        nouns.add(table.noun)


def _cut_rows(tables: list[_Table], left_out: list[SkippedItem]) -> None:
    """Keep some rows of large tables, and all that those mean; where that is too many, drop the reference's row."""
    rows_by_table = {table.table: dict.fromkeys(table.values[0][:MAX_ROWS]) for table in tables}
    by_name = {table.table: table for table in tables}
    waiting = [(table, key) for table in tables for key in rows_by_table[table.table]]
    places = {table.table: {key: place for place, key in enumerate(table.values[0])} for table in tables}
    while waiting:
        table, key = waiting.pop()
        for number, column in enumerate(table.columns):
            value = table.values[number][places[table.table][key]] if column.references else None
            if value is not None and value not in rows_by_table[column.references]:
                rows_by_table[column.references][value] = None
                waiting.append((by_name[column.references], value))
    for table in tables:
        count = len(table.values[0])
        if len(rows_by_table[table.table]) < count:
            left_out.append(
                SkippedItem(
                    what=table.raw.name,
                    reason=f"{count - len(rows_by_table[table.table])} of {count} rows, to keep the file small",
                )
            )
            table.keep(sorted(places[table.table][key] for key in rows_by_table[table.table]))


def _build_operations(table: _Table) -> list[ToolBlueprint]:
    """The tools of a table: look, search, add, change, delete, and one per status that ends something."""
    entity = table.entity()
    noun, many = entity.noun, entity.table
    filters = tuple(c.name for c in entity.columns if c.references or c.kind in ("choice", "flag"))[:5]
    values = tuple(column.name for column in entity.columns[1:])
    needed = tuple(column.name for column in entity.columns[1:] if column.required)
    has_text = any(column.kind == "text" and not column.references for column in entity.columns[1:])
    lists = f"search_{many}" if many != noun else f"search_{noun}_records"
    operations = [
        ToolBlueprint(name=f"get_{noun}", action="get", table=many, description=f"Show {with_article(noun)}."),
        ToolBlueprint(name=lists, action="list", table=many, fields=filters, search="query" if has_text else "",
                  description=f"List {to_words(many)}, all or those that fit."),
    ]  # fmt: skip
    if values:
        operations += [
            ToolBlueprint(
                name=f"add_{noun}",
                action="create",
                table=many,
                fields=values,
                needed=needed,
                description=f"Add {with_article(noun)}.",
            ),
            ToolBlueprint(
                name=f"update_{noun}",
                action="update",
                table=many,
                fields=values,
                description=f"Update {with_article(noun)}.",
            ),
        ]
    return [
        *operations,
        ToolBlueprint(
            name=f"delete_{noun}",
            action="delete",
            table=many,
            description=f"Delete {with_article(noun)}.",
        ),
    ]
