"""Words for tools without a phrasebook: requests from names and descriptions, reports from results of calls."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trajsmith.envgen.exploration.findings import ExploredTool
from trajsmith.envgen.exploration.values import SEARCHES, list_said_statements, takes_sql
from trajsmith.grounding import is_identifier, split_name
from trajsmith.phrasing import Phrasebook, pluralize, singularize
from trajsmith.phrasing.phrasebook import ParameterPhrases, ToolPhrases
from trajsmith.phrasing.value_formatting import humanize
from trajsmith.phrasing.wording import derive_request_phrase
from trajsmith.phrasing.words import split_identifier, word_set
from trajsmith.records import JsonObject, JsonValue

_VERBS = word_set(
    "add append apply archive assign attach book build calculate cancel change check clear close complete compute "
    "convert copy count create delete describe draw edit estimate execute explain export find finish format "
    "generate get give import insert list log look make mark measure merge move open pause pin place plan post "
    "put read record register remove rename reopen replace reset restore return run save schedule search send set "
    "show sort split start stop store summarize tag take test toggle track transfer undo unpin update upload "
    "validate view write preview compare restore revert reprioritise prioritise decompose reflect analyze verify "
    "query evaluate retrieve simulate compress trigger echo "
)
_SEES = word_set("list show get view display retrieve return read")
_NAMES = (
    "title",
    "name",
    "label",
    "subject",
    "summary",
    "description",
    "text",
    "content",
    "task",
    "path",
    "email",
    "key",
)
"""Fields that name a row, the best first."""
_ORDER = tuple(
    re.findall(
        r"\w+",
        "status state stage priority category amount value price quantity qty stock due date start end company city "
        "email phone role assignee location type timezone datetime unit",
    )
)
_DETAILS = frozenset(_ORDER)
"""Words of fields that are told of a row, the first before the others."""
_FLAGS = frozenset(
    {"ok", "success", "successful", "found", "status_code", "code", "count", "total", "created", "updated"}
)
_MOST_DETAILS = 3
_MOST_FIELDS = 5
_LONGEST_PHRASE = 9
_JARGON = re.compile(
    r"[_`{}\[\]<>]|\b(?:json|api|mcp|schema|id|ids|uuid|mutation|store|server|tool|endpoint|dict|args?)\b",
    re.IGNORECASE,
)

_SEARCH_WORD = ParameterPhrases(
    label="search word",
    tell=("The word to look for is {value}.", "Look for {value}."),
    ask=("What should I look for?", "Which word should I search for?"),
)


def write_phrasebook(tools: Sequence[ExploredTool], instructions: str) -> Phrasebook:
    """Return words for the tools that agents get."""
    words: dict[str, ToolPhrases] = {}
    parameters: dict[str, ParameterPhrases] = {}
    for tool in tools:
        statement = next(((leaf, kind) for leaf in tool.fields if (kind := takes_sql(tool.spec, leaf))), None)
        if statement is not None:
            leaf, kind = statement
            words[tool.spec.name], parameters[f"{tool.spec.name}.{leaf.name}"] = _phrase_sql(kind, leaf.name)
        else:
            words[tool.spec.name] = _phrase_tool(tool)
            for leaf in tool.fields:
                if tool.kind == "read" and set(split_name(leaf.name)) & SEARCHES and "." not in leaf.path:
                    parameters[f"{tool.spec.name}.{leaf.name}"] = _SEARCH_WORD
    return Phrasebook(introductions=False, tools=words, parameters=parameters)


def _phrase_sql(kind: str, name: str) -> tuple[ToolPhrases, ParameterPhrases]:
    slot = "{" + name + "}"
    phrase = list_said_statements()
    ask, narrate = {
        "select": ([f"find out {slot}", f"look up {slot}"], ["look that up in the database", "query the database"]),
        "write": ([slot], ["make that change in the database", "update the database"]),
        "create": ([f"create {slot}"], ["create that table"]),
    }.get(kind, ([slot], ["run that on the database"]))
    if kind == "any":
        phrase = {
            sql: (
                f"find out {words[0]}"
                if sql.startswith("SELECT")
                else f"create {words[0]}"
                if sql.startswith("CREATE")
                else words[0],
            )
            for sql, words in phrase.items()
        }
    done = ("That's done.", "All done.") if kind in ("write", "create") else ()
    phrases = ToolPhrases(ask=tuple(ask), narrate=tuple(narrate), confirm=("make that change",), done=done)
    return phrases, ParameterPhrases(label="statement", values=phrase)


def _phrase_tool(tool: ExploredTool) -> ToolPhrases:
    ask = _list_requests(tool)
    done, facts = _list_reports(tool)
    if not done and tool.kind != "read":
        done = _report_texts(tool.samples)
    narrate = re.sub(r" (?:for|in) \{\w+\}| ?\{\w+\}", "", ask[0])
    return ToolPhrases(ask=ask, narrate=(narrate if " " in narrate else f"{narrate} that",), done=done, facts=facts)


def _list_requests(tool: ExploredTool) -> tuple[str, ...]:
    """Return verb phrases for what a tool does, from its name and its description."""
    name = list(split_identifier(tool.spec.name))
    phrases: list[str] = []
    described = derive_request_phrase(tool.spec)
    slotted = _list_slotted_requests(tool, described)
    if slotted:
        return tuple(slotted)
    first = described.split()[0] if described else ""
    if first in _VERBS and len(described.split()) <= _LONGEST_PHRASE and not _JARGON.search(described):
        phrases.append(described)
    verb = next((place for place, word in enumerate(name) if word in _VERBS), None)
    if verb is not None and verb <= 1 and len(name) > verb + 1:
        rest = " ".join(name[verb + 1 :])
        plain = name[verb]
        if plain in _SEES:
            article = "" if rest.startswith("all ") else "the "
            phrases += [f"see {article}{rest}", f"have a look at {article}{rest}"]
        elif not phrases:
            phrases.append(f"{plain} the {rest}" if tool.kind == "read" else f"{plain} {_add_article(rest)}")
    elif verb is not None and len(name) == verb + 1 > 1:
        noun = " ".join(name[:verb])
        phrases = [f"see the {noun}" if name[verb] in _SEES else f"{name[verb]} {_add_article(singularize(noun))}"]
    elif not phrases:
        phrases.append(f"see the {' '.join(name)}" if tool.kind == "read" else f"use {' '.join(name)}")
    return tuple(dict.fromkeys(phrases))


def _report_texts(samples: Sequence[JsonValue]) -> tuple[str, ...]:
    """Return what is said after a change whose result tells nothing that a person wants to hear."""
    short = [
        sample for sample in samples if isinstance(sample, str) and len(sample) <= 100 and "\n" not in sample.strip()
    ]
    if samples and len(short) == len(samples) and all(re.match(r"[A-Z][a-z]+ ", text) for text in short):
        return ("Done: {out|small}.", "That's done: {out|small}.")
    if any(isinstance(sample, str) for sample in samples):
        return ()
    return ("That's done.", "All done.")


def _list_slotted_requests(tool: ExploredTool, described: str) -> list[str]:
    """Return phrases in which the one argument that a tool needs stands where it belongs."""
    needed = [leaf for leaf in tool.fields if leaf.required]
    if len(needed) != 1 or is_identifier(needed[0].name) or not re.fullmatch(r"[a-z_]\w*", needed[0].name):
        return []
    leaf = needed[0]
    slot = "{" + leaf.name + "}"
    words = split_identifier(leaf.name)
    nouns = [word for word in split_identifier(tool.spec.name) if word not in _VERBS]
    if tool.kind == "read" and set(split_name(leaf.name)) & SEARCHES and nouns:
        noun = " ".join(nouns)
        return [f"search the {noun} for {slot}", f"look for {slot} in the {noun}"]
    label = " ".join(words[:-1] if words[-1] in ("name", "title") and len(words) > 1 else words)
    placeholder = re.compile(
        rf"\b(?:a|an|the) (?:specific|given|specified|particular|provided|input) {re.escape(label)}\b", re.IGNORECASE
    )
    if placeholder.search(described):
        return [placeholder.sub(f"the {label} {slot}", described)]
    name = split_identifier(tool.spec.name)
    sentences = any(str(leaves.get(leaf.path)).endswith((".", "!", "?")) for _, leaves, _ in tool.good)
    if len(name) == 1 and name[0] in _VERBS and not sentences:
        return [f"{name[0]} {slot}"]
    return []


def _add_article(noun: str) -> str:
    if noun.endswith("s") or noun.split()[0] in ("all", "my", "the", "a", "an"):
        return noun
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _list_reports(tool: ExploredTool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return sentences over the results of a tool, with the facts that they tell; none where results are texts."""
    samples = [sample for sample in tool.samples if isinstance(sample, dict | list)]
    if not samples or len(samples) < len(tool.samples):
        return (), ()
    rows = _find_rows(samples)
    if rows is not None:
        return _report_rows(tool, *rows)
    subject = _find_thing(samples)
    return _report_thing(tool, *subject) if subject is not None else ((), ())


