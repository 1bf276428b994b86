"""The tool modules of an environment, what each play has in them, and which play is current."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType, ModuleType
from typing import Any

from environments.agentworld.facade import foreign_builtins
from environments.agentworld.memory import Files
from environments.agentworld.rerun import REFUSE, Rerun
from environments.module_state import ModuleState, module_name
from trajectory import InputError, JsonObject

_NEVER = (NotImplementedError, AssertionError)
"""What a `raise` statement may name without refusing anything."""
Spaces = dict[str, Any]
"""What a play has in each module: its values, or its whole namespace."""


class World:
    """Tool modules over the files of the play that is being called.

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
        self._reruns: dict[str, Rerun] = {}
        self._states: dict[str, ModuleState] = {}
        builtins = {**foreign_builtins(self._current, self._sibling), REFUSE: self._refuse}
        for source in sources:
            name = f"agentworld_{module_name(environment)}_{source['name']}"
            module = self._modules[source["name"]] = sys.modules[name] = ModuleType(name)
            always = {"__builtins__": builtins, "__file__": f"{root}/{source['file']}"}
            self._reruns[source["name"]] = Rerun(source["source"], source["file"], module, always)
        self._sources = {source["name"]: str(source["source"]) for source in sources}

    def load(self, files: Files) -> dict[str, tuple[str, FunctionType]]:
        """Run all modules for the first time; their public functions by name, each with its module.

        Raises:
            InputError: Two modules define the same one.
        """
        with self._run(files):
            found = self._functions()
        if self._reads:
            self._clear()
        else:
            self._states = {name: ModuleState(module, self._sources[name]) for name, module in self._modules.items()}
        return found

    @property
    def notes(self) -> list[str]:
        """What plays share although they should not."""
        return [note for state in self._states.values() for note in state.notes]

    def fresh(self, files: Files) -> Spaces:
        """What a new play has in the modules."""
        if self._states:
            return {name: state.fresh() for name, state in self._states.items()}
        try:
            with self._run(files):
                return {name: dict(vars(module)) for name, module in self._modules.items()}
        finally:
            self._clear()

    @contextmanager
    def playing(self, files: Files, spaces: Spaces) -> Iterator[Callable[[str, str], Callable[..., Any]]]:
        """Make a play the current one; gives what looks a function up by module and name."""
        self._raised.clear()
        self._files = files
        try:
            with ExitStack() as stack:
                for name, space in spaces.items():
                    state = self._states.get(name)
                    stack.enter_context(state.swapped(space) if state else self._entered(name, spaces))
                yield lambda module, name: vars(self._modules[module])[name]
        finally:
            self._files = None

    def refused(self, error: BaseException | None) -> bool:
        """True if a `raise` statement of the tools made this exception in the last call."""
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
        found: dict[str, tuple[str, FunctionType]] = {}
        for module, made in self._modules.items():
            public = vars(made).get("__all__")
            for name, value in vars(made).items():
                offered = name in public if isinstance(public, list | tuple) else not name.startswith("_")
                if not offered or not isinstance(value, FunctionType) or value.__module__ != made.__name__:
                    continue
                if name in found:
                    raise InputError(f"{found[name][0]}.py and {module}.py both define a tool {name}")
                found[name] = module, value
        return found

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
        made = error() if isinstance(error, type) else error
        if isinstance(made, Exception) and not isinstance(made, _NEVER) and made.__traceback__ is None:
            self._raised.append(made)
        return made
