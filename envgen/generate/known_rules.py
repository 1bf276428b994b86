"""Rules beyond plain changes that services of known records keep: states, quotas, amounts, dates, protection, pages."""

import random

from trajsmith.envgen.generate.blueprint import (
    FINAL_STATUSES,
    AmountLimit,
    Blueprint,
    Entity,
    RecordQuota,
    SharedOwner,
    TableColumn,
    ToolBlueprint,
)
from trajsmith.envgen.generate.rules import find_spans

_UNDO = frozenset({"unpublish", "hide"})
"""Verbs that take back what was done: nobody unpublishes what was never published."""
_BACK = frozenset({"reopen", "restore", "unarchive", "resubscribe", "revive", "unblock", "unfreeze", "unlock"})
"""Verbs that lead out of a last state."""
_FREE = frozenset(
    {"resume", "activate", "enable", "reactivate", "pause", "suspend", "unmute", "start", "verify", "renew"}
)
"""Verbs that need no certain state before."""
_BUSY = frozenset({
    "active", "running", "in_progress", "in_transit", "confirmed", "published", "live", "firing", "attached", "in_use",
    "lent", "checked_in", "occupied", "watching", "public",
})  # fmt: skip
"""States in which nothing is deleted."""
_AMOUNTS = frozenset({"amount", "total", "budget", "limit_amount", "price", "monthly_cost"})
_FLAGS = ("protected", "locked")
QUOTAS = (4, 5, 6, 8)
"""Records of one owner at most, as plans and rooms have them; seed states leave room for one more."""
_COUNTED = frozenset({
    "attendee", "student", "api_key", "webhook", "environment", "domain", "invitation", "alert_rule", "device",
    "license_key", "habit", "feature_flag", "database", "space", "server", "volume", "user", "agent", "site",
    "repository", "booking", "form", "workout", "medication", "index", "queue", "namespace", "channel",
    "calendar", "app_project", "gpu_pod", "assistant", "appointment", "subscription", "subscriber", "filter",
})  # fmt: skip
"""Kinds of which plans, seats or places allow so many."""
_APPROVED = frozenset({
    "refund", "expense", "payment", "transaction", "holding", "budget", "ad", "campaign", "price", "coupon", "order",
    "invoice", "deal",
})  # fmt: skip
"""Kinds whose amounts need no approval up to a bound."""


def add_rules(
    entity: Entity,
    operations: list[ToolBlueprint],
    rng: random.Random,
    paged: frozenset[str] = frozenset(),
    kind: str = "",
) -> tuple[Entity, list[ToolBlueprint]]:
    """Return a table and its tools with rules that fit the kind of record; the same for the same randomness.

    Args:
        kind: Name of the kind in the lexicon.
        paged: Names of lists that have pages in the source.
    """
    guarded = [_guard(entity, one, rng) for one in operations]
    guarded = [one.model_copy(update={"paged": True}) if one.name in paged else one for one in guarded]
    creates = [one for one in operations if one.action == "create"]
    writes = [one for one in operations if one.action in ("create", "update")]
    if not writes:
        return entity, guarded
    fields = {name for one in writes for name in one.fields}
    owner = next((column for column in entity.columns if column.references and column.required), None)
    update: dict[str, object] = {}
    counted = creates and owner is not None and owner.name in creates[0].fields and not entity.bin
    if counted and owner is not None and kind in _COUNTED and rng.random() < 0.6:
        update["quota"] = RecordQuota(column=owner.name, most=rng.choice(QUOTAS))
    columns, limits = list[TableColumn](), list[AmountLimit]()
    for column in entity.columns:
        bounded = kind in _APPROVED and column.name in _AMOUNTS and column.kind == "number" and column.pool
        if bounded and not limits and rng.random() < 0.6:
            most = _round_amount(0.8 * max(float(value) for value in column.pool))
            pool = tuple(value for value in column.pool if float(value) <= most)
            limits.append(AmountLimit(column=column.name, most=most))
            column = column.model_copy(update={"pool": pool})
        columns.append(column)
    ends = {last.name for _, last in find_spans(entity)}
    ahead = [c.name for c in entity.columns if (c.when == "future" or c.name in ends) and c.name in fields]
    update |= {"columns": tuple(columns), "limits": tuple(limits), "ahead": tuple(ahead)}
    return entity.model_copy(update=update), guarded


def share_owners(blueprint: Blueprint) -> Blueprint:
    """Return the blueprint with the rule that a record belongs to the same record as what it belongs to."""
    tables = {one.table: one for one in blueprint.entities}
    order = [one.table for one in blueprint.entities]
    entities = list[Entity]()
    for entity in blueprint.entities:
        plain = [c for c in entity.columns if c.references and c.kind != "texts" and c.references != entity.table]
        links = list[SharedOwner]()
        for column in plain:
            for through in plain:
                if through == column or any(one.through == column.name or one.column == column.name for one in links):
                    continue
                if order.index(through.references) > order.index(entity.table):
                    continue
                there = next((c for c in tables[through.references].columns if c.references == column.references), None)
                if there is None or there.kind == "texts" or (entity.quota and entity.quota.column == column.name):
                    continue
                links.append(SharedOwner(column=column.name, through=through.name, there=there.name))
        entities.append(entity.model_copy(update={"shared_owners": tuple(links)}) if links else entity)
    return blueprint.model_copy(update={"entities": tuple(entities)})


def _round_amount(value: float) -> float:
    """Return the largest round amount (1, 2 or 5 and zeros) that is not above a value."""
    steps = [float(step * 10**power) for power in range(7) for step in (1, 2, 5)]
    return max((step for step in steps if step <= value), default=1.0)


def _guard(entity: Entity, operation: ToolBlueprint, rng: random.Random) -> ToolBlueprint:
    """Return a tool with the states in which it may be used, if its record has states."""
    update: dict[str, object] = {}
    flag = next((name for name in _FLAGS if name in entity.names), "")
    if flag and operation.action in ("update", "delete", "discard") and flag not in operation.fields:
        update["unless"] = flag
    if entity.status is not None:
        allowed = _find_allowed(entity.status.choices, operation, rng)
        others = [state for state in entity.status.choices if state != operation.sets]
        if allowed and set(allowed) != set(others):
            update["only_while"] = tuple(allowed)
    return operation.model_copy(update=update)


def _find_allowed(states: tuple[str, ...], operation: ToolBlueprint, rng: random.Random) -> list[str]:
    finals = [state for state in states if state in FINAL_STATUSES]
    if operation.action == "move" and operation.sets in states:
        place, others = states.index(str(operation.sets)), [state for state in states if state != operation.sets]
        if _BACK & set(operation.name.split("_")):
            return [state for state in others if states.index(state) > place]
        if _UNDO & set(operation.name.split("_")):
            return list(states[place + 1 : place + 2])
        before = [state for state in states[:place] if state not in finals]
        if operation.sets not in finals and len(before) > 1 and rng.random() < 0.4:
            return before[-1:]
        free = bool(_FREE & set(operation.name.split("_"))) or not before
        return [state for state in others if state not in finals] if free else before
    if operation.action == "update" and "sent" in states[1:]:
        return list(states[: states.index("sent")])
    if operation.action == "update" and finals and rng.random() < 0.8:
        return [state for state in states if state not in finals]
    if operation.action in ("delete", "discard") and rng.random() < 0.8:
        return [state for state in states if state not in _BUSY]
    return []
