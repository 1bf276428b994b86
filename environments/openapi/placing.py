"""From the path of an operation to the chain of records that it goes through."""

from environments.openapi.chains import Chain, Level, Scope
from environments.openapi.families import Family, Prefix, Step
from environments.openapi.model import Model
from environments.openapi.operations import Operation
from environments.openapi.queries import Meanings
from environments.openapi.references import LeftOut
from environments.openapi.relations import Relation, Relations
from environments.openapi.tables import ID, Reference, Table, Tables
from environments.openapi.values import Path
from environments.openapi.words import a, singular
from trajectory import JsonValue

Entered = tuple[
    dict[str, tuple[list[Reference], dict[str, list[JsonValue]]]], dict[str, list[str]], set[tuple[str, Path]]
]
"""References and scopes of the tables, which tables are keyed by which, what goes away with what."""


class Placing:
    """Builds chains, and enters into the tables what the paths say of them."""

    def __init__(self, model: Model, tables: Tables, relations: Relations, families: dict[Prefix, Family]) -> None:
        self._model = model
        self._tables = tables
        self._relations = relations
        self._families = families

    def entered(self) -> Entered:
        """What is entered so far, for `take_back`."""
        tables = {table.name: (list(table.references), dict(table.scopes)) for table in self._model.tables.values()}
        return tables, {name: list(names) for name, names in self._model.keyed.items()}, set(self._model.owned)

    def take_back(self, entered: Entered) -> None:
        """Forget what was entered for an operation that is left out after all."""
        tables, self._model.keyed, self._model.owned = entered
        for name, (references, scopes) in tables.items():
            table = self._model.tables[name]
            table.references, table.scopes = references, scopes

    def chain(self, steps: tuple[Step, ...], table: Table, operation: Operation, below: bool = False) -> Chain:
        """The records that a path's parameters pick.

        Args:
            table: What the operation is about.
            below: True if the path ends at the records below the last parameter's.

        Raises:
            LeftOut: A parameter picks nothing that is known.
        """
        levels: list[Level] = []
        scopes: list[Scope] = []
        before: Step | None = None
        for step in steps:
            found = self._tables.of_family.get(step.prefix)
            if found is None or found.fixed or not self._picks(step, found):
                by = self._relations.by_parameter(table, step) if step != steps[-1] or below else None
                if by is not None and not levels and step == steps[-1]:
                    levels.append(Level(by[0].name, step.parameter, None))
                else:
                    scopes.append(self._scope(step, self._next(steps, step) or table, operation))
                continue
            relation = self._between(levels, found, step, before)
            levels.append(Level(found.name, step.parameter, relation, tuple(scopes)))
            scopes, before = [], step
        return Chain(tuple(levels), tuple(scopes))

    def chain_to(self, steps: tuple[Step, ...], table: Table, operation: Operation) -> Chain:
        """The same for a path whose last parameter picks a record of the table.

        Raises:
            LeftOut: It picks none.
        """
        chain = self.chain(steps, table, operation)
        if not chain.levels or chain.levels[-1].table != table.name or chain.scopes:
            raise LeftOut(f"{{{steps[-1].parameter}}} does not pick {a(table.noun)}")
        return chain

    def below(self, family: Family, table: Table) -> Relation | None:
        """How the records of a collection stand below its last parameter's."""
        if not family.steps:
            return None
        step = family.steps[-1]
        parent = self._tables.of_family.get(step.prefix)
        if parent is None or parent.fixed:
            by = self._relations.by_parameter(table, step) if len(family.steps) == 1 else None
            return by[1] if by else None
        relation = self._relations.below(table, parent, family, step)
        self._enter(relation, table, parent)
        return relation

    def by_argument(self, table: Table, argument: str) -> Chain:
        """A chain of one record that an argument names."""
        return Chain((Level(table.name, argument, None),))

    def single(self, family: Family, table: Table, operation: Operation) -> Chain:
        """Down to the one record of its parent, or to the only one.

        Raises:
            LeftOut: It is below something that has no records.
        """
        above = self.chain(family.steps, table, operation)
        if above.scopes or (family.steps and not above.levels):
            raise LeftOut("it is below a parameter that picks no record")
        if above.levels:
            keyed = self._model.keyed.setdefault(above.levels[-1].table, [])
            if table.name not in keyed:
                keyed.append(table.name)
        return Chain((*above.levels, Level(table.name, None, Relation("keyed") if above.levels else None)))

    def _picks(self, step: Step, table: Table) -> bool:
        """True if a parameter after a collection can pick one of its records."""
        return self._families[step.prefix].item is not None or table.identity != ID

    def _next(self, steps: tuple[Step, ...], step: Step) -> Table | None:
        """The table of the next parameter that has one."""
        for other in steps[steps.index(step) + 1 :]:
            table = self._tables.of_family.get(other.prefix)
            if table is not None:
                return table
        return None

    def _between(self, levels: list[Level], child: Table, step: Step, before: Step | None) -> Relation | None:
        if not levels or before is None:
            return None
        parent = self._model.tables[levels[-1].table]
        relation = self._relations.below(child, parent, self._families[step.prefix], before)
        self._enter(relation, child, parent)
        return relation

    def _enter(self, relation: Relation, child: Table, parent: Table) -> None:
        """Make a hidden relation known to whoever looks after references."""
        if relation.kind == "owned":
            _add(child, Reference(relation.path, parent.name, embedded=False))
            if not child.has_root:
                self._model.owned.add((child.name, relation.path))
        elif relation.kind == "held":
            _add(parent, Reference(relation.path, child.name, embedded=False))

    def _scope(self, step: Step, table: Table, operation: Operation) -> Scope:
        parameter = next(p for p in operation.parameters if p.place == "path" and p.name == step.parameter)
        meanings = Meanings(table, self._model.tables, self._model.responses, self._model.requests)
        place = meanings.place(parameter.name)
        schema = self._model.requests.look(parameter.schema)
        if place is not None:
            if len(place) == 1 and schema.get("enum"):
                table.scopes[place[0]] = list(schema["enum"])
            return Scope(step.parameter, place)
        values: list[JsonValue] = list(
            schema.get("enum") or parameter.schema.get("examples") or schema.get("examples", ())
        )
        if "default" in schema and schema["default"] not in values:
            values.append(schema["default"])
        if not values and schema.get("type") == "integer" and {"minimum", "maximum"} <= schema.keys():
            values = list(range(schema["minimum"], schema["maximum"] + 1))[:50]
        values = [value for value in values if isinstance(value, str | int | float)]
        if not values:
            raise LeftOut(f"nothing says what values {{{step.parameter}}} may have, nor whose they are")
        path: Path = (f"@{singular(step.parameter)}",)
        table.scopes[path[0]] = values
        return Scope(step.parameter, path)


def _add(table: Table, reference: Reference) -> None:
    if reference.path not in [known.path for known in table.references]:
        table.references.append(reference)
