"""The code of dates in seed states: what is over lies in the past, what is planned ahead, what runs around now."""

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, TableColumn
from trajsmith.envgen.generate.rules import find_spans
from trajsmith.phrasing import word_set

_AHEAD = word_set(
    "planned scheduled draft requested tentative queued held booked confirmed proposed pending placed waiting invited "
    "cancelled canceled preparing new rejected declined upcoming accepted snoozed full"
)
"""States of what has not started."""
_RUNNING = word_set("active running in_progress live checked_in started in_transit on_hold paused watching voting")
_OVER = word_set(
    "finished completed done ended closed archived passed failed graded expired resolved sent published shipped "
    "delivered terminated stopped over withdrawn broken succeeded lost harvested"
)
_MISSED = word_set("overdue missed expired terminated")
"""States in which a day that something had to be done by is over."""
_SETTLED = word_set("closed won lost filled resolved reached achieved finished graded hired completed done archived")
"""States of what was settled on a day before now."""
_STARTS = word_set(
    "start_date starts_at starts_on planned_for scheduled_for send_at publish_at takes_place_on ship_date remind_at "
    "starts start scheduled_at"
)
_DEADLINES = word_set("due_date closes_on close_date expires_on target_date end_date ends_at closes_at")
_ENDS = word_set("end_date ends_at")
_CERTAIN = word_set("closes_on close_date target_date closes_at")
"""Days after which something is settled; others may be settled before."""


def find_phases(entity: Entity, column: TableColumn) -> dict[str, int]:
    """Return where a date lies in each state of a record: 1 ahead, 0 around now, -1 before; empty if anywhere."""
    status = entity.status
    if status is None or column.automatic or column.kind not in ("date", "moment"):
        return {}
    if column.name in _STARTS or any(column == first for first, _ in find_spans(entity)):
        known = {state: _find_phase(state) for state in status.choices}
        return known if len(set(known.values())) > 1 else {}
    if column.name in _DEADLINES:
        if column.name in _ENDS:
            return {state: min(1, 2 * _find_phase(state) + 1) for state in status.choices}
        over = _MISSED | (_SETTLED if column.name in _CERTAIN else frozenset())
        return {state: -1 if state in over else 1 for state in status.choices}
    return {}


def _find_phase(state: str) -> int:
    return 0 if state in _RUNNING else -1 if state in _OVER else 1


def name_phases(entity: Entity, column: TableColumn) -> str:
    return f"{entity.noun}_{column.name}_phases".upper()


def render_phases(blueprint: Blueprint) -> list[str]:
    """Return the tables of where dates lie, and the functions that draw such dates."""
    lines = list[str]()
    for entity in blueprint.entities:
        ends = {last.name for _, last in find_spans(entity)}
        for column in entity.columns:
            phases = find_phases(entity, column) if column.name not in ends else {}
            if phases:
                lines.append(f"{name_phases(entity, column)} = {phases!r}")
    if not lines:
        return []
    return [
        "\n".join(lines),
        "def _draw_time(rng: random.Random, now: datetime, phase: int, days: int) -> datetime:\n"
        '    """Return a time ahead of now, around it, or before it.\n\n'
        "    Args:\n"
        "        phase: 1 ahead, 0 begun not longer ago than an hour or `days`, -1 before that.\n"
        '    """\n'
        "    if phase == 0 and not days:\n"
        "        return now - timedelta(minutes=now.minute % 30)\n"
        "    if phase == 0:\n"
        "        return NOW - timedelta(days=rng.randint(1, days))\n"
        "    hour, away = timedelta(minutes=30 * rng.randint(0, 16)), timedelta(days=rng.randint(1, 45))\n"
        "    return NOW + hour + away if phase > 0 else NOW + hour - timedelta(days=days + 20) - away",
    ]


def render_start(entity: Entity, column: TableColumn, status: str) -> str:
    """Return an expression for a date that the record's status places; a long-running thing began days ago."""
    days = 30 if column.kind == "date" else 0
    drawn = f"_draw_time(rng, state.now, {name_phases(entity, column)}[{status}], {days})"
    return f"{drawn}.date()" if column.kind == "date" else drawn


def render_end(entity: Entity, first: TableColumn, last: TableColumn, status: str) -> str:
    """Return an expression for the end of what begins at another date and is over, or is not, as its status says."""
    phases = f"{name_phases(entity, first)}[{status}]"
    if first.kind == "moment":
        return f"{first.name} + timedelta(minutes=30 * rng.randint(2, 4))"
    over = f"{first.name} + timedelta(days=rng.randint(1, 19))"
    ahead = f"max({first.name}, NOW.date()) + timedelta(days=rng.randint(3, 40))"
    return f"{over} if {phases} < 0 else {ahead}"
