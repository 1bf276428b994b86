"""Templates of texts, paths and filters are rendered without Jinja2, and as Jinja2 renders them."""

import datetime
from typing import Any

import pytest

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.native_source import NativeSource
from trajsmith.phrasing import templates
from trajsmith.phrasing.templates import PathTemplate

VALUES: list[Any] = [
    "oak table", "", 3, 0, -1.84, 1234567.5, True, None, "2026-03-01", "2026-03-01T09:30:00", [], ["a", "b", "c"],
    [1, 2], {"name": "x"}, [{"name": "x"}], datetime.date(2026, 3, 1),
]  # fmt: skip


def list_templates(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for part in parts for text in list_templates(part)]


def render_both(template: str, values: dict[str, Any]) -> tuple[Any, Any]:
    results = []
    for compile_template in (templates._compile_template, templates._ENVIRONMENT.from_string):
        try:
            results.append(compile_template(template).render(values))
        except Exception as error:  # noqa: BLE001 - both must fail in one way
            results.append(type(error))
    return results[0], results[1]


@pytest.mark.parametrize("name", ["retail", "bank", "travel"])
def test_bundled_templates_are_rendered_as_jinja_renders_them(name: str) -> None:
    book = NativeSource(ENVIRONMENTS.get(name), {"small": 1}).phrasebook.model_dump(mode="json")
    paths = [text for text in dict.fromkeys(list_templates(book)) if _is_path_template(text)]
    assert len(paths) > 50
    for number, template in enumerate(paths):
        slots = sorted(templates.list_slots(template))
        for shift in range(0, len(VALUES), 3):
            chosen = [VALUES[(number + shift + place) % len(VALUES)] for place in range(len(slots))]
            leaves = {slot: _Everything(value) for slot, value in zip(slots, chosen, strict=True)}
            for values in (dict(zip(slots, chosen, strict=True)), leaves, {}):
                ours, theirs = render_both(template, values)
                assert ours == theirs, (template, values)


class _Everything(dict[str, Any]):
    """An object that has one value under every name, as results have many fields."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def __missing__(self, key: str) -> Any:
        return self.value


def _is_path_template(text: str) -> bool:
    if "{" not in text or templates._split_pieces(text) is not None:
        return False
    return isinstance(templates._compile_template(text), PathTemplate)


@pytest.mark.parametrize(
    ("template", "values"),
    [
        pytest.param("{x.__class__}", {"x": 1}, id="internals"),
        pytest.param("{x.items}", {"x": {"items": 3}}, id="method-before-key"),
        pytest.param("{x._hidden|money}", {"x": {"_hidden": 3}}, id="underscore"),
        pytest.param("{x.y.z}", {"x": {}}, id="missing-inside"),
        pytest.param("{x}, {y|date}\n", {"x": 1, "y": "2026-01-01"}, id="last-line-end"),
        pytest.param("{ x | money | words }", {"x": 2.5}, id="spaces"),
        pytest.param("{x|lookup}", {"x": 2.5}, id="filter-without-its-argument"),
        pytest.param("{none} {true} {x.y}", {"x": {"y": 1}}, id="constants"),
        pytest.param("{x.y} {# note #} {x.z}", {"x": {"y": 1, "z": 2}}, id="comment"),
        pytest.param("{x.y}\r\n{x.z}", {"x": {"y": 1, "z": 2}}, id="carriage-return"),
    ],
)
def test_odd_templates_are_rendered_as_jinja_renders_them(template: str, values: dict[str, Any]) -> None:
    ours, theirs = render_both(template, values)
    assert (ours.rstrip("\n") if isinstance(ours, str) else ours) == theirs


def test_what_needs_jinja_goes_to_jinja() -> None:
    for template in ("{x.y|upper}", "{x|rows('a')}", "{% if x %}{x.y}{% endif %}", "{x.y + 1}", "{x[0]}"):
        assert not isinstance(templates._compile_template(template), PathTemplate)
    assert isinstance(templates._compile_template("{x.y|money}"), PathTemplate)
