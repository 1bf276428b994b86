"""How columns and records are called in the templates of a phrasebook."""

from collections import Counter
from collections.abc import Sequence

from trajsmith.envgen.generate.blueprint import Entity, TableColumn
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.phrasing import is_noun, pluralize

LABELS = ("name", "title", "label", "subject", "username", "full_name", "code", "key_name")
_PLAIN = {"date": "|date", "moment": "|datetime", "texts": "|words", "choice": "|human"}
"""How values of a kind are written in a template."""

_STATES: dict[str, tuple[str, ...]] = {
    "active": ("still active",), "archived": ("in the archive",), "draft": ("still in draft",),
    "planned": ("only planned so far",), "completed": ("finished", "all done"), "on_hold": ("on ice",),
    "open": ("still open",), "published": ("already published",), "closed": ("already closed",),
    "running": ("up and running",), "paused": ("on pause",), "cancelled": ("called off",),
    "in_progress": ("under way", "being worked on"), "suspended": ("suspended for now",),
    "finished": ("over",), "accepted": ("already accepted",), "revoked": ("no longer valid",),
    "scheduled": ("coming up",), "declined": ("turned down",), "pending": ("still pending",),
    "in_review": ("under review", "being reviewed"), "terminated": ("shut down for good",), "done": ("finished",),
    "inactive": ("no longer active",), "rejected": ("turned down",), "blocked": ("stuck",), "new": ("brand-new",),
    "disabled": ("switched off", "turned off"), "merged": ("already merged",), "proposed": ("only proposed so far",),
    "building": ("still being built",), "outdated": ("out of date",), "queued": ("waiting in the queue",),
    "retired": ("no longer in use",), "available": ("still available",), "offline": ("not reachable",),
    "withdrawn": ("taken back",), "superseded": ("replaced by now",), "sent": ("already sent",),
    "on_track": ("going well",), "at_risk": ("in trouble",), "resolved": ("solved",), "submitted": ("handed in",),
    "approved": ("already approved",), "reimbursed": ("paid back",), "discontinued": ("no longer sold",),
    "expired": ("no longer valid",), "processing": ("being processed",), "released": ("already out",),
    "waiting": ("still waiting",), "broken": ("out of order",), "muted": ("silenced",), "online": ("reachable",),
    "confirmed": ("already confirmed",), "error": ("in error",), "proposal": ("at the proposal stage",),
    "trial": ("on trial",), "interview": ("at the interview stage",), "offer": ("at the offer stage",),
    "backlog": ("in the backlog",), "prospect": ("on the list of prospects",), "training": ("being trained",),
}  # fmt: skip
"""What people say of things in a state, beside its own name, after "that are"."""


_NAMED_APART = frozenset(
    {"draft", "error", "proposal", "trial", "interview", "offer", "backlog", "prospect", "training"}
)
"""States whose names are nouns: nothing "is draft"."""


def list_state_words(column: TableColumn) -> dict[str, list[str]]:
    """Return how people say each state of a column, its own name first; words that fit two of them are left out."""
    counts = Counter(word for state in column.choices for word in (to_words(state), *_STATES.get(state, ())))
    return {
        state: [
            *([] if state in _NAMED_APART else [to_words(state)]),
            *(word for word in _STATES[state] if counts[word] == 1 or state in _NAMED_APART),
        ]
        for state in column.choices
        if state in _STATES
    }


def find_label_column(entity: Entity) -> TableColumn | None:
    """Return the column by which people call a record of a table."""
    if entity.label:
        return entity.column(entity.label)
    named = [column for name in LABELS for column in entity.columns if column.name == name and column.kind == "text"]
    suffixed = [c for c in entity.columns if c.kind == "text" and c.name.endswith(("_name", "_title")) and c.required]
    return next(iter([*named, *suffixed]), None) if not entity.key_is_given else None


def render_called(entity: Entity, source: str) -> str:
    """Return how a record is called after a call, with its key where that is another: "Contracts" (FLD-1207)."""
    label = find_label_column(entity)
    if label is None:
        return f"the {to_words(entity.noun)} {{{source}.{entity.key}}}"
    return render_quoted(label, source) + ("" if entity.is_named else f" ({{{source}.{entity.key}}})")


def name_many(entity: Entity) -> str:
    """Return the words for several records of a table."""
    is_plural = entity.table != entity.noun and not entity.table.endswith("_list")
    return to_words(entity.table if is_plural else pluralize(entity.noun))


def render_slot(column: TableColumn, source: str = "") -> str:
    name = f"{source}.{column.name}" if source else column.name
    money = column.kind == "number" and column.name in MONEY
    return "{" + name + ("|money" if money else _PLAIN.get(column.kind, "")) + "}" + render_unit(column, name)


