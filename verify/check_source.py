"""Faults of written checks, and those that show in the text of a check before it runs."""

import ast
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

from trajsmith.records import CodeCheck

ALLOWED_MODULES = frozenset({"collections", "datetime", "decimal", "itertools", "json", "math", "re", "string"})
"""Modules that a check may import."""
FORBIDDEN_NAMES = frozenset({
    "__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "hash", "id", "input",
    "locals", "object", "open", "setattr", "super", "type", "vars",
})  # fmt: skip
"""Builtins with which a check could look at anything but its arguments, or judge differently each time."""
LONGEST_SOURCE = 20_000
"""Characters of a check, at most."""


@dataclass(frozen=True)
class CheckFault:
    """Reason why a written check is of no use."""

    reason: str
    """From a small vocabulary, for counting."""
    hint: str
    """What showed it, for whoever writes the check again: no value of the gold run and no text that holds one."""
    detail: str = ""
    """What showed it, with its values, for the audit; empty if the hint says all."""

    @property
    def evidence(self) -> str:
        """Return all that is known of what showed it."""
        return self.detail or self.hint


def find_forbidden_code(check: CodeCheck) -> CheckFault | None:
    """Return why the text of a check is refused before it runs; None if it only computes with its arguments."""
    if len(check.source) > LONGEST_SOURCE:
        return CheckFault("no_function", f"it has more than {LONGEST_SOURCE} characters")
    try:
        tree = ast.parse(check.source)
    except (SyntaxError, ValueError) as error:
        return CheckFault("no_function", f"it is no Python: {error}")
    except (RecursionError, MemoryError):  # "1+1+1+..." by the thousand
        return CheckFault("no_function", "its expressions are nested too deeply to be read")
    if not any(isinstance(node, ast.FunctionDef) and node.name == check.function for node in tree.body):
        return CheckFault("no_function", f"it defines no function {check.function}(initial_state, final_state, answer)")
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
        names = [name for name in modules if name.split(".")[0] not in ALLOWED_MODULES]
        parts = [node.attr] if isinstance(node, ast.Attribute) else []
        parts += [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        names += [name for name in parts if name.startswith("_") or name in _list_inner_modules()]
        names += [node.id] if isinstance(node, ast.Name) and _is_forbidden(node.id) else []
        if names:
            return CheckFault("reaches_outside", f"it uses {names[0]}: a check may only compute with its arguments")
    return None


@cache
def _list_inner_modules() -> frozenset[str]:
    """List the names by which allowed modules hold other ones, as in `re.functools`."""
    modules = [import_module(name) for name in ALLOWED_MODULES]
    inner = [
        (name, value) for module in modules for name, value in vars(module).items() if isinstance(value, ModuleType)
    ]
    return frozenset(name for name, value in inner if value.__name__.split(".")[0] not in ALLOWED_MODULES)


def _is_forbidden(name: str) -> bool:
    return name in FORBIDDEN_NAMES or name.startswith("__")
