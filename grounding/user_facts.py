"""Facts that a user must know so that the calls of a grounded chain can be made: values and row choices."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trajsmith.grounding.argument_paths import get_leaf_name, get_value_at
from trajsmith.grounding.names import is_identifier
from trajsmith.phrasing import Phrasebook, format_value, humanize
from trajsmith.records import (
    Composite,
    Constant,
    FromDefault,
    FromOutput,
    FromUser,
    GoldCall,
    Selector,
    ToolSpec,
    UserFact,
)

Leaf = FromUser | FromOutput | FromDefault | Constant


def iterate_leaves(call: GoldCall) -> Iterator[tuple[str, Leaf, Any]]:
    """Yield (leaf path, provenance, value) of every argument; nested arguments give one entry per leaf."""
    for name, source in call.provenance.items():
        if isinstance(source, Composite):
            for path, leaf in source.leaves.items():
                yield path, leaf, get_value_at(call.arguments, path)
        else:
            yield name, source, call.arguments[name]


def build_selector_key(call: int, selector: Selector) -> str:
    """The known entry that tells which row of a result is meant; two rows of one list have two entries."""
    return f"pick.{call}.{selector.rows}.{selector.field}.{selector.how}={selector.value}"


def list_needed_keys(call: GoldCall) -> list[str]:
    """Return keys of everything that the user must have said before this call can be made."""
    keys = []
    for _, source, _ in iterate_leaves(call):
        if isinstance(source, FromUser):
            keys.append(source.known)
        elif isinstance(source, FromOutput):
            keys += [
                build_selector_key(source.call, selector)
                for selector in source.selectors
                if selector.how not in ("only", "each")
            ]
    return list(dict.fromkeys(keys))


def collect_user_values(calls: Sequence[GoldCall]) -> dict[str, Any]:
    """Collect all values (not row choices) that the calls take from the user, by key."""
    return {
        source.known: value
        for call in calls
        for _, source, value in iterate_leaves(call)
        if isinstance(source, FromUser)
    }


def collect_user_facts(
    calls: Sequence[GoldCall], tools: Mapping[str, ToolSpec], phrasebook: Phrasebook
) -> tuple[UserFact, ...]:
    """Collect all user facts, in the order in which they are first needed, each once."""
    facts: dict[str, UserFact] = {}
    for call in calls:
        for path, source, value in iterate_leaves(call):
            name = get_leaf_name(path)
            if isinstance(source, FromUser) and source.known not in facts:
                label = get_label(name, call.tool, phrasebook)
                facts[source.known] = UserFact(
                    key=source.known, label=label, value=value, said=format_value(value), slot=name
                )
            elif isinstance(source, FromOutput):
                for selector in source.selectors:
                    key = build_selector_key(source.call, selector)
                    if selector.how not in ("only", "each") and key not in facts:
                        field = selector.field.split(".")[-1]
                        facts[key] = UserFact(
                            key=key,
                            label=get_label(field, call.tool, phrasebook),
                            value=selector.value,
                            said=format_value(selector.value),
                            slot=f"{name}|{field}",
                            how=selector.how,
                        )
    return tuple(facts.values())


def get_label(name: str, tool: str, phrasebook: Phrasebook) -> str:
    """Return the label that a person uses for a parameter or field."""
    for key in (f"{tool}.{name}", name):
        phrases = phrasebook.parameters.get(key)
        if phrases is not None and phrases.label:
            return phrases.label
    return humanize(name.removesuffix("_id") if is_identifier(name) else name)
