"""Replay recorded dialogues on a clone, in the sandbox: which calls give the recorded result, and why others do not."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trajsmith.envgen.traces.code import FAULT, ToolNames
from trajsmith.envgen.traces.expressions import Tables
from trajsmith.envgen.traces.infer import Clone
from trajsmith.envgen.traces.recordings import CallRecording, TracedCall, freeze
from trajsmith.envgen.traces.tables import collect_dialogue_rows, find_scalars
from trajsmith.environments.session import Session, ToolResult
from trajsmith.environments.sources import EnvironmentSettings, open_source
from trajsmith.records import JsonObject


@dataclass
class ReplayedCall:
    """Outcome of one recorded call.

    Attributes:
        supplies: True if the recording's own initial rows come from this call: it says nothing about the clone.
    """

    dialogue: str
    place: int
    tool: str
    equal: bool
    supplies: bool
    cause: str = ""
    detail: str = ""


@dataclass
class Conformance:
    """Outcomes of all calls of a recording."""

    outcomes: list[ReplayedCall] = field(default_factory=list)

    def count(self, supplied: bool | None = None) -> tuple[int, int]:
        """Return the numbers of calls and of equal ones; without or only with those that supply rows."""
        chosen = [one for one in self.outcomes if supplied is None or one.supplies is supplied]
        return len(chosen), sum(one.equal for one in chosen)

    def by_tool(self, supplied: bool | None = None) -> dict[str, tuple[int, int, Counter[str]]]:
        """Return calls, equal calls and misses by cause, for each tool."""
        table: dict[str, tuple[int, int, Counter[str]]] = {}
        for one in self.outcomes:
            if supplied is not None and one.supplies is not supplied:
                continue
            calls, equal, causes = table.get(one.tool, (0, 0, Counter[str]()))
            table[one.tool] = (calls + 1, equal + one.equal, causes + Counter([one.cause] if one.cause else []))
        return table

    @property
    def misses(self) -> Iterable[ReplayedCall]:
        return (one for one in self.outcomes if not one.equal)


async def measure_conformance(
    file: Path, clone: Clone, names: dict[str, ToolNames], unseen: CallRecording, own_rows: bool
) -> Conformance:
    """Replay dialogues that the clone was not made of.

    Args:
        own_rows: Put the rows that an unseen dialogue shows before it writes to them into its initial state. Calls
            that show such a row first are marked as suppliers.
    """
    source = open_source(EnvironmentSettings(python=str(file), states={"large": 1}))
    result = Conformance()
    try:
        session = await source.open()
        base = (await source.states(0))[0]
        for dialogue in unseen.dialogues:
            rows, suppliers = collect_dialogue_rows(dialogue.calls, clone.schema)
            state, new = overlay_rows(base, clone.rows, rows) if own_rows else (base, set[tuple[str, str, str]]())
            await session.reset(state)
            shown = _find_suppliers(dialogue.calls, clone, new) if own_rows else set[int]()
            renamed: dict[str, str] = {}
            for place, call in enumerate(dialogue.calls):
                outcome = await replay_call(session, call, names.get(call.tool), renamed)
                cause, detail = ("", "") if outcome is None else outcome
                if (
                    cause
                    and cause in ("refused, recorded is a result", "row never shown")
                    and clone.programs[call.tool].result is None
                ):
                    cause = "no program"
                result.outcomes.append(
                    ReplayedCall(
                        dialogue.name,
                        place,
                        call.tool,
                        outcome is None,
                        place in shown and place in suppliers,
                        cause,
                        detail,
                    )
                )
        await session.close()
    finally:
        source.close()  # type: ignore[attr-defined]
    return result


def overlay_rows(base: JsonObject, known: Tables, own: Tables) -> tuple[JsonObject, set[tuple[str, str, str]]]:
    """Return a state with a dialogue's own rows, and which values the clone did not have or had otherwise."""
    state, new = dict(base), set[tuple[str, str, str]]()
    for table, rows in own.items():
        merged = dict(known[table])
        for key, row in rows.items():
            old = known[table].get(key, {})
            new |= {
                (table, key, name)
                for name, value in row.items()
                if name not in old or freeze(old[name]) != freeze(value)
            }
            merged[key] = {**old, **row}
        state[table] = merged
    return state, new


def _find_suppliers(calls: list[TracedCall], clone: Clone, new: set[tuple[str, str, str]]) -> set[int]:
    """Return the calls that are the first to show a value which the clone did not have."""
    left, suppliers = set(new), set[int]()
    for place, call in enumerate(calls):
        if call.tool in clone.schema.writers:
            continue
        shown = {(one.table, one.key, name) for one in clone.schema.observe(call) for name in one.values}
        if shown & left:
            suppliers.add(place)
            left -= shown
    return suppliers


