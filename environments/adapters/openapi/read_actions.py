"""Actions of operations that only read: a list, one record."""

from dataclasses import dataclass
from typing import Protocol

from trajsmith.environments.adapters.openapi.document_model import DocumentModel, RequestRefused
from trajsmith.environments.adapters.openapi.queries import ListQuery
from trajsmith.environments.adapters.openapi.query_execution import build_sort_value, find_sort_key, matches_condition
from trajsmith.environments.adapters.openapi.relations import ParentRelation
from trajsmith.environments.adapters.openapi.resource_paths import ResourcePath, is_below, is_in_scope
from trajsmith.environments.adapters.openapi.responses import ResponseBuilder, ResponseContext
from trajsmith.environments.adapters.openapi.store import ResourceStore
from trajsmith.environments.adapters.openapi.tables import ResourceTable
from trajsmith.environments.adapters.openapi.tool_inputs import ToolInputs
from trajsmith.records import JsonObject, JsonValue

DEFAULT_PAGE_SIZE = 20
"""Records of a page where neither call nor document says how many."""


class OperationAction(Protocol):
    """Action of an operation."""

    @property
    def table(self) -> ResourceTable:
        """Return the table that the action is about."""

    @property
    def chain(self) -> ResourcePath:
        """Return the records that the path's parameters select."""

    @property
    def reply(self) -> ResponseBuilder:
        """Return the builder of the response."""

    def run(self, model: DocumentModel, store: ResourceStore, arguments: JsonObject) -> JsonValue:
        """Execute the action and return the response.

        Raises:
            Refused: The API turns the call down; nothing was written.
        """


@dataclass(frozen=True)
class ListAction:
    """Page of the records that match the parameters."""

    table: ResourceTable
    chain: ResourcePath
    below: ParentRelation | None
    """How the records stand below the last level of the chain."""
    query: ListQuery
    reply: ResponseBuilder
    path: str
    inputs: ToolInputs

    def run(self, model: DocumentModel, store: ResourceStore, arguments: JsonObject) -> JsonValue:
        rows = self._matching(model, store, arguments)
        start, count, facts = self._page(rows, arguments)
        page = rows[start : start + count]
        facts.values["count"] = len(page)
        more = start + count < len(rows)
        facts.values.update(more=more, before=start > 0, next=None, previous=None, cursor=None)
        facts.values["here"] = f"/{self.path.strip('/')}"
        if more and page:
            facts.values["cursor"] = page[-1][0]
            facts.values["next"] = self._link(start + count, count, page[-1][0])
        if start > 0:
            facts.values["previous"] = self._link(max(0, start - count), count, None)
        return self.reply.page(store, [record for _, record in page], facts)

    def _matching(
        self, model: DocumentModel, store: ResourceStore, arguments: JsonObject
    ) -> list[tuple[str, JsonObject]]:
        picked = self.chain.records(model, store, arguments)
        parent = picked[-1] if picked else None
        values = {**self.inputs.record(arguments), **arguments}
        asked = [test for test in self.query.conditions if values.get(test.parameter) is not None]
        rows = [
            (key, record)
            for key, record in store.items(self.table.name)
            if (parent is None or is_below(self.below, parent, (key, record)))
            and is_in_scope(self.chain.scopes, store, record, arguments)
            and all(matches_condition(test, values[test.parameter], store, key, record) for test in asked)
        ]
        order = find_sort_key(self.query, arguments)
        if order is not None:
            path, down = order
            rows.sort(key=lambda pair: build_sort_value(store, pair[1], path), reverse=down)
        elif self.query.sort is not None and arguments.get(self.query.sort.name):
            raise RequestRefused(400, f"{self.query.sort.name}: cannot sort by {arguments[self.query.sort.name]!r}")
        return rows

    def _page(self, rows: list[tuple[str, JsonObject]], arguments: JsonObject) -> tuple[int, int, ResponseContext]:
        roles = self.query.paging
        paging = {role: arguments.get(parameter.name) for role, parameter in roles.items()}
        size = paging.get("limit") or self._default_size(len(rows))
        count = max(0, int(size)) if isinstance(size, int | float) else len(rows)
        start, first = 0, self._first_page()
        number, offset, cursor = paging.get("page"), paging.get("offset"), paging.get("cursor")
        if isinstance(number, int):
            start = max(0, (number - first) * count)
        elif isinstance(offset, int):
            start = max(0, offset)
        elif cursor:
            start = self._after(str(cursor), rows)
        page = start // count + first if count else first
        values: JsonObject = {"total": len(rows), "limit": count, "offset": start, "page": page}
        values["pages"] = -(-len(rows) // count) if count else 0
        return start, count, ResponseContext(values)

    def _default_size(self, total: int) -> int:
        limit = self.query.paging.get("limit")
        if limit is None and not self.query.paging:
            return total
        default = limit.schema.get("default") if limit else None
        most = limit.schema.get("maximum") if limit else None
        size = default if isinstance(default, int) else DEFAULT_PAGE_SIZE
        return min(size, most) if isinstance(most, int) else size

    def _first_page(self) -> int:
        page = self.query.paging.get("page")
        lowest = {page.schema.get("default"), page.schema.get("minimum")} if page else set()
        return 0 if 0 in lowest and 1 not in lowest else 1

    def _after(self, cursor: str, rows: list[tuple[str, JsonObject]]) -> int:
        for number, (key, _) in enumerate(rows):
            if key == cursor:
                return number + 1
        raise RequestRefused(400, f"unknown cursor: {cursor}")

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
class GetAction:
    """One record."""

    table: ResourceTable
    chain: ResourcePath
    reply: ResponseBuilder

    def run(self, model: DocumentModel, store: ResourceStore, arguments: JsonObject) -> JsonValue:
        _, record = self.chain.records(model, store, arguments)[-1]
        return self.reply.record(store, record, ResponseContext({"success": True}))


@dataclass(frozen=True)
class GetPropertyAction:
    """One property of a record, by a path of its own."""

    table: ResourceTable
    chain: ResourcePath
    part: str
    reply: ResponseBuilder

    def run(self, model: DocumentModel, store: ResourceStore, arguments: JsonObject) -> JsonValue:
        _, record = self.chain.records(model, store, arguments)[-1]
        inner = record.get(self.part)
        if not isinstance(inner, dict):
            raise RequestRefused(404, f"there is no {self.part}")
        return self.reply.record(store, inner, ResponseContext({"success": True}))
