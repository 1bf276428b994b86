"""Generate plausible values for a schema by type, format, limits, examples and name, deterministically."""

import math
import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.naming import to_snake_case
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.vocabulary import (
    TAGS,
    InventedPerson,
    find_range,
    invent_datetime,
    invent_person,
    invent_text,
)
from trajsmith.environments.pattern_text import generate_matching_text
from trajsmith.records import JsonObject, JsonValue

Path = tuple[str, ...]
"""Where a value stands in its record; "*" is any item of a list."""

_DEEP = 6
"""Depth at which nothing optional is made any more; twice that is no end at all."""
_OPTIONAL = (0.85, 0.7, 0.4, 0.2)
"""Chance that an optional property is there, by depth."""
_FIELDS = (("start", "end"), ("created", "updated"), ("from", "to"), ("min", "max"), ("check_in", "check_out"))


class OmitValue(Exception):
    """Signal of a slot that has no value for its place."""


Slot = Callable[[], JsonValue]


@dataclass
class ValueContext:
    """Context that the values of one record share."""

    noun: str
    """What the record is, in the singular."""
    number: int
    """0 for the first record of its table: it shows the document's examples."""
    rng: random.Random
    now: datetime
    slots: Mapping[Path, Slot] = field(default_factory=dict)
    """Values for places that are not made here: ids, references to other records."""
    who: InventedPerson = field(init=False)

    def __post_init__(self) -> None:
        self.who = invent_person(self.rng, self.number)


