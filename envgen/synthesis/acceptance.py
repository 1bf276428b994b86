"""Keeping what was accepted: the environment's folder, with its tests, its words and where all of it comes from."""

import ast
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import orjson
import yaml
from pydantic import ValidationError

from chatmodel import Phrasebook
from envgen.generate import Made
from envgen.synthesis.desk import Desk
from envgen.synthesis.examining import Bench, close
from envgen.synthesis.parts import Proposal, Words
from envgen.synthesis.records import Design, Draft, Examination, Semantic, Theme
from envgen.synthesis.searched import origins_of
from envgen.synthesis.store import Store, writing
from envgen.synthesis.testing import tools_shown
from trajectory import EnvironmentSpec, JsonObject, ModelFault, RunError, first_fault

FOLDER = "environments"
PROVENANCE = "provenance.json"
DESIGN = "design.json"
"""The record of the design, from which growth starts."""
_PATH = re.compile(r"[a-z][a-z0-9_]*\.\*\.[a-z][a-z0-9_]*")
_SLOT = re.compile(r"\{[a-z][a-z0-9_]*(\|(date|human|money))?\}")


async def accept(
    desk: Desk, bench: Bench, store: Store, design: Design, draft: Draft, exam: Examination,
    semantic: Semantic | None,
) -> None:  # fmt: skip
    """Write the environment's folder. A killed run writes it again, the same."""
    name = design.proposal.name
    source = bench.open(design, draft)
    try:
        spec, plays = await source.spec(), source.isolation
    finally:
        close(source)
    book, note = await _phrases(desk, design, spec)
    told = _told(store, design, draft, exam, semantic, spec, {"phrases": note, "runs in": plays})
    folder = store.folder / FOLDER / name
    made = Made(
        name=name, accepted=True, directory=folder, score=exam.doctor, tests=f"{exam.tests_passed} passed",
        entities=len(design.proposal.entities), tools=len(spec.tools), left_out=len(draft.dropped),
    )  # fmt: skip
    retract(store, design.theme)
    with writing(folder):
        _write(folder, design, draft, book, told, made)


def _write(folder: Path, design: Design, draft: Draft, book: str, told: JsonObject, made: Made) -> None:
    """The files, `made.json` last: a folder without it is one that was not finished."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / f"{made.name}.py").write_text(draft.code, encoding="utf-8")
    if book:
        (folder / "phrases.yaml").write_text(book, encoding="utf-8")
    (folder / DESIGN).write_bytes(design.model_dump_json(indent=1).encode())
    suite = [test.model_dump(mode="json", exclude_defaults=True) for test in draft.tests]
    (folder / "tests.json").write_bytes(orjson.dumps(suite, option=orjson.OPT_INDENT_2))
    (folder / PROVENANCE).write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    (folder / "made.json").write_bytes(made.model_dump_json(indent=1).encode())


class Standing(NamedTuple):
    """An accepted environment, with the theme that it came of."""

    theme: str
    source: str
    """The theme's name."""
    proposal: Proposal


def standing(store: Store) -> list[Standing]:
    """What is accepted in this run so far, whatever source it was started with."""
    designs = {design.id: design for design in store.all("designs", Design)}
    themes = {theme.id: theme for theme in store.all("themes", Theme)}
    found = []
    for made in sorted((store.folder / FOLDER).glob("*/made.json")):
        design = designs.get(_origin(made.parent / PROVENANCE))
        if design is not None:
            source = themes[design.theme].source.name if design.theme in themes else design.proposal.title
            found.append(Standing(design.theme, source, design.proposal))
    return found


def _origin(path: Path) -> str:
    """Id of the design that an accepted environment was made after."""
    try:
        return str(orjson.loads(path.read_bytes())["design"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise RunError(f"{path} was changed by hand: take its folder away, then start again") from error


def retract(store: Store, theme: str) -> None:
    """Take away what a theme was accepted as under other settings: only what it comes to now is kept as a result."""
    for one in standing(store):
        if one.theme == theme:
            with writing(store.folder / FOLDER):
                shutil.rmtree(store.folder / FOLDER / one.proposal.name)


def _told(
    store: Store,
    design: Design,
    draft: Draft,
    exam: Examination,
    semantic: Semantic | None,
    spec: EnvironmentSpec,
    notes: dict[str, str],
) -> JsonObject:
    """Where an accepted environment comes from."""
    themes = {theme.id: theme for theme in store.all("themes", Theme)}
    source = themes[design.theme].source if design.theme in themes else None
    answers = design.provenance | draft.provenance | ({} if semantic is None else semantic.provenance)
    return {
        "name": spec.name,
        "version": spec.version,
        "source": None if source is None else source.model_dump(mode="json", exclude={"requests", "passages"}),
        "searched": origins_of(store, design.theme),
        "theme": design.theme,
        "design": design.id,
        "draft": draft.id,
        "repairs": draft.number,
        "dropped": list(draft.dropped),
        "doctor": exam.doctor,
        "tests": exam.tests_passed,
        "rules_bound": exam.rules_bound,
        "semantic": None if semantic is None else semantic.score,
        "tasks": [task.model_dump(mode="json") for task in design.requirements.tasks],
        "rules": [rule.model_dump(mode="json") for rule in design.requirements.rules],
        "answers": {stage: where.model_dump(mode="json") for stage, where in answers.items()},
        **notes,
    }


async def _phrases(desk: Desk, design: Design, spec: EnvironmentSpec) -> tuple[str, str]:
    """A phrasebook and what is to be said of it; an environment without one is phrased from its schemas."""
    try:
        words, _ = await desk.answer(
            "phrase", design.theme, Words, lambda found: wrong_words(found, spec), tools=tools_shown(spec),
            proposal=design.proposal.model_dump(mode="json"),
        )  # fmt: skip
    except ModelFault as fault:
        if fault.kind != "bad_reply":
            raise
        return "", f"none: {fault.message}"
    return phrasebook(words, spec.name), "as the designer says"


def wrong_words(words: Words, spec: EnvironmentSpec) -> str:
    """What is wrong with words; empty if nothing is. They become templates, so slots are all that braces may hold."""
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
    for text in _texts(words):
        if set("{}%#") & set(_SLOT.sub("", text)):
            return f"braces may only hold a name, as in {{value}}: {text!r}."
    try:
        Phrasebook.model_validate(_book(words))
    except ValidationError as error:
        return first_fault(error)
    return ""


def _texts(words: Words) -> list[str]:
    found = [*words.roles]
    for entity in words.entities:
        found += [entity.noun, entity.plural, *entity.own, *(text for texts in entity.by.values() for text in texts)]
    return found + [text for tool in words.tools for text in tool.ask]


def _book(words: Words) -> JsonObject:
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


def phrasebook(words: Words, name: str) -> str:
    """The text of a `phrases.yaml`."""
    head = f"# How users of {name} speak. See chatmodel/phrasebook.py for what each key means.\n"
    return head + yaml.safe_dump(_book(words), sort_keys=False, allow_unicode=True, width=118)


def tool_count(draft: Draft | None) -> int:
    """Tools of a draft, counted in its text."""
    if draft is None:
        return 0
    decorated = [node for node in ast.walk(ast.parse(draft.code)) if isinstance(node, ast.FunctionDef)]
    return sum(any(_is_tool(decorator) for decorator in node.decorator_list) for node in decorated)


def _is_tool(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "tool"
