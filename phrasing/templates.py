"""Phrase templates: Jinja2 with single braces, in its sandbox, compiled once."""

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, meta, nodes, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from trajsmith.phrasing import value_formatting
from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.list_layout import join_items
from trajsmith.records import RENDER_ERRORS, InputError, template_environment, walk_tree

_PLAIN = re.compile(r"\{\s*([a-z_]\w*)\s*\}")
_PATH = re.compile(r"\{\s*([a-z_]\w*(?:\.[a-z_]\w*)*(?:\s*\|\s*[a-z_]\w*)*)\s*\}")
"""A slot that is a name or a path into a value, and filters without arguments."""
_SLOT = re.compile(r"\{\s*([a-z_]\w*)")
_STOP_TWICE = re.compile(r"([.!?][\"”])\.(?=\s|$)")
"""A full stop after a quotation that has one."""
_BRACKETS = re.compile(r"\([^()]*\)|\"[^\"]*\"")
MANY, LONG = 4, 140
"""Rows, and their letters, from which they do not stand in one clause."""
_INNER_LIST = re.compile(r"[,;]|:(?!\d)|\b(?:and|und)\b")


class PhraseUndefined(StrictUndefined):
    """A slot without a value: rendering fails, so that another template is taken."""


def _finalize_value(value: Any) -> str:
    return value if isinstance(value, str) else value_formatting.format_value(value)


@pass_context
def _rows(context: Context, rows: Sequence[Any], entity: str) -> str:
    """Rows of a list on one line, all by one of the entity's `row` templates, which `row_templates` holds."""
    return join_rows(rows, context.get("row_templates", {}).get(entity, ()))


def _find_shared_start(names: Sequence[Any]) -> str:
    """Return the words with which all of several names begin, without the last word of any: "kitchen"."""
    heads = [str(name).split()[:-1] for name in names] if len(names) > 1 else []
    shared = itertools.takewhile(lambda words: len(set(words)) == 1, zip(*heads, strict=False))
    return " ".join(words[0] for words in shared)


def _drop_start(names: Sequence[Any], start: str) -> list[str]:
    """Return names without the words with which they begin: of "kitchen", "table lamp" and "fridge" are left."""
    return [str(name).removeprefix(f"{start} ") if start else str(name) for name in names]


VALUE_FILTERS: dict[str, Callable[..., Any]] = {
    "money": value_formatting.format_money,
    "grouped": value_formatting.format_grouped,
    "date": value_formatting.format_date,
    "plus_days": value_formatting.add_days,
    "datetime": value_formatting.format_datetime,
    "time": value_formatting.format_time,
    "weekday": value_formatting.format_weekday,
    "human": value_formatting.humanize,
    "small": lambda text: get_language().grammar.lower_first(str(text)),
    "duration": value_formatting.format_minutes,
    "words": value_formatting.join_words,
    "yesno": value_formatting.format_yes_no,
    "nom": lambda phrase: get_language().grammar.to_nominative(str(phrase)),
    "dat": lambda phrase: get_language().grammar.to_dative(str(phrase)),
    "shared_start": _find_shared_start,
    "drop_start": _drop_start,
    "lookup": lambda value, table: table.get(str(value), value),
}
"""Filters of values; `lookup` and `drop_start` take an argument, the others do not."""
RESERVED = frozenset({"true", "false", "none", "not", "and", "or", "in", "is", "if", "else", "self", "super"})
"""Words that are no names of values in an expression."""


def _environment() -> ImmutableSandboxedEnvironment:
    environment = template_environment(
        bounded=True,
        variable_start_string="{",
        variable_end_string="}",
        undefined=PhraseUndefined,
        finalize=_finalize_value,
    )
    environment.filters.update(VALUE_FILTERS)
    environment.filters["rows"] = _rows
    return environment


_ENVIRONMENT = _environment()
_parse = functools.lru_cache(maxsize=4)(_ENVIRONMENT.parse)
"""Reads a template, once for several questions about it."""


