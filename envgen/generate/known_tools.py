"""The tools of one table of known records: those that the list has, and those without which it is not whole."""

import random
import re
from collections.abc import Iterable
from typing import Any

from trajsmith.envgen.generate.blueprint import (
    FINAL_STATUSES,
    Entity,
    SkippedItem,
    TableColumn,
    ToolAction,
    ToolBlueprint,
)
from trajsmith.envgen.generate.identifiers import to_identifier, to_words
from trajsmith.envgen.generate.known_behaviours import (
    NUMBERS_SHARE,
    RESTORING,
    find_bin_action,
    find_excluded,
    find_measure,
)
from trajsmith.envgen.generate.known_records import KnownRecord
from trajsmith.envgen.generate.known_services import ServiceContext
from trajsmith.envgen.generate.listed_tools import JOIN, ListedTool
from trajsmith.envgen.generate.phrase_slots import is_free_text
from trajsmith.phrasing import singularize, with_article, word_set

_BOOKED = frozenset({"booking", "appointment", "event", "meeting", "trip", "session"})
"""Kinds of which booking makes a record; a room or a car is there before."""
_MADE_BY = frozenset({
    "author", "sender", "reporter", "requested_by", "uploaded_by", "triggered_by", "creator", "invited_by",
})  # fmt: skip
"""Columns that tell who made a record: nobody changes them."""
_MEASURED = frozenset({
    "views", "votes", "likes", "replies", "viewers", "subscribers", "messages", "size_kb", "lines", "words", "rows",
    "documents", "items", "articles", "questions", "fields", "tasks", "cases", "queries", "instances", "streams",
    "spans", "inbound_rules", "outbound_rules",
})  # fmt: skip
"""Columns that count what others did, or what a record holds: nobody says or changes them."""
_UNDONE = {
    "reopen": ("close", "complete", "resolve", "solve", "finish"), "unarchive": ("archive",), "restore": ("archive",),
    "unblock": ("block",), "unfreeze": ("freeze",), "unlock": ("lock",), "resume": ("pause",), "enable": ("disable",),
    "unmute": ("mute",), "resubscribe": ("unsubscribe",), "uncheck": ("check", "complete"), "detach": ("attach",),
    "reactivate": ("suspend", "deactivate", "disable"), "unpublish": ("publish",), "release": ("reserve",),
}  # fmt: skip
"""Verbs to those that they undo, the usual one first."""
_ORDINARY = word_set(
    "list page content item record test show watch check move run action mode share vote text new get all id ids url "
    "api json by name value key title status user i a state set"
)
"""Words of descriptions that speak of no other kind of record."""


def _follows_from_others(column: TableColumn) -> bool:
    """Return True for what nobody says of a record: it is counted, or its name decides, as the language of a file."""
    return column.name in _MEASURED or (column.kind == "choice" and bool(column.values))


