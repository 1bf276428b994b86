"""Grow an accepted environment: keep additions with which all earlier tests pass, then run the checker."""

import ast
import re
import shutil
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from trajsmith.envgen.generate.blueprint import Blueprint, SkippedItem
from trajsmith.envgen.generate.code import rename_colliding_classes, render_environment_code
from trajsmith.envgen.generate.code_tests import render_test_code
from trajsmith.envgen.generate.formatting import is_passing, run_tests
from trajsmith.envgen.generate.identifiers import to_identifier
from trajsmith.envgen.generate.pipeline import GenerationResult, StageJournal, generate_environment
from trajsmith.envgen.generate.refinement import MAX_ENTITIES, MAX_OPERATIONS, refine_blueprint
from trajsmith.envgen.generate.rules import render_rules
from trajsmith.envgen.growth.additions import Addition, propose_additions
from trajsmith.envgen.growth.ancestor_tests import read_ancestors, render_ancestor_tests, write_ancestors
from trajsmith.environments.file_reading import read_text
from trajsmith.records import FrozenModel, InputError, RunError, canonical_json, format_first_error, hash_bytes

DEFAULT_STEPS = 3
"""Additions that are made if nothing else is asked for."""
_FILE = re.compile(r'with_name\("[^"]+\.py"\)')
_GENERATION = re.compile(r"_g(\d+)$")


class EnvironmentSize(FrozenModel):
    """Counts of an environment's entities, references, tools and rules."""

    entities: int
    references: int
    tools: int
    rules: int

    @classmethod
    def of(cls, blueprint: Blueprint) -> "EnvironmentSize":
        references = sum(bool(column.references) for entity in blueprint.entities for column in entity.columns)
        rule_count = len(list(render_rules(blueprint)))
        return cls(
            entities=len(blueprint.entities), references=references, tools=len(blueprint.operations), rules=rule_count
        )


class GrowthResult(FrozenModel):
    """Result of growing a parent; written as `grown.json` beside the child."""

    name: str
    parent: str
    parent_digest: str
    """Hash of the parent's code."""
    generation: int
    """1 for an environment that was made from a source, 2 for its child."""
    added: tuple[str, ...]
    refused: tuple[SkippedItem, ...]
    """Steps that were tried and undone, and why."""
    before: EnvironmentSize
    after: EnvironmentSize
    earlier_tests: str
    """What pytest said of the ancestors' tests on the child."""
    score: float | None
    directory: Path


class BlueprintParent:
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
            self.made = GenerationResult.model_validate_json((directory / "made.json").read_bytes())
            self.blueprint = Blueprint.model_validate_json((directory / "blueprint.json").read_bytes())
        except ValidationError as error:
            raise InputError(f"{directory}: {format_first_error(error)}") from error
        if not self.made.accepted:
            raise InputError(
                f"{directory}: {self.made.name} was rejected ({self.made.reasons[0]}): nothing is built on it"
            )
        self.name = self.blueprint.name
        self.code = read_text(directory / f"{self.name}.py")
        if _find_definitions(self.code) != _find_definitions(
            render_environment_code(rename_colliding_classes(self.blueprint))
        ):
            raise InputError(
                f"{directory / self.name}.py differs from what blueprint.json gives: growth works on the blueprint and "
                "would lose the changes; make the environment again with `trajsmith env gen`"
            )
        self.line = (*read_ancestors(directory), self.blueprint)
        self.tests = render_ancestor_tests(directory, self.line)
        self.generation = parse_generation(self.name)

    @property
    def child(self) -> str:
        """Return the usual name of its child."""
        return build_child_name(self.name)


def parse_generation(name: str) -> int:
    """Return 1 for an environment that was generated from a source, 2 for its child."""
    match = _GENERATION.search(name)
    return int(match.group(1)) if match else 1


def build_child_name(name: str) -> str:
    """Return the usual name of an environment's child."""
    return f"{_GENERATION.sub('', name)}_g{parse_generation(name) + 1}"


