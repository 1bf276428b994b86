"""What a name says: its words, the entity it belongs to, and whether it identifies something."""

import functools

from trajsmith.phrasing import singularize, split_identifier

ID_WORDS = frozenset(
    {"id", "ids", "uuid", "guid", "sku", "key", "identifier", "token", "slug", "hash", "sha", "serial"}
)
CODE_WORDS = frozenset({"number", "no", "code", "ref", "reference", "handle"})
_KNOWN_CODES = frozenset(
    {"postal", "zip", "post", "country", "currency", "language", "area", "phone", "house", "mobile", "street"}
)
GENERIC = frozenset({
    "name", "title", "status", "type", "date", "time", "value", "result", "results", "data", "description", "message",
    "text", "content", "count", "total", "limit", "offset", "page", "size", "kind", "state", "note", "notes", "label",
    "amount", "items", "item", "id", "code", "number", "url", "created", "updated", "start", "end", "query",
})  # fmt: skip
_PAGING = {("page", "size"), ("page", "number"), ("max", "result"), ("skip",), ("top",), ("cursor",), ("page", "token")}
_WORDS_ON_ID = frozenset(
    {"valid", "avoid", "paid", "prepaid", "unpaid", "grid", "liquid", "solid", "hybrid", "rapid", "fluid", "covid"}
)
_AWAY = frozenset({"delete", "remove", "move", "rename", "archive", "drop", "destroy", "purge", "trash"})
_BACK = frozenset(
    {"restore", "recover", "undo", "undelete", "export", "upload", "download", "play", "toggle", "enable"}
)
"""Verbs that may stand before a word of `_AWAY` and take nothing away: restore_from_trash."""
_NOUNS = frozenset({"move", "archive", "drop", "trash"})
"""Words of `_AWAY` that are nouns before another verb: stock_move_create."""
_VERBS = frozenset({
    "get", "list", "find", "search", "create", "add", "update", "delete", "remove", "set", "show", "read", "fetch",
    "query", "lookup", "look", "up", "make", "cancel", "change", "check", "view", "retrieve", "open", "close", "all",
    "by", "for", "to", "of", "a", "the", "in", "on", "with", "and", "or",
})  # fmt: skip


@functools.lru_cache(maxsize=200_000)
def split_name(name: str) -> tuple[str, ...]:
    """Lower-case singular words of a snake_case, kebab-case or camelCase name."""
    return tuple(map(singularize, split_identifier(name)))


@functools.lru_cache(maxsize=200_000)
def get_tool_noun(tool: str) -> tuple[str, ...]:
    """The words of a tool's name that name its object: get_order_details -> (order, detail)."""
    return tuple(word for word in split_name(tool) if word not in _VERBS)


def is_removal(tool: str) -> bool:
    """Return whether the verb of a tool's name, which may stand after a product's, says that its object is gone."""
    verbs = [word for word in split_name(tool) if word in _AWAY or word in _BACK or word in _VERBS]
    if verbs[:1] != list(split_name(tool)[:1]):
        verbs = [word for place, word in enumerate(verbs) if word not in _NOUNS or not _VERBS & {*verbs[place + 1 :]}]
    return bool(verbs) and verbs[0] in _AWAY


def is_paging(name: str) -> bool:
    """True for names such as limit, per_page, maxResults: how much of a list is shown, and from where on."""
    parts = split_name(name)
    return bool(parts) and (parts[-1] in {"limit", "offset", "page"} or parts in _PAGING)


def is_page(name: str) -> bool:
    """True for names such as page, offset, next_cursor: from where on a list is shown, which no user says."""
    parts = split_name(name)
    return bool(parts) and parts[-1] in {"offset", "page", "cursor"}


def is_identifier(name: str) -> bool:
    """True for names such as order_id, sku, tracking_number: values that systems give out and people forget."""
    parts = split_name(name)
    if not parts:
        return False
    last = parts[-1]
    if last in ID_WORDS:
        return True
    if last in CODE_WORDS:
        return len(parts) > 1 and parts[-2] not in _KNOWN_CODES
    return len(last) > 4 and last.endswith("id") and last not in _WORDS_ON_ID
