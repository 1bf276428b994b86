"""Check generated code statically, before it runs, for the model that will repair it.

The sandbox is the boundary; this says early and in words that code was meant to do something else than keep its state.
"""

import ast
import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Final

from trajsmith.environments.outside_state import find_outside_state
from trajsmith.environments.sandbox.serialization import split_words

_MODULES: Final = frozenset(
    split_words("""
    __future__ abc base64 bisect calendar cmath collections collections.abc contextlib copy csv dataclasses datetime
    decimal difflib enum fnmatch fractions functools hashlib heapq hmac html itertools json keyword math numbers
    operator pprint pydantic random re secrets shlex statistics string struct textwrap time trajsmith
    trajsmith.environments trajsmith.environments.native trajsmith.records types typing typing_extensions unicodedata
    urllib.parse uuid warnings zlib zoneinfo
""")
)
"""Modules that an environment has a use for; none of them reaches outside."""
_LIBRARY: Final = "trajsmith.environments.library."
_BUILTINS: Final = frozenset(
    {"__builtins__", "__import__", "breakpoint", "compile", "eval", "exec", "exit", "globals", "input", "open", "quit"}
)
_DUNDERS: Final = frozenset({"__doc__", "__init__", "__name__", "__post_init__", "__qualname__"})
"""Such names that may be read; classes may define any."""
_CLOCKS: Final = {
    "time": frozenset({"time", "time_ns", "localtime", "gmtime", "strftime", "ctime", "monotonic", "perf_counter"}),
    "datetime": frozenset({"now", "utcnow", "today"}),
    "uuid": frozenset({"uuid1", "uuid4"}),
}
"""Functions by module that read a clock or draw at random."""
_CHANCES: Final = frozenset({"random", "secrets"})
"""Modules all of whose functions draw at random; a seeded `random.Random` is none."""


def find_closed_access(code: str) -> list[str]:
    """Return places where code accesses what the sandbox blocks: files, processes, network, interpreter."""
    return [f"line {line}: {problem}" for line, problem in _find_reaches(_parse(code))]


def find_nondeterminism(code: str) -> list[str]:
    """Return places where code uses its own clock or randomness, so that replay is not exact."""
    tree = _parse(code)
    modules = _find_imports(tree)
    places = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            module, _, name = _resolve(node.func, modules).partition(".")
            last = name.rpartition(".")[2]
            seeded = last == "Random" and bool(node.args)
            if (module in _CHANCES and name and not seeded) or last in _CLOCKS.get(module, ()):
                places.append(f"line {node.lineno}: uses {module}.{name}, which is another one in each run")
    return places


def find_process_only(code: str) -> list[str]:
    """Return places that keep something outside of the state: sessions go back by repeating calls, which is slower."""
    return [str(place) for place in find_outside_state(code)]


def _parse(code: str) -> ast.Module:
    """Parse code; what cannot be parsed has no findings, since loading it says what is wrong."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _find_imports(tree: ast.Module) -> dict[str, str]:
    """Return what imported names stand for, as dotted names."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _resolve(node: ast.expr, names: dict[str, str]) -> str:
    """Return the dotted name of an expression, with imported names written out; "" if it has none."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        base = _resolve(node.value, names)
        return base and f"{base}.{node.attr}"
    return ""


def _find_reaches(tree: ast.Module) -> Iterator[tuple[int, str]]:
    modules = _find_imports(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, f"imports {alias.name}") for alias in node.names if not _is_open(alias.name))
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            outside = node.level or not _is_open(node.module)
            yield from ((node.lineno, f"imports {name}") for name in names if outside or _is_hidden_module(name))
        elif isinstance(node, ast.Name) and node.id in _BUILTINS:
            yield node.lineno, f"uses {node.id}"
        elif isinstance(node, ast.Attribute) and (
            _is_closed_dunder(node.attr) or _is_hidden_module(_resolve(node, modules))
        ):
            yield node.lineno, f"uses {node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            yield from ((node.lineno, f"uses {text}") for text in texts if _is_closed_dunder(text))


def _is_closed_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _DUNDERS


def _is_open(module: str | None) -> bool:
    return module is not None and (module in _MODULES or f"{module}.".startswith(_LIBRARY))


def _is_hidden_module(name: str) -> bool:
    """Return whether a member of a module is another module, which that one only imports for itself."""
    module, _, member = name.rpartition(".")
    if module not in _MODULES or name in _MODULES:
        return False
    return isinstance(vars(importlib.import_module(module)).get(member), ModuleType)