def _find_rows(samples: Sequence[Any]) -> tuple[str, list[JsonObject]] | None:
    """Return the path of the list of rows in results, with the rows of all of them."""
    lists = [sample for sample in samples if isinstance(sample, list)]
    if lists:
        rows = [row for sample in lists for row in sample]
        return ("out", rows) if rows and all(isinstance(row, dict) for row in rows) else None
    objects = [sample for sample in samples if isinstance(sample, dict)]
    if [field for field in _list_fields(objects) if field not in _FLAGS]:
        return None
    keys = dict.fromkeys(str(key) for sample in objects for key in sample)
    listing = [key for key in keys if any(isinstance(sample.get(key), list) for sample in objects)]
    if len(listing) != 1 or not re.fullmatch(r"[A-Za-z_]\w*", listing[0]):
        return None
    values = [sample[listing[0]] for sample in objects if listing[0] in sample]
    rows = [row for value in values if isinstance(value, list) for row in value]
    whole = all(isinstance(value, list) for value in values) and all(isinstance(row, dict) for row in rows)
    return (f"out.{listing[0]}", rows) if rows and whole else None


def _find_thing(samples: Sequence[Any]) -> tuple[str, list[JsonObject]] | None:
    """Return the path of the object that results are about, with its samples."""
    objects: list[JsonObject] = [sample for sample in samples if isinstance(sample, dict)]
    inner = [
        key
        for key in dict.fromkeys(key for sample in objects for key in sample)
        if all(isinstance(sample.get(key), dict) for sample in objects) and re.fullmatch(r"[A-Za-z_]\w*", key)
    ]
    plain = _list_fields(objects)
    if len(inner) == 1 and not [key for key in plain if key not in _FLAGS]:
        return f"out.{inner[0]}", [sample[inner[0]] for sample in objects]
    return ("out", objects) if plain else None


