"""Programs of tools: what is inferred of each, and the rows that its arguments identify."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trajsmith.envgen.traces.expressions import Absent, Expr, Get, Row, Scope, Var, to_variable
from trajsmith.envgen.traces.operations import First, Fresh
from trajsmith.envgen.traces.paths import NONE
from trajsmith.envgen.traces.recordings import TracedCall, freeze
from trajsmith.envgen.traces.tables import Schema


@dataclass
class CallExample:
    """A call with the state before it."""

    dialogue: int
    call: TracedCall
    scope: Scope


@dataclass
class Store:
    """A row that a call writes: a record of its result, under its key."""

    table: str
    place: tuple[str, ...]


@dataclass
class Effect:
    """A change of a row that the result does not show."""

    table: str
    anchor: str
    column: str
    value: Expr
    examples: int
    share: float


@dataclass
class Refusal:
    test: Expr
    text: Expr
    examples: int
    item: tuple[Expr, str] | None = None
    """List and variable, if one of its items is what a call is refused for."""


@dataclass
class ToolProgram:
    """The behaviour of a tool.

    Attributes:
        anchors: Rows that arguments identify, by variable.
        result: None if no program explains the recorded results.
        recorded: Answers by arguments, for what no program explains.
    """

    name: str
    calls: int
    anchors: dict[str, Row] = field(default_factory=dict)
    result: Expr | None = None
    share: float = 0.0
    held_out: float | None = None
    stores: list[Store] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    """Anchors whose rows are deleted."""
    effects: list[Effect] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    unknown: Expr | None = None
    """Text for a row that is not there."""
    recorded: list[TracedCall] = field(default_factory=list)
    fresh: Fresh | None = None
    notes: list[str] = field(default_factory=list)
    needs: tuple[str, ...] = ()
    """Fields that a row must have to be shown whole."""

    @property
    def writes(self) -> bool:
        return bool(self.stores or self.deletes or self.effects)


def predict(program: ToolProgram, example: CallExample) -> Any:
    """Return the frozen result that a program gives, a refusal's text included."""
    scope = bind_anchors(example.scope, program.anchors)
    for refusal in program.refusals:
        hit = apply_refusal(refusal, scope)
        if hit is not None:
            return freeze(hit)
    try:
        assert program.result is not None
        return freeze(program.result.eval(scope))
    except (Absent, TypeError):
        return NONE


def apply_refusal(refusal: Refusal, scope: Scope) -> str | None:
    """Return the text with which a call is refused, or None."""
    try:
        if refusal.item is not None:
            source, var = refusal.item
            item = First(source, var, refusal.test).eval(scope)
            return str(refusal.text.eval(scope.bind(var, item)))
        return str(refusal.text.eval(scope)) if refusal.test.eval(scope) else None
    except (Absent, TypeError):
        return None


def find_anchors(examples: Sequence[CallExample], schema: Schema) -> dict[str, Row]:
    """Return the rows that arguments identify, and those that fields of these rows identify."""
    anchors: dict[str, Row] = {}
    names = dict.fromkeys(name for one in examples for name, v in one.scope.values.items() if isinstance(v, str | int))
    for table in schema.tables.values():
        if len(table.keys) > 1:
            parts = tuple(Var(to_variable(key)) for key in table.keys)
            if all(part.name in names for part in parts):
                anchors[f"{table.name}_row"] = Row(table.name, parts)
            continue
        hits = {
            name: sum(str(one.scope.values.get(name)) in one.scope.tables[table.name] for one in examples)
            / len(examples)
            for name in names
        }
        named = to_variable(table.keys[0])
        best = max(hits, key=lambda n: hits[n] + 0.3 * (n == named), default="")
        if best and (hits[best] >= 0.5 or best == named):
            anchors[f"{table.name}_row"] = Row(table.name, (Var(best),))
    for name, row in list(anchors.items()):
        for table in schema.tables.values():
            if f"{table.name}_row" in anchors or len(table.keys) > 1:
                continue
            key = Get(Var(name), table.keys[0])
            scopes = [bind_anchors(one.scope, {name: row}) for one in examples]
            if sum(_lookup(Row(table.name, (key,)), scope) is not None for scope in scopes) * 4 >= len(scopes):
                anchors[f"{table.name}_row"] = Row(table.name, (key,))
    return anchors


def _lookup(row: Row, scope: Scope) -> Any:
    try:
        return row.eval(scope)
    except (Absent, TypeError):
        return None


def bind_anchors(scope: Scope, anchors: dict[str, Row]) -> Scope:
    for name, row in anchors.items():
        scope = scope.bind(name, _lookup(row, scope))
    return scope
