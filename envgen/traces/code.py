"""Render a clone as the Python source of a native environment; what recordings hold enters as literals only."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trajsmith.envgen.generate.identifiers import to_class_name, to_words
from trajsmith.envgen.traces.arguments import HintWriter, clean_description, pick_examples
from trajsmith.envgen.traces.expressions import Const, Expr, Row, Var, to_variable
from trajsmith.envgen.traces.infer import Clone
from trajsmith.envgen.traces.operations import Text
from trajsmith.envgen.traces.paths import walk_expressions
from trajsmith.envgen.traces.programs import Refusal, ToolProgram
from trajsmith.envgen.traces.runtime import HELPERS, METHODS
from trajsmith.envgen.traces.schemas import infer_arguments_schema, infer_result_schema
from trajsmith.environments.native import Environment
from trajsmith.phrasing import singularize

FAULT = re.compile(r"^\s*error\s*:\s*", re.I)
"""How a recording marks a refusal; the interface marks it by itself."""


@dataclass
class ToolNames:
    """Names of a tool and its arguments in the code, by those of the recording."""

    tool: str
    arguments: dict[str, str] = field(default_factory=dict)


@dataclass
class RenderedClone:
    code: str
    names: dict[str, ToolNames]
    policy: list[str]


def render_clone(clone: Clone, name: str, title: str, source: str) -> RenderedClone:
    """Return the source of a clone's file, not yet formatted."""
    names = choose_names(clone)
    cls = f"{to_class_name(name)}Environment"
    hints = HintWriter()
    tools = [_render_tool(clone, program, names[program.name], hints) for program in clone.programs.values()]
    policy = describe_rules(clone, names)
    state = "\n".join(f"    {table}: dict[str, Row] = {{}}" for table in clone.schema.tables)
    recorded = {
        names[program.name].tool: _list_recorded(program, names[program.name])
        for program in clone.programs.values()
        if program.recorded
    }
    keys = {table.name: list(table.keys) for table in clone.schema.tables.values()}
    body = f'''"""{title}.

Written by `trajsmith env gen` from recorded calls: {source}
"""

import copy
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from datetime import date as date_type, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel, WithJsonSchema

from trajsmith import Environment, EnvironmentState, StateModel, ToolError, tool

{HELPERS}

def _refusal(text: Callable[[], str]) -> ToolError:
    try:
        return ToolError(text())
    except (Missing, TypeError):
        return ToolError("this is not possible")


{chr(10).join(hints.classes)}


class {cls}State(EnvironmentState):
    """Rows that recordings show, by table and key."""

{state or "    pass"}


class {cls}(Environment[{cls}State]):
    """{title}."""

    name = {name!r}
    domain = "recorded"
    policy = {render_policy_text(policy)!r}

    @classmethod
    def seed_state(cls, size: str, seed: int) -> {cls}State:
        return make_state(size, seed)

{METHODS}

{chr(10).join(tools)}


NOW = datetime(2026, 1, 1, 9, 0)
KEYS: dict[str, list[str]] = {keys!r}
RECORDED: dict[str, dict[str, Any]] = json.loads({json.dumps(recorded)!r})
ROWS: dict[str, dict[str, dict[str, Any]]] = json.loads({json.dumps(clone.rows)!r})
{_SEEDS.replace("CLASS", cls)}
'''
    return RenderedClone(body, names, policy)


_SEEDS = '''
COUNTS = {"small": 8, "medium": 24}


def _refer(value: Any) -> Iterator[tuple[str, str]]:
    """Keys of rows that a value names."""
    if isinstance(value, dict):
        for table, keys in KEYS.items():
            if all(isinstance(value.get(name), str | int) for name in keys):
                yield table, _key([value[name] for name in keys])
        for one in value.values():
            yield from _refer(one)
    elif isinstance(value, list):
        for one in value:
            yield from _refer(one)
    elif isinstance(value, str):
        for table, keys in KEYS.items():
            if len(keys) == 1:
                yield table, value


def make_state(size: str, seed: int) -> CLASSState:
    """Rows of the recording: a draw of each table with all that they name, or all of them."""
    rng = random.Random(f"{size}:{seed}")
    chosen: dict[str, set[str]] = {table: set() for table in ROWS}
    waiting: list[tuple[str, str]] = []
    for table, rows in ROWS.items():
        keys = sorted(rows)
        waiting += [(table, key) for key in rng.sample(keys, min(len(keys), COUNTS.get(size, len(keys))))]
    while waiting:
        table, key = waiting.pop()
        if key in ROWS[table] and key not in chosen[table]:
            chosen[table].add(key)
            waiting += list(_refer(ROWS[table][key]))
    tables = {
        table: {key: Row(copy.deepcopy(row)) for key, row in rows.items() if key in chosen[table]}
        for table, rows in ROWS.items()
    }
    return CLASSState(now=NOW, seed=seed, **tables)
'''


