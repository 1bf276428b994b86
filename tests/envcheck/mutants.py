"""Seeded faults that the environment checker must find: mutants of environments, loaded from memory.

A mutant is a copy of one module's source with one fault. Nothing is written to files: the import system serves the
mutated text in place of the module's own, in this process and, run as a script, in another one.
"""

import ast
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from mutation_kinds import KINDS, MutationSite

from trajsmith.envcheck.subprocess_source import ReopenableNativeSource, serve
from trajsmith.environments.native import Environment


@dataclass(frozen=True)
class ModuleMutant:
    """Module source with one fault in it."""

    kind: str
    module: str
    line: int
    description: str
    """The fault in words."""
    text: str
    """Source of the mutated module."""

    @property
    def name(self) -> str:
        return (
            f"{self.kind}:{self.module.removeprefix('trajsmith.environments.library.')}:{self.line}: {self.description}"
        )


def build_mutants(
    module: str, path: Path, kinds: Sequence[str] = tuple(KINDS), wanted: Callable[[MutationSite], bool] | None = None
) -> Iterator[ModuleMutant]:
    """Return all mutants of a module, or those of selected places, kind by kind, in the order of the source."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    for kind in kinds:
        for site in KINDS[kind](tree):
            if wanted is not None and not wanted(site):
                continue
            undo = _snapshot_tree(tree)
            site.edit()
            text = ast.unparse(ast.fix_missing_locations(tree))
            undo()
            yield ModuleMutant(kind, module, site.line, site.description, text)


def _snapshot_tree(tree: ast.AST) -> Callable[[], None]:
    """Return a function that restores a tree to its present state after any edits."""
    nodes = [(node, node.__class__, dict(node.__dict__)) for node in ast.walk(tree)]
    lists = [(held, list(held)) for _, _, names in nodes for held in names.values() if isinstance(held, list)]

    def undo() -> None:
        for node, cls, names in nodes:
            node.__class__ = cls
            node.__dict__.clear()
            node.__dict__.update(names)
        for held, items in lists:
            held[:] = items

    return undo


class _Override(MetaPathFinder, Loader):
    """Import finder that serves source texts in place of the files of modules."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.texts:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.origin is None:
            return None
        return importlib.util.spec_from_file_location(
            fullname, spec.origin, loader=self, submodule_search_locations=spec.submodule_search_locations
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.texts[module.__name__], module.__file__ or "", "exec"), module.__dict__)


def override_modules(texts: Mapping[str, str]) -> None:
    """Import these modules from these texts from now on. For processes that are started for it."""
    sys.meta_path.insert(0, _Override(texts))


class MutantSource(ReopenableNativeSource):
    """A native environment whose mutated modules are loaded from their texts in the other process too."""

    def __init__(self, cls: type[Environment[Any]], sizes: dict[str, int], texts: Mapping[str, str]) -> None:
        super().__init__(cls, sizes)
        self._texts = texts

    def build_command(self) -> list[str]:
        return [sys.executable, __file__, json.dumps(self._texts)]


@contextmanager
def load_overridden(package: str, texts: Mapping[str, str]) -> Iterator[ModuleType]:
    """Import a package with some of its modules from texts; afterwards the modules are as they were."""
    before = {name: module for name, module in sys.modules.items() if name == package or name.startswith(f"{package}.")}
    for name in before:
        del sys.modules[name]
    hook = _Override(texts)
    sys.meta_path.insert(0, hook)
    try:
        yield importlib.import_module(package)
    finally:
        sys.meta_path.remove(hook)
        for name in [n for n in sys.modules if n == package or n.startswith(f"{package}.")]:
            del sys.modules[name]
        sys.modules.update(before)
        _bind_in_parent(package, before.get(package))


def _bind_in_parent(package: str, module: ModuleType | None) -> None:
    """Let the package around a package know it by this module; not at all, if it is to be imported anew."""
    parent, _, last = package.rpartition(".")
    names = vars(sys.modules[parent]) if parent in sys.modules else {}
    names.pop(last, None)
    if module is not None:
        names[last] = module


if __name__ == "__main__":
    override_modules(json.loads(sys.argv[1]))
    serve()
