"""Type hints of arguments, from JSON Schemas: classes for objects, choices where a schema states them."""

import re
from typing import Any

from trajsmith.envgen.generate.identifiers import to_class_name
from trajsmith.envgen.traces.expressions import to_variable

SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
PLAIN = re.compile(r"[A-Za-z0-9][\w .@:/+-]{0,39}")
"""A value that may stand in the code as an example: one line, no markup."""
DEEPEST = 6
MOST_CHOICES = 60
MOST_FIELDS = 60


class HintWriter:
    """Writes type hints and collects the classes that they need."""

    def __init__(self) -> None:
        self.classes: list[str] = []
        self._names: set[str] = set()

    def write(self, schema: Any, name: str, root: Any, depth: int = 0) -> str:
        """Return the hint of a value; `Any` for what has no simpler type."""
        schema = resolve_reference(schema, root)
        if not isinstance(schema, dict) or depth > DEEPEST:
            return "Any"
        choices = schema.get("enum")
        if (
            isinstance(choices, list)
            and 0 < len(choices) <= MOST_CHOICES
            and all(isinstance(c, str) and len(c) <= 200 for c in choices)
        ):
            return f"Literal[{', '.join(map(repr, dict.fromkeys(choices)))}]"
        for word in ("anyOf", "oneOf"):
            if isinstance(schema.get(word), list) and schema[word]:
                return self._join([self.write(one, name, root, depth + 1) for one in schema[word][:8]])
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._join([self.write({**schema, "type": one}, name, root, depth + 1) for one in kind[:8]])
        if kind == "array":
            return f"list[{self.write(schema.get('items'), f'{name}_item', root, depth + 1)}]"
        if kind == "object":
            fields = schema.get("properties")
            if not isinstance(fields, dict) or not fields or len(fields) > MOST_FIELDS:
                return "dict[str, Any]"
            return self._write_class(schema, fields, name, root, depth)
        return SCALARS.get(kind, "Any") if isinstance(kind, str) else "Any"

    @staticmethod
    def _join(hints: list[str]) -> str:
        return "Any" if "Any" in hints else " | ".join(dict.fromkeys(hints))

    def _write_class(self, schema: dict[str, Any], fields: dict[str, Any], name: str, root: Any, depth: int) -> str:
        cls = wished = f"{to_class_name(to_variable(name).lower())}Argument"
        number = 1
        while cls in self._names:
            number += 1
            cls = f"{wished}{number}"
        self._names.add(cls)
        required: list[Any] = list(schema["required"]) if isinstance(schema.get("required"), list) else []
        lines = [f"class {cls}(StateModel):", '    """Part of an argument."""', ""]
        taken = set[str]()
        for key, inner in fields.items():
            field = to_variable(key)
            while field in taken:
                field += "_2"
            taken.add(field)
            hint = self.write(inner, f"{name}_{field}", root, depth + 1)
            optional = key not in required
            settings = [f"alias={key!r}"] if field != key else []
            default = ["default=None"] if optional else []
            hint = f"{hint} | None" if optional and hint != "Any" else hint
            value = f" = Field({', '.join([*default, *settings])})" if settings else " = None" if optional else ""
            lines.append(f"    {field}: {hint}{value}")
        self.classes.append("\n".join(lines))
        return cls


def resolve_reference(schema: Any, root: Any) -> Any:
    """Return what a local reference leads to; None for one that leads nowhere or in a circle."""
    for _ in range(8):
        if not isinstance(schema, dict) or "$ref" not in schema:
            return schema
        target = root
        parts = str(schema["$ref"]).split("/")
        for part in parts[1:] if parts[0] == "#" else ["?"]:
            target = target.get(part) if isinstance(target, dict) else None
        schema = target
    return None


def pick_examples(values: list[Any], most: int = 4) -> list[str]:
    """Return recorded texts that may stand in a schema: short, on one line, without markup."""
    texts = dict.fromkeys(value for value in values if isinstance(value, str) and PLAIN.fullmatch(value))
    return list(texts)[:most]


def clean_description(text: Any, most: int = 300) -> str:
    """Return the first sentences of a description that are plain text; empty if they hold markup, links or code."""
    if not isinstance(text, str):
        return ""
    sentences = re.split(r"(?<=[.!?])\s+", " ".join(text.split()))
    chosen: list[str] = []
    for sentence in sentences[:3]:
        plain = sentence.isascii() and sentence.isprintable() and not re.search(r"[`<>{}\\|]|://|\"\"\"|'''", sentence)
        if not plain or len(" ".join([*chosen, sentence])) > most:
            break
        chosen.append(sentence.replace('"', "'"))
    return " ".join(chosen)