def choose_names(clone: Clone) -> dict[str, ToolNames]:
    """Return names in the code for tools and arguments; different ones for different tools."""
    taken = {name for name in dir(Environment) if not name.startswith("__")} | {"state", "Row", "Missing"}
    chosen: dict[str, ToolNames] = {}
    for tool in clone.programs:
        name = wished = to_variable(tool).lstrip("_") or "tool"
        number = 1
        while name in taken:
            number += 1
            name = f"{wished}_{number}" if number > 2 else f"{wished}_tool"
        taken.add(name)
        chosen[tool] = ToolNames(name)
    return chosen


def _list_recorded(program: ToolProgram, names: ToolNames) -> dict[str, Any]:
    answers = {}
    for call in program.recorded:
        passed = {names.arguments.get(n, to_variable(n)): v for n, v in call.arguments.items() if v is not None}
        text = FAULT.sub("", call.result) if call.failed and isinstance(call.result, str) else call.result
        answers[json.dumps(passed, sort_keys=True)] = [not call.failed, text]
    return answers


def _render_tool(clone: Clone, program: ToolProgram, names: ToolNames, hints: HintWriter) -> str:
    definition = clone.recording.tools.get(program.name)
    calls = [call for _, _, call in clone.recording.calls if call.tool == program.name]
    good = [call for call in calls if not call.failed]
    schema = infer_arguments_schema(
        [c.arguments for c in good or calls], definition.input_schema if definition else None
    )
    required = schema.get("required") if isinstance(schema.get("required"), list) else []
    parameters, described, plains = [], [], []
    fields = sorted(schema["properties"].items(), key=lambda item: not _is_needed(item[0], required, good))
    for raw, inner in fields:
        variable = to_variable(raw)
        while variable in names.arguments.values():
            variable += "_2"
        names.arguments[raw] = variable
        hint = hints.write(inner, f"{names.tool}_{variable}", schema)
        examples = pick_examples([c.arguments.get(raw) for c in good]) if hint == "str" else []
        if examples:
            hint = f"Annotated[str, Field(examples={examples!r})]"
        if _is_needed(raw, required, good):
            parameters.append(f"{variable}: {hint}")
        else:
            parameters.append(f"{variable}: {hint} = None" if hint == "Any" else f"{variable}: {hint} | None = None")
        text = clean_description(inner.get("description") if isinstance(inner, dict) else "")
        described.append(f"            {variable}: {text or to_words(variable).capitalize() + '.'}")
        if not re.fullmatch(r"(Annotated\[)?str.*|bool|int|Literal\[.*\]", hint):
            plains.append(variable)
    description = (
        clean_description(definition.description if definition else "") or f"{to_words(names.tool).capitalize()}."
    )
    lines = [
        f'    @tool(effect="{"write" if program.writes else "read"}"{", destructive=True" if program.deletes else ""})',
        f"    def {names.tool}({', '.join(['self', *parameters])}) -> {_render_result_type(clone, program, good)}:",
        f'        """{description}',
    ]
    if described:
        lines += ["", "        Args:", *described]
    lines.append('        """')
    lines += [f"        {name} = _plain({name})" for name in plains]
    lines += _render_body(clone, program, names)
    return "\n".join(lines) + "\n"


def _is_needed(name: str, required: Any, good: Sequence[Any]) -> bool:
    return name in required and all(name in call.arguments for call in good)


def _render_result_type(clone: Clone, program: ToolProgram, good: Sequence[Any]) -> str:
    """Return the hint of a result; records of one form have one schema, whichever tool shows them."""
    forms = {frozenset(call.result) for call in good if isinstance(call.result, dict)}
    alike = [
        call.result
        for _, _, call in clone.recording.calls
        if isinstance(call.result, dict) and not call.failed and frozenset(call.result) in forms
    ]
    schema = infer_result_schema([*(call.result for call in good), *alike]) if good else {}
    schema = {} if program.result is None else schema
    if schema.get("type") == "object":
        loose = json.loads(json.dumps(schema))
        return f"Annotated[dict[str, Any], WithJsonSchema({loose!r})]"
    return f"Annotated[Any, WithJsonSchema({schema!r})]" if schema else "Any"


