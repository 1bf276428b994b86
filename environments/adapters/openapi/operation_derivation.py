"""From operations to what they do. What the document does not say is left out, and the reason is kept."""

from dataclasses import dataclass

from trajsmith.environments.adapters.openapi.document_model import DocumentModel
from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.naming import (
    is_verb,
    leaves_unchanged,
    normalize_name,
    to_singular,
    to_snake_case,
    with_article,
)
from trajsmith.environments.adapters.openapi.operations import Operation, OperationParameter
from trajsmith.environments.adapters.openapi.path_resolver import PathResolver
from trajsmith.environments.adapters.openapi.payloads import RecordPayload, find_list, find_record, overlaps_known
from trajsmith.environments.adapters.openapi.queries import FilterCondition, ListQuery, QueryInterpreter
from trajsmith.environments.adapters.openapi.read_actions import (
    GetAction,
    GetPropertyAction,
    ListAction,
    OperationAction,
)
from trajsmith.environments.adapters.openapi.relations import ReferenceFinder, is_alike
from trajsmith.environments.adapters.openapi.resource_collections import ParsedPath, ResourceCollection, parse_path
from trajsmith.environments.adapters.openapi.resource_paths import ResourcePath
from trajsmith.environments.adapters.openapi.responses import ResponseBuilder
from trajsmith.environments.adapters.openapi.tables import RecordReference, ResourceTable, TableDerivation
from trajsmith.environments.adapters.openapi.tool_inputs import ToolInputs, build_tool_inputs
from trajsmith.environments.adapters.openapi.transitions import find_transition
from trajsmith.environments.adapters.openapi.write_actions import (
    CreateAction,
    DeleteAction,
    LinkAction,
    UnlinkAction,
    UpdateAction,
    UpdatePropertyAction,
)
from trajsmith.records import JsonObject


@dataclass(frozen=True)
class DerivedOperation:
    """Operation that became a tool."""

    operation: Operation
    action: OperationAction
    inputs: ToolInputs
    reads: bool
    kind: str
    """What it does, for reports: "list", "get", "create"..."""
    notes: tuple[str, ...]


