"""All outputs and parameters of a list of tools as columns, so that pairs of them are compared by the million."""

import functools
import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec

import numpy as np

from trajsmith.grounding.names import CODE_WORDS, ID_WORDS
from trajsmith.phrasing import stem
from trajsmith.records import ToolSpec
from trajsmith.toolgraph.endpoints import (
    Endpoint,
    ToolText,
    find_boilerplate,
    has_example,
    is_new,
    is_receipt,
    read_outputs,
    read_parameters,
    read_tool,
)
from trajsmith.toolgraph.lexicon import CARRIERS, CONTROL, ONESELF, VERB_CLASSES
from trajsmith.toolgraph.word_statistics import Vocabulary

P = ParamSpec("P")
Encoder = Callable[[Sequence[str]], Any]
NAME_WORDS, ENTITY_WORDS, DESCRIPTION_WORDS, MEANT_WORDS = 5, 4, 16, 8
BAGS = 10_000
"""Texts that are turned into vectors at a time: bounds the memory."""
TYPES = {"string": 1, "integer": 2, "number": 4, "boolean": 8, "array": 16, "object": 32}
_CARRIERS = frozenset(map(stem, CARRIERS))
_CONTROL = frozenset(map(stem, CONTROL))
_ONESELF = frozenset(map(stem, ONESELF))


@dataclass(frozen=True)
class EndpointSide:
    """One side of the matching: all outputs, or all parameters. Arrays have one row per endpoint."""

    endpoints: list[Endpoint]
    tool: Any
    """int32: row of its tool."""
    own: Any
    """int32 [n, 5]: words of the name, -1 where there are fewer."""
    entity: Any
    """int32 [n, 4]."""
    around: Any
    """int32 [n, 4]."""
    described: Any
    """int32 [n, 16]."""
    meant: Any
    """int32 [n, 8]."""
    types: Any
    """int32: bit mask of JSON types, 0 if the schema does not say."""
    kinds: Any
    """int32: bit mask of kinds of value."""
    flags: dict[str, Any]
    """bool arrays: identifies, echo, virtual, choice, required, default, example, list, carrier."""
    text_vector: Any
    """float32 [n, 64]: name, entity and description; [n, 64 + d] with an encoder of d dimensions."""
    name_key: Any
    """int64: equal for equal sets of words in the name."""
    concept_key: Any
    """int64: the same with the entity, where the name alone does not say what it belongs to."""


@dataclass(frozen=True)
class EndpointTable:
    """Tools, what they give and what they take."""

    tools: Sequence[ToolSpec]
    texts: list[ToolText]
    server: Any
    """int32 [tools]: row of its server."""
    verb: Any
    """int32 [tools]: place in `VERB_CLASSES`, or their number if unknown."""
    takes: Any
    gives: Any
    nouns: Any
    """int32 [tools, 4]: things that its name names."""
    spoken: Any
    """int32 [tools, 8]: all words of its name."""
    makes: Any
    """int32 [tools]: what its verb makes, -1 if nothing."""
    weights: Any
    """float32 [words]: inverse document frequencies."""
    mentioned: Any
    """int64, sorted: parameters and the tools that their descriptions name, see `find_tool_mentions`."""
    outputs: EndpointSide
    parameters: EndpointSide
    results: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """Results of functions decorated with `compute_once`."""


def compute_once(
    compute: Callable[Concatenate[EndpointTable, P], Any],
) -> Callable[Concatenate[EndpointTable, P], Any]:
    """Decorate a function of a table: its array is computed once for each table, and read-only from then on.

    Pairs are measured in parts, and without this each part would go through the whole table again.
    """

    @functools.wraps(compute)
    def get(table: EndpointTable, /, *arguments: P.args, **named: P.kwargs) -> Any:
        key = (compute, arguments, *named.items())
        if key not in table.results:
            table.results[key] = compute(table, *arguments, **named)
            table.results[key].flags.writeable = False
        return table.results[key]

    return get


