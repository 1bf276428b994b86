"""The tool modules of an environment, their values in each episode, and the episode that is current."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType, ModuleType
from typing import Any

from trajsmith.environments.adapters.agentworld.facade import build_builtins
from trajsmith.environments.adapters.agentworld.memory import Files
from trajsmith.environments.adapters.agentworld.module_rerun import REFUSE, RerunnableModule
from trajsmith.environments.module_state import ModuleState, module_name
from trajsmith.records import InputError, JsonObject

_NEVER = (NotImplementedError, AssertionError)
"""What a `raise` statement may name without refusing anything."""
Spaces = dict[str, Any]
"""What a play has in each module: its values, or its whole namespace."""


class ToolModules:
    """Tool modules over the files of the episode that is being called.

    A module whose top level reads files runs anew for every play, over that play's files; if none of them does, plays
    have copies of what the modules' variables held after the import.
    """

    def __init__(self, environment: str, sources: list[JsonObject], root: str) -> None:
        """Compile the modules; nothing of them runs.

        Args:
            environment: Name of the environment.
            sources: Name, file name and text of each.
            root: The directory of all files, as the modules know it.

        Raises:
            InputError: One does not parse.
        """
        self._files: Files | None = None
        self._reads = False
        self._raised: list[BaseException] = []
        self._waiting: list[str] = []
        self._modules: dict[str, ModuleType] = {}
        self._reruns: dict[str, RerunnableModule] = {}
        self._states: dict[str, ModuleState] = {}
        builtins = {**build_builtins(self._current, self._sibling), REFUSE: self._refuse}
        for source in sources:
            name = f"agentworld_{module_name(environment)}_{source['name']}"
            module = self._modules[source["name"]] = sys.modules[name] = ModuleType(name)
            always = {"__builtins__": builtins, "__file__": f"{root}/{source['file']}"}
            self._reruns[source["name"]] = RerunnableModule(source["source"], source["file"], module, always)
        self._sources = {source["name"]: str(source["source"]) for source in sources}

    def load(self, files: Files) -> dict[str, tuple[str, FunctionType]]:
        """Run all modules for the first time; their public functions by name, each with its module.

        Raises:
            InputError: Two modules define the same one.
        """
        with self._run(files):
            functions = self._functions()
        if self._reads:
            self._clear()
        else:
            self._states = {name: ModuleState(module, self._sources[name]) for name, module in self._modules.items()}
        return functions

    @property
    def notes(self) -> list[str]:
        """Values that episodes share although they should not."""
        return [note for state in self._states.values() for note in state.notes]

    def copy_initial_values(self, files: Files) -> Spaces:
        """Return the initial module values of a new episode."""
        if self._states:
            return {name: state.copy_initial_values() for name, state in self._states.items()}
        try:
            with self._run(files):
                return {name: dict(vars(module)) for name, module in self._modules.items()}
        finally:
            self._clear()

    @contextmanager
    def activate(self, files: Files, spaces: Spaces) -> Iterator[Callable[[str, str], Callable[..., Any]]]:
        """Make an episode the current one; yields a lookup of functions by module and name."""
        self._raised.clear()
        self._files = files
        try:
            with ExitStack() as stack:
                for name, space in spaces.items():
                    state = self._states.get(name)
                    stack.enter_context(state.swap_in(space) if state else self._entered(name, spaces))
                yield lambda module, name: vars(self._modules[module])[name]
        finally:
            self._files = None

    def is_refusal(self, error: BaseException | None) -> bool:
        """Return whether a `raise` statement of the tools raised this exception in the last call."""
        return any(error is raised for raised in self._raised)

    @contextmanager
    def _entered(self, name: str, spaces: Spaces) -> Iterator[None]:
        self._reruns[name].enter(spaces[name])
        try:
            yield
        finally:
            spaces[name] = self._reruns[name].leave()

    @contextmanager
    def _run(self, files: Files) -> Iterator[None]:
        self._files, self._waiting = files, list(self._modules)
        try:
            while self._waiting:
                self._run_module(self._waiting[0])
            yield
        finally:
            self._files = None

    def _run_module(self, name: str) -> None:
        self._waiting.remove(name)
        self._reruns[name].run()

    def _clear(self) -> None:
        for rerun in self._reruns.values():
            rerun.enter(None)

    def _functions(self) -> dict[str, tuple[str, FunctionType]]:
        functions: dict[str, tuple[str, FunctionType]] = {}
        for module, loaded in self._modules.items():
            public = vars(loaded).get("__all__")
            for name, value in vars(loaded).items():
                offered = name in public if isinstance(public, list | tuple) else not name.startswith("_")
                if not offered or not isinstance(value, FunctionType) or value.__module__ != loaded.__name__:
                    continue
                if name in functions:
                    raise InputError(f"{functions[name][0]}.py and {module}.py both define a tool {name}")
                functions[name] = module, value
        return functions

    def _sibling(self, name: str) -> ModuleType | None:
        if name in self._waiting:
            self._run_module(name)
        return self._modules.get(name)

    def _current(self) -> Files:
        if self._files is None:
            raise FileNotFoundError("there are no files outside of a call")
        self._reads = True
        return self._files

    def _refuse(self, error: object) -> object:
        """Every `raise` statement passes its exception through here."""
        exception = error() if isinstance(error, type) else error
        if isinstance(exception, Exception) and not isinstance(exception, _NEVER) and exception.__traceback__ is None:
            self._raised.append(exception)
        return exception
