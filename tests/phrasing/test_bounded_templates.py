"""Phrases come with environments of others: no template runs without end or fills the memory."""

import time

import pytest

from trajsmith.phrasing.templates import render_phrase
from trajsmith.records import InputError


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in x %}{% for b in x %}{% for c in x %}y{% endfor %}{% endfor %}{% endfor %}",
        "{ 'x' * 10000000000 }",
        "{ [1] * n }",
        "{ 10 ** 10 ** 10 }",
        "{% macro f() %}{ f() }{% endmacro %}{ f() }",
        "{% include '/etc/passwd' %}",
        "{ '%1000000000d'|format(1) }",
        "{ '%*d'|format(1000000000, 1) }",
        "{ x|center(1000000000) }",
        "{ x|indent(1000000000) }",
    ],
    ids=["loops", "text", "list", "power", "macro", "include", "width", "star", "center", "indent"],
)
def test_templates_without_end_are_refused(template: str) -> None:
    with pytest.raises(InputError, match="phrase template"):
        render_phrase(template, {"x": list(range(10)), "n": 10**9})


def test_a_template_loops_over_data_only() -> None:
    began = time.process_time()
    assert render_phrase("{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}", {}) is None
    assert time.process_time() - began < 1


def test_what_phrases_need_passes() -> None:
    values = {"rows": [{"price": 2.5, "items": ["a", "b"]}], "quantity": 3}
    template = (
        "{% for row in rows %}{% for one in row['items'] %}{one} {% endfor %}{'%.2f'|format(row.price * quantity)}"
        "{% endfor %}{% if quantity > 1 %}!{% endif %}"
    )
    assert render_phrase(template, values) == "a b 7.50!"
