"""The tests of an environment and of its ancestors: written again from blueprints, so that no file of a folder is run.

A folder may come from somebody else, or have been edited: what lies in it is data, and its tests are only compared.
"""

import ast
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from trajsmith.envgen.generate.blueprint import Blueprint
from trajsmith.envgen.generate.code_tests import render_test_code
from trajsmith.envgen.generate.formatting import fix_and_format_code
from trajsmith.environments.file_reading import read_text
from trajsmith.records import InputError, format_first_error

ANCESTORS_FILE = "ancestors.json"
_LINEAGE = TypeAdapter(tuple[Blueprint, ...])


def read_ancestors(directory: Path) -> tuple[Blueprint, ...]:
    """Return the blueprints that an environment was grown from, oldest first; none if it came from a source.

    Raises:
        InputError: They cannot be read.
    """
    if not (directory / ANCESTORS_FILE).is_file():
        return ()
    try:
        return _LINEAGE.validate_json((directory / ANCESTORS_FILE).read_bytes())
    except ValidationError as error:
        raise InputError(f"{directory / ANCESTORS_FILE}: {format_first_error(error)}") from error


def write_ancestors(directory: Path, line: Sequence[Blueprint]) -> None:
    """Write the blueprints beside a child, the oldest first."""
    (directory / ANCESTORS_FILE).write_bytes(_LINEAGE.dump_json(tuple(line), indent=1))


def render_ancestor_tests(directory: Path, line: Sequence[Blueprint]) -> dict[str, str]:
    """Return the tests of an environment and its ancestors by file name, rendered from their blueprints.

    Args:
        line: Blueprints of all of them, that of the environment in the folder last.

    Raises:
        InputError: The folder has other tests: they would be lost, and what somebody wrote is not run here.
    """
    file = f"{line[-1].name}.py"
    tests = {f"test_{one.name}.py": fix_and_format_code(render_test_code(one, file)) for one in line}
    for path in sorted(directory.glob("test_*.py")):
        if path.name not in tests:
            raise InputError(
                f"{path}: no blueprint gives these tests, and only tests that `trajsmith env gen` wrote are run: take "
                "the file away, or grow the parent again"
            )
        if _read_statements(path) != parse_statements(tests[path.name]):
            raise InputError(
                f"{path} differs from what its blueprint gives, and only tests that `trajsmith env gen` wrote are run: "
                "make the environment again, or put them back"
            )
    return tests


def _read_statements(path: Path) -> tuple[list[str], list[str]]:
    try:
        return parse_statements(read_text(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def parse_statements(code: str) -> tuple[list[str], list[str]]:
    """Return a file's statements independent of layout and import order."""
    parts = ast.parse(code).body[ast.get_docstring(ast.parse(code)) is not None :]
    imports = [part for part in parts if isinstance(part, ast.Import | ast.ImportFrom)]
    rest = [ast.dump(part) for part in parts if part not in imports]
    return sorted(ast.dump(part) for part in imports), rest
