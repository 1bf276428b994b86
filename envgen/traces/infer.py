"""Inference of an environment from recordings: for every tool a program over state and arguments."""

from collections import ChainMap, Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from trajsmith.envgen.traces.expressions import Const, Expr, Get, Scope, Tables, Var, to_variable
from trajsmith.envgen.traces.operations import Fresh
from trajsmith.envgen.traces.programs import (
    CallExample,
    Effect,
    Store,
    ToolProgram,
    bind_anchors,
    find_anchors,
    predict,
)
from trajsmith.envgen.traces.recordings import CallRecording, TracedCall, freeze
from trajsmith.envgen.traces.refusals import find_missing_rows, find_refusals
from trajsmith.envgen.traces.search import Search
from trajsmith.envgen.traces.tables import (
    Schema,
    build_key,
    collect_dialogue_rows,
    collect_initial_rows,
    find_scalars,
    infer_schema,
)
from trajsmith.phrasing import to_snake_case

SURE = 0.5
"""Share of held-out calls from which a program is used; below, a tool answers recorded calls only."""
SURE_CONSTANT = 0.9
"""The same for a tool that always answers the same."""
FEWEST = 2
"""Calls of a tool that a program needs."""
DELETES = frozenset({"delete", "remove", "destroy", "erase", "drop"})


@dataclass
class Clone:
    schema: Schema
    rows: Tables
    contradictions: Counter[str]
    programs: dict[str, ToolProgram]
    recording: CallRecording


def infer_clone(recording: CallRecording, held_out: bool = True) -> Clone:
    """Infer tables, initial state and a program for each tool.

    Args:
        held_out: Measure each program on dialogues that it was not made of; takes as long again.
    """
    schema = infer_schema(recording)
    rows, contradictions = collect_initial_rows(recording, schema)
    examples = build_examples(recording, schema, rows)
    programs = {}
    for tool in sorted(examples):
        program = infer_tool(tool, examples[tool], schema, recording)
        if held_out:
            program.held_out = _measure_held_out(tool, examples[tool], schema, recording)
        programs[tool] = program
    return Clone(schema, rows, contradictions, programs, recording)


def _measure_held_out(tool: str, examples: list[CallExample], schema: Schema, recording: CallRecording) -> float | None:
    """Return the share of results that a program gives in a quarter of the dialogues, made from the others."""
    test = [one for one in examples if one.dialogue % 4 == 3]
    train = [one for one in examples if one.dialogue % 4 != 3]
    if len(test) < 2 or len(train) < FEWEST:
        return None
    program = infer_tool(tool, train, schema, recording)
    if program.result is None:
        return 0.0
    hits = list[bool]()
    for one in test:
        if not one.call.failed:
            one = CallExample(one.dialogue, one.call, _bind_fresh(one.scope, one, program, schema))
        hits.append(bool(predict(program, one) == freeze(one.call.result)))
    return sum(hits) / len(hits)


def build_examples(recording: CallRecording, schema: Schema, rows: Tables) -> dict[str, list[CallExample]]:
    """Return the calls of each tool with the state before each: initial rows, and what its dialogue showed since."""
    examples: dict[str, list[CallExample]] = defaultdict(list)
    for number, dialogue in enumerate(recording.dialogues):
        own, _ = collect_dialogue_rows(dialogue.calls, schema)
        local: Tables = {name: {} for name in schema.tables}
        for name, by_key in own.items():
            for key, row in by_key.items():
                local[name][key] = {**rows[name].get(key, {}), **row}
        for call in dialogue.calls:
            tables: Any = {name: ChainMap(local[name], rows[name]) for name in schema.tables}
            values = {to_variable(name): value for name, value in call.arguments.items()}
            examples[call.tool].append(CallExample(number, call, Scope(values, tables)))
            if call.failed:
                continue
            for one in schema.observe(call):
                before = {**rows[one.table].get(one.key, {}), **local[one.table].get(one.key, {})}
                local = {**local, one.table: {**local[one.table], one.key: {**before, **one.values}}}
    return examples


def infer_tool(tool: str, examples: list[CallExample], schema: Schema, recording: CallRecording) -> ToolProgram:
    """Infer the program of one tool."""
    program = ToolProgram(tool, len(examples))
    good = [one for one in examples if not one.call.failed]
    failed = [one for one in examples if one.call.failed]
    if good:
        program.anchors = find_anchors(good, schema)
    program.fresh = _find_fresh(tool, good, schema)
    keys = {table.name: table.keys for table in schema.tables.values()}
    search = Search(keys, {} if program.fresh is None else {program.fresh.kind: program.fresh})
    scopes = [_bind_fresh(bind_anchors(one.scope, program.anchors), one, program, schema) for one in good]
    optional = {name for one in good for name in one.scope.values}
    for scope in scopes:
        for name in optional - set(scope.values):
            scope.values[name] = None
    solution = search.explain(scopes, [one.call.result for one in good]) if good else None
    if solution is not None and _is_supported(solution.expr, good):
        program.result, program.share = solution.expr, solution.share
    if program.share <= SURE or (isinstance(program.result, Const) and program.share < SURE_CONSTANT):
        program.result = None
    if isinstance(program.result, Var):
        shown = [set(one.call.result) for one in good if isinstance(one.call.result, dict)]
        program.needs = tuple(sorted(set.intersection(*shown))) if shown else ()
    program.recorded = _pick_recorded(program, examples)
    if tool in schema.writers:
        _add_writes(program, good, schema)
        program.effects = find_effects(tool, program, recording, schema, search)
    program.refusals = find_refusals(search, program, good, failed)
    if tool in schema.writers:
        program.refusals += find_missing_rows(search, program, scopes)
    return program


