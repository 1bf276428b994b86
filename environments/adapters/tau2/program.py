"""A domain of τ²-bench as a program: its toolkits, over databases that belong to one episode.

What the published code does is kept: whatever exception a tool raises is what the agent sees, and after every call the
environment brings the user's world in line with the agent's. A refused call leaves the state as it was, though.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import orjson

from trajsmith.environments.adapters.tau2.module_stubs import DataFiles
from trajsmith.environments.adapters.tau2.package import run_modules
from trajsmith.environments.adapters.tau2.state import TOOLKITS, DomainLayout, Live
from trajsmith.environments.adapters.tau2.toolkits import ToolkitAttributes, get_databases, get_toolkits, method
from trajsmith.environments.foreign import format_error
from trajsmith.environments.json_data import NotJsonError
from trajsmith.environments.jsontypes import StateError
from trajsmith.environments.module_state import ModuleState, ModuleValues
from trajsmith.environments.programs import StateChange
from trajsmith.environments.session import InitialAction, ToolResult
from trajsmith.environments.signatures import FunctionSignature, read_signature
from trajsmith.environments.toolbox import Toolbox, resolve_result
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    InputError,
    JsonObject,
    JsonValue,
    ToolAnnotations,
    ToolSpec,
    canonical_json,
    content_hash,
)


class Tau2Program:
    """A loaded domain.

    Attributes:
        spec: What can be called.
        notes: What is odd about it.
        template: The environment that plays are made after.
        syncs: True if the environment may change the state after any call.
        homes: Which database the toolkit of an actor works on.
    """

    def __init__(self, payload: JsonObject) -> None:
        self.name: str = payload["name"]
        self.file: str = payload["file"]
        self._options: JsonObject = payload["options"]
        modules = run_modules(payload["modules"], DataFiles(payload["domain"], payload["data"]))
        self._get_environment = vars(modules[f"tau2.domains.{payload['domain']}.environment"])["get_environment"]
        self._initial_state = vars(modules["tau2.data_model.tasks"])["InitialState"]
        own = [entry for entry in payload["modules"] if entry[0].startswith("tau2.domains.")]
        states = [ModuleState(modules[name], source) for name, _, source in own]
        self._modules = [module for module in states if module.copy_initial_values()]
        self.template = self._environment()
        self.syncs = _overrides(self.template, vars(modules["tau2.environment.environment"])["Environment"])
        self._extras = {actor: ToolkitAttributes(kit) for actor, kit in get_toolkits(self.template).items()}
        self.notes = [note for module in states for note in module.notes]
        self.notes += [note for extras in self._extras.values() for note in extras.notes]
        self.layout = DomainLayout(get_databases(self.template), self.file)
        self.homes = _homes(self.template)
        self._signatures: dict[str, FunctionSignature] = {}
        self.spec = self._describe(payload, self._read_tools())
        self.toolbox = Toolbox(self.spec)
        self._initial: list[JsonObject] = [self._state(wanted) for wanted in payload["initial"]]
        self._tasks: list[JsonObject] = payload["tasks"]

    def states(self, seed: int) -> list[JsonObject]:
        """The domain's own state, then those that tasks start from; the seed has no say."""
        return copy.deepcopy(self._initial)

    def tasks(self) -> list[JsonObject]:
        """The tasks as {"id", "state", "calls"}: an initial state, gold calls as {"tool", "arguments", "actor"}.

        Tasks share their states: read them, never change them.
        """
        return [{**task, "state": self._initial[task["state"]]} for task in self._tasks]

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> "Tau2Episode":
        try:
            live, attributes = self.layout.begin(state, changes)
            return Tau2Episode(self, live, attributes, self._fresh())
        except (StateError, ValueError) as error:
            raise EnvironmentFault("state", self.name, format_error(error)) from error

    def refusal(self, tool: str, arguments: JsonObject, actor: Actor) -> ToolResult | None:
        """Why a toolkit does not get to see this call, or None."""
        refused = self.toolbox.refusal(tool, arguments, actor)
        if refused is None:
            try:
                self._signatures[tool].parse_arguments(arguments)
            except ValueError as error:
                return ToolResult.refusal("invalid_arguments", format_error(error))
        return refused

    def run(
        self, environment: Any, tool: str, arguments: JsonObject, actor: Actor, values: list[ModuleValues]
    ) -> JsonValue:
        """Call a tool, and let the environment bring both worlds in line; gives the content of the result.

        Raises:
            EnvironmentFault: What the tool gives is no JSON.
            Exception: Whatever foreign code raises.
        """
        with self._swapped(values):
            content = self.toolbox.content(
                tool, resolve_result(getattr(get_toolkits(environment)[actor], tool)(**arguments))
            )
            environment.sync_tools()
        whole = isinstance(content, dict) or (isinstance(content, str) and self._signatures[tool].text)
        return content if whole else {"result": content}

    def prepare(self, environment: Any, actions: Sequence[InitialAction], values: list[ModuleValues]) -> None:
        """Run the initial actions of a task, and bring both worlds in line after the last, as published.

        Raises:
            ValueError: There is no such method.
            Exception: Whatever foreign code raises.
        """
        with self._swapped(values):
            for action in actions:
                resolve_result(method(environment, action["actor"], action["tool"])(**action["arguments"]))
            environment.sync_tools()

    def dump_attributes(self, toolkits: dict[Actor, Any]) -> JsonObject:
        """Return the attributes that toolkits have beside their databases, as JSON.

        Raises:
            NotJson: They keep something that is none.
        """
        attributes: JsonObject = {}
        for actor, kit in toolkits.items():
            if self._extras[actor]:
                attributes[actor] = self._extras[actor].dump(kit)
        return attributes

    def load_attributes(self, toolkits: dict[Actor, Any], attributes: JsonObject) -> None:
        """Set the attributes of toolkits from their JSON."""
        for actor, kit in toolkits.items():
            self._extras[actor].load(kit, attributes.get(actor, {}))

    def _environment(self) -> Any:
        try:
            return self._get_environment(**self._options)
        except Exception as error:  # foreign code: whatever it raises, the domain cannot be had
            raise InputError(f"{self.file}/environment.py:1: {type(error).__name__}: {format_error(error)}") from error

    def environment(self, wanted: JsonObject | None) -> Any:
        """A published environment, brought where a task starts."""
        environment = self._environment()
        initial = self._initial_state.model_validate(wanted or {})
        self._fill(environment, initial.initialization_data)
        environment.set_state(
            initialization_data=None,
            initialization_actions=initial.initialization_actions,
            message_history=initial.message_history or [],
        )
        return environment

    def _state(self, wanted: JsonObject | None) -> JsonObject:
        """Return the state that an initial state of a task leads to."""
        try:
            with self._swapped(self._fresh()):
                environment = self.environment(wanted)
                return self.layout.state(get_databases(environment), self.dump_attributes(get_toolkits(environment)))
        except Exception as error:  # foreign code, and data of the tasks
            text = canonical_json(wanted).decode()[:100]
            raise InputError(f"{self.file}: an initial state cannot be had: {format_error(error)}: {text}") from error

    def _fill(self, environment: Any, data: Any) -> None:
        """Put a task's data into the databases. The published code does so too, but lets the user's toolkit work on
        the agent's database from then on, also where it has one of its own."""
        if data is None:
            return
        toolkits = get_toolkits(environment)
        updates: dict[Actor, Any] = {"assistant": data.agent_data, "user": data.user_data}
        for actor, changes in updates.items():
            if changes is not None:
                toolkits[actor].update_db(changes)
                for other, kit in toolkits.items():
                    if self.homes.get(other) == self.homes.get(actor):
                        kit.db = toolkits[actor].db

    def _fresh(self) -> list[ModuleValues]:
        return [module.copy_initial_values() for module in self._modules]

    @contextmanager
    def _swapped(self, values: list[ModuleValues]) -> Iterator[None]:
        """Let the modules have an episode's own values for a while."""
        with ExitStack() as stack:
            for module, own in zip(self._modules, values, strict=True):
                stack.enter_context(module.swap_in(own))
            yield

    def _read_tools(self) -> list[ToolSpec]:
        tools = []
        for actor, kit in get_toolkits(self.template).items():
            for name in kit.get_tools():
                if name in self._signatures:
                    raise InputError(f"{self.file}: agent and user both have a tool named {name}")
                self._signatures[name] = read_signature(getattr(kit, name), f"{self.file}: tool {name}")
                tools.append(self._tool(name, actor, self._signatures[name], kit.tool_mutates_state(name)))
        if not tools:
            raise InputError(f"{self.file}: the domain has no tools")
        return tools

    def _tool(self, name: str, actor: Actor, signature: FunctionSignature, writes: bool) -> ToolSpec:
        return ToolSpec(
            server=self.name,
            name=name,
            description=signature.description,
            input_schema={**signature.input_schema, "additionalProperties": False},
            output_schema=signature.output_schema,
            annotations=ToolAnnotations(read_only_hint=not writes),
            actor=actor,
        )

    def _describe(self, payload: JsonObject, tools: list[ToolSpec]) -> EnvironmentSpec:
        policy = self.template.get_policy()
        shapes = [tool.model_dump(mode="json") for tool in tools]
        return EnvironmentSpec(
            name=self.name,
            version=content_hash([payload["modules"], payload["options"], policy, shapes], 16),
            description=f"Domain {payload['domain']} of τ²-bench.",
            domain=f"tau2/{payload['domain']}",
            policy=policy,
            tools=tuple(tools),
            source=f"tau2:{payload['domain']}",
        )


class Tau2Episode:
    """Episode of a domain; see `trajsmith.environments.programs.EnvironmentEpisode`."""

    def __init__(
        self, program: Tau2Program, live: list[Live], attributes: JsonObject, values: list[ModuleValues]
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


def _overrides(environment: Any, base: Any) -> bool:
    return type(environment).sync_tools is not base.sync_tools


def _homes(environment: Any) -> dict[Actor, int]:
    unique = get_databases(environment)
    return {
        actor: next(number for number, one in enumerate(unique) if one is kit.db)
        for actor, kit in get_toolkits(environment).items()
        if kit.db is not None
    }


def load(payload: JsonObject) -> Tau2Program:
    """Load a domain; see `trajsmith.environments.adapters.tau2.settings.payload` for what it comes with.

    Raises:
        InputError: Its code does not run, or an initial state cannot be had; the text names the file.
    """
    return Tau2Program(payload)