def _render_body(clone: Clone, program: ToolProgram, names: ToolNames) -> list[str]:
    lines: list[str] = []
    arguments = "{" + ", ".join(f"{v!r}: {v}" for v in names.arguments.values()) + "}"
    raw_arguments = "{" + ", ".join(f"{r!r}: {v}" for r, v in names.arguments.items()) + "}"
    used = _find_used(program)
    for anchor, row in program.anchors.items():
        if anchor in used:
            keys = ", ".join(key.render() for key in row.keys)
            needs = (
                f", {program.needs!r}"
                if program.needs and isinstance(program.result, Var) and program.result.name == anchor
                else ""
            )
            lines.append(f"        {anchor} = self._find({row.table!r}, lambda: ({keys},){needs})")
    for refusal in program.refusals:
        lines += _render_refusal(refusal)
    if program.result is None:
        return [*lines, f"        return self._recorded({names.tool!r}, {arguments})"]
    if program.fresh is not None and any(isinstance(e, type(program.fresh)) for e in walk_expressions(program.result)):
        lines.append(f"        fresh_key = self._fresh({program.fresh.kind!r}, {program.fresh.shown!r})")
    unknown = _render_unknown(program)
    value = program.result.render()
    value = f"_have({value})" if isinstance(program.result, Var) and program.result.name in program.anchors else value
    lines.append(f"        result = self._answer(lambda: {value}, lambda: {unknown})")
    for effect in program.effects:
        lines += [
            f"        changed = _present({effect.column!r}, lambda: {effect.value.render()})",
            f"        if {effect.anchor} is not None:",
            f"            self._store({effect.table!r}, {clone.schema.tables[effect.table].keys!r}, "
            f"{{**{effect.anchor}, **changed}}, {_render_key_parts(clone, program, effect.anchor)})",
        ]
    for store in program.stores:
        lines.append(
            f"        self._store({store.table!r}, {clone.schema.tables[store.table].keys!r}, result, {raw_arguments})"
        )
    for anchor in program.deletes:
        row = program.anchors[anchor]
        keys = ", ".join(key.render() for key in row.keys)
        lines += [
            f"        if {anchor} is None:",
            f"            raise ToolError({unknown})",
            f"        del self._table({row.table!r})[_key(({keys},))]",
        ]
    lines.append("        return result")
    return lines


def _render_key_parts(clone: Clone, program: ToolProgram, anchor: str) -> str:
    row = program.anchors[anchor]
    parts = zip(clone.schema.tables[row.table].keys, row.keys, strict=True)
    return "{" + ", ".join(f"{name!r}: {key.render()}" for name, key in parts) + "}"


def _find_used(program: ToolProgram) -> set[str]:
    """Return the anchors that the program names, and those that these need."""
    expressions: list[Expr] = [e for e in (program.result, program.unknown) if e is not None]
    expressions += [e.value for e in program.effects]
    expressions += [part for r in program.refusals for part in (r.test, r.text, *([r.item[0]] if r.item else []))]
    used = {e.name for whole in expressions for e in walk_expressions(whole) if isinstance(e, Var)}
    used |= {effect.anchor for effect in program.effects} | set(program.deletes)
    for anchor in reversed(list(program.anchors)):
        if anchor in used:
            used |= {
                e.name for key in program.anchors[anchor].keys for e in walk_expressions(key) if isinstance(e, Var)
            }
    return used


def _render_refusal(refusal: Refusal) -> list[str]:
    text = _strip_fault(refusal.text).render()
    if refusal.item is None:
        return [f"        if _holds(lambda: {refusal.test.render()}):", f"            raise _refusal(lambda: {text})"]
    source, var = refusal.item
    return [
        f"        {var} = _first({source.render()}, lambda {var}: {refusal.test.render()})",
        f"        if {var} is not None:",
        f"            raise _refusal(lambda: {text})",
    ]


def _strip_fault(text: Expr) -> Expr:
    """Return a refusal without the mark that the recording puts before it."""
    if isinstance(text, Const) and isinstance(text.value, str):
        return Const(FAULT.sub("", text.value))
    if isinstance(text, Text) and isinstance(text.parts[0], str):
        return Text((FAULT.sub("", text.parts[0]), *text.parts[1:]))
    return text


def _render_unknown(program: ToolProgram) -> str:
    if program.unknown is not None:
        return _strip_fault(program.unknown).render()
    for row in program.anchors.values():
        if isinstance(row, Row) and all(isinstance(key, Var) for key in row.keys):
            noun = to_words(singularize(row.table))
            keys = ", ' ', ".join(key.render() for key in row.keys)
            anchor = next(name for name, one in program.anchors.items() if one is row)
            text = f"_text({noun + ' '!r}, {keys}, ' not found')"
            return (
                f"{text} if {anchor} is None else 'nothing is known about this'"
                if anchor in _find_used(program)
                else text
            )
    return "'nothing is known about this'"


def describe_rules(clone: Clone, names: dict[str, ToolNames]) -> list[str]:
    """Return a sentence for every kind of refusal, and for tools that answer recorded calls only."""
    rules = []
    for program in clone.programs.values():
        tool = names[program.name].tool
        for refusal in program.refusals:
            text = _strip_fault(refusal.text)
            shown = (
                "".join(p if isinstance(p, str) else "..." for p in text.parts)
                if isinstance(text, Text)
                else str(getattr(text, "value", "..."))
            )
            plain = clean_description(shown)
            rules.append(f"`{tool}` is refused in some states" + (f": {plain}" if plain else "."))
        if program.result is None:
            rules.append(f"`{tool}` answers only calls that were recorded.")
    return rules


def render_policy_text(rules: list[str]) -> str:
    return "\n".join(
        ["# Rules", "", "- Use identifiers that the user gives or a tool shows.", *(f"- {rule}" for rule in rules)]
    )
