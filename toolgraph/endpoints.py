"""What tools give and take, leaf by leaf, read for matching: words, entity, kind of value, echo.

Nested schemas are walked by `trajsmith.grounding.fields`. Added here: tuples (`prefixItems`), maps
(`additionalProperties`, path `$.methods.*.id`), results without fields, and tools that say nothing about their
result: those give what their name and description promise, at path `$`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trajsmith.grounding.fields import SchemaField, list_input_fields, list_output_fields
from trajsmith.grounding.names import CODE_WORDS, GENERIC, ID_WORDS, get_tool_noun, is_identifier
from trajsmith.phrasing.words import CAMEL_HUMP, stem, word_set
from trajsmith.records import JsonObject, ToolSpec
from trajsmith.toolgraph.lexicon import (
    FILLER,
    NOMINALS,
    RECEIPTS,
    SELECTING,
    TELLERS,
    classify_verb,
    count_namespace_words,
    extract_distinctive_tokens,
    find_kinds,
    find_media,
    is_verb,
    tokenize,
)

MAX_FIELDS = 600
"""Leaves of one side of a tool that are looked at; the rest of a monster schema is left out and reported."""

_EMPTY = word_set(
    "result results data item items list object info information detail details response record output outputs "
    "value return all content entry entries name id status success message total count page history input "
    "batch bulk multiple"
)
"""Words that name no entity."""
_BARE_IDS = ID_WORDS - {"sku", "token"}
"""Words for any identifier; a sku or a token is a thing of its own."""
_SHORT_IDS = {"pid": "process_id", "uid": "user_id", "gid": "group_id", "sid": "session_id"}
_LISTED_IDS = frozenset({"code", "reference", "ref", "handle"})
"""Names that identify the rows of a list."""
MIN_BOILERPLATE = 24
"""Characters that descriptions must share at their beginning to be taken for boilerplate."""
_TELLS = frozenset((stem(word),) for word in TELLERS)
_ADDRESSES = (("email", "address"), ("mail", "address"))
"""Names of two words that say no more than the first."""
_PERSON = find_kinds("person")
_NEVER_NUMBERS = find_kinds("token") | find_kinds("password")
"""Kinds of value that are no numbers: `max_tokens` is a count."""
_SPLIT = re.compile(r"[^A-Za-z0-9]+")
_PREPOSITION = re.compile(r"[^A-Za-z0-9](?:by|from|for|to|in|on|with|at|via|using)[^A-Za-z0-9]", re.IGNORECASE)
_OF = re.compile(r"^(id|identifier|name|title|number|code)_of_(?:the_)?([A-Za-z0-9_]+)$")
"""name_of_hotel is hotel_name."""
_PLACEHOLDER = re.compile(r"\{[^}]*\}")
_EXAMPLE = re.compile(r"\b(such as|e\.?g\.?|for example|for instance|example|like)\b|例如", re.IGNORECASE)
_OUTCOME = re.compile(r"\b(result|success\w*|confirm\w*|status|error|outcome|attempt|operation|whether)\b")
_RECEIPTS = frozenset(map(stem, RECEIPTS))
_IDENTIFIES = re.compile(r"\b(unique identifier|identifier|ids?|uuid|guid)\b", re.IGNORECASE)
_MEANT = re.compile(r"\b([a-z]+)[ _-](?:ids?|identifier|number|code)\b")
_INPUT_WORDS = re.compile(
    r"\b(?:given|input|provided|existing|from|of|based on|according to|using|by)\b"
    r"(?=((?: (?!(?:into|to|as|that|which|while|on|in)\b)[a-z-]+){1,5}))"
)

_RETURNED = re.compile(
    r"\b(?:returns?|including|includes?|lists? of|list|history|containing|contains?|retrieves?|fetch(?:es)?|gets?"
    r"|shows?|finds?|obtains?|gives?|provides?)\b((?:(?!\b(?:for|by|from|given|to|in|on|with|based|using)\b)[^.;(]){0,80})",
    re.IGNORECASE,
)
"""What a description says that a tool returns, as far as the next preposition."""


@dataclass(frozen=True, slots=True)
class ToolText:
    """Words of a tool's name and description."""

    nouns: tuple[str, ...]
    """Stems of the things that its name names, the last one last."""
    spoken: tuple[str, ...]
    """Stems of the whole name, and of what its verbs make."""
    makes: tuple[str, ...]
    """What its verbs make: a reservation for reserve."""
    verb: str
    """Class of what it does, "" if unknown."""
    takes: int
    """Bit mask of the media that it takes, by name and description."""
    gives: int
    """Bit mask of the media that it gives."""
    begins: int = 0
    """Characters at the beginning of its description that all tools of the server share."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One output field or one parameter, as matching sees it."""

    tool: int
    field: SchemaField
    own: tuple[str, ...]
    """Stems of its name."""
    entity: tuple[str, ...]
    """Stems of the thing that it belongs to or identifies."""
    around: tuple[str, ...]
    """Stems of the container, or of the tool's nouns."""
    described: tuple[str, ...]
    meant: tuple[str, ...]
    """The thing that the description calls it the id of: receiver_id, "user ID of the receiver", means a user."""
    bare: bool
    """The name alone does not say what it belongs to: id, name, status."""
    identifies: bool
    kinds: int
    echo: bool
    """An output that the call was asked with."""
    virtual: bool
    """An output that no schema declares."""


