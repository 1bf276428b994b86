"""Tables of a recording: which records have an identifier, what it consists of, and what was true at first."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trajsmith.envgen.generate.identifiers import to_identifier
from trajsmith.envgen.traces.expressions import Tables, join_key
from trajsmith.envgen.traces.recordings import CallRecording, TracedCall, freeze
from trajsmith.phrasing import pluralize, singularize, to_snake_case, word_set

IDENTIFIER = re.compile(r"(^|_)(id|number|no|code|key|ref|uuid|guid|sku|isbn|slug|username)$")
ALIKE = 0.6
"""Share of common fields from which two groups of records are of one kind."""
CONTAINED = 0.75
"""Share of the smaller set's fields that make it a part of the larger one."""
FUNCTIONAL = 0.97
"""Share of a key's observations that must agree for it to identify records."""
READ_VERBS = word_set(
    "get list search find show read check calculate compute view think lookup fetch describe retrieve query count "
    "browse filter verify validate estimate compare preview inspect track"
)


@dataclass(frozen=True)
class RecordGroup:
    """Records at one place of a tool's results: `$` the result itself, `[]` items of a list, `.name` a field."""

    tool: str
    place: tuple[str, ...]


@dataclass
class Table:
    name: str
    keys: tuple[str, ...]
    """Names of the fields or arguments that identify a row."""
    columns: list[str] = field(default_factory=list)
    contradictions: int = 0
    observations: int = 0


@dataclass(frozen=True)
class RowObservation:
    """Values of a row that a call shows."""

    table: str
    key: str
    values: dict[str, Any]


@dataclass
class Schema:
    """Tables, and which group of records shows rows of which."""

    tables: dict[str, Table] = field(default_factory=dict)
    groups: dict[RecordGroup, str] = field(default_factory=dict)
    scalars: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Tool whose result is one value of a row: its table and column."""
    hidden: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Arguments of a tool which its rows do not show, and of which each row has only one value: whose it is."""
    writers: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    """Tools whose result is a record that lacks its identifier, which is an argument."""

    def observe(self, call: TracedCall) -> Iterator[RowObservation]:
        """Yield what a successful call shows of rows."""
        if call.failed:
            return
        if call.tool in self.scalars:
            scalar_table, column = self.scalars[call.tool]
            keys = self.tables[scalar_table].keys
            parts = [call.arguments.get(name) for name in keys]
            if all(isinstance(part, str | int) for part in parts) and call.result is not None:
                values = {column: call.result, **dict(zip(keys, parts, strict=True))}
                yield RowObservation(scalar_table, join_key(parts), values)
            return
        for place, record in find_records(call.result, call.tool in self.whole):
            name = self.groups.get(RecordGroup(call.tool, place))
            if name is None:
                continue
            table = self.tables[name]
            key = build_key(table.keys, record, call.arguments)
            if key is None:
                continue
            own = dict(record)
            for part in table.keys:
                if own.get(part) is None:
                    own[part] = call.arguments.get(part)
            for argument in self.hidden.get(call.tool, ()):
                if call.arguments.get(argument) is not None:
                    own.setdefault(argument, call.arguments[argument])
            yield RowObservation(name, key, own)
            yield from self._observe_parts(name, record)

    def _observe_parts(self, outer: str, record: dict[str, Any]) -> Iterator[RowObservation]:
        """Yield what records inside a record say of rows of other tables."""
        for value in record.values():
            inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
            for part in inner:
                if not isinstance(part, dict):
                    continue
                for table in self.tables.values():
                    if table.name != outer and all(isinstance(part.get(k), str | int) for k in table.keys):
                        shared = {
                            n: v for n, v in part.items() if n in table.columns and not isinstance(v, dict | list)
                        }
                        if len(shared) > len(table.keys):
                            yield RowObservation(table.name, join_key([part[k] for k in table.keys]), shared)


