"""The names that a template needs are found as Jinja2 finds them, without its code generator."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import meta

from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.phrasing import templates
from trajsmith.phrasing.phrasebook import insert_said_words
from trajsmith.phrasing.scenarios import load_scenarios


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


def test_words_of_the_phrasebook_are_said_in_scenarios_too(tmp_path: Path) -> None:
    (tmp_path / "phrases.yaml").write_text("parameters: {status: {values: {pending: [still waiting]}}}\n", "utf-8")
    file = tmp_path / "scenarios.yaml"
    file.write_text(
        "scenarios:\n"
        "  - id: waiting\n    summary: Waits.\n    motives: [I have been waiting.]\n    steps:\n"
        "      - tool: show\n        question:\n          asks: [$.s]\n          say: [How is it?]\n"
        "          answer: [\"It's {out.s|said('status')}.\"]\n",
        "utf-8",
    )
    answer = load_scenarios(file).scenarios[0].steps[0].question
    assert answer is not None
    assert templates.render_phrase(answer.answer[0], {"out": {"s": "pending"}}) == "It's still waiting."