class ValueGenerator:
    """Generator of values for the schemas of a document."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def make(self, schema: JsonObject, at: Path, occasion: ValueContext) -> JsonValue:
        """Return a value for the schema. It may still be invalid where conditions interact: validate it.

        Raises:
            LeftOut: There is none, or none that ends.
            OmitValue: A slot has no value.
        """
        slot = occasion.slots.get(at)
        if slot is not None:
            return slot()
        if len(at) > 2 * _DEEP:
            raise UnsupportedFeature("it contains itself without end")
        merged = self._merge_all_of(schema)
        for key in ("oneOf", "anyOf"):
            if key in merged:
                return self._branch(merged, key, at, occasion)
        if "const" in merged:
            return merged["const"]
        if "enum" in merged:
            choices = [value for value in merged["enum"] if value is not None] or merged["enum"]
            return _copy_value(occasion.rng.choice(choices))
        return self._typed(merged, at, occasion)

    def _merge_all_of(self, schema: JsonObject, depth: int = 0) -> JsonObject:
        """The schema with references followed and `allOf` joined."""
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        merged = {**self._dialect.look(schema), **beside} if "$ref" in schema else dict(schema)
        if depth > _DEEP:
            raise UnsupportedFeature("allOf contains itself")
        for branch in merged.pop("allOf", ()):
            more = self._merge_all_of(branch, depth + 1)
            properties = dict(more.get("properties", {}))
            for name, child in merged.get("properties", {}).items():
                properties[name] = {"allOf": [properties[name], child]} if name in properties else child
            required = [*more.get("required", ()), *merged.get("required", ())]
            merged = {**more, **merged}
            if properties:
                merged["properties"] = properties
            if required:
                merged["required"] = required
        return merged

    def _branch(self, schema: JsonObject, key: str, at: Path, occasion: ValueContext) -> JsonValue:
        rest = {name: value for name, value in schema.items() if name != key}
        branches = [branch for branch in schema[key] if branch.get("type") != "null"] or list(schema[key])
        occasion.rng.shuffle(branches)
        reasons = []
        for branch in branches:
            try:
                return self.make({"allOf": [branch, rest]} if rest.keys() - {"description"} else branch, at, occasion)
            except UnsupportedFeature as reason:
                reasons.append(str(reason))
        raise UnsupportedFeature(reasons[0] if reasons else f"empty {key}")

    def _typed(self, schema: JsonObject, at: Path, occasion: ValueContext) -> JsonValue:
        kind = _find_kind(schema)
        example = _choose_example(schema, kind, occasion)
        if example is not None:
            return _copy_value(example)
        if kind == "object":
            return self._object(schema, at, occasion)
        if kind == "array":
            return self._array(schema, at, occasion)
        if kind in ("integer", "number"):
            return _generate_number(schema, kind, _property_name(at), occasion)
        if kind == "boolean":
            return occasion.rng.random() < 0.5
        if kind == "null":
            return None
        return _generate_text(schema, _property_name(at), occasion)

    def _object(self, schema: JsonObject, at: Path, occasion: ValueContext) -> JsonObject:
        content: JsonObject = {}
        required = set(schema.get("required", ()))
        depth = len(at)
        chance = _OPTIONAL[min(depth, len(_OPTIONAL) - 1)] if depth < _DEEP else 0.0
        for name, child in schema.get("properties", {}).items():
            wanted = name in required or occasion.rng.random() < chance or (*at, name) in occasion.slots
            if not wanted:
                continue
            try:
                content[name] = self.make(child, (*at, name), occasion)
            except (UnsupportedFeature, OmitValue) as reason:
                if name in required:
                    raise UnsupportedFeature(f"{name}: {reason}") from reason
        more = schema.get("additionalProperties")
        for name in required - content.keys():
            content[name] = self.make(more if isinstance(more, dict) else {"type": "string"}, (*at, name), occasion)
        if isinstance(more, dict) and more and depth < _DEEP:
            for name in occasion.rng.sample(TAGS, 2):
                content.setdefault(name, self.make(more, (*at, name), occasion))
        _put_in_order(content)
        return content

    def _array(self, schema: JsonObject, at: Path, occasion: ValueContext) -> list[JsonValue]:
        if "prefixItems" in schema:
            return [self.make(child, (*at, "*"), occasion) for child in schema["prefixItems"]]
        least = schema.get("minItems", 0)
        wished = occasion.rng.randint(1, 3) if len(at) < _DEEP - 2 else 0
        count = max(least, min(schema.get("maxItems", 3), wished))
        items: list[JsonValue] = []
        for _ in range(count * 3):
            if len(items) == count:
                break
            try:
                value = self.make(schema.get("items", {"type": "string"}), (*at, "*"), occasion)
            except (UnsupportedFeature, OmitValue):
                if len(items) >= least:
                    break
                raise
            if value not in items or not (schema.get("uniqueItems") or (*at, "*") in occasion.slots):
                items.append(value)
        return items


def _find_kind(schema: JsonObject) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if kind is None:
        if "properties" in schema or "additionalProperties" in schema:
            return "object"
        return "array" if "items" in schema else "string"
    return str(kind)


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
}


def _choose_example(schema: JsonObject, kind: str, occasion: ValueContext) -> JsonValue:
    """Return an example of the document: for the first record, and where the property's name says nothing."""
    examples = [value for value in schema.get("examples", ()) if isinstance(value, _TYPES.get(kind, ()))]
    if not examples or any(isinstance(value, bool) for value in examples):
        return None
    if kind in ("object", "array"):
        return None  # made of their parts, so that references in them hold
    if occasion.number == 0 or (len(examples) > 1 and occasion.rng.random() < 0.5):
        return examples[0] if occasion.number == 0 else occasion.rng.choice(examples)
    return None


def _property_name(at: Path) -> str:
    return next((part for part in reversed(at) if part != "*"), "")


def _copy_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy_value(child) for key, child in value.items()}
    return [_copy_value(child) for child in value] if isinstance(value, list) else value


def _put_in_order(content: JsonObject) -> None:
    """Swap the values of a start and an end property where the end comes first."""
    for name, value in list(content.items()):
        for first, second in _FIELDS:
            spelled = to_snake_case(name)
            if not spelled.startswith(first) or not isinstance(value, str | int | float) or isinstance(value, bool):
                continue
            for other in content:
                same_kind = type(content[other]) is type(value) and other != name
                if (
                    same_kind
                    and to_snake_case(other) == second + spelled.removeprefix(first)
                    and content[other] < value
                ):
                    content[name], content[other] = content[other], value


# Numbers and texts


