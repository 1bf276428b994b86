"""Changes that an environment allows, learnt on one initial state, so that they can be asked for on another."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from trajsmith.environments import Session
from trajsmith.grounding import Grounder, make_rewindable
from trajsmith.querygen.state_first.row_links import RowLinks
from trajsmith.records import FrozenModel, GoldCall, JsonObject, JsonValue, ToolSpec, derive_seed

Scalar = str | int | float | bool


class StateEdit(FrozenModel):
    """A kind of change: fields of a row get values, or a row is added. The call that made it is not kept."""

    kind: Literal["changed", "added"]
    table: str
    fields: dict[str, JsonValue]
    """Field to the value that it has afterwards."""
    references: dict[str, str] = {}
    """Field to the table whose key it holds."""
    before: dict[str, str | bool] = {}
    """States of the row before, such as "open", that all calls had in common which made this kind of change."""
    learnt_on: str = ""
    """Clock of the state on which it was learnt; dates move with the clock."""


async def learn_edits(
    tools: Sequence[ToolSpec], grounder: Grounder, session: Session, seed: int, tries: int = 3
) -> list[StateEdit]:
    """Return the changes that single calls make on one state.

    Args:
        tools: Tools of the environment; those of the user are left out.
        grounder: Finds calls on the state.
        session: A session of the environment.
        seed: Which calls are found.
        tries: Calls of each tool that are looked for.

    Raises:
        EnvironmentFault: The environment broke.
    """
    place, edits = make_rewindable(session), list[StateEdit]()
    links = RowLinks(grounder.state)
    people = links.list_people(grounder.phrasebook.name_from)
    for tool in tools:
        if tool.actor != "assistant" or tool.annotations.read_only_hint is True:
            continue
        for number in range(tries):
            rng = random.Random(derive_seed(seed, "edit", tool.name, number))
            owned = links.own or (links.list_owned([rng.choice(people)]) if people else ())
            call = await grounder.derive(rows=owned).find_call(tool.name, place, rng.randrange(1 << 30))
            if call is None or call.effect != "write":
                continue
            await place.reset(grounder.state)
            before = await place.snapshot()
            if not (await place.call(call.tool, call.arguments)).ok:
                continue
            edits += _read_edits(before, await place.snapshot(), call)
    return _keep_common_states(edits)


def _keep_common_states(edits: Sequence[StateEdit]) -> list[StateEdit]:
    """Return each edit once, and of `before` what all edits have in common that set the same fields of a table."""
    alike: dict[tuple[str, str, frozenset[str]], list[StateEdit]] = defaultdict(list)
    for edit in edits:
        alike[edit.kind, edit.table, frozenset(edit.fields)].append(edit)
    common = {kind: set.intersection(*(set(edit.before.items()) for edit in group)) for kind, group in alike.items()}
    reduced = [
        edit.model_copy(update={"before": dict(sorted(common[edit.kind, edit.table, frozenset(edit.fields)]))})
        for edit in edits
    ]
    return list({edit.model_dump_json(): edit for edit in reduced}.values())


def _read_edits(before: JsonObject, after: JsonObject, call: GoldCall) -> list[StateEdit]:
    """Return what a call changed: values that it was given, states that have a name, and truth values."""
    spoken = {repr(value) for value in _iterate_scalars(call.arguments)}
    edits, clock = [], str(before.get("now", ""))
    for table, rows in after.items():
        old = before.get(table)
        if not isinstance(rows, dict) or not isinstance(old, dict) or rows == old:
            continue
        for key, row in rows.items():
            if not isinstance(row, dict) or old.get(key) == row:
                continue
            earlier = old.get(key)
            changed = {
                name: value
                for name, value in row.items()
                if not isinstance(earlier, dict) or earlier.get(name) != value
            }
            fields = {
                name: value for name, value in changed.items()
                if isinstance(value, bool | int | float | str) and value != "" and value != key
                and (repr(value) in spoken or (isinstance(earlier, dict) and _is_state(value)))
            }  # fmt: skip
            if fields:
                kind: Literal["changed", "added"] = "changed" if isinstance(earlier, dict) else "added"
                references = find_references(fields, before)
                states = {name: value for name, value in (earlier or {}).items() if _is_state(value)}
                edits.append(
                    StateEdit(
                        kind=kind, table=table, fields=fields, references=references, before=states, learnt_on=clock
                    )
                )
    return edits


def find_references(fields: Mapping[str, JsonValue], state: JsonObject) -> dict[str, str]:
    """Return the fields that hold the key of a row, with its table."""
    tables = {name: rows for name, rows in state.items() if isinstance(rows, dict)}
    return {
        field: table for field, value in fields.items() if isinstance(value, str)
        for table in [next((name for name, rows in tables.items() if value in rows), "")] if table
    }  # fmt: skip


def _is_state(value: Any) -> bool:
    """Return True for values that name a state: open, in_transit, true."""
    return isinstance(value, bool) or (isinstance(value, str) and value.isidentifier() and value.islower())


def _iterate_scalars(value: Any) -> list[Scalar]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in _iterate_scalars(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in _iterate_scalars(inner)]
    return [value] if isinstance(value, bool | int | float | str) else []
