"""The classes that TRL's `environment_factory` makes episodes of: one per environment and set of shown tools."""

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Literal, Union

import orjson

from trajsmith.records import InputError, JsonObject, Task, ToolSpec
from trajsmith.train_grpo.episodes import (
    MESSAGE_USER,
    EpisodeResult,
    OpenSource,
    build_class_name,
    get_result,
    needs_user,
)
from trajsmith.train_grpo.reward_functions import EpisodeReward
from trajsmith.train_grpo.rollouts import EPISODE_OVER, Rollout

PYTHON_TYPES: dict[str, Any] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict, "null": type(None),
}  # fmt: skip
LIMITS = {
    "format": "format {}", "pattern": "pattern {}", "minimum": "at least {}", "maximum": "at most {}",
    "exclusiveMinimum": "more than {}", "exclusiveMaximum": "less than {}", "minLength": "at least {} characters",
    "maxLength": "at most {} characters", "minItems": "at least {} entries", "maxItems": "at most {} entries",
}  # fmt: skip
"""What a Python annotation cannot say of a value; the description says it."""
OWN_METHODS = frozenset({"reset", "get_reward"})


class DialogueEnvironment:
    """One episode at a time, driven by TRL's own loop of tool calls; subclasses have the tools as methods.

    It runs on the same dialogue and verdict as everything else. A method makes its call and gives the result as the
    JSON string that the rows have.
    """

    _source: OpenSource
    """Gives the source of the episodes of this process."""
    _rollout: Rollout | None = None

    def reset(self, task_id: str, **_: Any) -> None:
        """Start the episode of a task; the prompt has its first request already."""
        if self._rollout is not None:
            self._rollout.abandon()
        source = type(self)._source()
        self._rollout = source.open_episode(task_id)
        self._rollout.start(source.background)

    def _call(self, tool: str, arguments: JsonObject) -> str:
        if self._rollout is None:
            raise RuntimeError("reset was not called")
        if tool != MESSAGE_USER.name:
            return self._rollout.call(tool, arguments)
        reply = self._rollout.say(str(arguments["text"]))
        return EPISODE_OVER if reply is None else orjson.dumps({"user": reply}).decode()

    def _finish(self, text: str) -> EpisodeResult:
        if self._rollout is None:
            raise RuntimeError("reset was not called")
        self._rollout.finish(text)
        return get_result(self._rollout)


class RewardingEnvironment(DialogueEnvironment):
    """The same with the method that lets TRL take the reward from the environment, in place of `reward_funcs`."""

    _reward: EpisodeReward

    def get_reward(self) -> float | None:
        """Return the reward of the episode. TRL does not tell the environment a last message that is no call."""
        return type(self)._reward.score(self._finish(""))


class EpisodeFactory:
    """Makes the environments of one class; it can be pickled, and in another process makes a class of the same kind.

    Args:
        source: Gives the source of the episodes.
        name: Of the class, as in the column `environment`.
        task_id: A task of it, from which the tools are read.
        reward: Lets the environments give this reward themselves.
        user_tool: Give the environments the method `message_user`.
    """

    def __init__(
        self,
        source: OpenSource,
        name: str,
        task_id: str,
        reward: EpisodeReward | None = None,
        user_tool: bool = False,
    ) -> None:
        self.source = source
        self.name = name
        self.task_id = task_id
        self.reward = reward
        self.user_tool = user_tool
        self._class: type[DialogueEnvironment] | None = None

    def __call__(self) -> DialogueEnvironment:
        """Return a new environment, to be reset before use."""
        if self._class is None:
            source = self.source()
            tools = [*source.list_shown_tools(source.tasks[self.task_id]), *([MESSAGE_USER] if self.user_tool else [])]
            members: dict[str, Any] = {tool.name: build_method(tool) for tool in tools}
            members["_source"] = staticmethod(self.source)
            base: type[DialogueEnvironment] = DialogueEnvironment
            if self.reward is not None:
                base, members["_reward"] = RewardingEnvironment, self.reward
            self._class = type(self.name, (base,), members)
        return self._class()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_class": None}


def build_factories(
    tasks: Sequence[Task], source: OpenSource, reward: EpisodeReward | None = None, user_tool: bool = False
) -> dict[str, EpisodeFactory]:
    """Build TRL's `environment_factory`: column `environment` to what makes the environments of these tasks.

    Args:
        tasks: Tasks that are played.
        source: Gives the source of the episodes.
        reward: Lets the environments give this reward themselves.
        user_tool: Give the environments the method `message_user`, so that tasks with a simulated user can be played.

    Raises:
        InputError: A task needs the simulated user, or a tool cannot be a Python method.
    """
    talking = [task.id for task in tasks if needs_user(task)]
    if talking and not user_tool:
        raise InputError(
            f"{len(talking)} of {len(tasks)} tasks are conversations with a simulated user, and TRL ends an episode of "
            "an environment_factory at the first message without a call: pass rollout_func=spec.rollout_func to the "
            "trainer instead, give the model a tool to talk with by TrajsmithSpec(..., user_tool=True), or leave these "
            "tasks out with TrajsmithSpec(..., conversations=False)"
        )
    for tool in {tool.name: tool for task in tasks for tool in source().list_shown_tools(task)}.values():
        check_tool(tool, {*OWN_METHODS, *([MESSAGE_USER.name] if user_tool else [])})
    first = {build_class_name(task): task.id for task in reversed(tasks)}
    return {
        name: EpisodeFactory(source, name, first[name], reward, user_tool)
        for name in dict.fromkeys(build_class_name(task) for task in tasks)
    }


