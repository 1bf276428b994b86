"""Check of a phrasebook against the tools that it speaks of, before anything is said."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from trajsmith.grounding.fields import list_input_fields
from trajsmith.phrasing import Phrasebook, Question, ToolPhrases, check_template, list_slots
from trajsmith.phrasing.table_phrases import TablePhrases
from trajsmith.records import EnvironmentSpec, InputError, JsonValue, ToolSpec, suggest_names

MOST_NAMES = 30
"""Known names that an error lists."""
OF_A_RESULT = frozenset({"out", "arg", "before", "others", "user_name", "now"})
"""Slots of phrases that are said after a call."""
_SET = re.compile(r"\{%-?\s*set\s+(\w+)")
_CODE = re.compile(r"\{[^{}]*\}")
_ATTRIBUTES = re.compile(r"(?<![\w.])(out|arg|row)((?:\.[a-z_]\w*)+)(?![\w(])")


def check_phrasebook(book: Phrasebook, spec: EnvironmentSpec) -> None:
    """Check that all tools, parameters, fields and slots of a phrasebook exist.

    Fields of results are compared where the schemas of the results name them.

    Raises:
        InputError: One does not; the text names file and key, and what there is.
    """
    fault = next(_PhrasebookCheck(book, spec).find_faults(), None)
    if fault is not None:
        raise InputError(f"phrasebook {book.file or f'of {spec.name}'}: {fault}")


class _PhrasebookCheck:
    def __init__(self, book: Phrasebook, spec: EnvironmentSpec) -> None:
        self.book = book
        self.tools = {tool.name: tool for tool in spec.tools}
        self.results = {tool.name: _list_field_names(tool.output_schema) for tool in spec.tools}
        fields = set(_list_property_names([spec.state_schema, *(tool.input_schema for tool in spec.tools)]))
        self.fields = None if None in self.results.values() else fields.union(*filter(None, self.results.values()))
        """Names of all parameters and fields; None where a result may have fields that no schema names."""

    def find_faults(self) -> Iterator[str]:
        yield from _check_slots("scenarios", self.book.scenarios, {"name", "role"})
        for name, phrases in self.book.tools.items():
            yield from self._check_tool(f"tools.{name}", name, phrases)
        for key, words in self.book.parameters.items():
            tool, dot, parameter = key.rpartition(".")
            if dot:
                yield from self._check_parameter(f"parameters.{key}", tool, parameter)
            else:
                yield from _check_name(f"parameters.{key}", "parameter or field", key, self.fields)
            yield from _check_slots(f"parameters.{key}.tell", words.tell, {"value"})
            yield from _check_slots(f"parameters.{key}.ask", words.ask, ())
        for key, entity in self.book.entities.items():
            yield from _check_name(f"entities.{key}", "parameter or field", key, self.fields)
            for field, texts in entity.by.items():
                yield from _check_name(f"entities.{key}.by.{field}", "parameter or field", field, self.fields)
                yield from _check_slots(f"entities.{key}.by.{field}", texts, {"value", "noun"})
            for kind in ("name", "row"):
                yield from _check_slots(f"entities.{key}.{kind}", getattr(entity, kind), self.fields)
        for name, table in self.book.tables.items():
            yield from self._check_table(f"tables.{name}", name, table)

    def _check_tool(self, key: str, name: str, phrases: ToolPhrases) -> Iterator[str]:
        yield from _check_name(key, "tool", name, self.tools)
        if name not in self.tools:
            return
        parameters = _list_parameters(self.tools[name])
        for kind in ("ask", "say", "narrate", "request"):
            yield from _check_slots(f"{key}.{kind}", getattr(phrases, kind), parameters)
        for kind in ("confirm", "unavailable"):
            yield from self._check_fields(f"{key}.{kind}", name, getattr(phrases, kind), {*parameters, "row", "now"})
        for kind in ("done", "brief", "detailed", "report"):
            yield from self._check_fields(f"{key}.{kind}", name, getattr(phrases, kind), OF_A_RESULT)
        for path in phrases.facts:
            yield from self._check_path(f"{key}.facts", name, path)
        for parameter in phrases.alternatives:
            yield from _check_name(f"{key}.alternatives", f"parameter of {name}", parameter, parameters)
        for number, question in enumerate(phrases.questions):
            yield from self._check_question(f"{key}.questions[{number}]", name, question, parameters)

    def _check_question(self, key: str, name: str, question: Question, parameters: set[str]) -> Iterator[str]:
        if question.row:
            yield from _check_name(f"{key}.row", "parameter or field", question.row, self.fields)
        for path in () if question.row else question.asks:
            yield from self._check_path(f"{key}.asks", name, path)
        for kind in ("ask", "say"):
            yield from _check_slots(f"{key}.{kind}", getattr(question, kind), {*parameters, "row"})
        yield from self._check_fields(f"{key}.answer", name, question.answer, {*OF_A_RESULT, "row"})

    def _check_table(self, key: str, name: str, table: TablePhrases) -> Iterator[str]:
        named = {"": name, ".opening": table.opening, ".parent": table.parent}
        for part, tool in named.items():
            if tool:
                yield from _check_name(f"{key}{part}", "tool", tool, self.tools)
        for kind in ("lookups", "joins", "writes"):
            for number, step in enumerate(getattr(table, kind)):
                place = f"{key}.{kind}[{number}]"
                yield from _check_name(f"{place}.tool", "tool", step.tool, self.tools)
                yield from self._check_parameter(f"{place}.parameter", step.tool, step.parameter)
        if table.alone:
            yield from _check_slots(f"{key}.alone", (table.alone,), self.fields)
        for kind in ("where", "bounds", "measures"):
            for field in getattr(table, kind):
                yield from _check_name(f"{key}.{kind}", "field", field, self.fields)

    def _check_parameter(self, key: str, tool: str, parameter: str) -> Iterator[str]:
        yield from _check_name(key, "tool", tool, self.tools)
        if tool in self.tools:
            yield from _check_name(key, f"parameter of {tool}", parameter, _list_parameters(self.tools[tool]))

    def _check_path(self, key: str, tool: str, path: str) -> Iterator[str]:
        for name in re.findall(r"[^\W\d]\w*", path):
            yield from _check_name(key, f"field of the result of {tool}", name, self.results[tool])

    def _check_fields(self, key: str, tool: str, texts: Iterable[str], slots: Collection[str]) -> Iterator[str]:
        """Check slots, and the fields that are read from them."""
        known = {"out": self.results[tool], "arg": _list_parameters(self.tools[tool]), "row": self.fields}
        kinds = {"out": f"field of the result of {tool}", "arg": f"parameter of {tool}", "row": "parameter or field"}
        yield from _check_slots(key, texts, slots)
        for text in texts:
            for code in _CODE.findall(text):
                for slot, path in _ATTRIBUTES.findall(code):
                    for name in path.split(".")[1:]:
                        yield from _check_name(f"{key}: {text!r}", kinds[slot], name, known[slot])


def _check_slots(key: str, texts: Iterable[str], slots: Collection[str] | None) -> Iterator[str]:
    for text in texts:
        try:
            check_template(text)
        except InputError as error:
            yield f"{key}: {error}"
            return
        for slot in sorted(list_slots(text).difference(_SET.findall(text))):
            yield from _check_name(f"{key}: {text!r}", "slot", slot, slots)


def _check_name(key: str, kind: str, name: str, names: Collection[str] | None) -> Iterator[str]:
    """Yield a fault for a name that is not known; None for names says that any may be meant."""
    if names is None or name in names:
        return
    hint = suggest_names(name, names)
    known = sorted(names)
    shown = ", ".join(known[:MOST_NAMES]) + (f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else "")
    yield f"{key}: no {kind} {name!r}{f' ({hint})' if hint else ''}; there are: {shown or 'none'}"


def _list_parameters(tool: ToolSpec) -> set[str]:
    return {*tool.parameters, *(leaf.name for leaf in list_input_fields(tool))}


def _list_field_names(schema: JsonValue) -> set[str] | None:
    """Return the names of all fields of a result, at any depth; None if it may have others."""
    return None if not schema or _is_open(schema) else set(_list_property_names(schema))


def _list_property_names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"]
        for child in schema.values():
            yield from _list_property_names(child)
    elif isinstance(schema, list):
        for child in schema:
            yield from _list_property_names(child)


def _is_open(schema: Any) -> bool:
    """Return True if some object or list in a schema has no schema of what is in it."""
    if isinstance(schema, list):
        return any(map(_is_open, schema))
    if not isinstance(schema, dict):
        return schema is True
    parts = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    parts += [schema[key] for key in ("items", "additionalProperties", "anyOf", "oneOf", "allOf") if key in schema]
    ends = {"object": ("properties", "additionalProperties"), "array": ("items", "prefixItems")}
    kind = schema.get("type")
    nothing = not schema.keys() & {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "properties"}
    unnamed = isinstance(kind, str) and kind in ends and not any(key in schema for key in ends[kind])
    return nothing or unnamed or any(map(_is_open, parts))