def build_table(tools: Sequence[ToolSpec], encode: Encoder | None = None) -> EndpointTable:
    """Read the tools; the order of rows is that of the tools and of their schemas.

    Args:
        tools: Those of one server together.
        encode: Texts to float32 [n, d] of length one; None for the shipped words alone.
    """
    vocabulary = Vocabulary()
    begins = find_boilerplate(tools)
    texts = [read_tool(tool, begins.get(tool.server, "")) for tool in tools]
    taken = [read_parameters(index, tool, text) for index, (tool, text) in enumerate(zip(tools, texts, strict=True))]
    outputs_by_tool = [
        read_outputs(index, tool, text, asked)
        for index, (tool, text, asked) in enumerate(zip(tools, texts, taken, strict=True))
    ]
    nouns = [vocabulary.number(text.nouns) for text in texts]
    spoken = [vocabulary.number(text.spoken) for text in texts]
    makes = [vocabulary.number(text.makes) for text in texts]
    rows_out = _Rows(vocabulary, texts, [end for tool_endpoints in outputs_by_tool for end in tool_endpoints])
    rows_in = _Rows(vocabulary, texts, [end for tool_endpoints in taken for end in tool_endpoints])
    weights, vectors = vocabulary.tables()
    encoded = _encoded([*rows_out.endpoints, *rows_in.endpoints], encode)
    servers = {name: row for row, name in enumerate(dict.fromkeys(tool.server for tool in tools))}
    verbs = {name: row for row, name in enumerate(VERB_CLASSES)}
    return EndpointTable(
        tools=tools,
        texts=texts,
        server=np.array([servers[tool.server] for tool in tools], np.int32),
        verb=np.array([verbs.get(text.verb, len(verbs)) for text in texts], np.int32),
        takes=np.array([text.takes for text in texts], np.int32),
        gives=np.array([text.gives for text in texts], np.int32),
        nouns=_padded(nouns, ENTITY_WORDS, last=True),
        spoken=_padded(spoken, 2 * ENTITY_WORDS, last=True),
        makes=_padded(makes, 1)[:, 0],
        weights=weights,
        mentioned=find_tool_mentions(tools, rows_in.endpoints),
        outputs=rows_out.side(weights, vectors, encoded[: len(rows_out.endpoints)]),
        parameters=rows_in.side(weights, vectors, encoded[len(rows_out.endpoints) :]),
    )


class _Rows:
    def __init__(self, vocabulary: Vocabulary, tools: Sequence[ToolText], endpoints: list[Endpoint]) -> None:
        self.tools = tools
        self.endpoints = endpoints
        self.own = [vocabulary.number(end.own) for end in endpoints]
        self.entity = [vocabulary.number(end.entity) for end in endpoints]
        self.around = [vocabulary.number(end.around) for end in endpoints]
        self.described = [vocabulary.number(end.described) for end in endpoints]
        self.meant = [vocabulary.number(end.meant) for end in endpoints]

    def side(self, weights: Any, vectors: Any, encoded: Any) -> EndpointSide:
        ends = self.endpoints
        texts = [
            [*own, *entity, *described]
            for own, entity, described in zip(self.own, self.entity, self.described, strict=True)
        ]
        return EndpointSide(
            endpoints=ends,
            tool=np.array([end.tool for end in ends], np.int32),
            own=_padded(self.own, NAME_WORDS, last=True),
            entity=_padded(self.entity, ENTITY_WORDS, last=True),
            around=_padded(self.around, ENTITY_WORDS, last=True),
            described=_padded(self.described, DESCRIPTION_WORDS),
            meant=_padded(self.meant, MEANT_WORDS),
            types=np.array([sum(TYPES.get(name, 0) for name in end.field.types) for end in ends], np.int32),
            kinds=np.array([end.kinds for end in ends], np.int32),
            flags=_flags(ends, self.tools),
            text_vector=_blended(_bag(texts, weights, vectors), encoded),
            name_key=np.array([hash_words(end.own) for end in ends], np.int64),
            concept_key=np.array(
                [hash_words((*end.own, *end.entity) if end.bare else end.own) for end in ends], np.int64
            ),
        )


def _encoded(ends: Sequence[Endpoint], encode: Encoder | None) -> Any:
    """float32 [n, d] of what the encoder makes of the endpoints, each distinct text once; d = 0 without an encoder."""
    if encode is None or not ends:
        return np.zeros((len(ends), 0), np.float32)
    texts = [describe_endpoint(end) for end in ends]
    distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return np.asarray(encode(list(distinct)), np.float32)[[distinct[text] for text in texts]]


def _blended(vectors: Any, encoded: Any) -> Any:
    """Word vectors with an encoder's beside them: the likeness of two rows is the mean of both likenesses."""
    if not encoded.shape[1]:
        return vectors
    return np.ascontiguousarray(np.hstack([vectors, encoded]) / np.float32(np.sqrt(2)))


