"""A richer environment from an accepted one: steps are kept if all earlier tests pass; then the doctor looks."""

import ast
import re
import shutil
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from envgen.generate.blueprint import Blueprint, LeftOut
from envgen.generate.code import apart, environment_code
from envgen.generate.code_tests import test_code
from envgen.generate.making import Ledger, Made, make
from envgen.generate.refining import ENTITIES, OPERATIONS, refined
from envgen.generate.rules import rules
from envgen.generate.spelling import identifier
from envgen.generate.tidying import passed, run_tests
from envgen.growth.ancestors import earlier_tests, read_ancestors, write_ancestors
from envgen.growth.ideas import Addition, ideas
from environments.reading import read_text
from trajectory import Frozen, InputError, RunError, canonical_json, first_fault, hash_bytes

STEPS = 3
"""Additions that are made if nothing else is asked for."""
_FILE = re.compile(r'with_name\("[^"]+\.py"\)')
_GENERATION = re.compile(r"_g(\d+)$")


class Size(Frozen):
    """How much there is of an environment."""

    entities: int
    references: int
    tools: int
    rules: int

    @classmethod
    def of(cls, blueprint: Blueprint) -> "Size":
        references = sum(bool(column.references) for entity in blueprint.entities for column in entity.columns)
        told = len(list(rules(blueprint)))
        return cls(entities=len(blueprint.entities), references=references, tools=len(blueprint.operations), rules=told)


class Grown(Frozen):
    """What became of a parent; written as `grown.json` beside the child."""

    name: str
    parent: str
    parent_digest: str
    """Hash of the parent's code."""
    generation: int
    """1 for an environment that was made from a source, 2 for its child."""
    added: tuple[str, ...]
    refused: tuple[LeftOut, ...]
    """Steps that were tried and undone, and why."""
    before: Size
    after: Size
    earlier_tests: str
    """What pytest said of the ancestors' tests on the child."""
    score: float | None
    directory: Path


class Parent:
    """An accepted environment made by `trajsmith env gen`.

    Raises:
        InputError: It is none, or its code or tests were changed by hand.
    """

    def __init__(self, directory: Path) -> None:
        for name in ("blueprint.json", "made.json"):
            if not (directory / name).is_file():
                made_of = "a document, a tool list or tables"
                raise InputError(f"{directory}: no {name}: only what `trajsmith env gen` made of {made_of} can grow")
        try:
            self.made = Made.model_validate_json((directory / "made.json").read_bytes())
            self.blueprint = Blueprint.model_validate_json((directory / "blueprint.json").read_bytes())
        except ValidationError as error:
            raise InputError(f"{directory}: {first_fault(error)}") from error
        if not self.made.accepted:
            raise InputError(
                f"{directory}: {self.made.name} was rejected ({self.made.reasons[0]}): nothing is built on it"
            )
        self.name = self.blueprint.name
        self.code = read_text(directory / f"{self.name}.py")
        if _definitions(self.code) != _definitions(environment_code(apart(self.blueprint))):
            raise InputError(
                f"{directory / self.name}.py differs from what blueprint.json gives: growth works on the blueprint and "
                "would lose the changes; make the environment again with `trajsmith env gen`"
            )
        self.line = (*read_ancestors(directory), self.blueprint)
        self.tests = earlier_tests(directory, self.line)
        self.generation = generation_of(self.name)

    @property
    def child(self) -> str:
        """The usual name of its child."""
        return child_of(self.name)


def generation_of(name: str) -> int:
    """1 for an environment that was made from a source, 2 for its child."""
    found = _GENERATION.search(name)
    return int(found.group(1)) if found else 1


def child_of(name: str) -> str:
    """The usual name of an environment's child."""
    return f"{_GENERATION.sub('', name)}_g{generation_of(name) + 1}"


def grow(directory: Path, out: Path, steps: int = STEPS, name: str | None = None, seed: int = 0) -> Grown:
    """Make a richer environment of an accepted one.

    A step is undone if an earlier test, or a new one, fails with it; if the doctor rejects the whole, the last step
    goes, and it is asked again. What a killed run has tested or examined is not done again.

    Args:
        directory: The parent's folder, as `trajsmith env gen` made it.
        out: The child gets a folder in it.
        steps: Additions to make.
        name: The child's name; None for the parent's with its generation.

    Raises:
        InputError: The parent cannot grow, or a name or number is wrong.
        RunError: No addition leaves all earlier tests and the doctor content, or the doctor had no time.
    """
    if steps < 1:
        raise InputError(f"--steps is at least 1, not {steps}")
    parent = Parent(directory)
    child = name or parent.child
    if identifier(child, "environment") != child or child == parent.name:
        raise InputError(f"--name {child!r}: give a name in snake case that is not the parent's")
    work = out / "work" / f"{child}.growing"
    blueprint = parent.blueprint.model_copy(update={"name": child})
    stages, refused = additions(parent, blueprint, steps, seed, work)
    while stages:
        whole = _noted(stages[-1][1], parent, [one.says for one, _ in stages])
        made = make(partial(_same, whole), out, None, seed)
        if made.accepted:
            return _kept(parent, made, stages, refused, work)
        refused.append(LeftOut(what=stages[-1][0].name, reason=f"the whole is rejected: {made.reasons[0]}"))
        stages = stages[:-1]
    reasons = "; ".join(f"{one.what}: {one.reason}" for one in refused[:3])
    raise RunError(f"{parent.name} cannot grow: {reasons or 'nothing can be added to it'}")