def find_boilerplate(tools: Sequence[ToolSpec]) -> dict[str, str]:
    """Server to the text with which the descriptions of all its tools begin ("This tool belongs to ...")."""
    first: dict[str, str] = {}
    number: Counter[str] = Counter()
    for tool in tools:
        text = tool.description
        first[tool.server] = _common(first.get(tool.server, text), text)
        number[tool.server] += 1
    return {server: text for server, text in first.items() if number[server] > 2 and len(text) >= MIN_BOILERPLATE}


def _common(one: str, other: str) -> str:
    """The beginning that two texts share."""
    until = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:until]


def read_tool(tool: ToolSpec, begins: str = "") -> ToolText:
    """Nouns, verb and resources of a tool; `begins` is the part of its description that says nothing of it."""
    plain = _PLACEHOLDER.sub(" ", tool.name)
    description = tool.description[len(begins) :]
    verb = classify_verb(plain, description)
    nouns = _named_entities(plain, verb)
    takes, gives = _resources(plain, description)
    spoken = tokenize(plain)
    makes = tuple(NOMINALS[word] for word in spoken if word in NOMINALS)
    return ToolText(nouns, spoken + makes, makes, verb, takes, gives, len(begins))


def _named_entities(name: str, verb: str) -> tuple[str, ...]:
    """Stems of the things that a tool's name names: what it is about last, "add_tasks_to_request" is about tasks."""
    about, *beside = _PREPOSITION.split(CAMEL_HUMP.sub("_", name)) if verb not in ("", "compute") else [name]
    about_words = _named(about)
    if len(about_words) > 1 and is_verb(about_words[0]):
        about_words = about_words[1:]
    named = [*(word for part in beside for word in _named(part)), *about_words]
    return tuple(dict.fromkeys(reversed(named)))[::-1]


def _named(text: str) -> list[str]:
    """Stems of the words that name a thing."""
    return [word for word in tokenize(" ".join(get_tool_noun(text))) if word not in _EMPTY and word not in FILLER]


def _resources(name: str, description: str) -> tuple[int, int]:
    """Media that a tool takes and gives: "X-to-Y", "extracts X from Y", "an input X", "produces X"."""
    sentence = f"{description[:300].split('. ')[0].lower()} "
    takes = 0
    for match in _INPUT_WORDS.finditer(sentence):
        takes |= _media(tokenize(match.group(1)))
    first = next((mask for word in tokenize(sentence)[1:8] if (mask := find_media(word))), 0)
    arrow = re.split(r"[-_ ](?:to|2)[-_ ]", name.lower())
    if len(arrow) == 2:
        return _media(tokenize(arrow[0])[-2:]) or takes, _media(tokenize(arrow[1])[:2])
    named = next((mask for word in tokenize(name) if (mask := find_media(word))), 0)
    return takes or named or first, find_media("text") if tokenize(name)[-1:] in _TELLS else named or first


