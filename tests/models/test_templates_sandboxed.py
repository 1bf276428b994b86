"""Every Jinja2 environment is made in one place, where it is sandboxed."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from jinja2.exceptions import SecurityError

from trajsmith.records.template_sandbox import template_environment

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("template", ["{{ ''.__class__ }}", "{% set _ = rows.append(1) %}"])
def test_templates_reach_no_internals_and_change_nothing(template):
    with pytest.raises(SecurityError):
        template_environment().from_string(template).render(rows=[])


def test_an_undefined_name_is_an_error():
    with pytest.raises(UndefinedError):
        template_environment().from_string("{{ nobody }}").render()


GROWING = {
    "replace": "{{ text" + f"|replace('a', '{'a' * 100}')" * 20 + " }}",
    "replace nothing": "{{ text" + f"|replace('', '{'a' * 100}')" * 20 + " }}",
    "join": "{{ text" + "|join(text)" * 3 + " }}",
    "join of attributes": "{{ rows|join(rows|map(attribute='name')|join, attribute='name') }}",
    "format": "{% set long = text|replace('a', '"
    + "a" * 100
    + "') %}{{ '"
    + "%s" * 200
    + "'|format("
    + "long," * 200
    + ") }}",
    "tojson": "{{ text" + "|tojson" * 40 + " }}",
}


@pytest.mark.parametrize("autoescape", [False, True])
@pytest.mark.parametrize("template", GROWING.values(), ids=GROWING)
def test_filters_one_after_another_make_no_text_of_any_length(template, autoescape):
    built = template_environment(bounded=True, autoescape=autoescape).from_string(template)
    with pytest.raises(SecurityError, match="a filter makes more than 8388608 characters"):
        built.render(text="a" * 999 + '"', rows=[{"name": "x" * 4000}] * 2100)


FILTERS = [
    "{{ 'a-b-c'|replace('-', '+') }}", "{{ 'a-b-c'|replace('-', '', 1) }}", "{{ 'ab'|replace('', '-') }}",
    "{{ [1, 2.5, none, text]|join(', ') }}", "{{ rows|join(' & ', attribute='name') }}", "{{ text|list|join }}",
    "{{ '<%s> %05d'|format(text, 7) }}", "{{ '%(a)s'|format(a=text) }}", "{{ rows|tojson }}",
    "{{ text|escape|replace('<', '&') }}", "{{ [text|safe, text]|join('<') }}", "{{ rows|map('tojson')|join('\n') }}",
]  # fmt: skip


@pytest.mark.parametrize("autoescape", [False, True])
@pytest.mark.parametrize("template", FILTERS)
def test_bounded_filters_write_what_others_do(template, autoescape):
    values = {"text": "a <b> & 'c'", "rows": [{"name": "x<y"}, {"name": 2}]}
    bounded, other = (template_environment(bounded=kind, autoescape=autoescape) for kind in (True, False))
    assert bounded.from_string(template).render(values) == other.from_string(template).render(values)


def test_no_other_module_makes_an_environment():
    makes = re.compile(r"\b\w*(?<!def )Environment\((?!self)|\bTemplate\(")
    packages = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]
    texts = {file: file.read_text("utf-8") for package in packages for file in package.rglob("*.py")}
    found = {str(file.relative_to(ROOT)) for file, text in texts.items() if "jinja2" in text and makes.search(text)}
    assert found <= {"records/template_sandbox.py", "records/bounded_templates.py"}