def check_tool(tool: ToolSpec, reserved: Set[str] = OWN_METHODS) -> None:
    """Refuse a tool whose name or arguments no Python method can have.

    Raises:
        InputError: With the name.
    """
    names = [tool.name, *tool.input_schema.get("properties", {})]
    wrong = [name for name in names if not name.isidentifier() or keyword.iskeyword(name) or name == "self"]
    if tool.name in reserved or tool.name.startswith("_"):
        wrong.insert(0, tool.name)
    if wrong:
        raise InputError(
            f"tool {tool.name}: {wrong[0]!r} cannot be a name in Python, from which TRL's environment_factory takes "
            "the tools: pass rollout_func=spec.rollout_func to the trainer instead, which shows schemas as they are"
        )


def build_method(tool: ToolSpec) -> Callable[..., str]:
    """Build the method of a tool, with the signature and the docstring from which TRL makes its schema.

    Types, required arguments, defaults, choices and elements of lists are in the annotations; limits, formats and the
    fields of objects, which annotations cannot say, are in the descriptions.
    """
    schema = tool.input_schema
    definitions = {**schema.get("$defs", {}), **schema.get("definitions", {})}
    required = set(schema.get("required", ()))
    properties = {name: resolve_reference(value, definitions) for name, value in schema.get("properties", {}).items()}

    def method(self: DialogueEnvironment, **arguments: Any) -> str:
        return self._call(tool.name, arguments)

    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=build_annotation(value, definitions),
            default=inspect.Parameter.empty if name in required else value.get("default"),
        )
        for name, value in properties.items()
    ]
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = build_docstring(tool.description, properties)
    method.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": str}
    vars(method)["__signature__"] = inspect.Signature([receiver, *parameters], return_annotation=str)
    return method


def build_docstring(description: str, properties: Mapping[str, JsonObject]) -> str:
    """Build a Google-style docstring: what the tool does, and a line for each argument."""
    text = to_docstring_line(description) or "Call this tool."
    if not properties:
        return text
    arguments = [f"    {name}: {describe_argument(name, value)}" for name, value in properties.items()]
    return "\n".join([text, "", "Args:", *arguments])


def describe_argument(name: str, schema: JsonObject) -> str:
    """Return the description of an argument with its limits, in one line."""
    limits = [text.format(schema[key]) for key, text in LIMITS.items() if key in schema]
    fields = ", ".join(schema.get("properties", {}))
    limits += [f"fields {fields}"] if fields else []
    text = to_docstring_line(schema.get("description") or schema.get("title") or name.replace("_", " "))
    return f"{text} ({'; '.join(limits)})" if limits else text


def to_docstring_line(text: str) -> str:
    """Return a text in one line, without the words at which Transformers' parser of docstrings cuts."""
    line = " ".join(text.split())
    for word in ("Args:", "Returns:", "Raises:"):
        line = line.replace(word, word.replace(":", " -"))
    return line.replace("(choices:", "(choices")


def resolve_reference(schema: JsonObject, definitions: Mapping[str, JsonObject]) -> JsonObject:
    """Return a schema with the definition that it refers to, and its own keys over it."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name not in definitions:
        return schema
    own = {key: value for key, value in schema.items() if key != "$ref"}
    return resolve_reference({**definitions[name], **own}, definitions)


def build_annotation(schema: JsonObject, definitions: Mapping[str, JsonObject]) -> Any:
    """Return the annotation that comes nearest to a JSON Schema and that Transformers reads back."""
    schema = resolve_reference(schema, definitions)
    if "const" in schema:
        return Literal[schema["const"]] if is_literal(schema["const"]) else dict
    if "enum" in schema and all(map(is_literal, schema["enum"])):
        return Literal[tuple(schema["enum"])]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return Union[tuple(build_annotation(choice, definitions) for choice in choices)]  # noqa: UP007 - of a list
    kind = schema.get("type")
    if isinstance(kind, list):
        return Union[tuple(build_annotation({**schema, "type": one}, definitions) for one in kind)]  # noqa: UP007
    if kind == "array" and schema.get("items"):
        return list[build_annotation(schema["items"], definitions)]  # type: ignore[misc]
    return PYTHON_TYPES.get(str(kind), Any)


def is_literal(value: object) -> bool:
    """Return True for what `Literal` takes and a JSON Schema writes as it is."""
    return value is None or isinstance(value, str | int | bool)
