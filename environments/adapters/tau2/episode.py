"""One episode of a domain: databases, toolkits and values of the modules of its own."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from trajsmith.environments.adapters.tau2.state import TOOLKITS, Live
from trajsmith.environments.adapters.tau2.toolkits import get_toolkits
from trajsmith.environments.foreign import format_error
from trajsmith.environments.json_data import NotJsonError
from trajsmith.environments.jsontypes import StateError
from trajsmith.environments.module_state import ModuleValues
from trajsmith.environments.programs import StateChange
from trajsmith.environments.session import InitialAction, ToolResult
from trajsmith.records import Actor, EnvironmentFault, JsonObject, canonical_json

if TYPE_CHECKING:
    from trajsmith.environments.adapters.tau2.program import Tau2Program


class Tau2Episode:
    """Episode of a domain; see `trajsmith.environments.programs.EnvironmentEpisode`."""

    def __init__(
        self, program: "Tau2Program", live: list[Live], attributes: JsonObject, values: list[ModuleValues]
    ) -> None:
        self._program = program
        self._live = live
        self._values = values
        self._environment = copy.copy(program.template)
        self._toolkits = {actor: copy.copy(kit) for actor, kit in get_toolkits(program.template).items()}
        self._environment.tools = self._toolkits.get("assistant")
        self._environment.user_tools = self._toolkits.get("user")
        program.load_attributes(self._toolkits, attributes)
        self._attributes = canonical_json(program.dump_attributes(self._toolkits))
        self._reported = canonical_json(attributes)
        self._connect()

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Call a tool. Any exception of it is a refusal, as this form has it; the state is as it was then."""
        program = self._program
        refused = program.refusal(tool, arguments, actor)
        if refused is not None:
            return refused
        writing = program.syncs or program.spec.tool(tool).declares_write
        for live in self._live:
            live.begin(writing)
        try:
            copied = orjson.loads(orjson.dumps(arguments))  # what a tool keeps of them must be its own
            content = program.run(self._environment, tool, copied, actor, self._values)
            self._finish(tool)
        except EnvironmentFault:
            self._revert()
            raise
        except Exception as error:  # noqa: BLE001 - any exception is a refusal here; a broken tool too, as published
            self._revert()
            return ToolResult.refusal("refused", format_error(error))
        except BaseException:  # a limit of the worker that runs this play
            self._revert()
            raise
        return program.toolbox.result(tool, content)

    def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        """Run a task's initial actions. They name any public method of a toolkit, a tool or not, as published."""
        program = self._program
        for live in self._live:
            live.begin(True)
        try:
            program.prepare(self._environment, actions, self._values)
            self._finish(None)
        except EnvironmentFault:
            self._revert()
            raise
        except Exception as error:  # noqa: BLE001 - as in `call`
            self._revert()
            return format_error(error)
        except BaseException:  # as in `call`
            self._revert()
            raise
        return None

    def changes(self) -> list[StateChange]:
        changes: list[StateChange] = []
        try:
            for database, live in zip(self._program.layout.databases, self._live, strict=True):
                changes += [(database.prefix + name, key, text) for name, key, text in live.changes()]
        except StateError as error:
            raise EnvironmentFault("state", self._program.name, str(error)) from error
        if self._reported != self._attributes:
            self._reported = self._attributes
            changes.append((TOOLKITS, None, self._attributes))
        return changes

    def _connect(self) -> None:
        """Give every toolkit its database."""
        for actor, home in self._program.homes.items():
            self._toolkits[actor].db = self._live[home].state

    def _finish(self, tool: str | None) -> None:
        """See what databases and toolkits have become.

        Raises:
            EnvironmentFault: One of them is no state any more.
        """
        ended: set[int] = set()
        try:
            for actor, home in self._program.homes.items():
                if home not in ended:
                    self._live[home].finish(self._toolkits[actor].db)
                    ended.add(home)
            self._attributes = canonical_json(self._program.dump_attributes(self._toolkits))
        except (StateError, NotJsonError) as error:
            raise EnvironmentFault("state", self._program.name, str(error), tool) from error
        self._connect()

    def _revert(self) -> None:
        """Undo a call. Databases that had ended it already are taken back by nobody: only a fault comes so late."""
        for live in self._live:
            live.revert()
        self._program.load_attributes(self._toolkits, orjson.loads(self._attributes))
        self._connect()
