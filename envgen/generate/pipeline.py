"""Generate an environment from a source, stage by stage; a restarted run skips the stages that are done."""

import asyncio
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from trajsmith.envcheck import CheckPlan, EnvironmentReport, check_environment
from trajsmith.envgen.generate.blueprint import Blueprint
from trajsmith.envgen.generate.code import rename_colliding_classes, render_environment_code
from trajsmith.envgen.generate.code_tests import render_test_code
from trajsmith.envgen.generate.formatting import fix_and_format_code, is_passing, run_tests
from trajsmith.envgen.generate.phrasebooks import render_phrasebook
from trajsmith.envgen.generate.refinement import refine_blueprint
from trajsmith.environments import check_user_tools
from trajsmith.environments.sources import EnvironmentSettings, open_source
from trajsmith.records import FrozenModel, InputError, RunError, StepJournal, canonical_json, hash_bytes

ACCEPTANCE_SCORE = 0.9
"""Score of the environment checker from which an environment is accepted."""
CHECK_SECONDS = 60.0
"""Wall-clock limit of the examination of one environment."""
STAGES = ("blueprint", "code", "tests", "checker")


class StageRecord(FrozenModel):
    """Entry of the stage journal: one finished stage."""

    stage: str
    inputs: str
    """Hash of what it worked on; another one makes it run again."""
    seconds: float
    outcome: str


class GenerationResult(FrozenModel):
    """Result of generating an environment from one source."""

    name: str
    accepted: bool
    directory: Path
    """Where its files are: below `rejected` if it is not accepted."""
    score: float | None
    tests: str
    """What pytest said: its last line, or the first failure."""
    entities: int
    tools: int
    left_out: int
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0


def generate_environment(
    read: Callable[[], Blueprint],
    out: Path,
    name: str | None = None,
    seed: int = 0,
    check_seconds: float = CHECK_SECONDS,
    user_tools: Sequence[str] | None = None,
) -> GenerationResult:
    """Generate an environment and accept or reject it.

    Args:
        read: Reads the source.
        out: Accepted environments get a folder in it; rejected ones one in `rejected` in it.
        name: The environment's name, in place of the source's.
        check_seconds: Wall-clock limit of the examination.
        user_tools: Tools that only the user calls; None leaves it to the source.

    Raises:
        InputError: The source has nothing usable, or a tool of the user does not exist.
        RunError: The environment checker had no time; what is done stays done.
    """
    started = time.perf_counter()
    blueprint = _set_user_tools(refine_blueprint(read()), user_tools)
    if name is not None:
        blueprint = _rename_blueprint(blueprint, name)
    blueprint = rename_colliding_classes(blueprint)
    work = out / "work" / blueprint.name
    refuse_foreign_directory(out / blueprint.name)
    texts = [
        render_environment_code(blueprint),
        render_test_code(blueprint, f"{blueprint.name}.py"),
        render_phrasebook(blueprint),
    ]
    ledger = StageJournal(work, hash_bytes(canonical_json([blueprint.model_dump(mode="json"), texts, seed])))
    ledger.run("blueprint", lambda: _write_blueprint(work, blueprint))
    ledger.run("code", lambda: _write_code(work, blueprint))
    tests = ledger.run("tests", lambda: run_tests(work, f"test_{blueprint.name}.py", log=work / "tests.txt"))
    ledger.run("checker", lambda: examine_code(work, blueprint.name, CheckPlan(seed=seed, seconds=check_seconds)))
    report = EnvironmentReport.model_validate_json((work / "check.json").read_bytes())
    return _settle_result(out, work, blueprint, report, tests, time.perf_counter() - started)


def _set_user_tools(blueprint: Blueprint, user_tools: Sequence[str] | None) -> Blueprint:
    """Return the blueprint with these tools as the user's, in place of those that its source names."""
    operations = blueprint.operations
    if user_tools is not None:
        operations = tuple(
            operation.model_copy(update={"actor": "user" if operation.name in user_tools else "assistant"})
            for operation in operations
        )
    actors = {operation.name: operation.actor for operation in operations}
    check_user_tools(blueprint.name, user_tools, actors)
    return blueprint.model_copy(update={"operations": operations})


def refuse_foreign_directory(directory: Path) -> None:
    """Refuse to replace a directory that no run of this made."""
    if directory.exists() and not (directory / "made.json").is_file():
        raise InputError(f"{directory} exists and is no generated environment: choose another --out or --name")


