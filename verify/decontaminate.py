"""Tool-aware decontamination: rows that a benchmark's files already hold, by text, tools, calls or entities.

A benchmark for tool use leaks in more ways than its questions: as the same set of tools, the same calls with the same
arguments, the same made-up people and ids. Each way is looked for on its own and named.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from trajsmith.records import (
    InputError,
    JsonObject,
    JsonValue,
    Task,
    ToolSpec,
    TraceDialogue,
    Trajectory,
    canonical_json,
    hash_bytes,
)
from trajsmith.verify.duplicates import iter_entity_values, join_user_text, split_words
from trajsmith.verify.traces.reading import read_dialogues

NGRAM = 10
"""Words in a row that are no accident: request phrases are shorter, sentences of a benchmark longer."""
CALLS = 3
"""Calls in a row, with the same arguments."""
TOOLS, LEAST_TOOLS = 0.8, 4
"""Jaccard similarity of two sets of tools, and the smallest set that says anything."""
ENTITIES, LEAST_ENTITIES = 0.6, 4
"""Share of a task's entity values that stand in one file, and the smallest number that says anything."""
_TELLING = re.compile(r"\d{3}|@|[A-Z][a-z]+ [A-Z]")


class BenchmarkReference:
    """Contents of one benchmark file."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.ngrams: set[str] = set()
        self.calls: set[str] = set()
        self.entities: set[str] = set()
        self.tools: list[frozenset[str]] = []
        """Sets of tool names, and of names with their parameters."""
        called: set[str] = set()
        self.rows = 0
        for text, calls, tools in _rows(path):
            self.rows += 1
            self.ngrams |= set(iter_ngrams(text))
            self.calls |= set(hash_call_windows(calls))
            called |= {tool for tool, _ in calls}
            self.entities |= {value for _, arguments in calls for value in iter_identifying_values(arguments)}
            self.tools += [tool_set for tool_set in tools if tool_set not in self.tools]
        if not self.rows:
            raise InputError(f"{path}: nothing to compare with: no row has a text, calls or tools")
        if called:
            self.tools.append(frozenset(called))

    def match(
        self, text: set[str], calls: set[str], entities: set[str], tools: Sequence[frozenset[str]]
    ) -> tuple[str, str] | None:
        """Return (kind, matched value) of the first match of a row in the file."""
        same = next((each for each in sorted(text) if each in self.ngrams), None)
        if same:
            return "text", same
        if not calls.isdisjoint(self.calls):
            return "calls", f"{CALLS} calls in a row with the same arguments"
        if any(_is_similar(ours, theirs) for ours in tools for theirs in self.tools):
            return "tools", "the same set of tools"
        shared = sorted(entities & self.entities)
        if len(shared) >= LEAST_ENTITIES and len(shared) >= ENTITIES * len(entities):
            return "entities", ", ".join(shared[:4])
        return None


class Decontaminator:
    """Compares trajectories with all files; counts what matched."""

    def __init__(self, files: Sequence[Path]) -> None:
        """
        Raises:
            InputError: A file cannot be read, or has nothing to compare with.
        """
        self.references = [BenchmarkReference(path) for path in files]
        self.matched: Counter[tuple[str, str]] = Counter()
        """(file, kind) to the number of rows."""
        self.checked = 0

    def match(self, task: Task, trajectory: Trajectory, tools: Sequence[ToolSpec]) -> tuple[str, str] | None:
        """(kind and file, what matched), or None."""
        self.checked += 1
        calls_made = [(event.tool, event.arguments) for event in trajectory.events]
        hit = self._find(join_user_text(trajectory), calls_made, task, tools)
        if hit is None:
            return None
        name, kind, detail = hit
        self.matched[name, kind] += 1
        return f"{kind} of {name}", detail

    def holds(self, task: Task, tools: Sequence[ToolSpec]) -> bool:
        """Return whether a task stands in one of the files, by its requests, gold calls and tools."""
        text = "\n".join(turn.query for turn in task.turns)
        return self._find(text, [(call.tool, call.arguments) for call in task.gold_calls], task, tools) is not None

    def _find(
        self, text: str, calls: Sequence[tuple[str, JsonObject]], task: Task, tools: Sequence[ToolSpec]
    ) -> tuple[str, str, str] | None:
        """Return (file, kind, what matched) of the first match."""
        words, windows = set(iter_ngrams(text)), set(hash_call_windows(calls))
        entities = {value for _, arguments in calls for value in iter_identifying_values(arguments)}
        shown = [tool for tool in tools if tool.name in task.exposed_tools]
        sets = [frozenset(tool.name for tool in shown), frozenset(map(_signature, shown))]
        for reference in self.references:
            match = reference.match(words, windows, entities, sets)
            if match:
                return reference.name, *match
        return None

    def report(self) -> str:
        """A section for the dataset card: what was compared, and what was dropped."""
        lines = ["## Decontamination", "", f"{self.checked} accepted rows were compared with:", ""]
        for reference in self.references:
            kinds = [
                f"{kind} {number}" for (name, kind), number in sorted(self.matched.items()) if name == reference.name
            ]
            lines.append(f"* `{reference.name}` ({reference.rows} rows): dropped {', '.join(kinds) or 'nothing'}")
        lines += [
            "",
            f"A row is dropped if {NGRAM} words in a row of what the user says, {CALLS} calls in a row with the same "
            f"arguments, the set of tools (Jaccard {TOOLS}), or {ENTITIES:.0%} of the telling values of its calls "
            "stand in a file.",
            "",
        ]
        return "\n".join(lines)


def iter_ngrams(text: str) -> Iterator[str]:
    """Runs of `NGRAM` words."""
    words = split_words(text)
    for at in range(len(words) - NGRAM + 1):
        yield " ".join(words[at : at + NGRAM])


def hash_call_windows(calls: Sequence[tuple[str, JsonObject]]) -> Iterator[str]:
    """Hashes of `CALLS` calls in a row."""
    packed = [canonical_json([tool, arguments]) for tool, arguments in calls]
    for at in range(len(packed) - CALLS + 1):
        yield hash_bytes(b"\n".join(packed[at : at + CALLS]), 16)


def iter_identifying_values(arguments: JsonValue) -> Iterator[str]:
    """Yield values that identify one entity in a benchmark: numbers, addresses, full names."""
    return (value for value in iter_entity_values(arguments) if len(value) >= 5 and _TELLING.search(value))


def _is_similar(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    if min(len(ours), len(theirs)) < LEAST_TOOLS:
        return False
    common = len(ours & theirs)
    return common >= TOOLS * (len(ours) + len(theirs) - common)


def _signature(tool: ToolSpec) -> str:
    return f"{tool.name}({','.join(sorted(tool.parameters))})"


def _rows(path: Path) -> Iterator[tuple[str, list[tuple[str, JsonObject]], list[frozenset[str]]]]:
    """(text, calls, sets of tools) of every row: plain JSON Lines with a text, or any format of recorded dialogues."""
    plain = list(_plain(path))
    if plain:
        yield from plain
        return
    for _, dialogue in read_dialogues(path):
        if isinstance(dialogue, TraceDialogue):
            user_texts = [message.content for message in dialogue.messages if message.role == "user"]
            gold = dialogue.task.gold or () if dialogue.task else ()
            text = "\n".join([*user_texts, dialogue.task.scenario if dialogue.task else ""])
            yield text, [(call.tool, call.arguments) for call in (*gold, *dialogue.calls)], []


def _plain(path: Path) -> Iterator[tuple[str, list[tuple[str, JsonObject]], list[frozenset[str]]]]:
    """Rows with a key "text" (or "query", "question", "instruction"), and "tools" and "calls" if they have them."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"decontaminate: {path} cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines, 1):
        try:
            row = orjson.loads(line) if line.strip() else None
        except orjson.JSONDecodeError as error:
            if number > 1:
                raise InputError(f"decontaminate: {path}:{number} is no JSON") from error
            return
        if not isinstance(row, dict):
            continue
        text = next((row[key] for key in ("text", "query", "instruction") if isinstance(row.get(key), str)), None)
        if text is not None:
            yield text, _calls(row.get("calls")), _tool_sets(row.get("tools"))


def _calls(value: Any) -> list[tuple[str, JsonObject]]:
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return [
        (str(row["name"]), row["arguments"]) for row in rows if "name" in row and isinstance(row.get("arguments"), dict)
    ]


def _tool_sets(value: Any) -> list[frozenset[str]]:
    """Names, and names with parameters, of tools given by name or by schema."""
    if not isinstance(value, list) or not value:
        return []
    tools = [row.get("function", row) if isinstance(row, dict) else {"name": row} for row in value]
    names = frozenset(str(tool.get("name")) for tool in tools)
    full = [
        f"{tool['name']}({','.join(sorted(_properties(tool)))})"
        for tool in tools
        if "name" in tool and _properties(tool)
    ]
    return [names, frozenset(full)]


def _properties(tool: JsonObject) -> list[str]:
    schema = tool.get("parameters") or tool.get("inputSchema") or tool.get("input_schema") or {}
    return list(schema.get("properties") or {}) if isinstance(schema, dict) else []


__all__ = ["BenchmarkReference", "Decontaminator"]
