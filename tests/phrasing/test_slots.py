"""The names that a template needs are found as Jinja2 finds them, without its code generator."""

from typing import Any

import pytest
import yaml
from jinja2 import meta

from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.phrasing import templates
from trajsmith.phrasing.phrasebook import insert_said_words


def list_texts(value: Any) -> set[str]:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return {text for part in parts for text in list_texts(part)}
    return {value} if isinstance(value, str) and "{" in value else set()


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
def test_slots_of_the_bundled_phrases(name: str) -> None:
    text = insert_said_words(get_phrases_path(ENVIRONMENTS.get(name)).read_text("utf-8"))
    texts = list_texts(yaml.safe_load(text))
    parsed = [text for text in texts if "{%" in text or "'" in text]  # of the others a pattern finds the slots
    assert len(parsed) > 10
    for text in parsed:
        expected = meta.find_undeclared_variables(templates._ENVIRONMENT.parse(text))
        assert templates.list_slots(text) == expected, text


@pytest.mark.parametrize(
    "text",
    ["{% for x in rows %}{x.name}{% endfor %} of {x}", "{% set y = 'a' %}{y}{z}", "it's {a|lookup({'b': c})}", "{a.b}"],
)
def test_names_of_loops_are_not_slots(text: str) -> None:
    assert templates.list_slots(text) == meta.find_undeclared_variables(templates._ENVIRONMENT.parse(text))
