"""The tests of an environment and of its ancestors: written again from blueprints, so that no file of a folder is run.

A folder may come from somebody else, or have been edited: what lies in it is data, and its tests are only compared.
"""

import ast
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from envgen.generate.blueprint import Blueprint
from envgen.generate.code_tests import test_code
from envgen.generate.tidying import tidied
from environments.reading import read_text
from trajectory import InputError, first_fault

FILE = "ancestors.json"
_LINE = TypeAdapter(tuple[Blueprint, ...])


def read_ancestors(directory: Path) -> tuple[Blueprint, ...]:
    """Blueprints of those that an environment was grown from, the oldest first; none of one made from a source.

    Raises:
        InputError: They cannot be read.
    """
    if not (directory / FILE).is_file():
        return ()
    try:
        return _LINE.validate_json((directory / FILE).read_bytes())
    except ValidationError as error:
        raise InputError(f"{directory / FILE}: {first_fault(error)}") from error


def write_ancestors(directory: Path, line: Sequence[Blueprint]) -> None:
    """Keep the blueprints beside a child, the oldest first."""
    (directory / FILE).write_bytes(_LINE.dump_json(tuple(line), indent=1))


def earlier_tests(directory: Path, line: Sequence[Blueprint]) -> dict[str, str]:
    """The tests of an environment and its ancestors by file name, as their blueprints give them.

    Args:
        line: Blueprints of all of them, that of the environment in the folder last.

    Raises:
        InputError: The folder has other tests: they would be lost, and what somebody wrote is not run here.
    """
    file = f"{line[-1].name}.py"
    tests = {f"test_{one.name}.py": tidied(test_code(one, file)) for one in line}
    for path in sorted(directory.glob("test_*.py")):
        if path.name not in tests:
            raise InputError(
                f"{path}: no blueprint gives these tests, and only tests that `trajsmith env gen` wrote are run: take "
                "the file away, or grow the parent again"
            )
        if _statements(path) != statements_of(tests[path.name]):
            raise InputError(
                f"{path} differs from what its blueprint gives, and only tests that `trajsmith env gen` wrote are run: "
                "make the environment again, or put them back"
            )
    return tests


def _statements(path: Path) -> tuple[list[str], list[str]]:
    try:
        return statements_of(read_text(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def statements_of(code: str) -> tuple[list[str], list[str]]:
    """All that a file does, however it is laid out: its imports in any order, and the rest in its own."""
    parts = ast.parse(code).body[ast.get_docstring(ast.parse(code)) is not None :]
    imports = [part for part in parts if isinstance(part, ast.Import | ast.ImportFrom)]
    rest = [ast.dump(part) for part in parts if part not in imports]
    return sorted(ast.dump(part) for part in imports), rest
