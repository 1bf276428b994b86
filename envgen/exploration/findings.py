"""What an exploration finds out, and how its texts are read."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trajsmith.envgen.exploration.tool_kinds import ToolKind
from trajsmith.environments.adapters.mcp.settings import CallSettings
from trajsmith.grounding import SchemaField, is_identifier
from trajsmith.grounding.hints import Hints
from trajsmith.grounding.names import is_page, is_paging
from trajsmith.records import EnvironmentSpec, JsonObject, JsonValue, ToolSpec

MEDIA = re.compile(r"^\[[\w./+-]+ sha256:[0-9a-f]+\]$|^\s*\[[\w./+-]+ sha256:", re.MULTILINE)
TIMES = (
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?",
    r"\b1[6-9]\d{8}(?:\.\d+|\d{3})?\b",
    r"\b\d\d:\d\d:\d\d\b",
)
"""Forms of times that are taken out of what is observed, where they are all that differs."""


@dataclass
class ExploredTool:
    """Everything that is known of one tool."""

    spec: ToolSpec
    kind: ToolKind
    fields: list[SchemaField]
    good: list[tuple[JsonObject, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    """Arguments, leaves and origins of the leaves of calls that succeeded."""
    samples: list[JsonValue] = field(default_factory=list)
    changed: bool = False
    """A call changed what was watched."""
    last_refusal: str = ""
    tried: int = 0
    without: str = ""
    """Why agents do not get it."""


@dataclass
class Findings:
    """All that an exploration found out."""

    spec: EnvironmentSpec
    server: str
    instructions: str
    tools: dict[str, ExploredTool]
    watched: list[str]
    states: dict[str, list[CallSettings]] = field(default_factory=dict)
    drop: dict[str, list[str]] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    refused: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    accepted_texts: list[str] = field(default_factory=list)
    literals: bool = False
    """Results are texts of Python lists and dicts."""
    ended: str = ""
    calls: int = 0
    texts: list[str] = field(default_factory=list)
    """Texts that results have."""
    shared: frozenset[str] = frozenset()
    """Those that the results of all states have."""
    databases: list[str] = field(default_factory=list)
    """SQLite files of the workspace."""
    file_times: list[str] = field(default_factory=list)
    """Forms of times that are all that differs in files and rows."""
    hints: dict[tuple[str, str], Hints] = field(default_factory=dict)
    """(tool, leaf) to what refusals said about it."""


def is_offered(leaf: SchemaField) -> bool:
    """Return True for an optional parameter that users would give."""
    return (
        not (is_page(leaf.name) or is_paging(leaf.name)) and not is_identifier(leaf.name) and leaf.types != {"boolean"}
    )


def is_opaque(value: Any) -> bool:
    """Return True for an identifier that was made of chance or of the clock."""
    text = str(value[0] if isinstance(value, list) and value else value)
    return bool(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-.*|[0-9a-f]{12,}|\d{12,}", text))


def list_search_words(texts: Sequence[str]) -> list[str]:
    """Return words that many texts have, for searches."""
    words = Counter(word for text in texts for word in re.findall(r"[A-Za-z]{5,}", text) if len(text) < 120)
    return [word for word, _ in sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))[:12]]


def strip_times(text: str) -> str:
    """Return a text without its times."""
    for pattern in TIMES:
        text = re.sub(pattern, "", text)
    return text


def list_scalars(value: JsonValue) -> list[JsonValue]:
    """Return the values in arguments that are no lists and objects."""
    if isinstance(value, dict):
        return [one for inner in value.values() for one in list_scalars(inner)]
    if isinstance(value, list):
        return [one for inner in value for one in list_scalars(inner)]
    return [value]
