"""Write accepted environments: the folder with its tests, phrasebook and provenance."""

import ast
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import orjson
import yaml
from pydantic import ValidationError

from trajsmith.envgen.generate import GenerationResult
from trajsmith.envgen.synthesis.answer_schemas import EnvironmentPhrasing, Proposal, TaskRequirement
from trajsmith.envgen.synthesis.examination import DraftRunner, close_source
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import Design, EnvironmentDraft, Examination, SemanticAssessment, Theme
from trajsmith.envgen.synthesis.search_records import collect_origins
from trajsmith.envgen.synthesis.task_stories import (
    RequirementStory,
    build_requirement_stories,
    find_stories_fault,
    format_scenarios,
)
from trajsmith.envgen.synthesis.unit_tests import describe_tools
from trajsmith.grounding import check_phrasebook
from trajsmith.phrasing import Phrasebook
from trajsmith.records import (
    EnvironmentSpec,
    InputError,
    JsonObject,
    ModelFault,
    RunError,
    StepJournal,
    format_first_error,
    storage_boundary,
)

ENVIRONMENTS_FOLDER = "environments"
PROVENANCE_FILE = "provenance.json"
DESIGN_FILE = "design.json"
"""The record of the design, from which growth starts."""
_PATH = re.compile(r"[a-z][a-z0-9_]{0,80}\.\*\.[a-z][a-z0-9_]*")
_SLOT = re.compile(r"\{[a-z][a-z0-9_]*(\|(date|human|money))?\}")


async def write_accepted(
    generator: PromptedGenerator,
    bench: DraftRunner,
    store: StepJournal,
    design: Design,
    draft: EnvironmentDraft,
    examination: Examination,
    semantic: SemanticAssessment | None,
) -> None:
    """Write the environment's folder. A killed run writes it again, the same."""
    name = design.proposal.name
    source = bench.open(design, draft)
    try:
        spec, plays = await source.spec(), source.isolation
    finally:
        close_source(source)
    words, note = await _ask_words(generator, design, spec)
    stories = build_requirement_stories(design, words.stories if words is not None else (), spec)
    provenance = _build_provenance(
        store, design, draft, examination, semantic, spec, stories, {"phrases": note, "runs in": plays}
    )
    folder = store.folder / ENVIRONMENTS_FOLDER / name
    result = GenerationResult(
        name=name, accepted=True, directory=folder, score=examination.check_score,
        tests=f"{examination.tests_passed} passed",
        entities=len(design.proposal.entities), tools=len(spec.tools), left_out=len(draft.dropped),
    )  # fmt: skip
    retract_accepted(store, design.theme)
    texts = {
        "phrases.yaml": "" if words is None else format_phrasebook(words, spec.name),
        "scenarios.yaml": format_scenarios(stories, spec.name),
    }
    with storage_boundary(folder):
        _write_files(folder, design, draft, texts, provenance, result)


def _write_files(
    folder: Path,
    design: Design,
    draft: EnvironmentDraft,
    texts: dict[str, str],
    provenance: JsonObject,
    result: GenerationResult,
) -> None:
    """The files, `made.json` last: a folder without it is one that was not finished."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / f"{result.name}.py").write_text(draft.code, encoding="utf-8")
    for file, text in texts.items():
        if text:
            (folder / file).write_text(text, encoding="utf-8")
    (folder / DESIGN_FILE).write_bytes(design.model_dump_json(indent=1).encode())
    suite = [test.model_dump(mode="json", exclude_defaults=True) for test in draft.tests]
    (folder / "tests.json").write_bytes(orjson.dumps(suite, option=orjson.OPT_INDENT_2))
    (folder / PROVENANCE_FILE).write_bytes(orjson.dumps(provenance, option=orjson.OPT_INDENT_2))
    (folder / "made.json").write_bytes(result.model_dump_json(indent=1).encode())


class AcceptedEnvironment(NamedTuple):
    """Accepted environment with its theme."""

    theme: str
    source: str
    """The theme's name."""
    proposal: Proposal


def read_accepted(store: StepJournal) -> list[AcceptedEnvironment]:
    """Return the environments accepted in this run so far, from any source."""
    designs = {design.id: design for design in store.all("designs", Design)}
    themes = {theme.id: theme for theme in store.all("themes", Theme)}
    accepted = []
    for result_file in sorted((store.folder / ENVIRONMENTS_FOLDER).glob("*/made.json")):
        design = designs.get(_read_design_id(result_file.parent / PROVENANCE_FILE))
        if design is not None:
            source = themes[design.theme].source.name if design.theme in themes else design.proposal.title
            accepted.append(AcceptedEnvironment(design.theme, source, design.proposal))
    return accepted


