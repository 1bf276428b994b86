"""Resolve the path of an operation to the chain of parent records."""

from trajsmith.environments.adapters.openapi.document_model import DocumentModel
from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.naming import to_singular, with_article
from trajsmith.environments.adapters.openapi.operations import Operation
from trajsmith.environments.adapters.openapi.queries import QueryInterpreter
from trajsmith.environments.adapters.openapi.relations import ParentRelation, ReferenceFinder
from trajsmith.environments.adapters.openapi.resource_collections import PathStep, Prefix, ResourceCollection
from trajsmith.environments.adapters.openapi.resource_paths import PathLevel, PathScope, ResourcePath
from trajsmith.environments.adapters.openapi.tables import (
    GENERATED_ID,
    RecordReference,
    ResourceTable,
    TableDerivation,
)
from trajsmith.environments.adapters.openapi.value_generation import Path
from trajsmith.records import JsonValue

RegistrationSnapshot = tuple[
    dict[str, tuple[list[RecordReference], dict[str, list[JsonValue]]]], dict[str, list[str]], set[tuple[str, Path]]
]
"""References and scopes of the tables, which tables are keyed by which, what goes away with what."""


class PathResolver:
    """Resolver of paths that also registers in the tables the relations that paths imply."""

    def __init__(
        self,
        model: DocumentModel,
        tables: TableDerivation,
        relations: ReferenceFinder,
        families: dict[Prefix, ResourceCollection],
    ) -> None:
        self._model = model
        self._tables = tables
        self._relations = relations
        self._families = families

    def take_snapshot(self) -> RegistrationSnapshot:
        """Return a snapshot of the registered relations, for `restore_snapshot`."""
        tables = {table.name: (list(table.references), dict(table.scopes)) for table in self._model.tables.values()}
        return tables, {name: list(names) for name, names in self._model.keyed.items()}, set(self._model.owned)

    def restore_snapshot(self, entered: RegistrationSnapshot) -> None:
        """Remove the relations of an operation that is skipped after all."""
        tables, self._model.keyed, self._model.owned = entered
        for name, (references, scopes) in tables.items():
            table = self._model.tables[name]
            table.references, table.scopes = references, scopes

    def chain(
        self, steps: tuple[PathStep, ...], table: ResourceTable, operation: Operation, below: bool = False
    ) -> ResourcePath:
        """Return the records that a path's parameters select.

        Args:
            table: What the operation is about.
            below: True if the path ends at the records below the last parameter's.

        Raises:
            LeftOut: A parameter picks nothing that is known.
        """
        levels: list[PathLevel] = []
        scopes: list[PathScope] = []
        before: PathStep | None = None
        for step in steps:
            step_table = self._tables.of_family.get(step.prefix)
            if step_table is None or step_table.fixed or not self._picks(step, step_table):
                by = self._relations.find_by_parameter(table, step) if step != steps[-1] or below else None
                if by is not None and not levels and step == steps[-1]:
                    levels.append(PathLevel(by[0].name, step.parameter, None))
                else:
                    scopes.append(self._scope(step, self._next(steps, step) or table, operation))
                continue
            relation = self._between(levels, step_table, step, before)
            levels.append(PathLevel(step_table.name, step.parameter, relation, tuple(scopes)))
            scopes, before = [], step
        return ResourcePath(tuple(levels), tuple(scopes))

    def resolve_to_table(self, steps: tuple[PathStep, ...], table: ResourceTable, operation: Operation) -> ResourcePath:
        """Resolve a path whose last parameter selects a record of the table.

        Raises:
            LeftOut: It picks none.
        """
        chain = self.chain(steps, table, operation)
        if not chain.levels or chain.levels[-1].table != table.name or chain.scopes:
            raise UnsupportedFeature(f"{{{steps[-1].parameter}}} does not pick {with_article(table.noun)}")
        return chain

    def below(self, family: ResourceCollection, table: ResourceTable) -> ParentRelation | None:
        """Return the relation between a collection's records and its last parameter's record."""
        if not family.steps:
            return None
        step = family.steps[-1]
        parent = self._tables.of_family.get(step.prefix)
        if parent is None or parent.fixed:
            by = self._relations.find_by_parameter(table, step) if len(family.steps) == 1 else None
            return by[1] if by else None
        relation = self._relations.below(table, parent, family, step)
        self._enter(relation, table, parent)
        return relation

    def resolve_by_argument(self, table: ResourceTable, argument: str) -> ResourcePath:
        """Return a chain of one record that an argument names."""
        return ResourcePath((PathLevel(table.name, argument, None),))

    def single(self, family: ResourceCollection, table: ResourceTable, operation: Operation) -> ResourcePath:
        """Resolve to the one record of its parent, or to the only one.

        Raises:
            LeftOut: It is below something that has no records.
        """
        above = self.chain(family.steps, table, operation)
        if above.scopes or (family.steps and not above.levels):
            raise UnsupportedFeature("it is below a parameter that picks no record")
        if above.levels:
            keyed = self._model.keyed.setdefault(above.levels[-1].table, [])
            if table.name not in keyed:
                keyed.append(table.name)
        return ResourcePath(
            (*above.levels, PathLevel(table.name, None, ParentRelation("keyed") if above.levels else None))
        )

    def _picks(self, step: PathStep, table: ResourceTable) -> bool:
        """Return True if a parameter after a collection can select one of its records."""
        return self._families[step.prefix].item is not None or table.identity != GENERATED_ID

    def _next(self, steps: tuple[PathStep, ...], step: PathStep) -> ResourceTable | None:
        """The table of the next parameter that has one."""
        for other in steps[steps.index(step) + 1 :]:
            table = self._tables.of_family.get(other.prefix)
            if table is not None:
                return table
        return None

    def _between(
        self, levels: list[PathLevel], child: ResourceTable, step: PathStep, before: PathStep | None
    ) -> ParentRelation | None:
        if not levels or before is None:
            return None
        parent = self._model.tables[levels[-1].table]
        relation = self._relations.below(child, parent, self._families[step.prefix], before)
        self._enter(relation, child, parent)
        return relation

    def _enter(self, relation: ParentRelation, child: ResourceTable, parent: ResourceTable) -> None:
        """Make a hidden relation known to whoever looks after references."""
        if relation.kind == "owned":
            _add_reference(child, RecordReference(relation.path, parent.name, embedded=False))
            if not child.has_root:
                self._model.owned.add((child.name, relation.path))
        elif relation.kind == "held":
            _add_reference(parent, RecordReference(relation.path, child.name, embedded=False))

    def _scope(self, step: PathStep, table: ResourceTable, operation: Operation) -> PathScope:
        parameter = next(p for p in operation.parameters if p.place == "path" and p.name == step.parameter)
        meanings = QueryInterpreter(table, self._model.tables, self._model.responses, self._model.requests)
        place = meanings.place(parameter.name)
        schema = self._model.requests.look(parameter.schema)
        if place is not None:
            if len(place) == 1 and schema.get("enum"):
                table.scopes[place[0]] = list(schema["enum"])
            return PathScope(step.parameter, place)
        values: list[JsonValue] = list(
            schema.get("enum") or parameter.schema.get("examples") or schema.get("examples", ())
        )
        if "default" in schema and schema["default"] not in values:
            values.append(schema["default"])
        if not values and schema.get("type") == "integer" and {"minimum", "maximum"} <= schema.keys():
            values = list(range(schema["minimum"], schema["maximum"] + 1))[:50]
        values = [value for value in values if isinstance(value, str | int | float)]
        if not values:
            raise UnsupportedFeature(f"nothing says what values {{{step.parameter}}} may have, nor whose they are")
        path: Path = (f"@{to_singular(step.parameter)}",)
        table.scopes[path[0]] = values
        return PathScope(step.parameter, path)


def _add_reference(table: ResourceTable, reference: RecordReference) -> None:
    if reference.path not in [known.path for known in table.references]:
        table.references.append(reference)
