"""Phrase templates: Jinja2 with single braces, in its sandbox, compiled once."""

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, meta, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from chatmodel import surface
from chatmodel.sandboxed import template_environment
from trajectory import InputError

_PLAIN = re.compile(r"\{\s*([a-z_]\w*)\s*\}")
_SLOT = re.compile(r"\{\s*([a-z_]\w*)")


class PhraseUndefined(StrictUndefined):
    """A slot without a value: rendering fails, so that another template is taken."""


def _spoken(value: Any) -> str:
    return value if isinstance(value, str) else surface.say(value)


@pass_context
def _rows(context: Context, rows: Sequence[Any], entity: str) -> str:
    """Rows of a list on one line, each by the entity's `row` template, which the caller puts under `row_templates`."""
    return join_rows(rows, context.get("row_templates", {}).get(entity, ""))


def _environment() -> ImmutableSandboxedEnvironment:
    environment = template_environment(
        variable_start_string="{",
        variable_end_string="}",
        undefined=PhraseUndefined,
        finalize=_spoken,
    )
    filters: dict[str, Callable[..., Any]] = {
        "money": surface.money,
        "date": surface.long_date,
        "datetime": surface.long_moment,
        "time": surface.clock_time,
        "human": surface.human,
        "words": surface.words,
        "yesno": surface.yes_no,
    }
    environment.filters.update(filters)
    environment.filters["rows"] = _rows
    return environment


_ENVIRONMENT = _environment()


@functools.cache
def _compiled(template: str) -> Template:
    try:
        return _ENVIRONMENT.from_string(template)
    except TemplateError as error:
        raise InputError(f"phrase template {template!r}: {error}") from error


@functools.cache
def slots(template: str) -> frozenset[str]:
    """Names that a template needs."""
    if "{%" not in template and "'" not in template:
        return frozenset(_SLOT.findall(template))
    try:
        return frozenset(meta.find_undeclared_variables(_ENVIRONMENT.parse(template)))
    except TemplateError as error:
        raise InputError(f"phrase template {template!r}: {error}") from error


@functools.cache
def _pieces(template: str) -> tuple[str, ...] | None:
    """Text and slot names in turn, if a template has nothing but plain slots; None if it needs Jinja2."""
    pieces = tuple(_PLAIN.split(template))
    return None if any("{" in text or "}" in text for text in pieces[::2]) else pieces


def render(template: str, values: dict[str, Any]) -> str | None:
    """The text, or None if the values do not fit the template (a missing slot, None where text must stand)."""
    pieces = _pieces(template)
    if pieces is None:
        try:
            text = _compiled(template).render(values)
        except (TemplateError, TypeError, ValueError, KeyError, IndexError):
            return None
    elif any(name not in values for name in pieces[1::2]):
        return None
    else:
        text = "".join(_spoken(values[piece]) if place % 2 else piece for place, piece in enumerate(pieces))
    if "\n" in text.strip():
        return text.strip("\n").rstrip()  # what a tool printed keeps its lines and its indentation
    return " ".join(text.split())


def join_rows(rows: Sequence[Any], template: str, limit: int = 10) -> str:
    """Rows of a list on one line, each by its template; says how many are left out."""
    shown = [(template and isinstance(row, dict) and render(template, row)) or surface.say(row) for row in rows[:limit]]
    more = len(rows) - limit
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
