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


def test_no_other_module_makes_an_environment():
    makes = re.compile(r"\b\w*(?<!def )Environment\((?!self)|\bTemplate\(")
    packages = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]
    texts = {file: file.read_text("utf-8") for package in packages for file in package.rglob("*.py")}
    found = {str(file.relative_to(ROOT)) for file, text in texts.items() if "jinja2" in text and makes.search(text)}
    assert found <= {"records/template_sandbox.py", "records/bounded_templates.py"}
