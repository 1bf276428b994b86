"""Plain values in the module of a generated server: each episode gets its own.

Published servers keep everything in the database. Where one has a dictionary, a list or a counter of its own beside
it, a play has copies, which stand in the module only while that play is being called. What libraries own - the
application, engines, models - stays where it is.
"""

import copy
import dis
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

from trajsmith.environments.module_state import MissingValue

PlainModuleValues = list[Any]
"""What one play has in each place."""

_LIBRARIES = ("fastapi", "starlette", "sqlalchemy", "pydantic", "typing", "logging", "threading", "asyncio", "anyio")


class ServerModuleValues:
    """Plain values in a server's module that its code may change, with a copy for each episode.

    Attributes:
        notes: Places whose value cannot be copied, so that plays share it.
    """

    def __init__(self, module: ModuleType, source: str) -> None:
        self.notes: list[str] = []
        self._space = vars(module)
        rebound = set(_rebound(compile(source, "module", "exec", dont_inherit=True)))
        changing = {name for name, value in self._space.items() if not name.startswith("__") and _changes(value)}
        self._names = [name for name in sorted(changing | rebound) if self._copies(name)]
        self._first = [self._space.get(name, MissingValue) for name in self._names]

    def copy_initial_values(self) -> PlainModuleValues:
        """Copies of all values as the module's start left them."""
        return copy.deepcopy(self._first) if self._names else []

    @contextmanager
    def swap_in(self, values: PlainModuleValues) -> Iterator[None]:
        """Put an episode's values into the module, and take them out again afterwards."""
        self._put(values)
        try:
            yield
        finally:
            values[:] = [self._space.get(name, MissingValue) for name in self._names]
            self._put(self._first)

    def _put(self, values: PlainModuleValues) -> None:
        for name, value in zip(self._names, values, strict=True):
            if value is MissingValue:
                self._space.pop(name, None)
            else:
                self._space[name] = value

    def _copies(self, name: str) -> bool:
        try:
            copy.deepcopy(self._space.get(name, MissingValue))
        except Exception as error:  # noqa: BLE001 - copying runs foreign code
            self.notes.append(f"plays share {name}, it cannot be copied: {type(error).__name__}: {error}")
            return False
        return True


def _changes(value: Any) -> bool:
    """True for containers and for objects of the server's own classes."""
    if isinstance(value, type | FunctionType | ModuleType) or type(value).__module__.split(".")[0] in _LIBRARIES:
        return False
    if isinstance(value, dict | list | set | bytearray):
        return bool(not value or not _is_library(next(iter(value))))
    return type(value).__module__ not in ("builtins", "_typing", "types", "re", "decimal", "datetime", "os")


def _is_library(value: Any) -> bool:
    return type(value).__module__.split(".")[0] in _LIBRARIES


def _rebound(code: CodeType) -> Iterator[str]:
    """Names that some function rebinds in the module."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _rebound(constant)