def _list_fields(rows: Sequence[Mapping[str, JsonValue]]) -> list[str]:
    """Return the plain fields of rows that a person wants to hear: no identifiers, flags and times of changes."""
    fields: dict[str, None] = {}
    for row in rows:
        for key, value in row.items():
            technical = key in _FLAGS or key.endswith(("_at", "At", "_by")) or is_identifier(key) or key.startswith("_")
            if not technical and re.fullmatch(r"[A-Za-z_]\w*", key) and isinstance(value, str | int | float):
                fields[key] = None
    return list(fields)


def _list_inner_fields(samples: Sequence[JsonObject]) -> list[str]:
    """Return the paths of plain fields of the objects in results that a person wants to hear."""
    paths: list[str] = []
    for key in dict.fromkeys(key for sample in samples for key in sample):
        inner = [sample.get(key) for sample in samples]
        objects = [value for value in inner if isinstance(value, dict)]
        if len(objects) < len(inner) or not re.fullmatch(r"[A-Za-z_]\w*", key):
            continue
        chosen = [field for field in _list_fields(objects) if set(split_name(field)) & _DETAILS]
        paths += [
            f"{key}.{field}"
            for field in chosen
            if all(isinstance(one.get(field), str | int | float) for one in objects)
        ]
    return paths


def _choose_filter(path: str, samples: Sequence[JsonObject]) -> str:
    """Return the filter with which a date or a moment is told."""
    values: list[JsonValue] = []
    for sample in samples:
        value: JsonValue = sample
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        values.append(value)
    texts = [value for value in values if isinstance(value, str)]
    if texts and all(re.fullmatch(r"\d{4}-\d\d-\d\d", text) for text in texts):
        return "|date"
    return "|datetime" if texts and all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d", text) for text in texts) else ""


