"""Values that live in a foreign module, outside any object of ours: each episode gets its own.

Published environments keep a singleton (`api = Api()`), session variables behind `global`, or tables on a class. A
play has copies of all of them; they stand in the module only while that play is being called. What hides elsewhere -
in a mutable default of a helper function, a closure, a cache by decorator - is still shared by the plays of a process.
"""

import copy
import dis
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from types import CodeType, MethodType, ModuleType
from typing import Any, get_origin

from pydantic import BaseModel


class MissingValue:
    """Stands for a name that has no value yet."""


ModuleValues = list[Any]
"""What one play has in each place."""


def module_name(environment: str) -> str:
    """The environment's name as part of a module's."""
    return re.sub(r"\W", "_", environment)


class ModuleState:
    """The places of a module that hold values which code may change.

    Attributes:
        notes: Places whose value cannot be copied, so that plays share it.
    """

    def __init__(
        self,
        module: ModuleType,
        source: str,
        can_change: Callable[[object], bool] | None = None,
        with_classes: bool = True,
    ) -> None:
        """Take the module as its import left it.

        Args:
            module: The module.
            source: Its source, to see what `global` statements rebind.
            can_change: Which values of variables are copied; all that `is_changeable`, if left out.
            with_classes: Whether what the module's classes hold is copied too.
        """
        self.notes: list[str] = []
        self._globals: list[tuple[dict[str, Any], str]] = []
        self._attributes: list[tuple[type, str]] = []
        first: ModuleValues = []
        for name in _changing_names(module, source, can_change or is_changeable):
            if self._copies(vars(module).get(name, MissingValue), name):
                self._globals.append((vars(module), name))
                first.append(vars(module).get(name, MissingValue))
        for owner in _classes(module) if with_classes else []:
            for name, value in list(vars(owner).items()):
                if _is_data(owner, name, value) and self._copies(value, f"{owner.__name__}.{name}"):
                    self._attributes.append((owner, name))
                    first.append(value)
        self._first = first

    def copy_initial_values(self) -> ModuleValues:
        """Copies of all values as they were after the import; what they shared, the copies share."""
        return copy.deepcopy(self._first)

    def bind_function(self, function: Callable[..., Any], values: ModuleValues) -> Callable[..., Any]:
        """A function for an episode: a method of one of the module's objects becomes that of the episode's own.

        Raises:
            KeyError: It is a method of an object that is no variable of the module.
        """
        if not isinstance(function, MethodType) or isinstance(function.__self__, type):
            return function
        for own, first in zip(values, self._first, strict=True):
            if first is function.__self__:
                return MethodType(function.__func__, own)
        raise KeyError(function.__name__)

    @contextmanager
    def swap_in(self, values: ModuleValues) -> Iterator[None]:
        """Put an episode's values into the module, and take them out again afterwards."""
        self._put(values)
        try:
            yield
        finally:
            values[:] = self._read_values()
            self._put(self._first)

    def _copies(self, value: object, place: str) -> bool:
        try:
            copy.deepcopy(value)
        except Exception as error:  # noqa: BLE001 - copying runs foreign code
            self.notes.append(f"plays share {place}, it cannot be copied: {type(error).__name__}: {error}")
            return False
        return True

    def _put(self, values: ModuleValues) -> None:
        count = len(self._globals)
        for (space, name), value in zip(self._globals, values, strict=False):
            if value is MissingValue:
                space.pop(name, None)
            else:
                space[name] = value
        for (owner, name), value in zip(self._attributes, values[count:], strict=True):
            if owner.__dict__.get(name, MissingValue) is value:
                continue
            if value is not MissingValue:
                setattr(owner, name, value)
            elif name in owner.__dict__:
                delattr(owner, name)

    def _read_values(self) -> ModuleValues:
        taken = [space.get(name, MissingValue) for space, name in self._globals]
        return taken + [owner.__dict__.get(name, MissingValue) for owner, name in self._attributes]


def is_changeable(value: object) -> bool:
    """Return whether a value may change: it is no module, class, function, type hint or constant."""
    return not isinstance(value, ModuleType | type) and not _is_constant(value)


def _changing_names(module: ModuleType, source: str, can_change: Callable[[object], bool]) -> list[str]:
    """Global names with a value that can change, and those that some function rebinds."""
    changing = [name for name, value in vars(module).items() if not name.startswith("__") and can_change(value)]
    rebound = set(_rebound(compile(source, "module", "exec", dont_inherit=True)))
    return changing + sorted(rebound - set(changing))


def _is_constant(value: object) -> bool:
    """True for type hints, and what `copy.deepcopy` gives back as it is: numbers, text, functions, classes."""
    if get_origin(value) is not None:
        return True
    try:
        return copy.deepcopy(value) is value
    except Exception:  # noqa: BLE001 - copying runs foreign code; told later, with the place
        return False


def _rebound(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _rebound(constant)


def _classes(module: ModuleType) -> list[type]:
    """The module's own classes; enumerations keep no state of their own."""
    classes = {value for value in vars(module).values() if isinstance(value, type)}
    own = [value for value in classes if value.__module__ == module.__name__ and not issubclass(value, Enum)]
    return sorted(own, key=lambda value: value.__qualname__)


def _is_data(owner: type, name: str, value: object) -> bool:
    if issubclass(owner, BaseModel):
        return name in owner.__class_vars__
    described = any("__get__" in vars(base) for base in type(value).__mro__)
    return not name.startswith(("__", "_abc_")) and not described and not isinstance(value, type)
