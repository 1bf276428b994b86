"""Phrase templates: Jinja2 with single braces, in its sandbox, compiled once and kept in the user's cache."""

import functools
import itertools
import marshal
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jinja2 import StrictUndefined, Template, TemplateError, nodes, pass_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from trajsmith.phrasing import value_formatting
from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.list_layout import join_items
from trajsmith.records import RENDER_ERRORS, InputError, UserCache, template_environment

_PLAIN = re.compile(r"\{\s*([a-z_]\w*)\s*\}")
_PATH = re.compile(r"\{\s*([a-z_]\w*(?:\.[a-z_]\w*)*(?:\s*\|\s*[a-z_]\w*)*)\s*\}")
"""A slot that is a name or a path into a value, and filters without arguments."""
_SLOT = re.compile(r"\{\s*([a-z_]\w*)")
_TAG = re.compile(r"""\{(?:[^{}'"]|'[^'{}\\]*'|"[^"{}\\]*")*\}""")
"""A slot or a tag without braces and escapes inside."""
_TEXT_IN_TAG = re.compile(r"""'[^']*'|"[^"]*\"""")
_UNCERTAIN = re.compile(r"(?<![=!<>])=(?!=)|[.|]\s|\s[.|]|(?<!\{)%(?!\})|\{#")
"""What makes it hard to tell names from attributes, filters and keywords: none of the bundled phrases has it."""
_LOOP = re.compile(r"\{%-? for (\w+(?:, \w+)*) in ((?:(?!\b(?:if|recursive)\b).)*)%\}")
_STATEMENTS = frozenset({"if", "elif", "else", "endif", "for", "endfor"})
_TAG_NAME = re.compile(r"(?<![\w.|])(?<!\bis )(?<!\bis not )[a-zA-Z_]\w*")
"""A name that is no attribute, filter or test."""
_TAG_WORDS = _STATEMENTS | {"not", "and", "or", "in", "is", "true", "false", "none", "True", "False", "None"}
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


SLOTS = "slots"


class _SlotCodeGenerator(CodeGenerator):
    """Writes into the code of a template which names it needs, as `jinja2.meta` finds them."""

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:
        self._slots: set[str] = set()
        super().visit_Template(node, frame)
        self.writeline(f"{SLOTS} = {sorted(self._slots)!r}")

    def enter_frame(self, frame: Frame) -> None:
        super().enter_frame(frame)
        self._slots.update(name for action, name in frame.symbols.loads.values() if action == "resolve" and name)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = template_environment(
        bounded=True,
        variable_start_string="{",
        variable_end_string="}",
        undefined=PhraseUndefined,
        finalize=_finalize_value,
        optimized=False,  # phrases have no constant expressions to look for
    )
    environment.code_generator_class = _SlotCodeGenerator
    environment.filters.update(VALUE_FILTERS)
    environment.filters["rows"] = _rows
    return environment


_ENVIRONMENT = _environment()
_CACHE = UserCache("phrases")


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


class _CompiledTemplate(NamedTuple):
    """A template of Jinja2, and the names that it needs."""

    template: Template
    slots: frozenset[str]


@functools.cache
def _load_template(template: str) -> _CompiledTemplate:
    """Compile a template with Jinja2, which takes milliseconds, or load its code from the user's cache.

    Raises:
        InputError: It is no template.
    """
    key = f"{get_language().code}:{template}"  # constants are written into the code as the language writes them
    stored = _CACHE.get(key)
    if stored is None:
        try:
            code = _ENVIRONMENT.compile(template)
        except TemplateError as error:
            raise InputError(f"phrase template {template!r}: {error}") from error
        _CACHE.put(key, marshal.dumps(code))
    else:
        code = marshal.loads(stored)  # noqa: S302 - written by this program, in a folder of this user alone
    module: dict[str, Any] = {"environment": _ENVIRONMENT, "__file__": code.co_filename}
    exec(code, module)  # noqa: S102 - code that Jinja2 wrote, as its own loaders do it
    compiled = Template.from_module_dict(_ENVIRONMENT, module, _ENVIRONMENT.make_globals(None))
    return _CompiledTemplate(compiled, frozenset(module[SLOTS]))


@functools.cache
def _compile_template(template: str) -> Template | PathTemplate:
    pieces = _PATH.split(template)
    plain = "\r" not in template and not any("{" in text or "}" in text for text in pieces[::2])
    if plain and _are_own_filters(pieces[1::2]):
        return PathTemplate(pieces)
    return _load_template(template).template


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
            names = {node.name for node in _ENVIRONMENT.parse(template).find_all(nodes.Filter)}
        except TemplateError as error:
            raise InputError(f"phrase template {template!r}: {error}") from error
        for name in sorted(names - _ENVIRONMENT.filters.keys()):
            raise InputError(f"phrase template {template!r}: no filter named {name!r}")


@functools.cache
def list_slots(template: str) -> frozenset[str]:
    """Names that a template needs."""
    if "{%" not in template and "'" not in template:
        return frozenset(_SLOT.findall(template))
    pieces = _split_pieces(template)
    if pieces is not None:
        return frozenset(pieces[1::2])
    names = _read_slots(template)
    return _load_template(template).slots if names is None else names


def has_slot(template: str, name: str) -> bool:
    """Return True if a template needs this name; it is compiled only where the name stands in it."""
    return name in template and name in list_slots(template)


def _read_slots(template: str) -> frozenset[str] | None:
    """Read the names that a template needs without compiling it; None for what is more than conditions and loops."""
    if any(brace in _TAG.sub("", template) for brace in "{}"):
        return None
    slots: set[str] = set()
    blocks: list[frozenset[str]] = []
    """Names that each open block gives to what stands in it."""
    for tag in _TAG.findall(template):
        plain = _TEXT_IN_TAG.sub("''", tag)
        words = _TAG_NAME.findall(plain)
        statement = (words or [""])[0] if plain.startswith("{%") else None
        loop = _LOOP.fullmatch(plain)
        if _UNCERTAIN.search(plain) or not (statement is None or statement in _STATEMENTS):
            return None
        known = frozenset().union(*blocks)
        if loop:
            words = _TAG_NAME.findall(loop[2])
            blocks.append(frozenset({*_TAG_NAME.findall(loop[1]), "loop"}))
        elif statement == "for" or (statement == "else" and blocks and blocks[-1]):
            return None
        elif statement == "if":
            blocks.append(frozenset())
        elif statement in ("endif", "endfor") and blocks:
            blocks.pop()
        slots.update(word for word in words if word not in known and word not in _TAG_WORDS)
    return None if blocks else frozenset(slots)


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
    text = value_formatting.drop_second_stop(text)
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