class ToolReader:
    """Reader of the tools of one table."""

    def __init__(
        self, service: ServiceContext, noun: str, kind: KnownRecord, tools: list[ListedTool], rng: random.Random
    ) -> None:
        self._service, self._noun, self._kind, self._tools, self._rng = service, noun, kind, tools, rng

    def read(self, entity: Entity) -> list[ToolBlueprint]:
        operations = list[ToolBlueprint]()
        for tool in self._tools:
            one = self._operation(tool.means.action, to_identifier(tool.name, "tool"), entity, tool.means.outcome, tool)
            if isinstance(one, str):
                self._service.left_out.append(SkippedItem(what=tool.name, reason=one))
            elif one.name not in {other.name for other in operations}:
                operations.append(one)
        actions = {one.action for one in operations}
        prefix = "_".join(self._service.shared)
        added = ["list"] if "list" not in actions else []
        if len(self._tools) == 1 and not actions & {"create", "get", "update", "move", "delete"}:
            added = []
        for action in added:
            name = to_identifier("_".join(part for part in (prefix, action, entity.table) if part))
            one = self._operation("list", name, entity, (), None)
            if isinstance(one, ToolBlueprint) and name not in {other.name for other in operations}:
                operations.append(one)
                self._service.notes.append(f"{name} is added: without it nobody finds {to_words(entity.table)}")
        operations += self._added_behaviours(entity, operations)
        operations += self._added_moves(entity, operations)
        operations += self._added_ways_back(entity, operations)
        return operations

    def _is_told(self, tool: ListedTool, entity: Entity) -> bool:
        """Return True if a tool's description speaks of the record, of what it holds and of what it belongs to only."""
        names = (*entity.names, entity.noun, entity.table, tool.name)
        own = {word for name in names for word in to_words(name).split()}
        own |= set(self._service.name.split("_")) | _ORDINARY
        own |= {singularize(word) for word in own}
        words = re.findall(r"[A-Za-z]+", tool.description)
        products = [word for word in words[1:] if word[0].isupper() and word.lower() not in own]
        others = {singularize(word.lower()) for word in words} & self._service.lexicon.nouns.keys() - own
        gone = entity.bin and "permanent" in tool.description.lower()
        return not (products or others or gone)

    def _can_lead_to(self, state: str, verbs: Iterable[str]) -> bool:
        """Return True if a record can be in another state that is not its last, or the verb brings it back."""
        return bool({*self._kind.status} - {state} - FINAL_STATUSES or (RESTORING | {"reopen"}) & {*verbs})

    def _added_behaviours(self, entity: Entity, operations: list[ToolBlueprint]) -> list[ToolBlueprint]:
        """Return tools that no source has: one that brings back what is in the trash, and statistics of some tables."""
        prefix, names, added = self._service.shared, {one.name for one in operations}, list[ToolBlueprint]()
        actions = {one.action for one in operations}
        wanted = [("restore", (*prefix, "restore", self._noun), "restore")] if entity.bin else []
        numbers = find_measure(entity) or entity.status is not None
        if numbers and self._service.rng(self._noun, "numbers").random() < NUMBERS_SHARE:
            wanted.append(("summarize", (*prefix, "get", self._noun, "stats"), "summarize"))
        for action, parts, needed in wanted:
            name = to_identifier("_".join(parts))
            one = self._operation(needed, name, entity, (), None)  # type: ignore[arg-type]
            if action in actions or name in names or isinstance(one, str):
                continue
            added.append(one)
            self._service.notes.append(f"{name} is added: {with_article(self._noun)} is known to have it")
        return added

    def _added_moves(self, entity: Entity, operations: list[ToolBlueprint]) -> list[ToolBlueprint]:
        """Return tools for the transitions that such records have, if the list has few tools."""
        if len(self._tools) > 5 or not {one.action for one in operations} & {"create", "update"}:
            return []
        reached = {one.sets for one in operations if one.action == "move"}
        moves_known = self._kind.moves.items()
        verbs = [verb for verb, state in moves_known if state not in reached and self._can_lead_to(state, [verb])]
        verbs = [verb for verb in verbs if verb not in self._noun.split("_")]
        moves = list[ToolBlueprint]()
        for verb in self._rng.sample(verbs, min(len(verbs), 1 + self._rng.randint(0, 1))):
            parts = (*self._service.shared, verb, self._noun)
            name = to_identifier("_".join(parts))
            if name not in {other.name for other in (*operations, *moves)}:
                moves.append(ToolBlueprint(
                    name=name, action="move", table=entity.table, description="", column="status",
                    sets=self._kind.moves[verb],
                ))  # fmt: skip
                self._service.notes.append(f"{name} is added: {with_article(self._noun)} is known to change so")
        return moves

    def _added_ways_back(self, entity: Entity, operations: list[ToolBlueprint]) -> list[ToolBlueprint]:
        """Return a tool for what others undo: nothing is reopened that cannot be closed."""
        moves = [one for one in operations if one.action == "move"]
        reached, added = {one.sets for one in moves}, list[ToolBlueprint]()
        verbs = {word for one in moves for word in one.name.split("_")}
        for verb in sorted(verbs & _UNDONE.keys()):
            ways = [one for one in _UNDONE[verb] if one in self._kind.moves]
            if not ways or reached & {self._kind.moves[way] for way in ways}:
                continue
            name = to_identifier("_".join((*self._service.shared, ways[0], self._noun)))
            one = self._operation("move", name, entity, (ways[0],), None)
            if isinstance(one, ToolBlueprint) and name not in {other.name for other in (*operations, *added)}:
                added.append(one)
                reached.add(one.sets)
                self._service.notes.append(f"{name} is added: {verb} undoes it")
        return added

    def _operation(
        self, action: ToolAction, name: str, entity: Entity, outcome: tuple[str, ...], tool: ListedTool | None
    ) -> ToolBlueprint | str:
        base: dict[str, Any] = {"name": name, "table": entity.table, "description": ""}
        if tool and JOIN not in self._service.tool_list.server and self._is_told(tool, entity):
            base["description"] = tool.description
        base["actor"] = tool.actor if tool else "assistant"
        data = [column for column in entity.columns if column.name not in (entity.key, "status")]
        data = [column for column in data if not column.automatic and column.name != entity.bin]
        data = [column for column in data if column.required or not _follows_from_others(column)]
        if outcome[:1] == ("book",) and self._kind.name in _BOOKED:
            action = "create"
        action = find_bin_action(action, outcome[0] if outcome else "", entity.bin)
        if action == "summarize":
            refs = [c.name for c in entity.columns if c.references and c.kind != "texts"][:1]
            plain = [c.name for c in entity.columns if c.kind == "choice" and c != entity.status][:1]
            return ToolBlueprint(
                action="summarize", fields=(*refs, *plain), measure=find_measure(entity),
                excludes=find_excluded(entity), **base,
            )  # fmt: skip
        if action == "list":
            filters = [c for c in entity.columns if c.references or c.kind == "choice"]
            chosen = [c for c in filters if c.references or c.name == "status" or self._rng.random() < 0.5]
            text = any(c.kind == "text" and not c.references for c in entity.columns)
            search = "query" if text and (tool is None or "search" in name or "find" in name) else ""
            sought = bool(search) and tool is not None
            return ToolBlueprint(
                action="list", search_needed=sought, fields=tuple(c.name for c in chosen), search=search, **base
            )
        if action == "create":
            needed = tuple(c.name for c in data if c.required)
            return ToolBlueprint(action="create", fields=tuple(c.name for c in data), needed=needed, **base)
        if action == "update":
            fields = [c.name for c in data if not c.references and not c.follows]
            fields = [name for name in fields if name not in _MADE_BY | _MEASURED] or fields
            if any(column.name == "sent_at" for column in self._kind.columns):
                if "edit" not in name.split("_"):
                    return f"{with_article(self._noun)} stays as it was sent"
                fields = [one for one in fields if one != "kind"]  # nobody makes a file of a message
            if not is_free_text(entity.column(entity.label)):
                fields = [name for name in fields if name != entity.label] or fields  # what has a name keeps it
            if not fields:
                return f"nothing of {with_article(self._noun)} can be changed"
            return ToolBlueprint(action="update", fields=tuple(fields), **base)
        if action == "move":
            known = [self._kind.moves.get(verb) for verb in outcome]
            sets = next((state for state in (*known, *outcome) if state in self._kind.status), None)
            if sets is not None and not self._can_lead_to(sets, outcome):
                return f"no state leads to {sets}"
            if sets is None:
                return f"{outcome[0] if outcome else 'that'} is no state of {with_article(self._noun)}"
            return ToolBlueprint(action="move", column="status", sets=sets, **base)
        return ToolBlueprint(action=action, **base)
