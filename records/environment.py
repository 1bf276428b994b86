"""Specification of an environment; its state is stored separately, by hash."""

from typing import ClassVar, Self

from pydantic import model_validator

from trajsmith.records.bounds import LONGEST_TOOL_NAME, PLAIN_NAME, is_plain_name, shorten_name
from trajsmith.records.canonical import JsonObject
from trajsmith.records.record import FrozenModel, Record
from trajsmith.records.tool import ToolSpec


class PolicyRule(FrozenModel):
    """A rule of an environment's policy that the calls of a trajectory show to be kept or broken."""

    says: str
    """The rule in one sentence, as the policy has it."""
    tools: tuple[str, ...]
    """Tools that it is about; only calls that succeeded count."""
    after: tuple[str, ...] = ()
    """One of these tools must have succeeded before any of `tools` does."""
    same: tuple[str, ...] = ()
    """Arguments that are the same in all calls of `tools`."""


class EnvironmentSpec(Record):
    """Everything that the other stages need to know of an environment without opening it."""

    PREFIX: ClassVar[str] = "env"

    name: str
    version: str
    """Hash of code and schemas; a changed environment is another environment."""
    description: str
    domain: str = ""
    """Domain path, for example "commerce/retail"."""
    policy: str = ""
    """Rules that the agent must obey, markdown."""
    rules: tuple[PolicyRule, ...] = ()
    """Those of them that can be checked by looking at the calls."""
    tools: tuple[ToolSpec, ...]
    state_schema: JsonObject = {}
    """JSON Schema of the state, or of what can be observed of it."""
    source: str
    """Where it comes from: "library", "python" or "mcp", and what exactly."""
    can_restore: bool = True
    """False if a session cannot go back to a snapshot (live servers): replay then starts a fresh one."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        """Refuse names that cannot be shown, stored or told apart: they come from other people's code."""
        if not is_plain_name(self.name):
            raise ValueError(f"the name {shorten_name(self.name)} is no name of an environment: {PLAIN_NAME}")
        names = [tool.name for tool in self.tools]
        for name in names:
            if not (name.strip() and name.isprintable() and len(name) <= LONGEST_TOOL_NAME):
                raise ValueError(
                    f"the name {shorten_name(name)} of a tool is not 1 to {LONGEST_TOOL_NAME} printable characters"
                )
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"there are two tools named {twice}")
        return self

    def tool(self, name: str) -> ToolSpec:
        """Look a tool up by name.

        Raises:
            KeyError: No such tool.
        """
        for tool in self.tools:
            if tool.name == name:
                return tool
        raise KeyError(name)