async def replay_call(
    session: Session, call: TracedCall, names: ToolNames | None, renamed: dict[str, str]
) -> tuple[str, str] | None:
    """Make a call; return None if it gives the recorded result, else the cause and a detail.

    Args:
        renamed: Identifiers that the clone made, by those of the recording; grows.
    """
    if names is None:
        return "unknown tool", call.tool
    arguments = {names.arguments.get(name, name): _rename(value, renamed) for name, value in call.arguments.items()}
    result = await session.call(names.tool, arguments)
    if call.failed:
        if result.ok:
            return "result, recorded is refused", str(call.result)[:160]
        same = _plain_refusal(call.result) == _plain_refusal(_read_refusal(result))
        return None if same else ("other refusal text", f"{_read_refusal(result)[:100]} / {str(call.result)[:100]}")
    if result.error == "invalid_arguments":
        return "arguments are refused", result.text[:160]
    if not result.ok:
        unknown = "not found" in result.text or "nothing is known" in result.text or "no answer" in result.text
        return ("row never shown" if unknown else "refused, recorded is a result"), result.text[:160]
    shown = _unwrap(result)
    if freeze(shown) == freeze(call.result):
        return None
    _learn_names(call, call.result, shown, renamed)
    if freeze(shown) == freeze(_rename(call.result, renamed)):
        return None
    return ("list differs" if isinstance(call.result, list) else "result differs"), find_difference(call.result, shown)


def _unwrap(result: ToolResult) -> Any:
    content = result.content
    return content["result"] if isinstance(content, dict) and set(content) == {"result"} else content


def _read_refusal(result: ToolResult) -> str:
    content = result.content
    return str(content["error"]) if isinstance(content, dict) and "error" in content else result.text


def _plain_refusal(text: Any) -> str:
    return FAULT.sub("", str(text)).strip().lower()


def _learn_names(call: TracedCall, recorded: Any, shown: Any, renamed: dict[str, str]) -> None:
    """Take texts that look like identifiers, stand at one place and come from nowhere else as names of one record."""
    if isinstance(recorded, dict) and isinstance(shown, dict):
        for name in recorded.keys() & shown.keys():
            _learn_names(call, recorded[name], shown[name], renamed)
    elif isinstance(recorded, str) and isinstance(shown, str) and recorded != shown:
        passed = set(find_scalars(call.arguments))
        generated = re.fullmatch(r"[\w-]{3,64}", recorded) and re.fullmatch(r"[\w-]{3,64}", shown)
        digits = any(c.isdigit() for c in recorded + shown) or recorded.isupper()
        if generated and digits and recorded not in passed and not re.match(r"\d{4}-\d\d", recorded):
            renamed[recorded] = shown


def _rename(value: Any, renamed: dict[str, str]) -> Any:
    if not renamed:
        return value
    if isinstance(value, dict):
        return {name: _rename(inner, renamed) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rename(inner, renamed) for inner in value]
    return renamed.get(value, value) if isinstance(value, str) else value


def find_difference(recorded: Any, shown: Any, where: str = "") -> str:
    """Return the first place at which two values differ, with both."""
    if isinstance(recorded, dict) and isinstance(shown, dict):
        for name in dict.fromkeys([*recorded, *shown]):
            if freeze(recorded.get(name)) != freeze(shown.get(name)):
                return find_difference(recorded.get(name), shown.get(name), f"{where}/{name}")
    if isinstance(recorded, list) and isinstance(shown, list):
        if len(recorded) != len(shown):
            return f"{where}: {len(recorded)} items recorded, {len(shown)} cloned"
        for place, (first, second) in enumerate(zip(recorded, shown, strict=True)):
            if freeze(first) != freeze(second):
                return find_difference(first, second, f"{where}/{place}")
    return f"{where}: {str(recorded)[:60]} recorded, {str(shown)[:60]} cloned"


async def replay_stored_dialogues(file: Path, dialogues: Iterable[JsonObject]) -> list[str]:
    """Replay dialogues that lie beside a clone as tests; return the calls that no longer give what was recorded."""
    source = open_source(EnvironmentSettings(python=str(file), states={"large": 1}))
    misses = []
    try:
        session = await source.open()
        base = (await source.states(0))[0]
        for dialogue in dialogues:
            state = dict(base)
            for table, rows in dialogue["rows"].items():
                merged = {key: {**base[table].get(key, {}), **row} for key, row in rows.items()}
                state[table] = {**base[table], **merged}
            await session.reset(state)
            renamed: dict[str, str] = {}
            for stored in dialogue["calls"]:
                call = TracedCall(stored["tool"], stored["arguments"], stored["result"], stored["failed"])
                miss = await replay_call(session, call, ToolNames(stored["tool"]), renamed)
                if miss is not None and stored["equal"]:
                    misses.append(f"{dialogue['name']}: {stored['tool']}: {miss[0]}: {miss[1]}")
        await session.close()
    finally:
        source.close()  # type: ignore[attr-defined]
    return misses
