"""Mutants of environments: found in the source of their modules, loaded from memory."""

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from envgen.mutate.kinds import KINDS, Site


@dataclass(frozen=True)
class Mutant:
    """One module with one fault in it."""

    kind: str
    module: str
    line: int
    what: str
    """The fault in words."""
    text: str
    """Source of the mutated module."""

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.module.removeprefix('environments.library.')}:{self.line}: {self.what}"


def mutants(
    module: str, path: Path, kinds: Sequence[str] = tuple(KINDS), wanted: Callable[[Site], bool] | None = None
) -> Iterator[Mutant]:
    """All mutants of a module, or those of the places that are wanted, kind by kind, in the order of the source."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    for kind in kinds:
        for site in KINDS[kind](tree):
            if wanted is not None and not wanted(site):
                continue
            undo = _remembered(tree)
            site.edit()
            text = ast.unparse(ast.fix_missing_locations(tree))
            undo()
            yield Mutant(kind, module, site.line, site.what, text)


def _remembered(tree: ast.AST) -> Callable[[], None]:
    """A function that makes a tree what it is now, node by node and list by list, whatever was edited."""
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
    """Serves source texts in place of the files of modules."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.texts:
            return None
        sys.meta_path.remove(self)
        try:
            found = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if found is None or found.origin is None:
            return None
        return importlib.util.spec_from_file_location(
            fullname, found.origin, loader=self, submodule_search_locations=found.submodule_search_locations
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.texts[module.__name__], module.__file__ or "", "exec"), module.__dict__)


def overridden(texts: Mapping[str, str]) -> None:
    """From now on, import these modules from these texts. For processes that are made for it."""
    sys.meta_path.insert(0, _Override(texts))


@contextmanager
def loaded(package: str, texts: Mapping[str, str]) -> Iterator[ModuleType]:
    """A package imported with some of its modules from texts; afterwards the modules are as they were."""
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
        _name_in_parent(package, before.get(package))


def _name_in_parent(package: str, module: ModuleType | None) -> None:
    """Let the package around a package know it by this module; not at all, if it is to be imported anew."""
    parent, _, last = package.rpartition(".")
    names = vars(sys.modules[parent]) if parent in sys.modules else {}
    names.pop(last, None)
    if module is not None:
        names[last] = module