def build_key(names: tuple[str, ...], record: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    parts = [record[name] if record.get(name) is not None else arguments.get(name) for name in names]
    if not all(isinstance(part, str | int) and not isinstance(part, bool) for part in parts):
        return None
    return join_key(parts)


def find_records(
    value: Any, whole: bool = False, place: tuple[str, ...] = ("$",)
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the outermost records with an identifier, and where each stands.

    Args:
        whole: True if the result itself is a record that its call's arguments identify.
    """
    if isinstance(value, dict):
        if whole or any(is_identifier(name) and isinstance(inner, str | int) for name, inner in value.items()):
            yield place, value
            return
        keyed = len(value) > 1 and all(
            isinstance(inner, dict) and name in inner.values() for name, inner in value.items()
        )
        for name, inner in value.items():
            if isinstance(inner, dict | list):
                yield from find_records(inner, False, (*place, "{}" if keyed else f".{name}"))
    elif isinstance(value, list):
        for inner in value:
            yield from find_records(inner, False, (*place, "[]"))


def is_identifier(name: str) -> bool:
    return bool(IDENTIFIER.search(to_snake_case(name)))


def is_read_name(tool: str) -> bool:
    """Return True if the name of a tool says that it reads."""
    words = to_snake_case(tool).split("_")
    return any(word in READ_VERBS for word in words[:-1] or words)


@dataclass
class _Cluster:
    """Groups of records with nearly the same fields."""

    groups: list[RecordGroup]
    fields: set[str]
    shown: list[tuple[TracedCall, dict[str, Any], bool]]
    is_written: bool

    def measure_likeness(self, fields: set[str]) -> float:
        """Return the share of common fields, of the smaller set; 0 without a common identifier."""
        common = fields & self.fields
        named = any(is_identifier(name) and name != "id" for name in common)
        if named and len(common) >= 3 and len(common) >= CONTAINED * min(len(fields), len(self.fields)):
            return 1.0  # a list shows less of a record than the tool that shows one
        return len(common) / len(fields | self.fields)


def infer_schema(recording: CallRecording) -> Schema:
    """Infer the tables of a recording."""
    schema = Schema()
    definitions = recording.tools
    for tool in {call.tool for _, _, call in recording.calls}:
        reads = definitions[tool].reads if tool in definitions else None
        if not (is_read_name(tool) if reads is None else reads):
            schema.writers.add(tool)
    schema.whole = _find_whole_records(recording, schema.writers)
    groups: dict[RecordGroup, list[tuple[TracedCall, dict[str, Any], bool]]] = defaultdict(list)
    for dialogue in recording.dialogues:
        written = False
        for call in dialogue.calls:
            written = written or (call.tool in schema.writers and not call.failed)
            if not call.failed:
                for place, record in find_records(call.result, call.tool in schema.whole):
                    groups[RecordGroup(call.tool, place)].append((call, record, not written))
    clusters: list[_Cluster] = []
    for group, shown in sorted(groups.items(), key=lambda item: (item[0].tool in schema.writers, -len(item[1]))):
        fields = {name for _, record, _ in shown for name in record}
        alike = max(clusters, key=lambda one: one.measure_likeness(fields), default=None)
        if len(fields) < 2:
            continue
        if alike is not None and alike.measure_likeness(fields) >= ALIKE:
            alike.groups.append(group)
            alike.fields |= fields
            if group.tool not in schema.writers or alike.is_written:
                alike.shown += shown
        else:
            clusters.append(_Cluster([group], fields, list(shown), group.tool in schema.writers))
    for cluster in clusters:
        keys = _find_keys([one for one in cluster.shown if one[2]] or cluster.shown)
        if keys is None:
            continue
        name = to_identifier(pluralize(_find_noun(keys[0], cluster.groups[0])), "records", schema.tables)
        schema.tables[name] = Table(name, keys, sorted(cluster.fields))
        for group in cluster.groups:
            schema.groups[group] = name
    _find_hidden_columns(recording, schema)
    _find_scalar_columns(recording, schema)
    return schema


def _find_hidden_columns(recording: CallRecording, schema: Schema) -> None:
    """Find arguments that tell whose the rows of a list are, where the rows do not."""
    shown: dict[tuple[str, str], dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    refuted = set[tuple[str, str]]()
    touched, before = set[str](), -1
    for number, _, call in recording.calls:
        if number != before:
            touched, before = set(), number
        if call.tool in schema.writers and not call.failed:
            touched |= {*find_scalars(call.arguments), *find_scalars(call.result)}
        if call.failed or call.tool in schema.writers:
            continue
        for place, record in find_records(call.result, call.tool in schema.whole):
            table = schema.groups.get(RecordGroup(call.tool, place))
            key = None if table is None else build_key(schema.tables[table].keys, record, call.arguments)
            if key is None or "[]" not in place or key in touched:
                continue
            for name, value in call.arguments.items():
                if isinstance(value, str) and name not in record:
                    shown[call.tool, name][key].add(value)
                else:
                    refuted.add((call.tool, name))
    for (tool, name), by_key in shown.items():
        values = {value for one in by_key.values() for value in one}
        if (tool, name) not in refuted and len(values) > 1 and all(len(one) == 1 for one in by_key.values()):
            schema.hidden[tool] = (*schema.hidden.get(tool, ()), name)
            for group, table in schema.groups.items():
                if group.tool == tool and name not in schema.tables[table].columns:
                    schema.tables[table].columns.append(name)


def _find_whole_records(recording: CallRecording, writers: set[str]) -> set[str]:
    """Return the reading tools whose results are records without an identifier, for calls with one."""
    verdicts: dict[str, list[bool]] = defaultdict(list)
    for _, _, call in recording.calls:
        if call.failed or call.tool in writers:
            continue
        result = call.result
        plain = isinstance(result, dict) and sum(not isinstance(v, dict | list) for v in result.values()) > 1
        keyed = any(is_identifier(n) for n in call.arguments) and len(call.arguments) <= 2
        lacks = plain and not any(is_identifier(n) and isinstance(v, str | int) for n, v in result.items())
        verdicts[call.tool].append(lacks and keyed and all(isinstance(v, str | int) for v in call.arguments.values()))
    return {tool for tool, seen in verdicts.items() if all(seen)}


def _find_noun(key: str, group: RecordGroup) -> str:
    noun = re.sub(r"_?(id|number|no|code|key|ref|uuid|guid)$", "", to_snake_case(key))
    if noun:
        return noun
    words = [word for word in to_snake_case(group.tool).split("_") if word not in READ_VERBS]
    last = next((part[1:] for part in reversed(group.place) if part.startswith(".")), "")
    return singularize(
        to_snake_case(last)
        if last not in ("", "data", "result", "results", "items", "output")
        else words[-1]
        if words
        else "record"
    )


def _find_keys(shown: list[tuple[TracedCall, dict[str, Any], bool]]) -> tuple[str, ...] | None:
    """Return the fewest fields, or arguments that a record lacks, that identify the records of a group."""
    names = Counter(
        name
        for _, record, _ in shown
        for name, value in record.items()
        if is_identifier(name) and isinstance(value, str | int)
    )
    singles = [name for name, number in names.items() if number == len(shown)]
    if not singles:
        asked = {name for call, _, _ in shown for name in call.arguments if is_identifier(name)}
        singles = [
            name
            for name in sorted(asked)
            if all(build_key((name,), record, call.arguments) for call, record, _ in shown)
        ]
    if not singles:
        return None
    echoed = Counter(
        name for call, record, _ in shown for name, value in call.arguments.items() if record.get(name) == value
    )
    order = {name: place for place, name in enumerate(singles)}
    scored = []
    for name in singles:
        share, many = _measure_key((name,), shown)
        distinct = len({build_key((name,), record, call.arguments) for call, record, _ in shown})
        scored.append((share >= FUNCTIONAL, many, echoed[name] == len(shown), distinct, -order[name], name))
    best = max(scored)
    single = (best[-1],)
    if best[0]:
        return single
    pairs = sorted(
        {
            n
            for call, record, _ in shown
            for n, v in (*call.arguments.items(), *record.items())
            if isinstance(v, str | int) and n not in names
        }
    )
    candidates = []
    for extra in pairs:
        for name in singles:
            if all(build_key((name, extra), record, call.arguments) is not None for call, record, _ in shown):
                share, _ = _measure_key((name, extra), shown)
                argument = any(extra in call.arguments for call, _, _ in shown)
                candidates.append((share, argument, (name, extra)))
    good = [one for one in candidates if one[1]]
    if good:
        share, _, keys = max(good, key=lambda one: one[0])
        if share > _measure_key(single, shown)[0]:
            return keys
    return single


def _measure_key(names: tuple[str, ...], shown: list[tuple[TracedCall, dict[str, Any], bool]]) -> tuple[float, bool]:
    """Return the share of values that agree with the most frequent one of their key and field."""
    values: dict[tuple[str, str], Counter[Any]] = defaultdict(Counter)
    for call, record, _ in shown:
        key = build_key(names, record, call.arguments)
        for name, value in record.items() if key is not None else ():
            values[key or "", name][freeze(value)] += 1
    repeated = [one for one in values.values() if one.total() > 1]
    total = sum(one.total() for one in repeated)
    return (sum(max(one.values()) for one in repeated) / total if total else 1.0), total > 0


def _find_scalar_columns(recording: CallRecording, schema: Schema) -> None:
    """Find tools whose result is one value of a row that their arguments identify."""
    by_tool: dict[str, list[tuple[int, TracedCall]]] = defaultdict(list)
    for number, _, call in recording.calls:
        if not call.failed and call.tool not in schema.writers:
            by_tool[call.tool].append((number, call))
    rows, _ = collect_initial_rows(recording, schema)
    for tool, calls in by_tool.items():
        if not all(isinstance(call.result, str | int | float | bool) for _, call in calls):
            continue
        if len({freeze(call.result) for _, call in calls}) < 2:
            continue
        for table in schema.tables.values():
            if not all(set(table.keys) <= set(call.arguments) for _, call in calls) or len(calls[0][1].arguments) > len(
                table.keys
            ):
                continue
            scores = Counter[str]()
            seen = Counter[str]()
            for _, call in calls:
                row = rows[table.name].get(join_key([call.arguments[k] for k in table.keys]), {})
                for column, value in row.items():
                    seen[column] += 1
                    scores[column] += freeze(value) == freeze(call.result)
            agreeing = [c for c in scores if c not in table.keys and scores[c] >= 0.9 * seen[c] and scores[c] > 1]
            column = max(agreeing, key=lambda c: scores[c], default="")
            if not column:
                column = to_identifier(
                    "_".join(w for w in to_snake_case(tool).split("_") if w not in READ_VERBS), "value", table.columns
                )
                table.columns.append(column)
            schema.scalars[tool] = (table.name, column)
            break


def collect_dialogue_rows(calls: list[TracedCall], schema: Schema) -> tuple[Tables, set[int]]:
    """Return the rows that a dialogue shows before it writes to them, and the calls that showed something first."""
    rows: Tables = {name: {} for name in schema.tables}
    suppliers = set[int]()
    touched = set[str]()
    for place, call in enumerate(calls):
        if call.tool in schema.writers:
            if not call.failed:
                touched |= set(find_scalars(call.arguments)) | set(find_scalars(call.result))
            continue
        for one in schema.observe(call):
            if touched & set(one.key.split("|")[:1]):
                continue
            row = rows[one.table].setdefault(one.key, {})
            new = {name: value for name, value in one.values.items() if name not in row}
            if new:
                row.update(new)
                suppliers.add(place)
    return rows, suppliers


def find_scalars(value: Any) -> Iterator[str]:
    """Yield the texts and whole numbers in a value."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from find_scalars(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from find_scalars(inner)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield str(value)


def collect_initial_rows(recording: CallRecording, schema: Schema) -> tuple[Tables, Counter[str]]:
    """Return the initial state: of each value the one that most dialogues show, and the number of contradictions."""
    votes: dict[str, dict[str, dict[str, Counter[Any]]]] = {name: {} for name in schema.tables}
    values: dict[Any, Any] = {}
    contradictions = Counter[str]()
    for dialogue in recording.dialogues:
        rows, _ = collect_dialogue_rows(dialogue.calls, schema)
        for table, by_key in rows.items():
            for key, row in by_key.items():
                for name, value in row.items():
                    frozen = freeze(value)
                    values[frozen] = value
                    votes[table].setdefault(key, {}).setdefault(name, Counter())[frozen] += 1
    tables: Tables = {}
    for table, by_key_votes in votes.items():
        tables[table] = {}
        for key in sorted(by_key_votes):
            row = {}
            for name, counter in by_key_votes[key].items():
                row[name] = values[counter.most_common(1)[0][0]]
                contradictions[table] += len(counter) > 1
            tables[table][key] = row
    return tables, contradictions
