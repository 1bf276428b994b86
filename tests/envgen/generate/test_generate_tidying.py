"""Ruff and pytest on generated code: what they say, what they must not see, names that are those of modules."""

import subprocess

import pytest

from trajsmith.envgen.generate import formatting
from trajsmith.envgen.generate.blueprint import Blueprint
from trajsmith.envgen.generate.formatting import fix_and_format_code, is_passing, run_tests
from trajsmith.records import RunError


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_imports_are_sorted_the_same_wherever_the_command_is_given(tmp_path, monkeypatch):
    code = "from pydantic import Field\nfrom trajsmith.environments.native import tool\nimport os\nX = Field, tool\n"
    here = fix_and_format_code(code)
    monkeypatch.chdir(tmp_path)
    assert (
        fix_and_format_code(code)
        == here
        == ("from pydantic import Field\n\nfrom trajsmith.environments.native import tool\n\nX = Field, tool\n")
    )


@pytest.mark.parametrize("name", ["calendar", "typing", "pytest", "random"])
def test_an_environment_may_be_called_as_a_module_of_python(name, tmp_path):
    files = {name: "VALUE = 1\n", f"test_{name}": "import typing\n\ndef test_one():\n    assert typing.Any\n"}
    assert run_tests(write(tmp_path, **files), f"test_{name}.py") == "1 passed"


def test_the_first_failure_is_told_and_all_is_logged(tmp_path):
    write(tmp_path, test_a="def test_good():\n    pass\n\ndef test_bad():\n    assert 'passed' == 'error'\n")
    said = run_tests(tmp_path, log=tmp_path / "tests.txt")
    assert said.startswith("FAILED test_a.py::test_bad") and not is_passing(said)
    assert "1 failed, 1 passed" in (tmp_path / "tests.txt").read_text()


def test_what_lies_beside_the_tests_is_not_loaded(tmp_path):
    write(tmp_path, conftest="raise RuntimeError('loaded')\n", test_a="def test_good():\n    pass\n")
    assert run_tests(tmp_path) == "1 passed"


def test_tests_see_no_keys_and_must_end(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    write(tmp_path, test_a="import os\n\ndef test_bare():\n    assert 'OPENAI_API_KEY' not in os.environ\n")
    assert run_tests(tmp_path) == "1 passed"

    def hangs(*arguments, **settings):
        raise subprocess.TimeoutExpired("pytest", settings["timeout"])

    monkeypatch.setattr(formatting.subprocess, "run", hangs)
    with pytest.raises(RunError, match="the tests did not end in 300 seconds"):
        run_tests(tmp_path)


@pytest.mark.parametrize(
    ("said", "well"),
    [("9 passed", True), ("9 passed, 1 skipped", True), ("1 failed, 8 passed", False), ("no tests ran", False),
     ("ERROR test_a.py - 1 passed", False), ("", False)],
)  # fmt: skip
def test_passed(said, well):
    assert is_passing(said) == well


@pytest.mark.parametrize("name", ["class", "x: int = 1", "Bücher", "a b", "", 'x"'])
def test_only_names_become_names_of_the_code(name):
    source = {"kind": "tables", "name": "t", "digest": "0a"}
    good = {"name": "club", "cls": "Club", "title": "t", "domain": "d", "source": source}
    assert Blueprint.model_validate({**good, "entities": [], "operations": []}).name == "club"
    with pytest.raises(ValueError, match="is no name in Python"):
        Blueprint.model_validate({**good, "name": name, "entities": [], "operations": []})
