"""Tool lists as blueprints: entities from nouns, columns from parameters and output schemas."""

from collections import defaultdict
from typing import Any

from envgen.generate.blueprint import Blueprint, Column, Entity, LeftOut, Operation, Source
from envgen.generate.columns import open_columns
from envgen.generate.spelling import class_name, identifier, words
from envgen.generate.tool_lists import ToolList
from envgen.generate.tool_words import Meaning, meaning, shared_words
from environments.openapi.words import kinds_of, plain
from trajectory import InputError, JsonObject

_SEARCH = kinds_of("q query search keyword keywords term text searchterm searchquery filter")
_AROUND = kinds_of(
    "limit offset page perpage pagesize cursor pagetoken maxresults count size sort sortby order orderby fields format "
    "verbose dryrun force confirm timeout apikey token accesstoken userid workspace"
)
_KEYS = ("id", "uuid", "key", "name", "title", "slug", "path", "code", "number", "symbol", "ticker", "url", "filename")


class _Tool:
    def __init__(self, raw: JsonObject, means: Meaning) -> None:
        self.name = str(raw["name"])
        self.means = means
        self.description = " ".join(str(raw.get("description") or "").split("\n")[0].split())[:200]
        schema = _object(raw.get("input_schema") or raw.get("inputSchema"))
        self.parameters: dict[str, JsonObject] = {
            str(name): child if isinstance(child, dict) else {}
            for name, child in _object(schema.get("properties")).items()
        }
        required = schema.get("required")
        self.required = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
        output = raw.get("output_schema") or raw.get("outputSchema") or {}
        self.shows = _record_of(output)


def read_mcp(given: ToolList) -> Blueprint:
    """Read a tool list.

    Raises:
        InputError: No tool of it can be given meaning.
    """
    left_out: list[LeftOut] = []
    shared = shared_words([str(raw["name"]) for raw in given.tools])
    groups: dict[str, list[_Tool]] = defaultdict(list)
    for raw in given.tools:
        means = meaning(str(raw["name"]), shared)
        if isinstance(means, str):
            left_out.append(LeftOut(what=str(raw["name"]), reason=means))
        else:
            groups[means.noun].append(_Tool(raw, means))
    entities, operations = list[Entity](), list[Operation]()
    for noun, tools in groups.items():
        reason = _Reader(noun, tools, 1000 * (1 + len(entities)), left_out).read(entities, operations)
        if reason:
            left_out += [LeftOut(what=tool.name, reason=reason) for tool in tools]
    if not operations:
        reasons = "; ".join(f"{one.what}: {one.reason}" for one in left_out[:3])
        raise InputError(f"{given.server}: nothing usable: {reasons or 'it has no tools'}")
    name = identifier(given.server.rpartition("/")[2], "server")
    return Blueprint(
        name=name, cls=class_name(name), title=words(name).capitalize(), domain=f"mcp/{name}",
        source=Source(kind="mcp", name=given.server, digest=given.digest, title=given.server, licence=given.licence),
        entities=tuple(entities), operations=tuple(operations), left_out=tuple(left_out),
    )  # fmt: skip