class OperationDerivation:
    """Derivation of each operation's action."""

    def __init__(
        self,
        model: DocumentModel,
        tables: TableDerivation,
        relations: ReferenceFinder,
        families: list[ResourceCollection],
        base: str,
    ) -> None:
        self._model = model
        self._tables = tables
        self._relations = relations
        self._families = {family.prefix: family for family in families}
        self._base = base
        self._placing = PathResolver(model, tables, relations, self._families)
        self._notes: list[str] = []

    def derived(self, operation: Operation) -> DerivedOperation:
        """Return an operation with its action.

        Raises:
            LeftOut: The document does not say, or says what cannot be done.
        """
        self._notes = list(operation.notes)
        route = parse_path(operation.path)
        entered = self._placing.take_snapshot()
        try:
            kind, action, inputs = self._action(operation, route)
        except UnsupportedFeature:
            self._placing.restore_snapshot(entered)
            raise
        reads = operation.method == "get" or kind == "search"
        self._describe(action, inputs)
        return DerivedOperation(operation, action, inputs, reads, kind, tuple(self._notes))

    def _describe(self, action: OperationAction, inputs: ToolInputs) -> None:
        """Say of arguments that the document leaves undescribed which record they mean."""
        meant = {level.parameter: level.table for level in action.chain.levels if level.parameter is not None}
        fields = {name: argument for argument, name in inputs.fields.items()}
        if isinstance(action, CreateAction | UpdateAction) and not inputs.record_path:
            for reference in action.references:
                if not reference.embedded and reference.path[1:] in ((), ("*",)) and reference.path[0] in fields:
                    meant[fields[reference.path[0]]] = reference.table
        properties: JsonObject = inputs.schema["properties"]
        for name, table_name in meant.items():
            schema, table = properties.get(name), self._model.tables[table_name]
            if schema is not None and not (self._model.requests.look(schema) | schema).get("description"):
                properties[name] = {
                    **schema,
                    "description": f"{table.identity.lstrip('@')} of {with_article(table.noun)}",
                }

    def _action(self, operation: Operation, route: ParsedPath) -> tuple[str, OperationAction, ToolInputs]:
        if route.verb:
            return self._act(operation, route, route.verb)
        if route.ends_in_item and route.segments not in self._families:
            return self._on_item(operation, route)
        family = self._families[route.segments]
        if family.prefix in self._tables.parts:
            return self._on_part(operation, family)
        above = route.steps[-1] if route.steps else None
        if above and route.segments[:-1] == (*above.prefix, "{}") and operation.method in ("post", "put", "patch"):
            try:
                return self._act(operation, route, to_snake_case(route.last))
            except UnsupportedFeature:
                if family.prefix not in self._tables.of_family:
                    raise
        return self._on_list(operation, family)

    # Items

    def _on_item(self, operation: Operation, route: ParsedPath) -> tuple[str, OperationAction, ToolInputs]:
        prefix = route.segments[:-1]
        table = self._table(self._families[prefix])
        chain = self._placing.resolve_to_table(route.steps, table, operation)
        if operation.method == "get":
            inputs = self._inputs(operation, table, [])
            return "get", GetAction(table, chain, self._record_reply(operation, table, True)), inputs
        relation = chain.levels[-1].relation
        linked = relation is not None and relation.kind == "held" and relation.path[0].startswith("@")
        if operation.method == "delete":
            inputs = self._inputs(operation, table, [])
            reply = self._record_reply(operation, table)
            if linked and relation is not None:
                return "unlink", UnlinkAction(table, chain, relation.path, None, inputs, reply), inputs
            return "delete", DeleteAction(table, chain, reply), inputs
        if operation.method == "put" and operation.body is None and linked and relation is not None:
            reply = self._record_reply(operation, table)
            by = route.steps[-1].parameter
            inputs = self._inputs(operation, table, [])
            linking = LinkAction(table, ResourcePath(chain.levels[:-1]), relation.path, by, inputs, reply)
            return "link", linking, inputs
        return self._update(operation, table, chain_of=route)

    def _update(
        self, operation: Operation, table: ResourceTable, chain_of: ParsedPath
    ) -> tuple[str, OperationAction, ToolInputs]:
        properties = self._model.responses.all_properties(table.schema)
        fields = [p for p in operation.parameters if p.place == "query" and p.name in properties]
        inputs = self._inputs(operation, table, fields if operation.body is None else [])
        if operation.body is None:
            inputs.fields.update({parameter.name: parameter.name for parameter in fields})
        elif inputs.record_schema is None:
            raise UnsupportedFeature("the body is no record of properties")
        else:
            self._must_be_about(operation, table, inputs)
        if not inputs.fields and not inputs.whole:
            raise UnsupportedFeature("nothing says what it changes")
        if operation.method == "post":
            self._notes.append(f"taken as a change of the {table.noun}: what it is sent are properties of one")
        chain = self._placing.resolve_to_table(chain_of.steps, table, operation)
        replace = operation.method == "put" and operation.body is not None
        reply = self._record_reply(operation, table)
        return (
            "update",
            UpdateAction(table, chain, inputs, self._body_references(inputs, table), reply, replace),
            inputs,
        )

    # Collections and single records

    def _on_list(self, operation: Operation, family: ResourceCollection) -> tuple[str, OperationAction, ToolInputs]:
        table = self._tables.views.get(family.prefix) or self._table(family)
        if family.single:
            return self._on_single(operation, family, table)
        if operation.method == "get":
            return self._list(operation, family, table, "list")
        if operation.method == "post":
            return self._post(operation, family, table)
        if operation.method in ("put", "patch") and operation.body is not None and not family.steps:
            inputs = self._inputs(operation, table, [])
            if table.identity in inputs.fields.values() or inputs.whole:
                chain = self._placing.chain((), table, operation)
                references = self._body_references(inputs, table)
                reply = self._record_reply(operation, table)
                return "update", UpdateAction(table, chain, inputs, references, reply, by_body=True), inputs
        raise UnsupportedFeature(f"nothing says what {operation.method.upper()} does to all {table.name}")

    def _list(
        self, operation: Operation, family: ResourceCollection, table: ResourceTable, kind: str
    ) -> tuple[str, OperationAction, ToolInputs]:
        payload = find_list(self._model.responses, operation.answer.schema, family.noun)
        if payload is None:
            one = self._get_by_query(operation, family, table)
            if one is not None:
                return one
            raise UnsupportedFeature("its answer shows no list of records")
        chain = self._placing.chain(family.steps, table, operation, below=True)
        meanings = QueryInterpreter(table, self._model.tables, self._model.responses, self._model.requests)
        query = meanings.query([parameter for parameter in operation.parameters if parameter.place == "query"])
        if kind == "search":
            query.conditions.extend(self._body_conditions(operation, table, meanings))
        if family.prefix in self._tables.views and not query.conditions:
            raise UnsupportedFeature(f"nothing says which of the {table.name} it shows")
        self._drop(query)
        used = [parameter for parameter in operation.parameters if parameter not in query.unknown]
        inputs = self._inputs(operation, table, [p for p in used if p.place == "query"])
        relation = self._placing.below(family, table)
        reply = self._reply(operation, payload)
        return kind, ListAction(table, chain, relation, query, reply, operation.path, inputs), inputs

    def _get_by_query(
        self, operation: Operation, family: ResourceCollection, table: ResourceTable
    ) -> tuple[str, OperationAction, ToolInputs] | None:
        named = [
            p
            for p in operation.parameters
            if p.place == "query" and normalize_name(p.name) == normalize_name(table.identity)
        ]
        if not named or family.steps or not named[0].required:
            return None
        chain = self._placing.resolve_by_argument(table, named[0].name)
        return (
            "get",
            GetAction(table, chain, self._record_reply(operation, table, True)),
            self._inputs(operation, table, named),
        )

    def _body_conditions(
        self, operation: Operation, table: ResourceTable, meanings: QueryInterpreter
    ) -> list[FilterCondition]:
        conditions = []
        for name, schema in self._model.requests.properties(operation.body or {}).items():
            condition = meanings.condition(OperationParameter(name, "query", schema, False, ""))
            if condition is None:
                raise UnsupportedFeature(f"nothing says what {name!r} in the body means for {table.name}")
            conditions.append(condition)
        return conditions

    def _drop(self, query: ListQuery) -> None:
        for parameter in query.unknown:
            if parameter.required:
                raise UnsupportedFeature(f"nothing says what the required parameter {parameter.name!r} means")
            self._notes.append(f"parameter {parameter.name!r} is left out: nothing says what it means")

    def _post(
        self, operation: Operation, family: ResourceCollection, table: ResourceTable
    ) -> tuple[str, OperationAction, ToolInputs]:
        listed = find_list(self._model.responses, operation.answer.schema, family.noun)
        if listed is not None and (
            to_snake_case(family.prefix[-1]) in ("search", "query", "find") or operation.body is None
        ):
            return self._list(operation, family, table, "search")
        alone = family.has == {"post"} and family.prefix not in self._tables.views
        if alone and (is_verb(to_snake_case(family.prefix[-1])) or family.prefix[:-1] in self._families):
            raise UnsupportedFeature(f"nothing says what {family.prefix[-1]!r} does")
        relation = self._placing.below(family, table)
        chain = self._placing.chain(family.steps, table, operation, below=True)
        inputs = self._inputs(operation, table, [])
        if inputs.record_schema is None or (
            inputs.whole and not self._model.requests.all_properties(inputs.record_schema)
        ):
            raise UnsupportedFeature("nothing says what it makes: the body is no record")
        by = _find_record_property(self._model, inputs, table.noun) if relation and relation.kind == "held" else None
        if by is not None and relation is not None:
            reply = self._record_reply(operation, table)
            return "link", LinkAction(table, chain, relation.path, by, inputs, reply), inputs
        self._must_be_about(operation, table, inputs)
        self._must_be_readable(family, table, inputs)
        reply = self._record_reply(operation, table)
        self._note_invented(table, inputs, family)
        references = self._body_references(inputs, table)
        return "create", CreateAction(table, chain, relation, inputs, references, reply), inputs

    def _on_single(
        self, operation: Operation, family: ResourceCollection, table: ResourceTable
    ) -> tuple[str, OperationAction, ToolInputs]:
        chain = self._placing.single(family, table, operation)
        inputs = self._inputs(operation, table, [])
        if operation.method == "get":
            if family.has == {"get"}:
                self._notes.append("nothing writes it: a fixed record, made from its schema")
            return "get", GetAction(table, chain, self._record_reply(operation, table, True)), inputs
        reply = self._record_reply(operation, table)
        if operation.method == "delete":
            return "delete", DeleteAction(table, chain, reply), inputs
        if inputs.record_schema is None:
            raise UnsupportedFeature("nothing says what it changes")
        self._must_be_about(operation, table, inputs)
        references = self._body_references(inputs, table)
        return "update", UpdateAction(table, chain, inputs, references, reply, operation.method == "put"), inputs

    def _on_part(self, operation: Operation, family: ResourceCollection) -> tuple[str, OperationAction, ToolInputs]:
        table, part = self._tables.parts[family.prefix]
        chain = self._placing.chain(family.steps, table, operation)
        inputs = self._inputs(operation, table, [])
        payload = find_record(self._model.responses, operation.answer.schema, family.noun)
        reply = self._reply(operation, payload)
        if operation.method == "get":
            return "get", GetPropertyAction(table, chain, part, reply), inputs
        if operation.method in ("put", "patch", "post") and inputs.record_schema is not None:
            return "update", UpdatePropertyAction(table, chain, part, inputs, reply, operation.method == "put"), inputs
        raise UnsupportedFeature(
            f"nothing says what {operation.method.upper()} does to the {part} of {with_article(table.noun)}"
        )

    # Acts

    def _act(self, operation: Operation, route: ParsedPath, verb: str) -> tuple[str, OperationAction, ToolInputs]:
        step = route.steps[-1] if route.steps else None
        table = self._tables.of_family.get(step.prefix) if step else None
        if table is None or operation.method == "delete":
            raise UnsupportedFeature(f"nothing says what {verb!r} does")
        listed = self._add_or_remove(operation, route, table, verb)
        if listed is not None:
            return listed
        chain = self._placing.resolve_to_table(route.steps, table, operation)
        inputs = self._inputs(operation, table, [])
        known = frozenset(self._model.responses.all_properties(table.schema))
        change = find_transition(self._model.responses, table, verb)
        body = set(inputs.fields.values())
        sets_known = body & known and body <= known and not leaves_unchanged(verb)
        if change is None and not sets_known:
            raise UnsupportedFeature(f"no property of {with_article(table.noun)} says what {verb!r} does to it")
        references = self._body_references(inputs, table)
        sets: JsonObject = {}
        done = "updated"
        if change is not None:
            name, value, done = change
            sets = {name: value}
            self._notes.append(f"sets {name} to {value!r}: the value that {verb!r} leads to")
        for name in sorted(body - known):
            self._notes.append(f"argument {name!r} is kept in the state, and no answer shows it")
        reply = self._record_reply(operation, table)
        return "act", UpdateAction(table, chain, inputs, references, reply, sets=sets, done=done), inputs

    def _add_or_remove(
        self, operation: Operation, route: ParsedPath, table: ResourceTable, verb: str
    ) -> tuple[str, OperationAction, ToolInputs] | None:
        """Derive "addTag" and the like, where a record shows its tags and the body names one."""
        way, _, noun = verb.partition("_")
        if way not in ("add", "remove") or not noun:
            return None
        inputs = self._inputs(operation, table, [])
        by = _find_record_property(self._model, inputs, to_singular(noun))
        for reference in table.references:
            if by is None or reference.path[-1] != "*" or not is_alike(reference.path[-2], noun):
                continue
            chain = self._placing.resolve_to_table(route.steps, table, operation)
            target = self._model.tables[reference.table]
            reply = self._record_reply(operation, target)
            if way == "add":
                return "link", LinkAction(target, chain, reference.path, by, inputs, reply), inputs
            return "unlink", UnlinkAction(target, chain, reference.path, by, inputs, reply), inputs
        return None

    # Shared

    def _table(self, family: ResourceCollection) -> ResourceTable:
        table = self._tables.of_family.get(family.prefix)
        if table is None:
            raise UnsupportedFeature(self._tables.reasons.get(family.prefix, "no answer shows a record"))
        return table

    def _inputs(self, operation: Operation, table: ResourceTable, query: list[OperationParameter]) -> ToolInputs:
        parameters = [parameter for parameter in operation.parameters if parameter.place == "path"]
        names = {parameter.name for parameter in parameters}
        for parameter in operation.parameters:
            if (
                parameter.place == "query"
                and (parameter in query or parameter.required)
                and parameter.name not in names
            ):
                parameters.append(parameter)
                names.add(parameter.name)
            elif parameter.place == "query" and parameter not in query and operation.method != "get":
                self._notes.append(f"parameter {parameter.name!r} is left out: nothing says what it means")
        return build_tool_inputs(operation, parameters, self._model.requests, table.noun, table.identity)

    def _record_reply(self, operation: Operation, table: ResourceTable, must: bool = False) -> ResponseBuilder:
        payload = find_record(self._model.responses, operation.answer.schema, table.noun)
        known = self._model.responses.all_properties(table.schema)
        if payload is not None and not self._shows(payload, table, known):
            payload = None
        if must and payload is None:
            raise UnsupportedFeature(f"its answer does not show {with_article(table.noun)}")
        return self._reply(operation, payload)

    def _shows(self, payload: RecordPayload, table: ResourceTable, known: JsonObject) -> bool:
        responses = self._model.responses
        if responses.component(payload.schema) in table.components:
            return True
        if not responses.properties(payload.schema):
            return bool(responses.all_properties(payload.schema).keys() & known.keys())
        return overlaps_known(responses, payload.schema, known) and responses.required(payload.schema) <= known.keys()

    def _reply(self, operation: Operation, payload: RecordPayload | None) -> ResponseBuilder:
        reply = ResponseBuilder(operation, payload, self._model.responses, self._model.viewer, self._base)
        if reply.made:
            self._notes.append(f"{', '.join(reply.made)} in its answer is a constant: nothing says what it is")
        return reply

    def _body_references(self, inputs: ToolInputs, table: ResourceTable) -> list[RecordReference]:
        if inputs.record_schema is None:
            return []
        return self._relations.find_body_references(inputs.record_schema, self._model.requests, table)

    def _must_be_about(self, operation: Operation, table: ResourceTable, inputs: ToolInputs) -> None:
        sent = self._model.requests.all_properties(inputs.record_schema or {})
        known = self._model.responses.all_properties(table.schema)
        if sent and not sent.keys() & known.keys():
            raise UnsupportedFeature(f"what it is sent has nothing in common with {with_article(table.noun)}")

    def _must_be_readable(self, family: ResourceCollection, table: ResourceTable, inputs: ToolInputs) -> None:
        """A new record must be seen again: by another operation, or at least in the answer."""
        readers = [op for other in table.families for op in (*other.on_item, *other.on_list) if op.method != "post"]
        sent = self._model.requests.all_properties(inputs.record_schema or {})
        known = self._model.responses.all_properties(table.schema)
        if not readers and len(sent.keys() & known.keys()) * 2 < len(sent):
            raise UnsupportedFeature(f"nothing shows the {to_singular(family.noun)} that it would make")

    def _note_invented(self, table: ResourceTable, inputs: ToolInputs, family: ResourceCollection) -> None:
        sent = set(self._model.requests.all_properties(inputs.record_schema or {}))
        needed = self._model.responses.required(table.schema) - sent - {table.identity}
        path_parameters = {step.parameter for step in family.steps}
        invented = sorted(name for name in needed if name not in path_parameters)
        if invented:
            self._notes.append(
                f"{', '.join(invented)} of a new {table.noun} is not sent: defaults, times and made values"
            )


def _find_record_property(model: DocumentModel, inputs: ToolInputs, noun: str) -> str | None:
    """Return the property of a small body that names an existing record."""
    sent = model.requests.all_properties(inputs.record_schema or {})
    own = {normalize_name(noun) + end for end in ("", "id", "ids", "gid", "gids", "s")} | {"id", "ids"}
    return next((name for name in sent if normalize_name(name) in own), None) if len(sent) <= 3 else None
