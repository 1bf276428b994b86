"""Tool lists as blueprints: entities from nouns, columns from parameters and output schemas."""

from collections import defaultdict
from typing import Any

from trajsmith.envgen.generate.blueprint import (
    Blueprint,
    BlueprintSource,
    Entity,
    SkippedItem,
    TableColumn,
    ToolBlueprint,
)
from trajsmith.envgen.generate.columns import build_open_columns
from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier, to_words
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.generate.tool_names import ToolMeaning, find_shared_words, interpret_tool_name
from trajsmith.environments import find_tool_actor, limit_check_time
from trajsmith.phrasing import normalize_name, pluralize, word_set
from trajsmith.records import InputError, JsonObject

_SEARCH = word_set("q query search keyword keywords term text searchterm searchquery filter")
_PAGING = word_set(
    "limit offset page perpage pagesize cursor pagetoken maxresults count size sort sortby order orderby fields format "
    "verbose dryrun force confirm timeout apikey token accesstoken userid workspace"
)
_KEYS = ("id", "uuid", "key", "name", "title", "slug", "path", "code", "number", "symbol", "ticker", "url", "filename")


class _Tool:
    def __init__(self, raw: JsonObject, means: ToolMeaning) -> None:
        self.name = str(raw["name"])
        self.means = means
        self.description = " ".join(str(raw.get("description") or "").split("\n")[0].split())[:200]
        schema = _as_object(raw.get("input_schema") or raw.get("inputSchema"))
        self.parameters: dict[str, JsonObject] = {
            str(name): child if isinstance(child, dict) else {}
            for name, child in _as_object(schema.get("properties")).items()
        }
        self.actor = find_tool_actor(self.name, str(raw.get("description") or ""), raw)
        required = schema.get("required")
        self.required = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
        output = raw.get("output_schema") or raw.get("outputSchema") or {}
        self.shows = _find_record_properties(output)


def read_mcp(tool_list: ToolList) -> Blueprint:
    """Read a tool list.

    Raises:
        InputError: No tool of it can be given meaning.
    """
    left_out: list[SkippedItem] = []
    shared = find_shared_words([str(raw["name"]) for raw in tool_list.tools])
    groups: dict[str, list[_Tool]] = defaultdict(list)
    for raw in tool_list.tools:
        means = interpret_tool_name(str(raw["name"]), shared)
        if isinstance(means, str):
            left_out.append(SkippedItem(what=str(raw["name"]), reason=means))
        else:
            groups[means.noun].append(_Tool(raw, means))
    entities, operations = list[Entity](), list[ToolBlueprint]()
    with limit_check_time(tool_list.server):
        for noun, tools in groups.items():
            reason = _EntityReader(noun, tools, 1000 * (1 + len(entities)), left_out).read(entities, operations)
            if reason:
                left_out += [SkippedItem(what=tool.name, reason=reason) for tool in tools]
    if not operations:
        reasons = "; ".join(f"{one.what}: {one.reason}" for one in left_out[:3])
        raise InputError(f"{tool_list.server}: nothing usable: {reasons or 'it has no tools'}")
    name = to_identifier(tool_list.server.rpartition("/")[2], "server")
    return Blueprint(
        name=name,
        cls=to_class_name(name),
        title=to_words(name).capitalize(),
        domain=f"mcp/{name}",
        source=BlueprintSource(
            kind="mcp",
            name=tool_list.server,
            digest=tool_list.digest,
            title=tool_list.server,
            licence=tool_list.licence,
        ),
        entities=tuple(entities),
        operations=tuple(operations),
        left_out=tuple(left_out),
    )