class _Reader:
    """Makes one entity and its tools."""

    def __init__(self, noun: str, tools: list[_Tool], start: int, left_out: list[LeftOut]) -> None:
        self._noun = identifier(noun, "item")
        self._tools = tools
        self._start = start
        self._left_out = left_out
        self._columns: dict[str, Column] = {}
        self._maker = open_columns()

    def read(self, entities: list[Entity], operations: list[Operation]) -> str:
        """Add the entity and its tools, or say why there is none."""
        actions = {tool.means.action for tool in self._tools}
        if "create" not in actions and not {"get", "list"} <= actions and not {"update", "list"} <= actions:
            return f"nothing says where {words(self._noun)} records come from"
        key_label = self._key_label()
        key = identifier(key_label) if key_label else f"{self._noun}_id"
        key = f"{self._noun}_id" if plain(key) in ("id", "uuid", "idvalue") else key
        self._gather(key_label)
        self._add_status()
        given = any(tool.means.action == "create" and key_label in tool.parameters for tool in self._tools)
        data = [column for column in self._columns.values() if column.name != key]
        if not data:
            return f"nothing says what a {words(self._noun)} holds"
        whole = not given and self._is_whole(key_label)
        columns = (Column(name=key, kind="whole" if whole else "text", label=key_label), *data)
        table = identifier(f"{self._noun}s" if not self._noun.endswith("s") else self._noun, "items")
        entity = Entity(
            table=table, noun=self._noun, cls=class_name(self._noun), key=key, columns=columns, key_is_given=given,
            start=self._start, prefix="" if whole else f"{self._noun.replace('_', '')[:4].upper()}-",
        )  # fmt: skip
        made = [self._operation(tool, entity, key_label) for tool in self._tools]
        kept = [one for one in made if isinstance(one, Operation)]
        self._left_out += [
            LeftOut(what=tool.name, reason=one)
            for tool, one in zip(self._tools, made, strict=True)
            if isinstance(one, str)
        ]
        if kept:
            entities.append(entity)
            operations += kept
        return ""

    def _key_label(self) -> str:
        """The parameter that identifies a record."""
        one = [t for t in self._tools if t.means.action in ("get", "update", "delete", "move")]
        noun = plain(self._noun)
        wanted = [f"{noun}id", noun, f"{noun}key", f"{noun}name", f"{noun}path", *_KEYS]
        wanted += [f"{plain(self._noun.rpartition('_')[2])}id"]
        for name in wanted:
            for tool in one:
                found = next((label for label in tool.parameters if plain(label) == name), None)
                if found:
                    return found
        return ""

    def _is_whole(self, label: str) -> bool:
        return any(
            tool.parameters[label].get("type") in ("integer", "number")
            for tool in self._tools
            if label in tool.parameters
        )

    def _gather(self, key_label: str) -> None:
        """Columns from what makes and changes records, from what is shown, and from what lists are narrowed by."""
        order = ("create", "update", "get", "list")
        for action in order:
            for tool in (tool for tool in self._tools if tool.means.action == action):
                given = tool.parameters if action != "get" else {}
                for label, schema in {**given, **tool.shows}.items():
                    self._add(tool, label, schema, key_label, action)

    def _add(self, tool: _Tool, label: str, schema: JsonObject, key_label: str, action: str) -> None:
        name = identifier(label)
        around = plain(label) in _AROUND or (action == "list" and plain(label) in _SEARCH)
        if label == key_label or plain(label) in ("id", f"{plain(self._noun)}id") or name in self._columns or around:
            return
        required = action == "create" and label in tool.required
        try:
            made = self._maker.column(label, schema, self._noun, required, name)
        except (TypeError, AttributeError, ValueError) as error:  # schemas in lists have any shape
            made = f"no schema: {error}"
        if action == "list" and isinstance(made, Column) and {"all", "any", "both"} & set(made.choices):
            made = "it says which records are listed, not what a record holds"
        if isinstance(made, Column):
            self._columns[name] = made
        else:
            self._left_out.append(LeftOut(what=f"{tool.name}.{label}", reason=made))

    def _add_status(self) -> None:
        moves = [tool.means.outcome[0] for tool in self._tools if tool.means.action == "move"]
        if moves and not any(c.kind == "choice" and c.name in ("status", "state") for c in self._columns.values()):
            choices = tuple(dict.fromkeys(["open", *moves]))
            self._columns["status"] = Column(name="status", kind="choice", label="status", choices=choices)

    def _operation(self, tool: _Tool, entity: Entity, key_label: str) -> Operation | str:
        base: dict[str, Any] = {
            "name": identifier(tool.name, "tool"),
            "table": entity.table,
            "description": tool.description.replace("\\", "/"),
        }
        action = tool.means.action
        names = {label: identifier(label) for label in tool.parameters if label != key_label}
        fields = tuple(
            name for name in names.values() if name in self._columns and name in entity.names and name != entity.key
        )
        needed = tuple(name for label, name in names.items() if label in tool.required and name in fields)
        if action in ("get", "update", "delete", "move") and key_label not in tool.parameters:
            return f"no parameter says which {words(self._noun)}"
        if action == "list":
            search = "query" if any(plain(label) in _SEARCH for label in tool.parameters) else ""
            fields = tuple(name for name in fields if entity.column(name).kind not in ("moment", "number"))
            return Operation(
                action="list", fields=fields, needed=tuple(n for n in needed if n in fields), search=search, **base
            )
        if action == "create":
            return (
                Operation(action="create", fields=fields, needed=needed, **base)
                if fields
                else "nothing that it is sent is kept"
            )
        if action == "update":
            return Operation(action="update", fields=fields, **base) if fields else "nothing that it is sent is kept"
        if action == "move":
            choices = entity.status.choices if entity.status else ()
            sets = next((outcome for outcome in tool.means.outcome if outcome in choices), "")
            return Operation(action="move", sets=sets, **base) if sets else f"{tool.means.outcome[0]} is no status"
        return Operation(action=action, **base)


def _object(part: Any) -> JsonObject:
    """A part of a schema; nothing if it is no object: schemas in lists have any shape."""
    return part if isinstance(part, dict) else {}


def _record_of(schema: Any) -> dict[str, JsonObject]:
    """Properties of the record in an output schema."""
    if not isinstance(schema, dict):
        return {}
    if schema.get("type") == "array":
        return _record_of(schema.get("items"))
    properties = {name: child for name, child in _object(schema.get("properties")).items() if isinstance(child, dict)}
    if len(properties) == 1:
        inner = next(iter(properties.values()))
        if inner.get("type") in ("array", "object"):
            return _record_of(inner)
    return properties