def _read_design_id(path: Path) -> str:
    """Return the id of the design that an accepted environment implements."""
    try:
        return str(orjson.loads(path.read_bytes())["design"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise RunError(f"{path} was changed by hand: take its folder away, then start again") from error


def retract_accepted(store: StepJournal, theme: str) -> None:
    """Remove what a theme was accepted as under other settings: only its present result stays."""
    for one in read_accepted(store):
        if one.theme == theme:
            with storage_boundary(store.folder / ENVIRONMENTS_FOLDER):
                shutil.rmtree(store.folder / ENVIRONMENTS_FOLDER / one.proposal.name)


def _build_provenance(
    store: StepJournal,
    design: Design,
    draft: EnvironmentDraft,
    examination: Examination,
    semantic: SemanticAssessment | None,
    spec: EnvironmentSpec,
    stories: list[RequirementStory],
    notes: dict[str, str],
) -> JsonObject:
    """Return the provenance of an accepted environment."""
    themes = {theme.id: theme for theme in store.all("themes", Theme)}
    source = themes[design.theme].source if design.theme in themes else None
    answers = design.provenance | draft.provenance | ({} if semantic is None else semantic.provenance)
    return {
        "name": spec.name,
        "version": spec.version,
        "source": None if source is None else source.model_dump(mode="json", exclude={"requests", "passages"}),
        "searched": collect_origins(store, design.theme),
        "theme": design.theme,
        "design": design.id,
        "draft": draft.id,
        "repairs": draft.number,
        "dropped": list(draft.dropped),
        "check_score": examination.check_score,
        "tests": examination.tests_passed,
        "rules_bound": examination.rules_bound,
        "semantic": None if semantic is None else semantic.score,
        "tasks": [
            {**story.task.model_dump(mode="json"), "scenario": story.scenario.id}
            if story.scenario is not None
            else {**story.task.model_dump(mode="json"), "no_scenario": story.reason}
            for story in stories
        ],
        "rules": [rule.model_dump(mode="json") for rule in design.requirements.rules],
        "answers": {stage: where.model_dump(mode="json") for stage, where in answers.items()},
        **notes,
    }


async def _ask_words(
    generator: PromptedGenerator, design: Design, spec: EnvironmentSpec
) -> tuple[EnvironmentPhrasing | None, str]:
    """Return words and what is to be said of them; an environment without any is phrased from its schemas."""
    try:
        words, _ = await generator.answer(
            "phrase",
            design.theme,
            EnvironmentPhrasing,
            lambda answer: find_words_fault(answer, spec, design.requirements.tasks),
            tools=describe_tools(spec),
            proposal=design.proposal.model_dump(mode="json"),
            tasks=[task.model_dump(mode="json") for task in design.requirements.tasks],
        )
    except ModelFault as fault:
        if fault.kind != "bad_reply":
            raise
        return None, f"none: {fault.message}"
    return words, "as the designer says"


def find_words_fault(words: EnvironmentPhrasing, spec: EnvironmentSpec, tasks: Sequence[TaskRequirement] = ()) -> str:
    """Return the fault of an answer; empty if there is none. Texts become templates, so braces hold slots only."""
    fault = find_stories_fault(words.stories, tasks)
    if fault:
        return fault
    parameters = {name for tool in spec.tools for name in tool.parameters}
    tools = {tool.name: set(tool.parameters) for tool in spec.tools}
    for entity in words.entities:
        if entity.key not in parameters:
            return f"{entity.key} is no parameter of a tool."
    for tool in words.tools:
        if tool.tool not in tools:
            return f"{tool.tool} is no tool."
    wrong = [path for path in words.names if not _PATH.fullmatch(path)]
    if wrong:
        return f"{wrong[0]!r} is no path such as members.*.name."
    for text in _find_texts(words):
        if set("{}%#") & set(_SLOT.sub("", text)):
            return f"braces may only hold a name, as in {{value}}: {text!r}."
    try:
        check_phrasebook(Phrasebook.model_validate(_build_phrasebook(words)), spec)
    except ValidationError as error:
        return format_first_error(error)
    except InputError as error:
        return str(error)
    return ""


def _find_texts(words: EnvironmentPhrasing) -> list[str]:
    phrases = [*words.roles]
    for entity in words.entities:
        phrases += [entity.noun, entity.plural, *entity.own, *(text for texts in entity.by.values() for text in texts)]
    return phrases + [text for tool in words.tools for text in tool.ask]


def _build_phrasebook(words: EnvironmentPhrasing) -> JsonObject:
    entities = {
        one.key: {
            "noun": one.noun,
            "plural": one.plural,
            "own": list(one.own),
            "by": {k: list(v) for k, v in one.by.items()},
        }
        for one in words.entities
    }
    return {
        "roles": list(words.roles),
        "name_from": list(words.names),
        "entities": entities,
        "tools": {one.tool: {"ask": list(one.ask)} for one in words.tools},
    }


def format_phrasebook(words: EnvironmentPhrasing, name: str) -> str:
    """Return the text of a `phrases.yaml`."""
    head = f"# How users of {name} speak. See phrasing/phrasebook.py for what each key means.\n"
    return head + yaml.safe_dump(_build_phrasebook(words), sort_keys=False, allow_unicode=True, width=118)


def count_tools(draft: EnvironmentDraft | None) -> int:
    """Count the tools of a draft in its source."""
    if draft is None:
        return 0
    decorated = [node for node in ast.walk(ast.parse(draft.code)) if isinstance(node, ast.FunctionDef)]
    return sum(any(_is_tool_decorator(decorator) for decorator in node.decorator_list) for node in decorated)


def _is_tool_decorator(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "tool"