def _media(words: Iterable[str]) -> int:
    mask = 0
    for word in words:
        mask |= find_media(word)
    return mask


def read_parameters(index: int, tool: ToolSpec, text: ToolText) -> list[Endpoint]:
    """The parameters of a tool as endpoints."""
    return [_endpoint(index, field, text, tool) for field in list_input_fields(tool)[:MAX_FIELDS]]


def read_outputs(index: int, tool: ToolSpec, text: ToolText, asked: Sequence[Endpoint]) -> list[Endpoint]:
    """The outputs of a tool as endpoints; one at `$` if the schema names none."""
    fields = list_output_fields(tool.model_copy(update={"output_schema": _plain(tool.output_schema)}))[:MAX_FIELDS]
    echoes = [(param.own, param.entity, param.identifies) for param in asked]
    if not fields:
        schema = tool.output_schema if isinstance(tool.output_schema, dict) else {}
        field = SchemaField(
            "$", infer_promised_output(tool.name), get_tool_noun(tool.name), _types(schema), True, schema
        )
        if not schema:
            return [_promised_endpoint(index, field, text, tool)]
        return [_endpoint(index, field, text, tool)]
    return [_endpoint(index, field, text, tool, echoes=echoes) for field in fields]


def _promised_endpoint(index: int, field: SchemaField, text: ToolText, tool: ToolSpec) -> Endpoint:
    """Return what a tool without outputs gives: `described` and `meant` are words of the tool's description."""
    end = _endpoint(index, field, text, tool, virtual=True)
    description = tool.description[text.begins :]
    returned = extract_distinctive_tokens(" ".join(_RETURNED.findall(description[:400])))
    return replace(end, described=extract_distinctive_tokens(description[:250]), meant=returned)


def infer_promised_output(name: str) -> str:
    """Return the output that a tool's name implies: get_user_id_by_email -> user_id."""
    words = _SPLIT.split(CAMEL_HUMP.sub("_", _PLACEHOLDER.sub("", name)))
    words = [word for word in words if word]
    space = count_namespace_words([stem(word) for word in words])
    if space or (len(words) > 1 and is_verb(stem(words[0]))):
        words = words[space + 1 :]
    until = next((place for place, word in enumerate(words) if word.lower() in ("by", "from", "for", "of")), len(words))
    return "_".join(words[:until] or words)


def _types(schema: JsonObject) -> frozenset[str]:
    kind = schema.get("type")
    return frozenset({kind} if isinstance(kind, str) else ())


