"""How columns and records are called in the templates of a phrasebook."""

from trajsmith.envgen.generate.blueprint import Entity, TableColumn
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.phrasing import pluralize

LABELS = ("name", "title", "label", "subject", "username", "full_name", "code", "key_name")
_PLAIN = {"date": "|date", "moment": "|datetime", "texts": "|words", "choice": "|human"}
"""How values of a kind are written in a template."""


def find_label_column(entity: Entity) -> TableColumn | None:
    """Return the column by which people call a record of a table."""
    if entity.label:
        return entity.column(entity.label)
    named = [column for name in LABELS for column in entity.columns if column.name == name and column.kind == "text"]
    suffixed = [c for c in entity.columns if c.kind == "text" and c.name.endswith(("_name", "_title")) and c.required]
    return next(iter([*named, *suffixed]), None) if not entity.key_is_given else None


def name_many(entity: Entity) -> str:
    """Return the words for several records of a table."""
    is_plural = entity.table != entity.noun and not entity.table.endswith("_list")
    return to_words(entity.table if is_plural else pluralize(entity.noun))


def render_slot(column: TableColumn, source: str = "") -> str:
    name = f"{source}.{column.name}" if source else column.name
    money = column.kind == "number" and column.name in MONEY
    return "{" + name + ("|money" if money else _PLAIN.get(column.kind, "")) + "}"


MONEY = frozenset({
    "price", "amount", "total", "budget", "balance", "salary", "monthly_cost", "daily_budget", "limit_amount",
    "price_per_night", "limit_price", "target_value", "cost", "fee",
})  # fmt: skip


def is_free_text(column: TableColumn) -> bool:
    return (
        column.kind == "text"
        and bool(column.pool)
        and any(str(value).endswith((".", "!", "?")) for value in column.pool)
    )


def is_called(column: TableColumn) -> bool:
    """Return True for a column that holds what a record is called."""
    return column.name in LABELS or column.name.endswith(("_name", "_title"))


def render_quoted(column: TableColumn, source: str = "") -> str:
    slot = render_slot(column, source)
    is_name = is_called(column) or (column.kind == "text" and column.required and column.unique)
    return f'"{slot}"' if (is_free_text(column) or is_name) and not looks_like_person(column) else slot


def looks_like_person(column: TableColumn) -> bool:
    from trajsmith.envgen.generate.known_records import is_person

    return bool(column.pool) and is_person(str(column.pool[0]))
