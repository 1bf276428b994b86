"""The names that a template needs are found as Jinja2 finds them, and compiled code is found again."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import meta

from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.phrasing import templates, use_language
from trajsmith.phrasing.phrasebook import insert_said_words
from trajsmith.phrasing.scenarios import load_scenarios
from trajsmith.records import InputError, UserCache


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
        for slot in expected:
            assert templates.has_slot(text, slot), text


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


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        pytest.param("{% if out.paid and not arg.late %}Paid {out.total|money}.{% endif %}", True, id="conditions"),
        pytest.param("{% if out.kind == 'a {b}' %}x{% endif %}", False, id="brace_in_text"),
        pytest.param("{% if x is defined and y is not none %}It is {z}{% endif %}", True, id="tests"),
        pytest.param('it\'s {a|money} or {"b"}', True, id="text_in_tag"),
        pytest.param("{% if a.b %}c.d{% elif not e %}{f.g}{% else %}h{% endif %}", True, id="attributes"),
        pytest.param("{% if a . b %}{c | money}{% endif %}", False, id="spaces"),
        pytest.param("{% for x in rows %}{x.name}{loop.index}{y}{% endfor %} {x} {loop}", True, id="after_a_loop"),
        pytest.param("{% for x in x %}{% for a, b in x %}{a}{b}{% endfor %}{b}{% endfor %}", True, id="two_loops"),
        pytest.param("{% for x in rows %}{x}{% else %}{x}{% endfor %}", False, id="loop_else"),
        pytest.param("{% for x in rows if x.ok %}{x}{% endfor %}", False, id="loop_if"),
        pytest.param("{% for x in rows %}{% if x %}a{% else %}{y}{% endif %}{% endfor %}", True, id="else_in_a_loop"),
        pytest.param("{% if out.result[0].a|length > 1 %}{b if c else d}{% endif %}", True, id="inline_if"),
        pytest.param("{% set a = 'b' %}{a}{c}", False, id="set"),
        pytest.param("{% if a %}{b|default(boolean=c)}{% endif %}", False, id="keyword"),
        pytest.param("{%- if a -%} {b} {%- endif -%}", True, id="spaces_cut"),
        pytest.param("{% if a %}{b % c}{% endif %}", False, id="modulo"),
        pytest.param("{# it's #}{% if a %}{b}{% endif %}", False, id="comment"),
        pytest.param("{% if a >= 1.5 and b != 'c' %}{True}{none}{% endif %}", True, id="constants"),
    ],
)
def test_names_are_read_or_the_template_is_compiled(text: str, is_read: bool) -> None:
    exact = meta.find_undeclared_variables(templates._ENVIRONMENT.parse(text))
    assert templates._read_slots(text) == (exact if is_read else None)
    assert templates.list_slots(text) == exact


def test_an_open_block_is_no_template() -> None:
    with pytest.raises(InputError, match="phrase template"):
        templates.list_slots("{% if a %}{b}")


def test_code_of_a_template_is_taken_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAJSMITH_CACHE", str(tmp_path))
    text, values = "{% for x in rows %}{x.name}{% if not loop.last %}, {% endif %}{% endfor %} of {many}", {"many": 3}
    rendered = []
    for compiles in (True, False):
        monkeypatch.setattr(templates, "_CACHE", UserCache("phrases"))
        templates._load_template.cache_clear()
        templates._compile_template.cache_clear()
        if not compiles:
            monkeypatch.setattr(templates._ENVIRONMENT, "compile", lambda source: pytest.fail("it was compiled again"))
        assert templates._load_template(text).slots == {"rows", "many"}
        rendered.append(templates.render_phrase(text, {"rows": [{"name": "a"}, {"name": "b"}], **values}))
    assert rendered == ["a, b of 3", "a, b of 3"]


def test_words_of_languages_are_apart_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAJSMITH_CACHE", str(tmp_path))
    text = "{% if x %}{1.5}{% endif %}"
    rendered = {}
    for code in ("en", "de"):
        monkeypatch.setattr(templates, "_CACHE", UserCache("phrases"))
        templates._load_template.cache_clear()
        templates._compile_template.cache_clear()
        with use_language(code):
            rendered[code] = templates.render_phrase(text, {"x": True})
    assert rendered == {"en": "1.5", "de": "1,5"}
