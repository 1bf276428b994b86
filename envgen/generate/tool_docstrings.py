"""The first sentence of a tool's docstring."""

import re
import textwrap

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, ToolBlueprint
from trajsmith.envgen.generate.code_behaviours import name_bin
from trajsmith.envgen.generate.identifiers import quote_text, to_identifier, to_plain_words, to_words
from trajsmith.phrasing import with_article


def build_summary(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> str:
    described = _insert_article(quote_text(operation.description), operation, entity)
    noun, many = with_article(entity.noun), to_words(entity.table)
    if operation.owner:
        many = f"the {many} of {with_article(blueprint.entity(operation.owner).noun)}"
    elif operation.column:
        label = to_words(to_identifier(entity.column(operation.column).label))
        linked = with_article(find_linked(blueprint, operation).noun) if operation.action in ("link", "unlink") else ""
        whose = f"the {label} of {noun}"
        noun = whose if operation.action in ("get", "update") else noun
    summaries = {
        "get": f"Show {noun}.", "list": f"List {many}.", "create": f"Make a new {to_words(entity.noun)}.",
        "update": f"Change {noun}.", "delete": f"Delete {noun}.",
        "move": f"Mark {noun} as {describe_value(operation)}.",
        "discard": f"Put {noun} into the {name_bin(entity)}.",
        "restore": f"Bring {noun} back from the {name_bin(entity)}.",
        "summarize": f"Count {many}, by status where they have one.", "whoami": "Show who is signed in.",
    }  # fmt: skip
    if operation.action in ("link", "unlink"):
        way = "Add {} to" if operation.action == "link" else "Remove {} from"
        summaries[operation.action] = f"{way.format(linked)} {whose}."
    text = described or summaries[operation.action]
    text = text if text.endswith((".", "!", "?")) else f"{text}."
    return "\n        ".join(textwrap.wrap(text, 100))


def _insert_article(text: str, operation: ToolBlueprint, entity: Entity) -> str:
    """Return a tool's description with the article that operation titles leave out."""
    nouns = "|".join(re.escape(to_words(name)) for name in (entity.table, entity.noun))
    match = re.fullmatch(rf"(\w+) ({nouns})\.?", text, re.IGNORECASE)
    return f"{match.group(1)} {with_article(entity.noun)}." if match and operation.action != "list" else text


def find_linked(blueprint: Blueprint, operation: ToolBlueprint) -> Entity:
    """Return the entity whose keys a link adds or an unlink takes away."""
    return blueprint.entity(blueprint.entity(operation.table).column(operation.column).references)


def name_linked_key(blueprint: Blueprint, operation: ToolBlueprint) -> str:
    """Return the argument of a link or unlink that holds the other record's key."""
    key = find_linked(blueprint, operation).key
    return f"other_{key}" if key == blueprint.entity(operation.table).key else key


def describe_value(operation: ToolBlueprint) -> str:
    """Describe the effect of a move on a record: "closed", "locked", "not locked"."""
    if isinstance(operation.sets, bool):
        flag = to_words(operation.column.removeprefix("is_"))
        return flag if operation.sets else f"not {flag}"
    return to_plain_words(operation.sets)
