"""An accepted environment that models made, as something to grow: its design, code and tests, from its folder alone."""

import ast
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from envgen.generate import Made
from envgen.growth.growing import child_of, generation_of
from envgen.sources import Source
from envgen.synthesis.acceptance import DESIGN
from envgen.synthesis.parts import PlannedTool, UnitTest
from envgen.synthesis.records import Design, Draft
from environments.reading import read_text
from trajectory import InputError, first_fault, hash_bytes

_TESTS = TypeAdapter(tuple[UnitTest, ...])


def is_by_models(directory: Path) -> bool:
    """Whether a folder holds an environment that models made."""
    return (directory / DESIGN).is_file()


class ModelParent:
    """What `trajsmith env gen` with models, or `env grow`, left in a folder.

    Its code may have been changed by hand: growth starts from the file, and from the tests that pass on it.

    Raises:
        InputError: Something is missing there, or cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in (DESIGN, "made.json", "tests.json"):
            if not (directory / name).is_file():
                raise InputError(f"{directory}: no {name}: give the folder of an environment that `env gen` made")
        try:
            made = Made.model_validate_json((directory / "made.json").read_bytes())
            self.design = Design.model_validate_json((directory / DESIGN).read_bytes())
            self.tests = _TESTS.validate_json((directory / "tests.json").read_bytes())
        except ValidationError as error:
            raise InputError(f"{directory}: {first_fault(error)}") from error
        if not made.accepted:
            raise InputError(f"{directory}: {made.name} was rejected: nothing is built on it")
        self.name = made.name
        self.code = read_text(directory / f"{self.name}.py")
        self.digest = hash_bytes(self.code.encode())
        self.generation = generation_of(self.name)
        self.child = child_of(self.name)

    @cached_property
    def plan(self) -> tuple[PlannedTool, ...]:
        """The planned tools that the code has.

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
    def draft(self) -> Draft:
        """The code as a draft, so that it is run as any other: from a copy, in the sandbox."""
        return Draft(theme=self.design.theme, design=self.design.id, number=0, code=self.code, tests=self.tests)

    def source(self, child: str, wish: str) -> Source:
        """What a child is made from: another parent, name or wish is another theme.

        Args:
            wish: What it should have more of; empty if the designer may choose.
        """
        return Source(
            kind="environment", name=child, summary=f"{self.name} grown", requests=(wish,) if wish else (),
            origin=f"{self.name}.py {self.digest[:16]}", licence=None,
        )  # fmt: skip
