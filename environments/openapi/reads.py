"""Operations that only read: a list, one record."""

from dataclasses import dataclass
from typing import Protocol

from environments.openapi.bodies import Inputs
from environments.openapi.chains import Chain, in_scope, is_below
from environments.openapi.model import Model, Refused
from environments.openapi.queries import Query
from environments.openapi.relations import Relation
from environments.openapi.replies import Facts, Reply
from environments.openapi.selecting import holds, sort_key, sorting_value
from environments.openapi.store import Store
from environments.openapi.tables import Table
from trajectory import JsonObject, JsonValue

PAGE = 20
"""Records of a page where neither call nor document says how many."""


class Action(Protocol):
    """What an operation does."""

    @property
    def table(self) -> Table:
        """What it is about."""

    @property
    def chain(self) -> Chain:
        """What its path's parameters pick."""

    @property
    def reply(self) -> Reply:
        """How it answers."""

    def run(self, model: Model, store: Store, arguments: JsonObject) -> JsonValue:
        """Do it and answer.

        Raises:
            Refused: The API turns the call down; nothing was written.
        """


@dataclass(frozen=True)
class Listing:
    """Records that meet the parameters, a page of them."""

    table: Table
    chain: Chain
    below: Relation | None
    """How the records stand below the last level of the chain."""
    query: Query
    reply: Reply
    path: str
    inputs: Inputs

    def run(self, model: Model, store: Store, arguments: JsonObject) -> JsonValue:
        found = self._matching(model, store, arguments)
        start, count, facts = self._page(found, arguments)
        page = found[start : start + count]
        facts.values["count"] = len(page)
        more = start + count < len(found)
        facts.values.update(more=more, before=start > 0, next=None, previous=None, cursor=None)
        facts.values["here"] = f"/{self.path.strip('/')}"
        if more and page:
            facts.values["cursor"] = page[-1][0]
            facts.values["next"] = self._link(start + count, count, page[-1][0])
        if start > 0:
            facts.values["previous"] = self._link(max(0, start - count), count, None)
        return self.reply.page(store, [record for _, record in page], facts)

    def _matching(self, model: Model, store: Store, arguments: JsonObject) -> list[tuple[str, JsonObject]]:
        picked = self.chain.records(model, store, arguments)
        parent = picked[-1] if picked else None
        given = {**self.inputs.record(arguments), **arguments}
        asked = [test for test in self.query.conditions if given.get(test.parameter) is not None]
        found = [
            (key, record)
            for key, record in store.items(self.table.name)
            if (parent is None or is_below(self.below, parent, (key, record)))
            and in_scope(self.chain.scopes, store, record, arguments)
            and all(holds(test, given[test.parameter], store, key, record) for test in asked)
        ]
        order = sort_key(self.query, arguments)
        if order is not None:
            path, down = order
            found.sort(key=lambda pair: sorting_value(store, pair[1], path), reverse=down)
        elif self.query.sort is not None and arguments.get(self.query.sort.name):
            raise Refused(400, f"{self.query.sort.name}: cannot sort by {arguments[self.query.sort.name]!r}")
        return found

    def _page(self, found: list[tuple[str, JsonObject]], arguments: JsonObject) -> tuple[int, int, Facts]:
        roles = self.query.paging
        given = {role: arguments.get(parameter.name) for role, parameter in roles.items()}
        size = given.get("limit") or self._default_size(len(found))
        count = max(0, int(size)) if isinstance(size, int | float) else len(found)
        start, first = 0, self._first_page()
        number, offset, cursor = given.get("page"), given.get("offset"), given.get("cursor")
        if isinstance(number, int):
            start = max(0, (number - first) * count)
        elif isinstance(offset, int):
            start = max(0, offset)
        elif cursor:
            start = self._after(str(cursor), found)
        page = start // count + first if count else first
        values: JsonObject = {"total": len(found), "limit": count, "offset": start, "page": page}
        values["pages"] = -(-len(found) // count) if count else 0
        return start, count, Facts(values)

    def _default_size(self, found: int) -> int:
        limit = self.query.paging.get("limit")
        if limit is None and not self.query.paging:
            return found
        default = limit.schema.get("default") if limit else None
        most = limit.schema.get("maximum") if limit else None
        size = default if isinstance(default, int) else PAGE
        return min(size, most) if isinstance(most, int) else size

    def _first_page(self) -> int:
        page = self.query.paging.get("page")
        lowest = {page.schema.get("default"), page.schema.get("minimum")} if page else set()
        return 0 if 0 in lowest and 1 not in lowest else 1

    def _after(self, cursor: str, found: list[tuple[str, JsonObject]]) -> int:
        for number, (key, _) in enumerate(found):
            if key == cursor:
                return number + 1
        raise Refused(400, f"unknown cursor: {cursor}")

    def _link(self, start: int, count: int, cursor: str | None) -> str:
        roles = self.query.paging
        query = []
        if "limit" in roles:
            query.append(f"{roles['limit'].name}={count}")
        if "page" in roles and count:
            query.append(f"{roles['page'].name}={start // count + self._first_page()}")
        elif "offset" in roles:
            query.append(f"{roles['offset'].name}={start}")
        elif "cursor" in roles and cursor is not None:
            query.append(f"{roles['cursor'].name}={cursor}")
        return f"/{self.path.strip('/')}" + (f"?{'&'.join(query)}" if query else "")


@dataclass(frozen=True)
class Getting:
    """One record."""

    table: Table
    chain: Chain
    reply: Reply

    def run(self, model: Model, store: Store, arguments: JsonObject) -> JsonValue:
        _, record = self.chain.records(model, store, arguments)[-1]
        return self.reply.record(store, record, Facts({"success": True}))


@dataclass(frozen=True)
class GettingPart:
    """One property of a record, by a path of its own."""

    table: Table
    chain: Chain
    part: str
    reply: Reply

    def run(self, model: Model, store: Store, arguments: JsonObject) -> JsonValue:
        _, record = self.chain.records(model, store, arguments)[-1]
        inner = record.get(self.part)
        if not isinstance(inner, dict):
            raise Refused(404, f"there is no {self.part}")
        return self.reply.record(store, inner, Facts({"success": True}))