class PathTemplate:
    """Renders texts and slots of paths and filters as Jinja2 does, whose compiler takes half a millisecond for each."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._texts = pieces[::2]
        self._slots: list[tuple[str, list[str], list[Callable[..., Any]]]] = []
        for slot in pieces[1::2]:
            path, *filters = (part.strip() for part in slot.split("|"))
            name, *attributes = path.split(".")
            self._slots.append((name, attributes, [_ENVIRONMENT.filters[part] for part in filters]))

    def render(self, values: Mapping[str, Any]) -> str:
        """Render with values.

        Raises:
            TemplateError: A name is missing, or something else that Jinja2 refuses.
        """
        parts = [self._texts[0]]
        for (name, attributes, filters), text in zip(self._slots, self._texts[1:], strict=True):
            value = values[name] if name in values else _ENVIRONMENT.undefined(name=name)
            for attribute in attributes:
                value = _ENVIRONMENT.getattr(value, attribute)
            for apply in filters:
                value = apply(value)
            parts += (str(_finalize_value(value)), text)
        return _ENVIRONMENT.concat(parts)


@functools.cache
def _compile_template(template: str) -> Template | PathTemplate:
    pieces = _PATH.split(template)
    plain = "\r" not in template and not any("{" in text or "}" in text for text in pieces[::2])
    if plain and _are_own_filters(pieces[1::2]):
        return PathTemplate(pieces)
    try:
        return _ENVIRONMENT.from_string(_trees.pop(template) if template in _trees else template)
    except TemplateError as error:
        raise InputError(f"phrase template {template!r}: {error}") from error


def _are_own_filters(slots: Iterable[str]) -> bool:
    """Return True if no slot uses a filter of Jinja2, nor a name that Jinja2 reads as something else."""
    for slot in slots:
        path, *filters = (part.strip() for part in slot.split("|"))
        if any(name not in VALUE_FILTERS for name in filters) or RESERVED.intersection(path.split(".")):
            return False
    return True


def check_template(template: str) -> None:
    """Read a template, so that a wrong one is known before it is needed.

    Raises:
        InputError: It is not a template, or names an unknown filter.
    """
    pieces = _PATH.split(template)
    if any("{" in text or "}" in text for text in pieces[::2]) or not _are_own_filters(pieces[1::2]):
        try:
            names = {node.name for node in _parse(template).find_all(nodes.Filter)}
        except TemplateError as error:
            raise InputError(f"phrase template {template!r}: {error}") from error
        for name in sorted(names - _ENVIRONMENT.filters.keys()):
            raise InputError(f"phrase template {template!r}: no filter named {name!r}")


_trees: dict[str, nodes.Template] = {}
"""Syntax trees of the newest templates whose slots were asked for, until they are compiled."""
MOST_TREES = 64


@functools.cache
def list_slots(template: str) -> frozenset[str]:
    """Names that a template needs."""
    if "{%" not in template and "'" not in template:
        return frozenset(_SLOT.findall(template))
    pieces = _split_pieces(template)
    if pieces is not None:
        return frozenset(pieces[1::2])
    try:
        tree = _parse(template)
        names = [node for node, _, _ in walk_tree(tree) if isinstance(node, nodes.Name)]
        if all(name.ctx == "load" for name in names):  # no scopes: what `meta` does with a whole code generator
            if len(_trees) >= MOST_TREES:
                _trees.clear()
            _trees[template] = tree
            return frozenset(name.name for name in names)
        return frozenset(meta.find_undeclared_variables(tree))
    except TemplateError as error:
        raise InputError(f"phrase template {template!r}: {error}") from error


@functools.cache
def _split_pieces(template: str) -> tuple[str, ...] | None:
    """Text and slot names in turn, if a template has nothing but plain slots; None if it needs Jinja2."""
    pieces = tuple(_PLAIN.split(template))
    return None if any("{" in text or "}" in text for text in pieces[::2]) else pieces


def render_phrase(template: str, values: dict[str, Any]) -> str | None:
    """Render a phrase, or return None if the values do not fit the template (missing slot, None for text)."""
    pieces = _split_pieces(template)
    if pieces is None:
        try:
            text = _compile_template(template).render(values)
        except (TemplateError, *RENDER_ERRORS):
            return None
    elif any(name not in values for name in pieces[1::2]):
        return None
    else:
        text = "".join(_finalize_value(values[piece]) if place % 2 else piece for place, piece in enumerate(pieces))
    text = _STOP_TWICE.sub(r"\1", text)
    if "\n" in text.strip():
        return text.strip("\n").rstrip()  # what a tool printed keeps its lines and its indentation
    return " ".join(text.split())


def find_row_template(rows: Sequence[Any], templates: Sequence[str]) -> str:
    """Return the first template that fits every row; empty if none does."""
    fitting = (
        template
        for template in templates
        if all(isinstance(row, dict) and render_phrase(template, row) for row in rows)
    )
    return next(fitting, "")


def join_rows(rows: Sequence[Any], templates: Sequence[str], limit: int = 10) -> str:
    """Rows of a list on one line, each by the first template that fits them all; says how many are left out.

    They are joined as words are ("a, b and c") unless one of them has a comma or an "and" of its own outside brackets,
    or they are many and long.
    """
    template = find_row_template(rows, templates) or (templates[0] if templates else "")
    shown = [
        (template and isinstance(row, dict) and render_phrase(template, row)) or value_formatting.format_value(row)
        for row in rows[:limit]
    ]
    more = len(rows) - limit
    if more > 0:
        return "; ".join([*shown, get_language().grammar.say_more(more)])
    plain = [_BRACKETS.sub("", text) for text in shown]
    long = len(shown) >= MANY and sum(map(len, shown)) >= LONG
    return join_items(shown) if long or any(map(_INNER_LIST.search, plain)) else value_formatting.join_words(shown)
