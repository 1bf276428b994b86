"""Tools as models see them: an MCP tool plus server and actor."""

from typing import Any, Literal

from pydantic import AliasChoices, ConfigDict, Field

from trajsmith.records.canonical import JsonObject, JsonValue
from trajsmith.records.errors import InputError
from trajsmith.records.record import FrozenModel

Actor = Literal["assistant", "user"]


class ToolAnnotations(FrozenModel):
    """Hints as MCP defines them. They are declarations: execution tests them, nothing trusts them."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, serialize_by_alias=True)

    title: str | None = None
    read_only_hint: bool | None = Field(None, alias="readOnlyHint")
    """True if the tool declares that it does not change state."""
    destructive_hint: bool | None = Field(None, alias="destructiveHint")
    """True if the tool declares that it removes or overwrites."""
    idempotent_hint: bool | None = Field(None, alias="idempotentHint")
    open_world_hint: bool | None = Field(None, alias="openWorldHint")


class ConfirmationRule(FrozenModel):
    """When the agent must get the user's yes before a call. Where no condition holds, it must not ask for one."""

    always: bool = False
    above: dict[str, float] = {}
    """Argument to the number above which a yes is needed: {"amount": 200}."""
    arguments: dict[str, tuple[JsonValue, ...]] = {}
    """Argument to the values for which a yes is needed: {"reason": ["lost", "stolen"]}."""
    shown: dict[str, tuple[JsonValue, ...]] = {}
    """Field of the thing that an argument identifies, as a tool showed it last: {"refundable": [False]}."""
    because: str = ""
    """Reason in words for the policy: "a lost card is blocked for good"."""


class ToolSpec(FrozenModel):
    """One tool. `server.name` is its full name; `input_schema` and `inputSchema` are both read."""

    server: str
    """Name of the environment that has the tool."""
    name: str
    description: str = ""
    input_schema: JsonObject = Field(
        validation_alias=AliasChoices("inputSchema", "input_schema"), serialization_alias="inputSchema"
    )
    """JSON Schema of the arguments, type object."""
    output_schema: JsonObject | None = Field(
        None, validation_alias=AliasChoices("outputSchema", "output_schema"), serialization_alias="outputSchema"
    )
    """JSON Schema of the structured result, or None if the tool does not say."""
    annotations: ToolAnnotations = ToolAnnotations()
    actor: Actor = "assistant"
    """Who may call it: the agent, or the simulated user on their own device."""
    confirm: ConfirmationRule | None = Field(None, exclude_if=lambda rule: rule is None)
    """When the agent asks before it calls; None if nobody said so: then `get_confirmation_rule` decides by hints and
    words. Left out of the record where it is None, so that tools without a rule keep their hashes."""

    @property
    def full_name(self) -> str:
        return f"{self.server}.{self.name}"

    @property
    def declares_write(self) -> bool:
        """True unless the tool declares that it only reads (MCP's default is that a tool may write)."""
        return self.annotations.read_only_hint is not True

    @property
    def parameters(self) -> dict[str, Any]:
        """Top-level parameter name to its JSON Schema."""
        return dict(self.input_schema.get("properties") or {})

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(self.input_schema.get("required") or ())

    def as_function(self) -> JsonObject:
        """The tool as an OpenAI function schema, as models and chat templates see it."""
        function = {"name": self.name, "description": self.description, "parameters": self.input_schema}
        return {"type": "function", "function": function}

    def as_listed(self) -> JsonObject:
        """The tool as an MCP server lists it: what results of list_tools and search_tools hold."""
        return {"name": self.name, "description": self.description, "inputSchema": self.input_schema}


def check_confirmation_rule(tool: ToolSpec) -> None:
    """Check that a declared rule fits the parameters of its tool.

    Raises:
        InputError: It names no parameter, bounds what is no number, or lists a value that the parameter cannot have.
    """
    rule = tool.confirm
    if rule is None:
        return
    where = f"{tool.full_name}: confirm"
    if tool.annotations.read_only_hint is True and rule != ConfirmationRule():
        raise InputError(f"{where}: a read needs no yes; remove the rule")
    if rule.always and (rule.above or rule.arguments or rule.shown):
        raise InputError(f"{where}: always, and a condition: keep one of them")
    for table, names in (("above", rule.above), ("arguments", rule.arguments)):
        unknown = sorted(names.keys() - tool.parameters.keys())
        if unknown:
            raise InputError(
                f"{where}.{table}: {unknown[0]!r} is no parameter; there are {', '.join(tool.parameters) or 'none'}"
            )
    for name in rule.above:
        if _resolve_schema(tool, name).get("type", "number") not in ("number", "integer"):
            raise InputError(f"{where}.above: {name!r} is no number")
    for name, values in rule.arguments.items():
        choices = _resolve_schema(tool, name).get("enum")
        wrong = next((value for value in values if choices is not None and value not in choices), None)
        if wrong is not None:
            raise InputError(f"{where}.arguments.{name}: {wrong!r} is none of {', '.join(map(str, choices or ()))}")


def _resolve_schema(tool: ToolSpec, name: str) -> JsonObject:
    schema: JsonObject = tool.parameters[name]
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return dict((tool.input_schema.get("$defs") or {}).get(reference.rsplit("/", 1)[-1]) or {})
    return schema
