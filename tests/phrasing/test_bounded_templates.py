"""Phrases come with environments of others: no template runs without end or fills the memory."""

import time

import pytest

from trajsmith.phrasing.templates import render_phrase
from trajsmith.records import InputError


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in x %}{% for b in x %}{% for c in x %}y{% endfor %}{% endfor %}{% endfor %}",
        "{ 10 ** 10 ** 10 }",
        "{% macro f() %}{ f() }{% endmacro %}{ f() }",
        "{% include '/etc/passwd' %}",
        "{ '%1000000000d'|format(1) }",
        "{ '%*d'|format(1000000000, 1) }",
        "{ x|center(1000000000) }",
        "{ x|indent(1000000000) }",
        "{ 'x'.center(1000000000) }",
        "{ 'x'.ljust(n) }",
        "{ '{:1000000000}'.format(1) }",
        "{% set a = name ~ name %}" + "{% set a = a ~ a %}" * 40 + "{a}",
        "{% set a = name %}" + "{% set a = [a, a]|join %}" * 40 + "{a}",
        "{ x|replace('', name * 1) }",
        "{ x|map('format', 1)|list }",
        "{% for a in x recursive %}{ loop(x) }{% endfor %}",
        "{% block a %}{ self.a() }{% endblock %}",
        "{ lipsum(n=100000) }",
        "{" * 200 + "}" * 200,
        "{" + "(" * 200 + "1" + ")" * 200 + "}",
        "{" + "-" * 5000 + "1}",
        "{% if 1 %}" * 500 + "{% endif %}" * 500,
        "{% filter upper %}a{% endfilter %}",
        "{% set a %}{b}{% endset %}",
        "{% set ns = namespace() %}",
        "{ x|tojson(1000000000) }",
        "{ x|random }",
    ],
    ids=[
        "loops", "power", "macro", "include", "width", "star", "center", "indent", "centered", "padded",
        "format", "doubled", "joined", "replaced", "mapped", "recursive", "itself", "global", "deep", "brackets",
        "signs", "blocks", "filter block", "set block", "namespace", "indented JSON", "random",
    ],
)  # fmt: skip
def test_templates_without_end_are_refused(template: str) -> None:
    with pytest.raises(InputError, match="phrase template"):
        render_phrase(template, {"x": list(range(10)), "n": 10**9, "name": "Anna"})


def test_a_template_loops_over_data_only() -> None:
    with pytest.raises(InputError, match="only methods that read may be called"):
        render_phrase("{% for a in range(99999) %}x{% endfor %}", {})


@pytest.mark.parametrize(
    "template",
    [
        "{ name * n }",
        "{ 'x' * 10000000000 }",
        "{ [1] * n }",
        "{ rows * n }",
        "{ 1 / 0 }",
        "{% for a in many %}{% for b in many %}x{% endfor %}{% endfor %}",
        "{% for a in many %}{ long }{% endfor %}",
        "{ name % n }",
        "{ name.nothing.at.all }",
        "{ name|float|int|round|sum }",
        "{ (n * 1e300 * 1e300)|int }",
    ],
)
def test_templates_that_do_too_much_with_their_values_are_passed_over(template: str) -> None:
    began = time.process_time()
    values = {"name": "Anna", "n": 10**9, "rows": [1], "many": list(range(5000)), "long": "x" * 10_000}
    assert render_phrase(template, values) is None
    assert time.process_time() - began < 2


def test_what_phrases_need_passes() -> None:
    values = {"rows": [{"price": 2.5, "items": ["a", "b"]}], "quantity": 3}
    template = (
        "{% for row in rows %}{% for one in row['items'] %}{one} {% endfor %}{'%.2f'|format(row.price * quantity)}"
        "{% endfor %}{% if quantity > 1 %}!{% endif %}"
    )
    assert render_phrase(template, values) == "a b 7.50!"