def _is_supported(expr: Expr, good: list[CallExample]) -> bool:
    """Return True if enough different calls stand behind a program; one call without arguments is enough."""
    different = {freeze(one.call.arguments) for one in good}
    return len(different) >= FEWEST or (isinstance(expr, Const) and different == {freeze({})})


def _pick_recorded(program: ToolProgram, examples: list[CallExample]) -> list[TracedCall]:
    """Return the calls that the program does not explain, if there is none at all."""
    if program.result is not None:
        return []
    seen: dict[Any, TracedCall] = {}
    for one in examples:
        seen.setdefault(freeze(one.call.arguments), one.call)
    return list(seen.values())


def _find_fresh(tool: str, good: list[CallExample], schema: Schema) -> Fresh | None:
    """Return the identifiers of the rows that a tool makes: of the n-th in a dialogue the one that most show."""
    if tool not in schema.writers:
        return None
    for group, name in schema.groups.items():
        if group.tool != tool or group.place != ("$",):
            continue
        table = schema.tables[name]
        ranks: dict[int, Counter[str]] = defaultdict(Counter)
        counts = Counter[int]()
        for one in good:
            key = build_key(table.keys, one.call.result, {}) if isinstance(one.call.result, dict) else None
            if key is None or key in set(find_scalars(one.call.arguments)) or key in one.scope.tables[name].maps[0]:  # type: ignore[attr-defined]
                return None
            ranks[counts[one.dialogue]][key] += 1
            counts[one.dialogue] += 1
        shown = tuple(ranks[n].most_common(1)[0][0] for n in sorted(ranks))
        return Fresh(name, shown) if shown else None
    return None


def _bind_fresh(scope: Scope, example: CallExample, program: ToolProgram, schema: Schema) -> Scope:
    if program.fresh is None:
        return scope
    return scope.bind(
        f"fresh:{program.fresh.kind}", build_key(schema.tables[program.fresh.kind].keys, example.call.result, {})
    )


def _add_writes(program: ToolProgram, good: list[CallExample], schema: Schema) -> None:
    for group, name in schema.groups.items():
        if group.tool == program.name and program.result is not None and group.place == ("$",):
            program.stores.append(Store(name, group.place))
    words = set(to_snake_case(program.name).split("_"))
    if words & DELETES:
        program.stores = []
        direct = [name for name, row in program.anchors.items() if all(isinstance(key, Var) for key in row.keys)]
        program.deletes = direct[:1]


def find_effects(
    tool: str, program: ToolProgram, recording: CallRecording, schema: Schema, search: Search
) -> list[Effect]:
    """Find changes of rows that only later reads show: a balance, a list of what belongs to a record."""
    shown: dict[str, list[tuple[Scope, dict[str, Any], dict[str, Any]]]] = defaultdict(list)
    for dialogue in recording.dialogues:
        last: dict[tuple[str, str], dict[str, Any]] = {}
        pending: dict[tuple[str, str], list[tuple[TracedCall, Scope]]] = defaultdict(list)
        for call in dialogue.calls:
            if call.failed:
                continue
            if call.tool in schema.writers:
                scope = Scope({to_variable(n): v for n, v in call.arguments.items()}, _as_tables(last))
                scope = scope.bind("result", call.result) if isinstance(call.result, dict) else scope
                texts = {*find_scalars(call.arguments), *find_scalars(call.result)}
                for known in last:
                    if known[1] in texts:
                        pending[known].append((call, scope))
            for one in schema.observe(call):
                place = (one.table, one.key)
                changes = pending.pop(place, [])
                if (
                    place in last
                    and len(changes) == 1
                    and changes[0][0].tool == tool
                    and call.tool not in schema.writers
                ):
                    shown[one.table].append((changes[0][1], last[place], one.values))
                last[place] = {**last.get(place, {}), **one.values}
    effects = []
    for table, cases in shown.items():
        anchor = f"{table}_row"
        if anchor not in program.anchors or any(store.table == table for store in program.stores):
            continue
        for column in dict.fromkeys(
            name for _, before, after in cases for name in after if freeze(before.get(name)) != freeze(after[name])
        ):
            usable = [(s, b, a) for s, b, a in cases if column in b and column in a]
            scopes = [
                bind_anchors(s, {n: r for n, r in program.anchors.items() if n != anchor}).bind(anchor, b)
                for s, b, _ in usable
            ]
            solution = (
                search.explain(scopes, [a[column] for _, _, a in usable], column) if len(usable) >= FEWEST else None
            )
            unchanged = Get(Var(anchor), column)
            if (
                solution is not None
                and solution.share >= 0.8
                and solution.expr != unchanged
                and not isinstance(solution.expr, Const)
            ):
                effects.append(Effect(table, anchor, column, solution.expr, len(usable), solution.share))
    return effects


def _as_tables(last: dict[tuple[str, str], dict[str, Any]]) -> Tables:
    tables: Tables = defaultdict(dict)
    for (table, key), row in last.items():
        tables[table][key] = row
    return dict(tables)
