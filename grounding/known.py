"""What a user must know so that the calls of a grounded chain can be made: values, and ways to tell rows apart."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chatmodel import Phrasebook
from chatmodel.surface import human, say
from grounding.names import is_identifier
from trajectory import Composite, Constant, FromDefault, FromOutput, FromUser, GoldCall, Known, Selector, ToolSpec

Leaf = FromUser | FromOutput | FromDefault | Constant


def leaves(call: GoldCall) -> Iterator[tuple[str, Leaf, Any]]:
    """(leaf path, where it comes from, value) of every argument; nested arguments give one entry per leaf."""
    for name, source in call.provenance.items():
        if isinstance(source, Composite):
            for path, leaf in source.leaves.items():
                yield path, leaf, value_at(call.arguments, path)
        else:
            yield name, source, call.arguments[name]


def value_at(arguments: Mapping[str, Any], path: str) -> Any:
    """A value by a concrete path such as "items[0].sku"."""
    node: Any = arguments
    for part in path.replace("[", ".[").split("."):
        node = node[int(part[1:-1])] if part.startswith("[") else node[part]
    return node


def selector_key(call: int, selector: Selector) -> str:
    """The known entry that tells which row of a result is meant; two rows of one list have two entries."""
    return f"pick.{call}.{selector.rows}.{selector.field}.{selector.how}={selector.value}"


def needed(call: GoldCall) -> list[str]:
    """Keys of everything that the user must have said before this call can be made."""
    keys = []
    for _, source, _ in leaves(call):
        if isinstance(source, FromUser):
            keys.append(source.known)
        elif isinstance(source, FromOutput):
            keys += [selector_key(source.call, selector) for selector in source.selectors if selector.how != "only"]
    return list(dict.fromkeys(keys))


def said_in(calls: Sequence[GoldCall]) -> dict[str, Any]:
    """Known key to value, of all values (not the row choices) that the calls take from the user."""
    return {source.known: value for call in calls for _, source, value in leaves(call) if isinstance(source, FromUser)}


def collect_known(
    calls: Sequence[GoldCall], tools: Mapping[str, ToolSpec], phrasebook: Phrasebook
) -> tuple[Known, ...]:
    """All entries, in the order in which they are first needed, each once."""
    found: dict[str, Known] = {}
    for call in calls:
        for path, source, value in leaves(call):
            name = path.split(".")[-1].split("[")[0]
            if isinstance(source, FromUser) and source.known not in found:
                label = label_of(name, call.tool, phrasebook)
                found[source.known] = Known(key=source.known, label=label, value=value, said=say(value), slot=name)
            elif isinstance(source, FromOutput):
                for selector in source.selectors:
                    key = selector_key(source.call, selector)
                    if selector.how != "only" and key not in found:
                        field = selector.field.split(".")[-1]
                        found[key] = Known(
                            key=key,
                            label=label_of(field, call.tool, phrasebook),
                            value=selector.value,
                            said=say(selector.value),
                            slot=f"{name}|{field}",
                            how=selector.how,
                        )
    return tuple(found.values())


def label_of(name: str, tool: str, phrasebook: Phrasebook) -> str:
    """What a person calls a parameter or field."""
    for key in (f"{tool}.{name}", name):
        phrases = phrasebook.parameters.get(key)
        if phrases is not None and phrases.label:
            return phrases.label
    return human(name.removesuffix("_id") if is_identifier(name) else name)
