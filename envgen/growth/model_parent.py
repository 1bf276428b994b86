"""Load an accepted model-written environment as a parent: design, code and tests from its folder alone."""

import ast
import re
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from trajsmith.envgen.generate import GenerationResult
from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.synthesis.acceptance import DESIGN_FILE
from trajsmith.envgen.synthesis.answer_schemas import PlannedTool, UnitTest
from trajsmith.envgen.synthesis.records import Design, EnvironmentDraft
from trajsmith.environments.file_reading import read_text
from trajsmith.records import InputError, format_first_error, hash_bytes

_TESTS = TypeAdapter(tuple[UnitTest, ...])
_GENERATION = re.compile(r"_g(\d+)$")


def parse_generation(name: str) -> int:
    """Return 1 for an environment that was generated from a source, 2 for its child."""
    match = _GENERATION.search(name)
    return int(match.group(1)) if match else 1


class ModelParent:
    """Files that `trajsmith env gen` with models, or `env grow`, left in a folder.

    Its code may have been changed by hand: growth starts from the file, and from the tests that pass on it.

    Raises:
        InputError: Something is missing there, or cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in (DESIGN_FILE, "made.json", "tests.json"):
            if not (directory / name).is_file():
                raise InputError(f"{directory}: no {name}: only an environment that models made can grow")
        try:
            result = GenerationResult.model_validate_json((directory / "made.json").read_bytes())
            self.design = Design.model_validate_json((directory / DESIGN_FILE).read_bytes())
            self.tests = _TESTS.validate_json((directory / "tests.json").read_bytes())
        except ValidationError as error:
            raise InputError(f"{directory}: {format_first_error(error)}") from error
        if not result.accepted:
            raise InputError(f"{directory}: {result.name} was rejected: nothing is built on it")
        self.name = result.name
        self.code = read_text(directory / f"{self.name}.py")
        self.digest = hash_bytes(self.code.encode())
        self.generation = parse_generation(self.name)
        self.child = f"{_GENERATION.sub('', self.name)}_g{self.generation + 1}"

    @cached_property
    def plan(self) -> tuple[PlannedTool, ...]:
        """Return the planned tools that the code has.

        Raises:
            InputError: The code is no Python.
        """
        try:
            nodes = list(ast.walk(ast.parse(self.code)))
        except SyntaxError as error:
            raise InputError(f"{self.directory}: the code cannot be read: {error.msg}, line {error.lineno}") from error
        there = {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.decorator_list}
        return tuple(tool for tool in self.design.plan.tools if tool.name in there)

    @property
    def draft(self) -> EnvironmentDraft:
        """Return the code as a draft, so that it runs as any other: from a copy, in the sandbox."""
        return EnvironmentDraft(
            theme=self.design.theme, design=self.design.id, number=0, code=self.code, tests=self.tests
        )

    def source(self, child: str, wish: str) -> ThemeSource:
        """Return the source of a child: another parent, name or wish is another theme.

        Args:
            wish: What it should have more of; empty if the designer may choose.
        """
        return ThemeSource(
            kind="environment", name=child, summary=f"{self.name} grown", requests=(wish,) if wish else (),
            origin=f"{self.name}.py {self.digest[:16]}", licence=None,
        )  # fmt: skip