Stages = list[tuple[Addition, Blueprint]]
"""Additions with the blueprint that each left."""


def additions(parent: Parent, start: Blueprint, steps: int, seed: int, work: Path) -> tuple[Stages, list[LeftOut]]:
    """Additions with which all tests pass, each on top of those before; and those that were undone, with the reason.

    Args:
        parent: Whose tests have to pass.
        start: The parent's blueprint under the child's name.
        steps: Additions wanted; there may be fewer.
        seed: See `envgen.growth.ideas.ideas`.
        work: Folder for trials and for the ledger of what was tested.
    """
    stages: Stages = []
    refused = list[LeftOut]()
    for idea in ideas(start, seed):
        if len(stages) == steps:
            break
        before = stages[-1][1] if stages else start
        reason, after = _tried(idea, before, parent, work)
        if reason:
            refused.append(LeftOut(what=idea.name, reason=reason))
        else:
            stages.append((idea, after))
    return stages, refused


def _tried(idea: Addition, before: Blueprint, parent: Parent, work: Path) -> tuple[str, Blueprint]:
    """Why an addition is refused, empty if it is not; and the blueprint with it."""
    added = idea.apply(before)
    if len(added.operations) == len(before.operations):
        return "there is nothing to add", before
    if len(added.entities) > ENTITIES or len(added.operations) > OPERATIONS:
        return f"more than {ENTITIES} tables or {OPERATIONS} tools", before
    after = apart(refined(added))
    lost = {one.name for one in before.operations} - {one.name for one in after.operations}
    if lost or after.cls != before.cls:
        return f"{', '.join(sorted(lost)) or before.cls} would be lost", before
    inputs = hash_bytes(canonical_json([environment_code(after), test_code(after, "x.py"), parent.tests]))
    said = Ledger(work, inputs).run("tests", lambda: _test(after, parent.tests, work))
    return ("" if passed(said) else f"tests: {said}"), after


def _test(blueprint: Blueprint, tests: dict[str, str], work: Path) -> str:
    """Run earlier tests, and the blueprint's own, on its code; what pytest says of a failure, or at the end."""
    folder = work / "tried"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / f"{blueprint.name}.py"
    file.write_text(environment_code(blueprint), encoding="utf-8")
    (folder / f"test_{blueprint.name}.py").write_text(test_code(blueprint, file.name), encoding="utf-8")
    _place(tests, file.name, folder)
    return run_tests(folder)


def _place(tests: dict[str, str], file: str, folder: Path) -> None:
    """Write ancestors' tests so that they are about another file."""
    for name, text in tests.items():
        (folder / name).write_text(_FILE.sub(f'with_name("{file}")', text), encoding="utf-8")


def _same(blueprint: Blueprint) -> Blueprint:
    return blueprint


def _noted(blueprint: Blueprint, parent: Parent, said: list[str]) -> Blueprint:
    note = f"grown from {parent.name} ({hash_bytes(parent.code.encode(), 12)}): {'; '.join(said)}"
    return blueprint.model_copy(update={"notes": (*blueprint.notes, note)})


def _kept(parent: Parent, made: Made, stages: Stages, refused: list[LeftOut], work: Path) -> Grown:
    """Put the ancestors' tests beside an accepted child, run them there, and record where it comes from."""
    _place(parent.tests, f"{made.name}.py", made.directory)
    write_ancestors(made.directory, parent.line)
    said = run_tests(made.directory, *parent.tests)
    if not passed(said):
        raise RunError(f"{made.directory}: earlier tests fail on the finished environment: {said}")
    for left in made.directory.rglob("__pycache__"):
        shutil.rmtree(left)
    grown = Grown(
        name=made.name, parent=parent.name, parent_digest=hash_bytes(parent.code.encode()),
        generation=parent.generation + 1, added=tuple(one.says for one, _ in stages), refused=tuple(refused),
        before=Size.of(parent.blueprint), after=Size.of(stages[-1][1]), earlier_tests=said, score=made.score,
        directory=made.directory,
    )  # fmt: skip
    (made.directory / "grown.json").write_bytes(grown.model_dump_json(indent=1).encode())
    shutil.rmtree(work, ignore_errors=True)
    return grown


def _definitions(code: str) -> list[str]:
    """Classes and functions of a file, however it is laid out."""
    try:
        parts = ast.parse(code).body
    except SyntaxError as error:
        raise InputError(f"the environment's code cannot be read: {error.msg}, line {error.lineno}") from error
    return [ast.dump(part) for part in parts if isinstance(part, ast.ClassDef | ast.FunctionDef)]