def render_unit(column: TableColumn, slot: str) -> str:
    """Return what stands after the number in a slot: " minutes", or " minute" after one; empty without a unit."""
    unit = _find_unit(column)
    if not unit.endswith("s") or unit == " ms":
        return unit
    return f"{{% if {slot} == 1 %}}{unit.removesuffix('s')}{{% else %}}{unit}{{% endif %}}"


_UNITS = {
    "gb": "GB", "mb": "MB", "kb": "KB", "kg": "kg", "ms": "ms", "hours": "hours", "minutes": "minutes",
    "seconds": "seconds", "days": "days", "percent": "percent",
}  # fmt: skip
"""Last words of columns that say what a number counts."""
_ALONE = {"hours": "time", "minutes": "length", "seconds": "length", "percent": "share"}
"""What such a number is called where the column has no other word."""
_SHORT = {
    "estimate": "estimate", "duration": "duration", "planned": "planned time", "reminder": "reminder time",
    "refresh": "refresh interval", "off": "discount", "pass": "pass mark",
}  # fmt: skip


def is_count(column: TableColumn) -> bool:
    """Return True for a column that counts something: seats, replicas."""
    many = column.name.endswith("s") and not column.name.endswith(("ss", "us", "is"))
    return column.kind == "whole" and not column.references and many and not _find_unit(column)


def _find_unit(column: TableColumn) -> str:
    if column.kind not in ("whole", "number") or column.references:
        return ""
    unit = _UNITS.get(column.name.rpartition("_")[2], "")
    return f" {unit}" if unit else " percent" if column.name.startswith("percent_") else ""


def name_column(column: TableColumn, entity: Entity | None = None) -> str:
    """Return what people call a column: "size" of size_gb, "title" of the issue_title of an issue."""
    name = column.name.removesuffix("_value")
    if entity is not None and is_called(column) and name.startswith(f"{entity.noun.rpartition('_')[2]}_"):
        name = name.rpartition("_")[2]
    if _find_unit(column):
        first, _, last = name.rpartition("_")
        if name.startswith("percent_"):
            first = name.removeprefix("percent_")
        name = _SHORT.get(first, first) or _ALONE.get(last, last)
    return f"number of {to_words(name)}" if is_count(column) else to_words(name)


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
    is_quoted = is_name or is_free_text(column) or is_phrase(column)
    return f'"{slot}"' if is_quoted and not looks_like_person(column) else slot


def is_phrase(column: TableColumn) -> bool:
    """Return True for a column of texts that run into the words around them: "Question about the invoice"."""
    return column.kind == "text" and any(len(str(value).split()) > 2 for value in column.pool or ())


def looks_like_person(column: TableColumn) -> bool:
    from trajsmith.envgen.generate.known_records import is_person

    return bool(column.pool) and is_person(str(column.pool[0]))


def join_values(columns: Sequence[TableColumn]) -> str:
    """Return the end of a request with values: ", due on 3 May, with the size 220 GB and the region eu-west-1"."""
    phrases = [add_value(column) for column in columns]
    named = [phrase.removeprefix("with ") for phrase in phrases if phrase.startswith("with ")]
    others = [phrase for phrase in phrases if not phrase.startswith("with ")]
    listed = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else "".join(named)
    return "".join(f", {phrase}" for phrase in [*others, *([f"with {listed}"] if named else [])])


def add_value(column: TableColumn) -> str:
    """Return a phrase that adds a value to a request, or nothing where none sounds right."""
    label, slot = name_column(column), render_quoted(column)
    if column.references:
        return f"for {render_slot(column)}"
    if column.kind == "flag":
        return ""
    if column.name in ("assignee", "owner", "lead", "organizer", "host", "manager", "author", "teacher"):
        return f"with {slot} as the {label}"
    if column.name in ("due_date", "deadline", "due"):
        return f"due on {slot}"
    if column.kind in ("date", "moment") and label.endswith((" on", " at")):
        verb = _GOING_ON.get(label.rpartition(" ")[0])
        return f"{verb} on {slot}" if verb else ""
    if is_count(column):
        return f"with {slot} {to_words(column.name)}"
    if column.kind == "choice" and column.name == "event":
        return f'for the event "{slot}"'  # and not "with the event deleted"
    if column.kind in ("choice", "text", "number", "whole", "date", "moment") and is_noun(label):
        return f"with the {label} {slot}"
    return f"with the tags {slot}" if column.kind == "texts" and column.name == "tags" else ""


_GOING_ON = {
    "starts": "starting", "ends": "ending", "expires": "expiring", "renews": "renewing", "closes": "closing",
    "opens": "opening", "departs": "departing", "arrives": "arriving", "takes place": "taking place",
    **{verb: verb for verb in ("decided", "published", "bought", "born", "hired", "issued", "signed", "paid")},
}  # fmt: skip
"""Verbs of moments as they continue a request: "starts on 3 May" is ", starting on 3 May" there."""
