"""Rules for names and sizes that no linter knows; CONTRIBUTING.md says why.

An exception stands in a table here with its reason, so that the next one needs a reason too.
"""

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOT_READ = {"tests", "docs", "src", "build", "dist"}

SAYS_NOTHING = {"found", "made", "told", "said", "kept", "given", "what", "thing", "things", "nobody", "somebody"}
"""Names that do not say what they hold, and no names of functions."""
DIALECT = {
    "board": "registry", "desk": "manager", "doctor": "environment checker", "exam": "check session or examination",
    "lab": "runner", "talker": "model", "twist": "perturbation", "twisted": "perturbed", "vain": "unused",
    "wire": "serialization",
}  # fmt: skip
"""Words of names that only this project would understand, and what to write."""
OPENING = re.compile(r"^(What|How|Whether|Where|Who|Which|True if|Says)\b")
MOST_LINES, MOST_FUNCTION_LINES = 450, 100

NAMES_ALLOWED = {
    ("envgen/generate/blueprint.py", "what"): "field of blueprint.json",
    ("envgen/synthesis/records.py", "what"): "field of the records of a generation",
    ("records/checks.py", "made"): "field of tasks.jsonl",
    ("records/grounded.py", "said"): "field of tasks.jsonl",
    ("records/task.py", "told"): "field of tasks.jsonl",
    ("records/task.py", "twist"): "field of tasks.jsonl",
    ("models/settings.py", "wire_names"): "key of configurations",
    ("environments/library/travel/state.py", "on_board"): "a train has passengers on board",
}
_ONE_CLASS = "the tools of an environment are methods of one class"
SIZES_ALLOWED = {
    "environments/library/file_store/__init__.py": _ONE_CLASS,
    "environments/library/file_store/seeds.py": "texts of files, as data",
    "environments/library/helpdesk/__init__.py": _ONE_CLASS,
    "environments/library/smart_home/__init__.py": _ONE_CLASS,
    "environments/library/travel/__init__.py": _ONE_CLASS,
}


@dataclass(frozen=True)
class SourceFile:
    """A parsed file of the code, by its path from the root."""

    path: str
    text: str
    tree: ast.Module


@cache
def read_sources() -> tuple[SourceFile, ...]:
    sources = []
    for folder, folders, files in os.walk(ROOT):
        here = Path(folder)
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and not (here == ROOT and name in NOT_READ) and not (here / name).is_symlink()
        ]
        for name in sorted(files):
            if name.endswith(".py"):
                path = here / name
                text = path.read_text(encoding="utf-8")
                sources.append(SourceFile(path.relative_to(ROOT).as_posix(), text, ast.parse(text)))
    assert len(sources) > 300
    return tuple(sources)


def iterate_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield names that a file gives: classes, functions, parameters, variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def split_into_words(name: str) -> list[str]:
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


def test_names_say_what_they_hold() -> None:
    bad = [
        f"{source.path}:{line} {name}"
        for source in read_sources()
        for name, line in iterate_names(source.tree)
        if name.strip("_") in SAYS_NOTHING and (source.path, name) not in NAMES_ALLOWED
    ]
    assert not bad, "give names that say what they hold:\n" + "\n".join(bad)


def test_names_use_the_words_of_the_field() -> None:
    bad = [
        f"{source.path}:{line} {name}: write {DIALECT[word]}"
        for source in read_sources()
        for name, line in (*iterate_names(source.tree), (Path(source.path).stem, 1))
        for word in split_into_words(name)
        if word in DIALECT and (source.path, name) not in NAMES_ALLOWED
    ]
    assert not bad, "use words that others know:\n" + "\n".join(bad)


def test_docstrings_open_with_a_verb_or_a_noun_phrase() -> None:
    bad = [
        f"{source.path}:{node.lineno} {node.name}"
        for source in read_sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and OPENING.match(ast.get_docstring(node) or "")
    ]
    assert not bad, 'begin with "Return", "Replay" ...:\n' + "\n".join(bad)


def test_a_public_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for source in read_sources():
        if "/library/" in source.path or source.path.startswith("examples/"):
            continue  # every environment has a Customer, every example its Garden
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{source.path}:{node.lineno}")
    bad = [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]
    assert not bad, "two classes of one name:\n" + "\n".join(bad)


def test_files_and_functions_are_small() -> None:
    bad = []
    for source in read_sources():
        lines = source.text.count("\n")
        if lines > MOST_LINES and source.path not in SIZES_ALLOWED:
            bad.append(f"{source.path}: {lines} lines, {MOST_LINES} is the most")
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MOST_FUNCTION_LINES and f"{source.path}:{node.name}" not in SIZES_ALLOWED:
                    bad.append(f"{source.path}:{node.name}: {length} lines, {MOST_FUNCTION_LINES} is the most")
    assert not bad, "split:\n" + "\n".join(bad)


@pytest.mark.parametrize(
    ("name", "words"),
    [("TwistKind", ["twist", "kind"]), ("_open_board", ["open", "board"]), ("dashboard", ["dashboard"])],
)
def test_words_of_names(name: str, words: list[str]) -> None:
    assert split_into_words(name) == words


def test_exceptions_are_still_needed() -> None:
    used = {(source.path, name) for source in read_sources() for name, _ in iterate_names(source.tree)}
    assert NAMES_ALLOWED.keys() <= used
    lengths = {source.path: source.text.count("\n") for source in read_sources()}
    assert [path for path in SIZES_ALLOWED if lengths.get(path, 0) <= MOST_LINES] == []
