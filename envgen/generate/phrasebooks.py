"""How users speak of an environment's records, as far as names tell."""

from typing import Any

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, ToolBlueprint
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.phrasing.plain_sentences import is_noun
from trajsmith.phrasing.words import with_article


def render_phrasebook(blueprint: Blueprint) -> str:
    """Return the text of a `phrases.yaml`; `phrasing.phrasebook` says what each key means."""
    import yaml

    entities = {entity.key: _build_entity_words(entity) for entity in blueprint.entities}
    asked = {one.name: _build_request(one, blueprint.entity(one.table)) for one in blueprint.operations}
    tools = {name: {"ask": ask} for name, ask in asked.items() if ask}
    book = {"entities": entities} | ({"tools": tools} if tools else {})
    head = f"# How users of {blueprint.name} speak. See phrasing/phrasebook.py for what each key means.\n"
    return head + yaml.safe_dump(book, sort_keys=False, allow_unicode=True, width=118)


def _build_request(operation: ToolBlueprint, entity: Entity) -> list[str]:
    """Return the request for one record, named by its kind and not as "a record".

    A new record is asked for with the records that it belongs to: which they are, nobody could know otherwise.
    """
    owners = [f"{{{name}}}" for name in operation.needed if entity.column(name).references]
    if operation.action == "create" and owners:
        return [f"{verb} {with_article(entity.noun)} for {' and '.join(owners)}" for verb in ("add", "create")]
    verbs = {"get": ("look at", "check the details of"), "update": ("update", "change"), "delete": ("delete", "remove")}
    return [f"{verb} {{{entity.key}}}" for verb in verbs.get(operation.action, ())]


def _build_entity_words(entity: Entity) -> dict[str, Any]:
    noun = to_words(entity.noun)
    by: dict[str, list[str]] = {}
    for column in entity.columns:
        if column.name == entity.key or column.references:
            continue
        if column.name in ("name", "title", "label", "subject", "username"):
            by[column.name] = [f'the {noun} "{{value}}"', f'the {noun} called "{{value}}"']
        elif column.name == "email":
            by[column.name] = [f"the {noun} with the email {{value}}"]
        elif column.kind == "choice":
            by[column.name] = [f"the {noun} whose {to_words(column.name)} is {{value|human}}"]
        elif column.kind == "date":
            label = to_words(column.name)
            link = "on" if label in ("day", "date") else f"with the {label}" if is_noun(label) else label
            by[column.name] = [f"the {noun} {link} {{value|date}}"]
    entry: dict[str, Any] = {"noun": noun, "plural": to_words(entity.table), "own": [f"that {noun}"]}
    return {**entry, "by": dict(list(by.items())[:4])} if by else entry