def _generate_number(schema: JsonObject, kind: str, name: str, occasion: ValueContext) -> int | float:
    low, high, digits = find_range(name)
    least, most = schema.get("minimum"), schema.get("maximum")
    step = schema.get("multipleOf") or (1 if kind == "integer" else None)
    if isinstance(schema.get("exclusiveMinimum"), int | float):
        least = schema["exclusiveMinimum"] + (step or 0.01)
    if isinstance(schema.get("exclusiveMaximum"), int | float):
        most = schema["exclusiveMaximum"] - (step or 0.01)
    if least is not None:
        low, high = (low, high) if low >= least else (least, max(high, least))
    if most is not None:
        low, high = (low if low <= most else (least if least is not None else most - 10)), min(high, most)
    if low > high:
        raise UnsupportedFeature(f"no number between {low} and {high}")
    value = round(occasion.rng.uniform(low, high), digits)
    if step:
        value = _round_to_multiple(value, step)
        value = value + step if value < low else value - step if value > high else value
        if not low <= value <= high:
            value = _find_only_multiple(least, most, step)
            low = high = value
    return int(value) if kind == "integer" or (step and float(value).is_integer()) else min(max(value, low), high)


def _find_only_multiple(least: float | None, most: float | None, step: float) -> float:
    """The smallest multiple of a step within limits that leave few."""
    value = 0.0 if least is None else math.ceil(least / step) * step
    if most is not None and value > most:
        raise UnsupportedFeature(f"no multiple of {step} between {least} and {most}")
    return value


def _round_to_multiple(value: float, step: float) -> float:
    """A multiple of a step nearby, if there is one, that is one in floating point, too."""
    whole = round(value / step)
    for shift in range(100):
        near = round((whole - shift) * step, 6)
        if float(near / step).is_integer():
            return near
    return round(whole * step, 6)


def _generate_text(schema: JsonObject, name: str, occasion: ValueContext) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if "pattern" in schema:
        try:
            return generate_matching_text(schema["pattern"], occasion.rng, least)
        except ValueError as reason:
            raise UnsupportedFeature(str(reason)) from reason
    value = _generate_formatted(schema.get("format"), name, occasion)
    if value is not None:
        return value
    value = invent_text(name, occasion.noun, occasion.rng, occasion.who)
    if value is None:
        examples = [text for text in schema.get("examples", ()) if isinstance(text, str)]
        value = examples[0] if examples else f"{to_snake_case(name) or occasion.noun}-{occasion.rng.randint(1, 99)}"
    if len(value) < least:
        value = (value + " " + "and so on " * (least // 10 + 1))[: max(least, len(value))].rstrip().ljust(least, ".")
    return value if most is None else value[:most]


def _generate_formatted(name: Any, place: str, occasion: ValueContext) -> str | None:
    rng, who = occasion.rng, occasion.who
    if name in ("date-time", "date", "time"):
        when = invent_datetime(place, rng, occasion.now)
        if name == "date":
            return when.strftime("%Y-%m-%d")
        return when.strftime("%Y-%m-%dT%H:%M:%SZ" if name == "date-time" else "%H:%M:%SZ")
    if name == "uuid":
        return str(uuid.UUID(int=rng.getrandbits(128), version=4))
    if name in ("email", "idn-email"):
        return f"{who.user}@example.com"
    if name in ("uri", "url", "iri", "uri-reference", "iri-reference"):
        return f"https://example.com/{to_snake_case(place) or 'page'}/{rng.randint(1, 999)}"
    formats = {
        "ipv4": f"192.0.2.{rng.randint(1, 254)}",
        "ipv6": f"2001:db8::{rng.randint(1, 9999)}",
        "hostname": f"{who.last.lower()}.example.com",
        "byte": "dHJhanNtaXRo",
        "duration": f"PT{rng.randint(1, 48)}H",
        "password": f"{who.first}-{rng.randint(1000, 9999)}",
        "json-pointer": "/value",
        "regex": "^[a-z]+$",
    }
    return formats.get(name) if isinstance(name, str) else None