def _plain(schema: Any) -> Any:
    """A schema in which tuples are lists and maps are objects with one field `*`."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain(value) for key, value in schema.items()}
    item = plain.get("items")
    if isinstance(item, dict) and "description" in plain and "description" not in item and "properties" not in item:
        plain["items"] = {**item, "description": plain["description"]}
    tuple_items, values = plain.get("prefixItems"), plain.get("additionalProperties")
    if isinstance(tuple_items, list) and tuple_items and not isinstance(plain.get("items"), dict):
        plain["items"] = tuple_items[0]
    if isinstance(values, dict) and values and not plain.get("properties"):
        plain["properties"] = {"*": values}
    return plain


def _endpoint(
    index: int,
    field: SchemaField,
    text: ToolText,
    tool: ToolSpec,
    echoes: Sequence[tuple[tuple[str, ...], tuple[str, ...], bool]] = (),
    virtual: bool = False,
) -> Endpoint:
    name = _SHORT_IDS.get(field.name.lower(), field.name) if field.name != "*" else "_".join(field.context)
    name = _OF.sub(r"\2_\1", name)
    own = tuple(word for word in tokenize(name) if word not in FILLER) or tokenize(name)
    own = own[:-1] if own[-2:] in _ADDRESSES else own
    described = extract_distinctive_tokens(f"{field.description} {field.schema.get('title') or ''}"[:250])
    inside = field.context != get_tool_noun(tool.name)
    around = tuple(word for part in field.context for word in tokenize(part)) if inside else text.nouns
    identifies = is_identifier(name) or _names_an_id(field, own)
    named = tuple(word for word in own if word not in _BARE_IDS and word not in CODE_WORDS) if identifies else ()
    bare = not named and all(
        word in _EMPTY or word in _BARE_IDS or word in CODE_WORDS or word in GENERIC for word in own
    )
    entity = named[-4:] or _entity(own, around, described if identifies else (), text.nouns)
    echo = _is_echo(own, entity, identifies, field.path, echoes)
    meant = tokenize(" ".join(_MEANT.findall(field.description[:200].lower()))) if identifies else ()
    kinds = _kinds(field, own, described)
    return Endpoint(index, field, own, entity, around, described, meant, bare, identifies, kinds, echo, virtual)


def _names_an_id(field: SchemaField, own: tuple[str, ...]) -> bool:
    """True for ids whose name does not say so: "reservations: list of reservation ids", a map, a plain result."""
    if field.name in _LISTED_IDS and "[*]" in field.path and field.path.startswith("$"):
        return True
    among = field.path == "$" or field.path.endswith(("[*]", ".*"))
    return among and not field.name.endswith("id") and bool(_IDENTIFIES.search(field.description))


def _entity(
    own: tuple[str, ...], around: tuple[str, ...], described: tuple[str, ...], nouns: tuple[str, ...]
) -> tuple[str, ...]:
    for words in (own, around, described, nouns):
        named = tuple(word for word in words if word not in _EMPTY and word not in _BARE_IDS and word not in CODE_WORDS)
        if named:
            return named[-4:]
    return ()


def _is_echo(
    own: tuple[str, ...],
    entity: tuple[str, ...],
    identifies: bool,
    path: str,
    asked: Sequence[tuple[tuple[str, ...], tuple[str, ...], bool]],
) -> bool:
    """Return True if an output repeats an argument: the same name, or the bare id of the requested object."""
    if any(own == name for name, _, _ in asked):
        return True
    bare = identifies and len(own) == 1 and "[*]" not in path and path.count(".") == 1
    return bare and any(other and set(asked_entity) & set(entity) for _, asked_entity, other in asked)


def _kinds(field: SchemaField, own: tuple[str, ...], described: tuple[str, ...]) -> int:
    """Return the kinds of value, by the last word of the name, all its words, or the description."""
    by_format = {"email": "email", "date": "date", "date-time": "time", "uri": "url", "time": "time", "uuid": "id"}
    mask = find_kinds(by_format.get(str(field.schema.get("format")), ""))
    numeric = bool(field.types) and field.types <= {"integer", "number", "boolean"}
    mask |= find_kinds(own[-1]) if own else 0
    if mask == _PERSON:
        for word in described[:2]:
            mask |= find_kinds(word)  # recipient: "email address of the recipient"
    if not mask or own[-1] in _EMPTY or own[-1] in GENERIC:
        for word in own[:-1]:
            mask |= find_kinds(word)
    for word in () if mask else described[:5]:
        mask = mask or find_kinds(word)
    return mask & ~_NEVER_NUMBERS if numeric else mask


def is_receipt(end: Endpoint) -> bool:
    """True for an output that says only how the call went: a status, or a message about the result."""
    head = end.own[-1] if end.own else ""
    outcome_words = _OUTCOME.findall(end.field.description.lower()) if head in ("message", "result") else []
    return head in _RECEIPTS or bool(set(outcome_words) - {head})


def is_new(end: Endpoint, text: ToolText) -> bool:
    """True for what is not there yet: new_password, "title of the new list", the task of add_task."""
    selects = next(filter(is_verb, text.spoken), "") in SELECTING  # reserve_hotel(hotel): it is there already
    creates_it = text.verb == "create" and not selects and bool(end.own) and set(end.own) <= set(text.nouns)
    return creates_it or "new" in end.own or "new" in end.described


def has_example(description: str) -> bool:
    """Return True if a description gives an example, so that the user or the model supplies the value."""
    return bool(_EXAMPLE.search(description))
