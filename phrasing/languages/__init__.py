"""Languages of the scripted roles and of the checks that read their words.

A run has one language. Functions that format or read words take it from the context, English unless it was set.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

from trajsmith.phrasing.languages.en import ENGLISH
from trajsmith.phrasing.languages.records import Language

LanguageCode = Literal["en", "de"]
"""Languages by their codes."""
LANGUAGE_CODES: tuple[LanguageCode, ...] = get_args(LanguageCode)
_CURRENT: ContextVar[Language] = ContextVar("language", default=ENGLISH)


def _load_language(code: LanguageCode) -> Language:
    """Return a language; its patterns are compiled when it is first used."""
    if code == "en":
        return ENGLISH
    from trajsmith.phrasing.languages.de import GERMAN

    return GERMAN


def get_language() -> Language:
    """Return the language of the context."""
    return _CURRENT.get()


def set_language(code: LanguageCode) -> None:
    """Set the language of the context and of the tasks that are started in it."""
    _CURRENT.set(_load_language(code))


@contextmanager
def use_language(code: LanguageCode) -> Iterator[None]:
    """Set the language of the context for a block."""
    token = _CURRENT.set(_load_language(code))
    try:
        yield
    finally:
        _CURRENT.reset(token)


__all__ = ["LANGUAGE_CODES", "Language", "LanguageCode", "get_language", "set_language", "use_language"]
