"""From operations to what they do. What the document does not say is left out, and the reason is kept."""

from dataclasses import dataclass

from environments.openapi.bodies import Inputs, inputs_of
from environments.openapi.chains import Chain
from environments.openapi.families import Family, Route, route_of
from environments.openapi.model import Model
from environments.openapi.operations import Operation, Parameter
from environments.openapi.payloads import Payload, find_list, find_record, overlap
from environments.openapi.placing import Placing
from environments.openapi.queries import Condition, Meanings, Query
from environments.openapi.reads import Action, Getting, GettingPart, Listing
from environments.openapi.references import LeftOut
from environments.openapi.relations import Relations, alike
from environments.openapi.replies import Reply
from environments.openapi.tables import Reference, Table, Tables
from environments.openapi.transitions import transition
from environments.openapi.words import a, acts_elsewhere, is_verb, plain, singular, snake
from environments.openapi.writes import Creating, Deleting, Linking, Unlinking, Updating, UpdatingPart
from trajectory import JsonObject


@dataclass(frozen=True)
class Kept:
    """An operation that became a tool."""

    operation: Operation
    action: Action
    inputs: Inputs
    reads: bool
    kind: str
    """What it does, for reports: "list", "get", "create"..."""
    notes: tuple[str, ...]


class Derivation:
    """Decides what each operation does."""

    def __init__(self, model: Model, tables: Tables, relations: Relations, families: list[Family], base: str) -> None:
        self._model = model
        self._tables = tables
        self._relations = relations
        self._families = {family.prefix: family for family in families}
        self._base = base
        self._placing = Placing(model, tables, relations, self._families)
        self._notes: list[str] = []

    def kept(self, operation: Operation) -> Kept:
        """What an operation does.

        Raises:
            LeftOut: The document does not say, or says what cannot be done.
        """
        self._notes = list(operation.notes)
        route = route_of(operation.path)
        entered = self._placing.entered()
        try:
            kind, action, inputs = self._action(operation, route)
        except LeftOut:
            self._placing.take_back(entered)
            raise
        reads = operation.method == "get" or kind == "search"
        self._describe(action, inputs)
        return Kept(operation, action, inputs, reads, kind, tuple(self._notes))

    def _describe(self, action: Action, inputs: Inputs) -> None:
        """Say of arguments that the document leaves undescribed which record they mean."""
        meant = {level.parameter: level.table for level in action.chain.levels if level.parameter is not None}
        fields = {name: argument for argument, name in inputs.fields.items()}
        if isinstance(action, Creating | Updating) and not inputs.record_path:
            for reference in action.references:
                if not reference.embedded and reference.path[1:] in ((), ("*",)) and reference.path[0] in fields:
                    meant[fields[reference.path[0]]] = reference.table
        properties: JsonObject = inputs.schema["properties"]
        for name, table_name in meant.items():
            schema, table = properties.get(name), self._model.tables[table_name]
            if schema is not None and not (self._model.requests.look(schema) | schema).get("description"):
                properties[name] = {**schema, "description": f"{table.identity.lstrip('@')} of {a(table.noun)}"}

    def _action(self, operation: Operation, route: Route) -> tuple[str, Action, Inputs]:
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
                return self._act(operation, route, snake(route.last))
            except LeftOut:
                if family.prefix not in self._tables.of_family:
                    raise
        return self._on_list(operation, family)

    # Items

    def _on_item(self, operation: Operation, route: Route) -> tuple[str, Action, Inputs]:
        prefix = route.segments[:-1]
        table = self._table(self._families[prefix])
        chain = self._placing.chain_to(route.steps, table, operation)
        if operation.method == "get":
            inputs = self._inputs(operation, table, [])
            return "get", Getting(table, chain, self._record_reply(operation, table, True)), inputs
        relation = chain.levels[-1].relation
        linked = relation is not None and relation.kind == "held" and relation.path[0].startswith("@")
        if operation.method == "delete":
            inputs = self._inputs(operation, table, [])
            reply = self._record_reply(operation, table)
            if linked and relation is not None:
                return "unlink", Unlinking(table, chain, relation.path, None, inputs, reply), inputs
            return "delete", Deleting(table, chain, reply), inputs
        if operation.method == "put" and operation.body is None and linked and relation is not None:
            reply = self._record_reply(operation, table)
            by = route.steps[-1].parameter
            inputs = self._inputs(operation, table, [])
            linking = Linking(table, Chain(chain.levels[:-1]), relation.path, by, inputs, reply)
            return "link", linking, inputs
        return self._update(operation, table, chain_of=route)

    def _update(self, operation: Operation, table: Table, chain_of: Route) -> tuple[str, Action, Inputs]:
        properties = self._model.responses.all_properties(table.schema)
        fields = [p for p in operation.parameters if p.place == "query" and p.name in properties]
        inputs = self._inputs(operation, table, fields if operation.body is None else [])
        if operation.body is None:
            inputs.fields.update({parameter.name: parameter.name for parameter in fields})
        elif inputs.record_schema is None:
            raise LeftOut("the body is no record of properties")
        else:
            self._must_be_about(operation, table, inputs)
        if not inputs.fields and not inputs.whole:
            raise LeftOut("nothing says what it changes")
        if operation.method == "post":
            self._notes.append(f"taken as a change of the {table.noun}: what it is sent are properties of one")
        chain = self._placing.chain_to(chain_of.steps, table, operation)
        replace = operation.method == "put" and operation.body is not None
        reply = self._record_reply(operation, table)
        return "update", Updating(table, chain, inputs, self._body_references(inputs, table), reply, replace), inputs

    # Collections and single records

    def _on_list(self, operation: Operation, family: Family) -> tuple[str, Action, Inputs]:
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
                return "update", Updating(table, chain, inputs, references, reply, by_body=True), inputs
        raise LeftOut(f"nothing says what {operation.method.upper()} does to all {table.name}")

    def _list(self, operation: Operation, family: Family, table: Table, kind: str) -> tuple[str, Action, Inputs]:
        payload = find_list(self._model.responses, operation.answer.schema, family.noun)
        if payload is None:
            one = self._get_by_query(operation, family, table)
            if one is not None:
                return one
            raise LeftOut("its answer shows no list of records")
        chain = self._placing.chain(family.steps, table, operation, below=True)
        meanings = Meanings(table, self._model.tables, self._model.responses, self._model.requests)
        query = meanings.query([parameter for parameter in operation.parameters if parameter.place == "query"])
        if kind == "search":
            query.conditions.extend(self._body_conditions(operation, table, meanings))
        if family.prefix in self._tables.views and not query.conditions:
            raise LeftOut(f"nothing says which of the {table.name} it shows")
        self._drop(query)
        used = [parameter for parameter in operation.parameters if parameter not in query.unknown]
        inputs = self._inputs(operation, table, [p for p in used if p.place == "query"])
        relation = self._placing.below(family, table)
        reply = self._reply(operation, payload)
        return kind, Listing(table, chain, relation, query, reply, operation.path, inputs), inputs

    def _get_by_query(self, operation: Operation, family: Family, table: Table) -> tuple[str, Action, Inputs] | None:
        named = [p for p in operation.parameters if p.place == "query" and plain(p.name) == plain(table.identity)]
        if not named or family.steps or not named[0].required:
            return None
        chain = self._placing.by_argument(table, named[0].name)
        return (
            "get",
            Getting(table, chain, self._record_reply(operation, table, True)),
            self._inputs(operation, table, named),
        )

    def _body_conditions(self, operation: Operation, table: Table, meanings: Meanings) -> list[Condition]:
        found = []
        for name, schema in self._model.requests.properties(operation.body or {}).items():
            condition = meanings.condition(Parameter(name, "query", schema, False, ""))
            if condition is None:
                raise LeftOut(f"nothing says what {name!r} in the body means for {table.name}")
            found.append(condition)
        return found

    def _drop(self, query: Query) -> None:
        for parameter in query.unknown:
            if parameter.required:
                raise LeftOut(f"nothing says what the required parameter {parameter.name!r} means")
            self._notes.append(f"parameter {parameter.name!r} is left out: nothing says what it means")

    def _post(self, operation: Operation, family: Family, table: Table) -> tuple[str, Action, Inputs]:
        listed = find_list(self._model.responses, operation.answer.schema, family.noun)
        if listed is not None and (snake(family.prefix[-1]) in ("search", "query", "find") or operation.body is None):
            return self._list(operation, family, table, "search")
        alone = family.has == {"post"} and family.prefix not in self._tables.views
        if alone and (is_verb(snake(family.prefix[-1])) or family.prefix[:-1] in self._families):
            raise LeftOut(f"nothing says what {family.prefix[-1]!r} does")
        relation = self._placing.below(family, table)
        chain = self._placing.chain(family.steps, table, operation, below=True)
        inputs = self._inputs(operation, table, [])
        if inputs.record_schema is None or (
            inputs.whole and not self._model.requests.all_properties(inputs.record_schema)
        ):
            raise LeftOut("nothing says what it makes: the body is no record")
        by = _names_record(self._model, inputs, table.noun) if relation and relation.kind == "held" else None
        if by is not None and relation is not None:
            reply = self._record_reply(operation, table)
            return "link", Linking(table, chain, relation.path, by, inputs, reply), inputs
        self._must_be_about(operation, table, inputs)
        self._must_be_readable(family, table, inputs)
        reply = self._record_reply(operation, table)
        self._note_made(table, inputs, family)
        references = self._body_references(inputs, table)
        return "create", Creating(table, chain, relation, inputs, references, reply), inputs

    def _on_single(self, operation: Operation, family: Family, table: Table) -> tuple[str, Action, Inputs]:
        chain = self._placing.single(family, table, operation)
        inputs = self._inputs(operation, table, [])
        if operation.method == "get":
            if family.has == {"get"}:
                self._notes.append("nothing writes it: a fixed record, made from its schema")
            return "get", Getting(table, chain, self._record_reply(operation, table, True)), inputs
        reply = self._record_reply(operation, table)
        if operation.method == "delete":
            return "delete", Deleting(table, chain, reply), inputs
        if inputs.record_schema is None:
            raise LeftOut("nothing says what it changes")
        self._must_be_about(operation, table, inputs)
        references = self._body_references(inputs, table)
        return "update", Updating(table, chain, inputs, references, reply, operation.method == "put"), inputs

    def _on_part(self, operation: Operation, family: Family) -> tuple[str, Action, Inputs]:
        table, part = self._tables.parts[family.prefix]
        chain = self._placing.chain(family.steps, table, operation)
        inputs = self._inputs(operation, table, [])
        payload = find_record(self._model.responses, operation.answer.schema, family.noun)
        reply = self._reply(operation, payload)
        if operation.method == "get":
            return "get", GettingPart(table, chain, part, reply), inputs
        if operation.method in ("put", "patch", "post") and inputs.record_schema is not None:
            return "update", UpdatingPart(table, chain, part, inputs, reply, operation.method == "put"), inputs
        raise LeftOut(f"nothing says what {operation.method.upper()} does to the {part} of {a(table.noun)}")

    # Acts

    def _act(self, operation: Operation, route: Route, verb: str) -> tuple[str, Action, Inputs]:
        step = route.steps[-1] if route.steps else None
        table = self._tables.of_family.get(step.prefix) if step else None
        if table is None or operation.method == "delete":
            raise LeftOut(f"nothing says what {verb!r} does")
        listed = self._add_or_remove(operation, route, table, verb)
        if listed is not None:
            return listed
        chain = self._placing.chain_to(route.steps, table, operation)
        inputs = self._inputs(operation, table, [])
        known = frozenset(self._model.responses.all_properties(table.schema))
        found = transition(self._model.responses, table, verb)
        body = set(inputs.fields.values())
        sets_known = body & known and body <= known and not acts_elsewhere(verb)
        if found is None and not sets_known:
            raise LeftOut(f"no property of {a(table.noun)} says what {verb!r} does to it")
        references = self._body_references(inputs, table)
        sets: JsonObject = {}
        done = "updated"
        if found is not None:
            name, value, done = found
            sets = {name: value}
            self._notes.append(f"sets {name} to {value!r}: the value that {verb!r} leads to")
        for name in sorted(body - known):
            self._notes.append(f"argument {name!r} is kept in the state, and no answer shows it")
        reply = self._record_reply(operation, table)
        return "act", Updating(table, chain, inputs, references, reply, sets=sets, done=done), inputs

    def _add_or_remove(
        self, operation: Operation, route: Route, table: Table, verb: str
    ) -> tuple[str, Action, Inputs] | None:
        """What "addTag" does, where a record shows its tags and the body names one."""
        way, _, noun = verb.partition("_")
        if way not in ("add", "remove") or not noun:
            return None
        inputs = self._inputs(operation, table, [])
        by = _names_record(self._model, inputs, singular(noun))
        for reference in table.references:
            if by is None or reference.path[-1] != "*" or not alike(reference.path[-2], noun):
                continue
            chain = self._placing.chain_to(route.steps, table, operation)
            target = self._model.tables[reference.table]
            reply = self._record_reply(operation, target)
            if way == "add":
                return "link", Linking(target, chain, reference.path, by, inputs, reply), inputs
            return "unlink", Unlinking(target, chain, reference.path, by, inputs, reply), inputs
        return None

    # Shared

    def _table(self, family: Family) -> Table:
        table = self._tables.of_family.get(family.prefix)
        if table is None:
            raise LeftOut(self._tables.reasons.get(family.prefix, "no answer shows a record"))
        return table

    def _inputs(self, operation: Operation, table: Table, query: list[Parameter]) -> Inputs:
        kept = [parameter for parameter in operation.parameters if parameter.place == "path"]
        names = {parameter.name for parameter in kept}
        for parameter in operation.parameters:
            if (
                parameter.place == "query"
                and (parameter in query or parameter.required)
                and parameter.name not in names
            ):
                kept.append(parameter)
                names.add(parameter.name)
            elif parameter.place == "query" and parameter not in query and operation.method != "get":
                self._notes.append(f"parameter {parameter.name!r} is left out: nothing says what it means")
        return inputs_of(operation, kept, self._model.requests, table.noun, table.identity)

    def _record_reply(self, operation: Operation, table: Table, must: bool = False) -> Reply:
        payload = find_record(self._model.responses, operation.answer.schema, table.noun)
        known = self._model.responses.all_properties(table.schema)
        if payload is not None and not self._shows(payload, table, known):
            payload = None
        if must and payload is None:
            raise LeftOut(f"its answer does not show {a(table.noun)}")
        return self._reply(operation, payload)

    def _shows(self, payload: Payload, table: Table, known: JsonObject) -> bool:
        responses = self._model.responses
        if responses.component(payload.schema) in table.components:
            return True
        if not responses.properties(payload.schema):
            return bool(responses.all_properties(payload.schema).keys() & known.keys())
        return overlap(responses, payload.schema, known) and responses.required(payload.schema) <= known.keys()

    def _reply(self, operation: Operation, payload: Payload | None) -> Reply:
        reply = Reply(operation, payload, self._model.responses, self._model.viewer, self._base)
        if reply.made:
            self._notes.append(f"{', '.join(reply.made)} in its answer is a constant: nothing says what it is")
        return reply

    def _body_references(self, inputs: Inputs, table: Table) -> list[Reference]:
        if inputs.record_schema is None:
            return []
        return self._relations.of_body(inputs.record_schema, self._model.requests, table)

    def _must_be_about(self, operation: Operation, table: Table, inputs: Inputs) -> None:
        sent = self._model.requests.all_properties(inputs.record_schema or {})
        known = self._model.responses.all_properties(table.schema)
        if sent and not sent.keys() & known.keys():
            raise LeftOut(f"what it is sent has nothing in common with {a(table.noun)}")

    def _must_be_readable(self, family: Family, table: Table, inputs: Inputs) -> None:
        """A new record must be seen again: by another operation, or at least in the answer."""
        readers = [op for other in table.families for op in (*other.on_item, *other.on_list) if op.method != "post"]
        sent = self._model.requests.all_properties(inputs.record_schema or {})
        known = self._model.responses.all_properties(table.schema)
        if not readers and len(sent.keys() & known.keys()) * 2 < len(sent):
            raise LeftOut(f"nothing shows the {singular(family.noun)} that it would make")

    def _note_made(self, table: Table, inputs: Inputs, family: Family) -> None:
        sent = set(self._model.requests.all_properties(inputs.record_schema or {}))
        needed = self._model.responses.required(table.schema) - sent - {table.identity}
        given = {step.parameter for step in family.steps}
        made = sorted(name for name in needed if name not in given)
        if made:
            self._notes.append(f"{', '.join(made)} of a new {table.noun} is not sent: defaults, times and made values")


def _names_record(model: Model, inputs: Inputs, noun: str) -> str | None:
    """The property of a small body that names an existing record."""
    sent = model.requests.all_properties(inputs.record_schema or {})
    own = {plain(noun) + end for end in ("", "id", "ids", "gid", "gids", "s")} | {"id", "ids"}
    return next((name for name in sent if plain(name) in own), None) if len(sent) <= 3 else None