def describe_endpoint(end: Endpoint) -> str:
    """Return the text to encode for an endpoint: its name in words, its entity, its description."""
    name = end.field.name.replace("_", " ").replace("*", " ")
    return " ".join(f"{' '.join(end.field.context)} {name}: {end.field.description[:300]}".split())


@functools.lru_cache(maxsize=200_000)
def hash_words(words: tuple[str, ...]) -> int:
    """A number that is the same for equal sets of words; -1 for none."""
    digest = hashlib.blake2b(" ".join(sorted(set(words))).encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big") if words else -1


def _flags(ends: list[Endpoint], texts: Sequence[ToolText]) -> dict[str, Any]:
    columns = {
        "identifies": [end.identifies for end in ends],
        "echo": [end.echo for end in ends],
        "virtual": [end.virtual for end in ends],
        "choice": [end.field.is_choice for end in ends],
        "required": [end.field.required for end in ends],
        "default": [end.field.schema.get("default") is not None for end in ends],
        "example": [has_example(end.field.description) for end in ends],
        "list": ["[*]" in end.field.path or "array" in end.field.types for end in ends],
        "headed": [bool(end.own) and (end.own[-1] in ID_WORDS or end.own[-1] in CODE_WORDS) for end in ends],
        "carrier": [bool(end.own) and all(word in _CARRIERS for word in end.own) for end in ends],
        "receipt": [is_receipt(end) for end in ends],
        "new": [is_new(end, texts[end.tool]) for end in ends],
        "primitives": [end.field.path.endswith(("[*]", ".*")) for end in ends],
        "bare": [end.bare for end in ends],
        "control": [any(word in _CONTROL for word in end.own) for end in ends],
        "oneself": [bool(end.entity) and all(word in _ONESELF for word in end.entity) for end in ends],
    }
    return {name: np.array(values, bool) for name, values in columns.items()}


def _padded(rows: list[list[int]], width: int, last: bool = False) -> Any:
    """int32 [n, width] of the first or last words of each row, -1 behind them."""
    table = np.full((len(rows), width), -1, np.int32)
    for index, row in enumerate(rows):
        window = row[-width:] if last else row[:width]
        table[index, : len(window)] = window
    return table


def _bag(rows: list[list[int]], weights: Any, vectors: Any) -> Any:
    """Weighted sum of word vectors per row, of length one (zero for an empty row)."""
    summed = np.zeros((len(rows), vectors.shape[1]), np.float32)
    for begin in range(0, len(rows), BAGS):
        part = rows[begin : begin + BAGS]
        lengths = np.array([len(row) for row in part], np.int64)
        flat = np.fromiter((word for row in part for word in row), np.int64, int(lengths.sum()))
        filled = np.flatnonzero(lengths)
        if filled.size:
            starts = np.concatenate(([0], np.cumsum(lengths[filled])[:-1]))
            summed[begin + filled] = np.add.reduceat(vectors[flat] * weights[flat, None], starts, axis=0)
    return summed / np.maximum(np.linalg.norm(summed, axis=1, keepdims=True), 1e-6)


_COMPOUND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,40}(?:[_\-.:/][A-Za-z0-9]+)+|[A-Za-z]?[a-z]{1,40}(?:[A-Z][A-Za-z0-9]*)+")
"""Names of several parts; a tool that is named by one plain word cannot be told from the word."""
_EXAMPLE_OF = re.compile(r"(?:\be\.g\.?,?|\bexample:?|\bsuch as|\blike|\bsame as)\s*[\"'`(]*$", re.IGNORECASE)
"""What stands before a name that is a value, or a comparison."""
_LOOK_BEHIND = 40
"""Characters before a name in which that stands."""


def find_tool_mentions(tools: Sequence[ToolSpec], parameters: Sequence[Endpoint]) -> Any:
    """int64, sorted: row of a parameter times the number of tools, plus the row of a tool that its description names.

    Only other tools of the same server count.
    """
    rows: dict[str, dict[str, int]] = defaultdict(dict)
    for row, tool in enumerate(tools):
        rows[tool.server][tool.name.lower()] = row
    named_tools = {
        place * len(tools) + named
        for place, end in enumerate(parameters)
        for name in _names(end.field.description)
        if (named := rows[tools[end.tool].server].get(name)) is not None and named != end.tool
    }
    return np.array(sorted(named_tools), np.int64)


def _names(description: str) -> list[str]:
    """Compound names in a text, in lower case."""
    return [
        match.group().lower()
        for match in _COMPOUND.finditer(description)
        if not _EXAMPLE_OF.search(description[max(0, match.start() - _LOOK_BEHIND) : match.start()])
    ]