class _EntityReader:
    """Builder of one entity and its tools."""

    def __init__(self, noun: str, tools: list[_Tool], start: int, left_out: list[SkippedItem]) -> None:
        self._noun = to_identifier(noun, "item")
        self._tools = tools
        self._start = start
        self._left_out = left_out
        self._columns: dict[str, TableColumn] = {}
        self._maker = build_open_columns()

    def read(self, entities: list[Entity], operations: list[ToolBlueprint]) -> str:
        """Add the entity and its tools, or return the reason why there is none."""
        actions = {tool.means.action for tool in self._tools}
        if "create" not in actions and not {"get", "list"} <= actions and not {"update", "list"} <= actions:
            return f"nothing says where {to_words(self._noun)} records come from"
        key_label = self._key_label()
        key = to_identifier(key_label) if key_label else f"{self._noun}_id"
        key = f"{self._noun}_id" if normalize_name(key) in ("id", "uuid", "idvalue") else key
        self._gather(key_label)
        self._add_status()
        key_is_given = any(tool.means.action == "create" and key_label in tool.parameters for tool in self._tools)
        data = [column for column in self._columns.values() if column.name != key]
        if not data:
            return f"nothing says what a {to_words(self._noun)} holds"
        whole = not key_is_given and self._is_whole(key_label)
        columns = (TableColumn(name=key, kind="whole" if whole else "text", label=key_label), *data)
        table = to_identifier(self._noun if self._noun.endswith("s") else pluralize(self._noun), "items")
        entity = Entity(
            table=table,
            noun=self._noun,
            cls=to_class_name(self._noun),
            key=key,
            columns=columns,
            key_is_given=key_is_given,
            start=self._start,
            prefix="" if whole else f"{self._noun.replace('_', '')[:4].upper()}-",
        )
        results = [self._operation(tool, entity, key_label) for tool in self._tools]
        usable = [one for one in results if isinstance(one, ToolBlueprint)]
        self._left_out += [
            SkippedItem(what=tool.name, reason=one)
            for tool, one in zip(self._tools, results, strict=True)
            if isinstance(one, str)
        ]
        if usable:
            entities.append(entity)
            operations += usable
        return ""

    def _key_label(self) -> str:
        """The parameter that identifies a record."""
        one = [t for t in self._tools if t.means.action in ("get", "update", "delete", "move")]
        noun = normalize_name(self._noun)
        wanted = [f"{noun}id", noun, f"{noun}key", f"{noun}name", f"{noun}path", *_KEYS]
        wanted += [f"{normalize_name(self._noun.rpartition('_')[2])}id"]
        for name in wanted:
            for tool in one:
                matching = next((label for label in tool.parameters if normalize_name(label) == name), None)
                if matching:
                    return matching
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
                properties = tool.parameters if action != "get" else {}
                for label, schema in {**properties, **tool.shows}.items():
                    self._add(tool, label, schema, key_label, action)

    def _add(self, tool: _Tool, label: str, schema: JsonObject, key_label: str, action: str) -> None:
        name = to_identifier(label)
        around = normalize_name(label) in _PAGING or (action == "list" and normalize_name(label) in _SEARCH)
        if (
            label == key_label
            or normalize_name(label) in ("id", f"{normalize_name(self._noun)}id")
            or name in self._columns
            or around
        ):
            return
        required = action == "create" and label in tool.required
        try:
            column = self._maker.column(label, schema, self._noun, required, name)
        except (TypeError, AttributeError, ValueError) as error:  # schemas in lists have any shape
            column = f"no schema: {error}"
        if action == "list" and isinstance(column, TableColumn) and {"all", "any", "both"} & set(column.choices):
            column = "it says which records are listed, not what a record holds"
        if isinstance(column, TableColumn):
            self._columns[name] = column
        else:
            self._left_out.append(SkippedItem(what=f"{tool.name}.{label}", reason=column))

    def _add_status(self) -> None:
        moves = [tool.means.outcome[0] for tool in self._tools if tool.means.action == "move"]
        if moves and not any(c.kind == "choice" and c.name in ("status", "state") for c in self._columns.values()):
            choices = tuple(dict.fromkeys(["open", *moves]))
            self._columns["status"] = TableColumn(name="status", kind="choice", label="status", choices=choices)

    def _operation(self, tool: _Tool, entity: Entity, key_label: str) -> ToolBlueprint | str:
        base: dict[str, Any] = {
            "name": to_identifier(tool.name, "tool"),
            "table": entity.table,
            "description": tool.description.replace("\\", "/"),
            "actor": tool.actor,
        }
        action = tool.means.action
        names = {label: to_identifier(label) for label in tool.parameters if label != key_label}
        fields = tuple(
            name for name in names.values() if name in self._columns and name in entity.names and name != entity.key
        )
        needed = tuple(name for label, name in names.items() if label in tool.required and name in fields)
        if action in ("get", "update", "delete", "move") and key_label not in tool.parameters:
            return f"no parameter says which {to_words(self._noun)}"
        if action == "list":
            search = "query" if any(normalize_name(label) in _SEARCH for label in tool.parameters) else ""
            fields = tuple(name for name in fields if entity.column(name).kind not in ("moment", "number"))
            return ToolBlueprint(
                action="list", fields=fields, needed=tuple(n for n in needed if n in fields), search=search, **base
            )
        if action == "create":
            return (
                ToolBlueprint(action="create", fields=fields, needed=needed, **base)
                if fields
                else "nothing that it is sent is kept"
            )
        if action == "update":
            return (
                ToolBlueprint(action="update", fields=fields, **base) if fields else "nothing that it is sent is kept"
            )
        if action == "move":
            choices = entity.status.choices if entity.status else ()
            sets = next((outcome for outcome in tool.means.outcome if outcome in choices), "")
            column = entity.status.name if entity.status else ""
            move = ToolBlueprint(action="move", column=column, sets=sets, **base)
            return move if sets else f"{tool.means.outcome[0]} is no status"
        return ToolBlueprint(action=action, **base)


def _as_object(part: Any) -> JsonObject:
    """A part of a schema; nothing if it is no object: schemas in lists have any shape."""
    return part if isinstance(part, dict) else {}


def _find_record_properties(schema: Any) -> dict[str, JsonObject]:
    """Properties of the record in an output schema."""
    if not isinstance(schema, dict):
        return {}
    if schema.get("type") == "array":
        return _find_record_properties(schema.get("items"))
    properties = {
        name: child for name, child in _as_object(schema.get("properties")).items() if isinstance(child, dict)
    }
    if len(properties) == 1:
        inner = next(iter(properties.values()))
        if inner.get("type") in ("array", "object"):
            return _find_record_properties(inner)
    return properties