def grow_environment(
    directory: Path, out: Path, steps: int = DEFAULT_STEPS, name: str | None = None, seed: int = 0
) -> GrowthResult:
    """Grow an accepted environment into a richer one.

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
    parent = BlueprintParent(directory)
    child = name or parent.child
    if to_identifier(child, "environment") != child or child == parent.name:
        raise InputError(f"--name {child!r}: give a name in snake case that is not the parent's")
    work = out / "work" / f"{child}.growing"
    blueprint = parent.blueprint.model_copy(update={"name": child})
    stages, refused = choose_additions(parent, blueprint, steps, seed, work)
    while stages:
        whole = _add_notes(stages[-1][1], parent, [one.says for one, _ in stages])
        result = generate_environment(partial(_read_again, whole), out, None, seed)
        if result.accepted:
            return _settle_child(parent, result, stages, refused, work)
        refused.append(SkippedItem(what=stages[-1][0].name, reason=f"the whole is rejected: {result.reasons[0]}"))
        stages = stages[:-1]
    reasons = "; ".join(f"{one.what}: {one.reason}" for one in refused[:3])
    raise RunError(f"{parent.name} cannot grow: {reasons or 'nothing can be added to it'}")


Stages = list[tuple[Addition, Blueprint]]
"""Additions with the blueprint that each left."""


def choose_additions(
    parent: BlueprintParent, start: Blueprint, steps: int, seed: int, work: Path
) -> tuple[Stages, list[SkippedItem]]:
    """Return additions with which all tests pass, each on top of those before, and the undone ones with reasons.

    Args:
        parent: Whose tests have to pass.
        start: The parent's blueprint under the child's name.
        steps: Additions wanted; there may be fewer.
        seed: See `trajsmith.envgen.growth.additions.ideas`.
        work: Folder for trials and for the ledger of what was tested.
    """
    stages: Stages = []
    refused = list[SkippedItem]()
    for idea in propose_additions(start, seed):
        if len(stages) == steps:
            break
        before = stages[-1][1] if stages else start
        reason, after = _try_addition(idea, before, parent, work)
        if reason:
            refused.append(SkippedItem(what=idea.name, reason=reason))
        else:
            stages.append((idea, after))
    return stages, refused


def _try_addition(idea: Addition, before: Blueprint, parent: BlueprintParent, work: Path) -> tuple[str, Blueprint]:
    """Why an addition is refused, empty if it is not; and the blueprint with it."""
    added = idea.apply(before)
    if len(added.operations) == len(before.operations):
        return "there is nothing to add", before
    if len(added.entities) > MAX_ENTITIES or len(added.operations) > MAX_OPERATIONS:
        return f"more than {MAX_ENTITIES} tables or {MAX_OPERATIONS} tools", before
    after = rename_colliding_classes(refine_blueprint(added))
    lost = {one.name for one in before.operations} - {one.name for one in after.operations}
    if lost or after.cls != before.cls:
        return f"{', '.join(sorted(lost)) or before.cls} would be lost", before
    inputs = hash_bytes(canonical_json([render_environment_code(after), render_test_code(after, "x.py"), parent.tests]))
    test_output = StageJournal(work, inputs).run("tests", lambda: _run_earlier_tests(after, parent.tests, work))
    return ("" if is_passing(test_output) else f"tests: {test_output}"), after


def _run_earlier_tests(blueprint: Blueprint, tests: dict[str, str], work: Path) -> str:
    """Run earlier tests, and the blueprint's own, on its code; what pytest says of a failure, or at the end."""
    folder = work / "tried"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / f"{blueprint.name}.py"
    file.write_text(render_environment_code(blueprint), encoding="utf-8")
    (folder / f"test_{blueprint.name}.py").write_text(render_test_code(blueprint, file.name), encoding="utf-8")
    _write_tests(tests, file.name, folder)
    return run_tests(folder)


def _write_tests(tests: dict[str, str], file: str, folder: Path) -> None:
    """Write ancestors' tests so that they are about another file."""
    for name, text in tests.items():
        (folder / name).write_text(_FILE.sub(f'with_name("{file}")', text), encoding="utf-8")


def _read_again(blueprint: Blueprint) -> Blueprint:
    return blueprint


def _add_notes(blueprint: Blueprint, parent: BlueprintParent, notes: list[str]) -> Blueprint:
    note = f"grown from {parent.name} ({hash_bytes(parent.code.encode(), 12)}): {'; '.join(notes)}"
    return blueprint.model_copy(update={"notes": (*blueprint.notes, note)})


def _settle_child(
    parent: BlueprintParent, result: GenerationResult, stages: Stages, refused: list[SkippedItem], work: Path
) -> GrowthResult:
    """Put the ancestors' tests beside an accepted child, run them there, and record where it comes from."""
    _write_tests(parent.tests, f"{result.name}.py", result.directory)
    write_ancestors(result.directory, parent.line)
    test_output = run_tests(result.directory, *parent.tests)
    if not is_passing(test_output):
        raise RunError(f"{result.directory}: earlier tests fail on the finished environment: {test_output}")
    for left in result.directory.rglob("__pycache__"):
        shutil.rmtree(left)
    grown = GrowthResult(
        name=result.name,
        parent=parent.name,
        parent_digest=hash_bytes(parent.code.encode()),
        generation=parent.generation + 1,
        added=tuple(one.says for one, _ in stages),
        refused=tuple(refused),
        before=EnvironmentSize.of(parent.blueprint),
        after=EnvironmentSize.of(stages[-1][1]),
        earlier_tests=test_output,
        score=result.score,
        directory=result.directory,
    )
    (result.directory / "grown.json").write_bytes(grown.model_dump_json(indent=1).encode())
    shutil.rmtree(work, ignore_errors=True)
    return grown


def _find_definitions(code: str) -> list[str]:
    """Classes and functions of a file, however it is laid out."""
    try:
        parts = ast.parse(code).body
    except SyntaxError as error:
        raise InputError(f"the environment's code cannot be read: {error.msg}, line {error.lineno}") from error
    return [ast.dump(part) for part in parts if isinstance(part, ast.ClassDef | ast.FunctionDef)]