class StageJournal:
    """Journal of finished stages; a stage with the same inputs does not run twice."""

    def __init__(self, work: Path, inputs: str) -> None:
        self._steps = StepJournal(work)
        self._inputs = inputs

    def run(self, stage: str, work: Callable[[], str]) -> str:
        """Run a stage unless it is done; return its outcome in a few words."""
        key = f"{stage}:{self._inputs}"
        done = self._steps.get("stages", StageRecord, key)
        if done is None:
            started = time.perf_counter()
            outcome = work()
            seconds = round(time.perf_counter() - started, 3)
            done = StageRecord(stage=stage, inputs=self._inputs, seconds=seconds, outcome=outcome)
            self._steps.put("stages", key, done)
        return done.outcome


def _rename_blueprint(blueprint: Blueprint, name: str) -> Blueprint:
    from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier

    environment_name = to_identifier(name, "environment")
    if environment_name != name:
        raise InputError(f"--name {name!r}: give a name in snake case, for example {environment_name}")
    return blueprint.model_copy(update={"name": name, "cls": to_class_name(name)})


def _write_blueprint(work: Path, blueprint: Blueprint) -> str:
    (work / "blueprint.json").write_bytes(blueprint.model_dump_json(indent=1).encode())
    return f"{len(blueprint.entities)} entities, {len(blueprint.operations)} tools, {len(blueprint.left_out)} left out"


def _write_code(work: Path, blueprint: Blueprint) -> str:
    file, tests = work / f"{blueprint.name}.py", work / f"test_{blueprint.name}.py"
    code = fix_and_format_code(render_environment_code(blueprint))
    file.write_text(code, encoding="utf-8")
    tests.write_text(fix_and_format_code(render_test_code(blueprint, file.name)), encoding="utf-8")
    (work / "phrases.yaml").write_text(render_phrasebook(blueprint), encoding="utf-8")
    return f"{len(code.splitlines())} lines"


def examine_code(work: Path, name: str, plan: CheckPlan) -> str:
    """Examine the environment of a working folder, write the report to `check.json`, and return the score.

    Raises:
        RunError: There was no time for the first check.
    """
    source = open_source(EnvironmentSettings(python=str(work / f"{name}.py")))
    try:
        report = asyncio.run(check_environment(source, plan))
    finally:
        source.close()  # type: ignore[attr-defined]
    if report.score is None:
        raise RunError(
            f"{name}: the environment checker had no time for its first check, so nothing is decided: "
            "repeat the command when the machine is less busy"
        )
    (work / "check.json").write_bytes(report.model_dump_json(indent=1).encode())
    return f"{report.score:.2f}"


def _settle_result(
    out: Path, work: Path, blueprint: Blueprint, report: EnvironmentReport, tests: str, seconds: float
) -> GenerationResult:
    reasons = find_rejection_reasons(report, tests)
    accepted_directory, rejected = out / blueprint.name, out / "rejected" / blueprint.name
    directory = rejected if reasons else accepted_directory
    for old in (accepted_directory, rejected):
        if old.exists():
            shutil.rmtree(old)
    directory.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(work, directory, ignore=shutil.ignore_patterns("__pycache__", "no_settings.ini"))
    result = GenerationResult(
        name=blueprint.name, accepted=not reasons, directory=directory, score=report.score, tests=tests,
        entities=len(blueprint.entities), tools=len(blueprint.operations), left_out=len(blueprint.left_out),
        reasons=reasons, seconds=round(seconds, 1),
    )  # fmt: skip
    (directory / "made.json").write_bytes(result.model_dump_json(indent=1).encode())
    return result


def find_rejection_reasons(report: EnvironmentReport, tests: str) -> tuple[str, ...]:
    """Return why an environment is not accepted; empty if it is."""
    reasons = []
    score = report.score or 0.0
    if score < ACCEPTANCE_SCORE:
        worst = [f"{f.check}: {f.tool or 'environment'}: {f.message}" for f in report.findings if f.severity != "note"]
        reasons += [f"the environment checker gives {score:.2f}, less than {ACCEPTANCE_SCORE}", *worst[:10]]
    if not is_passing(tests):
        reasons.append(f"its own tests: {tests}")
    return tuple(reasons)
