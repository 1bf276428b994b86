"""How well an output field fits an input parameter: by type, name, entity, and meaning where embeddings are at hand.

EnvFactory (3.3.1, step 1) compares embeddings of all pairs against one threshold. Names say more than that: an id of an
order fits an order id, whatever the sentence around it; and two generic names ("status", "name") fit only if they
belong to the same entity.
"""

from collections.abc import Callable

from grounding.fields import SchemaField
from grounding.names import GENERIC, ID_WORDS, is_identifier, words

Similarity = Callable[[SchemaField, SchemaField], float]
"""Similarity of meaning of an output field and a parameter, 0 to 1."""

FOREIGN = 0.85
"""Score of an id that stands in a result about something else: a return's order id against an order's."""
NUMERIC = frozenset({"integer", "number"})


def types_fit(output: SchemaField, parameter: SchemaField) -> bool:
    """True unless both say their types and these exclude one another."""
    if not output.types or not parameter.types:
        return True
    if output.types & parameter.types:
        return True
    if "array" in parameter.types:
        return True
    return bool(output.types & NUMERIC and parameter.types & NUMERIC)


def score(output: SchemaField, parameter: SchemaField, similarity: Similarity | None = None) -> float:
    """0 to 1: how likely a value of `output` is what `parameter` wants. Flags and enumerations are never passed on."""
    if parameter.is_choice or output.types == frozenset({"boolean"}) or not types_fit(output, parameter):
        return 0.0
    lexical = _lexical(output, parameter)
    if similarity is None or lexical >= 0.9:
        return lexical
    return max(lexical, 0.5 * lexical + 0.5 * similarity(output, parameter))


def concept(field: SchemaField) -> tuple[str, ...]:
    """A field's name with its entity in front where the name alone says too little: id in orders -> (order, id)."""
    own = words(field.name)
    generic = all(word in GENERIC or word in ID_WORDS for word in own)
    return (*(word for word in field.context if word not in own), *own) if generic else own


def _lexical(output: SchemaField, parameter: SchemaField) -> float:
    own, wanted = words(output.name), words(parameter.name)
    if not own or not wanted:
        return 0.0
    full_own, full_wanted = concept(output), concept(parameter)
    identifies = is_identifier("_".join(full_wanted))
    if identifies != is_identifier("_".join(full_own)):
        return 0.2 if set(own) & set(wanted) else 0.0
    if own == wanted:
        if not all(word in GENERIC for word in own):
            return 1.0 if not identifies or _own_entity(output, parameter) else FOREIGN
        return 0.9 if set(output.context) & set(parameter.context) else 0.45
    if full_own == full_wanted:
        return 0.95
    shared = set(full_own) & set(full_wanted)
    entity = shared - ID_WORDS - GENERIC
    if identifies:
        return (
            0.8
            if entity and set(full_wanted) <= set(full_own)
            else 0.7
            if entity and full_own[-1] == full_wanted[-1]
            else 0.1
        )
    overlap = len(shared) / len(set(full_own) | set(full_wanted))
    return round(0.75 * overlap, 4) if entity else round(0.4 * overlap, 4)


def _own_entity(output: SchemaField, parameter: SchemaField) -> bool:
    """True if an identifier names the thing that the result is about.

    A name without an entity (sku) says nothing of that; then the parameter's description is asked for the entity.
    """
    entity = set(words(output.name)) - ID_WORDS - GENERIC
    if not entity:
        described = set(words(parameter.description))
        return not described or bool(described & set(output.context))
    return bool(entity & set(output.context))