def _pick_name(fields: Sequence[str]) -> str | None:
    return next((name for name in _NAMES if name in fields), None) or next(
        (field for field in fields if split_name(field)[-1] in _NAMES), None
    )


def _list_details(fields: Sequence[str], name: str | None, most: int) -> list[str]:
    known = [field for field in fields if field != name and set(split_name(field)) & _DETAILS]
    known.sort(key=lambda field: min(_ORDER.index(word) for word in split_name(field) if word in _DETAILS))
    return [*known, *(field for field in fields if field not in known and field != name)][:most]


def _report_rows(tool: ExploredTool, path: str, rows: Sequence[JsonObject]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    fields = _list_fields(rows)
    name = _pick_name(fields)
    always = name is not None and all(isinstance(row.get(name), str | int | float) for row in rows)
    if name is None or not always:
        return (), ()
    spoken = [field for field in fields if not all(isinstance(row.get(field), int | float) for row in rows)]
    chosen = [field for field in fields if field in spoken or set(split_name(field)) & _DETAILS]
    details = _list_details(chosen, name, _MOST_DETAILS)
    phrase = "{r." + name + "}"
    inner = ""
    for number, field in enumerate(details):
        label = (
            ""
            if field in ("status", "state", "stage", "category", "type", "city", "company", "role")
            else f"{humanize(field)} "
        )
        mark = "|date" if field in ("due", "due_date", "date") else ""
        comma = ", " if number else ""
        inner += (
            "{% if r."
            + field
            + " is defined and r."
            + field
            + " not in (none, '') %}"
            + f"{comma}{label}"
            + "{r."
            + field
            + mark
            + "}{% endif %}"
        )
    row = phrase + (f" ({inner})" if inner else "")
    if inner and not all(
        isinstance(one.get(details[0]), str | int | float) and one.get(details[0]) != "" for one in rows
    ):
        row = phrase
    loop = "{% for r in " + path + " %}" + row + "{% if not loop.last %}; {% endif %}{% endfor %}"
    noun = _name_rows(tool, path)
    filled = [
        f"Here is what there is: {loop}.",
        "I found {" + path + "|length}: " + loop + ".",
    ]
    empty = f"There are no {noun}." if noun else "There is nothing there."
    done = tuple("{% if " + path + " %}" + text + "{% else %}" + empty + "{% endif %}" for text in filled)
    return done, (f"${path[3:]}[*].{name}",)


def _name_rows(tool: ExploredTool, path: str) -> str:
    last = path.rpartition(".")[2]
    if last not in ("out", "result", "results", "data", "items", "rows"):
        return humanize(last)
    noun = [word for word in split_identifier(tool.spec.name) if word not in _VERBS]
    return pluralize(noun[-1]) if noun and not noun[-1].endswith("s") else noun[-1] if noun else ""


def _report_thing(
    tool: ExploredTool, path: str, samples: Sequence[JsonObject]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    fields = [
        field
        for field in _list_fields(samples)
        if all(isinstance(sample.get(field), str | int | float) and sample.get(field) != "" for sample in samples)
    ]
    messages = [field for field in fields if field in ("message", "summary", "text", "result", "answer", "content")]
    if len(fields) == 1 and messages:
        phrase = "{" + f"{path}.{fields[0]}" + "}"
        texts = [str(sample[fields[0]]) for sample in samples]
        if all(len(text) <= 40 and " " not in text.strip() for text in texts):
            return (f"The result is {phrase}.", f"That is {phrase}."), (f"${path[3:]}.{fields[0]}",)
        return (), ()
    fields += _list_inner_fields(samples)
    if not fields:
        return (), ()
    name = _pick_name([field for field in fields if "." not in field])
    shown = _list_details(fields, name, _MOST_FIELDS)
    parts = [
        f"{humanize(field.replace('.', '_'))} " + "{" + f"{path}.{field}" + _choose_filter(field, samples) + "}"
        for field in shown
    ]
    head = "{" + f"{path}.{name}" + "}" if name else ""
    chosen = ", ".join(parts)
    facts = tuple(f"${path[3:]}.{field}" for field in ([name] if name else shown[:1]))
    text = f"{head}, {chosen}" if head and chosen else head or chosen
    if tool.kind == "read":
        return (f"Here it is: {text}.", f"This is what I found: {text}."), facts
    return (f"Done: {text}.", f"That's done: {text}."), facts
