"""The operations of a document: their tools' names, parameters, bodies and answers, read and converted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from trajsmith.environments.adapters.openapi.document_references import OpenApiDocument, UnsupportedFeature
from trajsmith.environments.adapters.openapi.naming import normalize_name, normalize_words, to_snake_case
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.tool_actors import OPENAPI_ACTOR_KEY, find_tool_actor
from trajsmith.records import Actor, JsonObject, JsonValue, content_hash

HTTP_METHODS = ("get", "put", "post", "delete", "patch")
_SECRETS = normalize_words("apikey accesstoken token appid authtoken authorization clientsecret accesskey xapikey")
_NAME_LENGTH = 64


@dataclass(frozen=True)
class OperationParameter:
    """Parameter in the path or in the query."""

    name: str
    place: Literal["path", "query"]
    schema: JsonObject
    required: bool
    description: str


@dataclass(frozen=True)
class SuccessResponse:
    """Success response of an operation."""

    status: int
    description: str
    schema: JsonObject | None
    """None if it answers nothing, or only a text."""
    text: bool = False
    """True if it answers a text."""
    examples: tuple[JsonValue, ...] = ()


@dataclass(frozen=True)
class Operation:
    """One operation, with everything converted that a tool needs."""

    label: str
    """Method and path, for example "GET /orders/{id}"."""
    method: str
    path: str
    tool: str
    identifier: str
    """The operationId as the document has it, or the tool's name."""
    description: str
    parameters: tuple[OperationParameter, ...]
    body: JsonObject | None
    body_required: bool
    body_examples: tuple[JsonValue, ...]
    answer: SuccessResponse
    declared_actor: JsonValue
    """What the document says of who calls it; None if it says nothing."""
    failures: dict[str, JsonObject | None]
    """By status ("404", "4XX", "default"): the schema of what it says then."""
    notes: list[str] = field(default_factory=list)

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/"))

    def find_actor(self, user_tools: list[str] | None = None) -> Actor:
        """Return who calls the operation.

        Args:
            user_tools: Tools of the user in the settings; None if the settings leave it to the document.

        Raises:
            InputError: The document names an unknown actor.
        """
        return find_tool_actor(self.tool, self.description, {OPENAPI_ACTOR_KEY: self.declared_actor}, user_tools)


class OperationReader:
    """Reader of a document's operations; unreadable parts are noted with their reason."""

    def __init__(self, document: OpenApiDocument, requests: Dialect, responses: Dialect) -> None:
        self.notes: list[str] = []
        self.left_out: dict[str, str] = {}
        """Reasons by label."""
        self._document = document
        self._requests = requests
        self._responses = responses
        self._keys = _find_credential_parameters(document)
        self._taken: set[str] = set()

    def operations(self) -> list[Operation]:
        """Return all operations that can be read, in the order of the document."""
        operations: list[Operation] = []
        for path, item in self._document.root["paths"].items():
            if path.startswith("x-"):
                continue
            try:
                item = self._document.follow(item)
            except UnsupportedFeature as reason:
                self.left_out[path] = str(reason)
                continue
            for method in HTTP_METHODS:
                if method in item:
                    operations.extend(self._one(method, path, item))
        return operations

    def _one(self, method: str, path: str, item: JsonObject) -> Iterator[Operation]:
        label = f"{method.upper()} {path}"
        try:
            yield self._operation(label, method, path, item)
        except UnsupportedFeature as reason:
            self.left_out[label] = str(reason)
        except (TypeError, KeyError, AttributeError, ValueError) as error:  # the document's parts have any shape
            self.left_out[label] = f"not shaped as OpenAPI says: {type(error).__name__}: {error}"

    def _operation(self, label: str, method: str, path: str, item: JsonObject) -> Operation:
        node = self._document.follow(item[method])
        notes: list[str] = []
        parameters = self._parameters([*item.get("parameters", ()), *node.get("parameters", ())], path, notes)
        body, required, examples = self._body(node.get("requestBody"))
        answer = self._answer(node.get("responses") or {})
        identifier = node.get("operationId")
        words = [str(node[key]).strip() for key in ("summary", "description") if node.get(key)]
        tool = self._tool_name(identifier, method, path)
        if isinstance(identifier, str) and tool != to_snake_case(identifier):
            notes.append(f"operationId {identifier!r} is not usable as it is; the tool is called {tool}")
        return Operation(
            label=label,
            method=method,
            path=path,
            tool=tool,
            identifier=identifier if isinstance(identifier, str) else tool,
            description="\n".join(dict.fromkeys(words)) or label,
            parameters=parameters,
            body=body,
            body_required=required,
            body_examples=examples,
            answer=answer,
            declared_actor=node.get(OPENAPI_ACTOR_KEY),
            failures=self._failures(node.get("responses") or {}),
            notes=notes,
        )

    def _tool_name(self, identifier: Any, method: str, path: str) -> str:
        wished = to_snake_case(identifier) if isinstance(identifier, str) else ""
        wished = wished or to_snake_case(f"{method}_{path.replace('{', 'by_')}")
        if len(wished) > _NAME_LENGTH:
            wished = f"{wished[: _NAME_LENGTH - 9]}_{content_hash(wished, 8)}"
        if wished[:1].isdigit():
            wished = f"op_{wished}"
        name, number = wished, 1
        while name in self._taken:
            number += 1
            name = f"{wished}_{number}"
        self._taken.add(name)
        return name

    # Parameters

    def _parameters(self, nodes: list[JsonValue], path: str, notes: list[str]) -> tuple[OperationParameter, ...]:
        parameters: dict[tuple[str, str], OperationParameter] = {}
        for node in map(self._document.follow, nodes):
            name, place = str(node["name"]), node["in"]
            if place == "query" and (name in self._keys or normalize_name(name) in _SECRETS):
                continue
            if place in ("path", "query"):
                parameters[place, name] = self._parameter(node, name, place)
            elif node.get("required") and normalize_name(name) not in _SECRETS and "auth" not in normalize_name(name):
                notes.append(f"{place} parameter {name!r} is not a parameter of the tool")
        named = re.findall(r"\{([^{}]+)\}", path)
        missing = [name for name in named if ("path", name) not in parameters]
        if missing:
            raise UnsupportedFeature(f"path parameter {missing[0]!r} is not declared")
        usable = [parameter for (place, name), parameter in parameters.items() if place == "query" or name in named]
        return tuple(usable)

    def _parameter(self, node: JsonObject, name: str, place: Literal["path", "query"]) -> OperationParameter:
        if "schema" in node:
            schema = self._requests.convert(node["schema"])
        elif "content" in node:
            raise UnsupportedFeature(f"parameter {name!r} is sent as {next(iter(node['content']), 'nothing')}")
        else:
            schema = {}
        examples = list(self._examples(node))
        if examples:
            schema = {**schema, "examples": examples}
        required = place == "path" or node.get("required") is True
        return OperationParameter(
            name, place, schema, required, str(node.get("description") or schema.get("description") or "")
        )

    def _examples(self, node: JsonObject) -> Iterator[JsonValue]:
        if "example" in node:
            yield node["example"]
        named = node.get("examples")
        for example in named.values() if isinstance(named, dict) else ():
            example = self._document.follow(example)
            if "value" in example:
                yield example["value"]

    # Bodies and answers

    def _body(self, node: JsonValue) -> tuple[JsonObject | None, bool, tuple[JsonValue, ...]]:
        if node is None:
            return None, False, ()
        node = self._document.follow(node)
        content = node.get("content") or {}
        if not content:
            return None, False, ()
        media = next((name for name in content if _is_json(name) and "json-patch" not in name), None)
        media = media or next((name for name in content if _is_form(name)), None)
        if media is None:
            raise UnsupportedFeature(f"takes {', '.join(content)}, which is no JSON object")
        schema = self._requests.convert(content[media].get("schema", {}))
        if _has_file(self._requests, schema):
            raise UnsupportedFeature(f"takes a file ({media})")
        return schema, node.get("required") is True, tuple(self._examples(content[media]))

    def _answer(self, responses: JsonObject) -> SuccessResponse:
        success = sorted(str(status) for status in responses if re.fullmatch(r"2(\d\d|XX)", str(status)))
        if not success and "default" in responses:
            success = ["default"]
        if not success:
            raise UnsupportedFeature("no successful response is declared")
        answers = [self._one_answer(status, self._document.follow(responses[status])) for status in success]
        best = next(
            (answer for answer in answers if isinstance(answer, SuccessResponse) and answer.schema is not None), None
        )
        best = best or next((answer for answer in answers if isinstance(answer, SuccessResponse)), None)
        if best is None:
            raise UnsupportedFeature(str(answers[0]))
        return best

    def _one_answer(self, status: str, node: JsonObject) -> SuccessResponse | str:
        number = int(status) if status.isdigit() else 200
        words = str(node.get("description") or "").strip()
        content = node.get("content") or {}
        media = next((name for name in content if _is_json(name)), None)
        if media is not None:
            schema = self._responses.convert(content[media].get("schema", {}))
            examples = tuple(self._examples(content[media]))
            if schema or examples:
                return SuccessResponse(number, words, schema, examples=examples)
            return SuccessResponse(number, words, None)
        if any(name.startswith("text/plain") for name in content):
            return SuccessResponse(number, words, None, text=True)
        if content:
            return f"answers {', '.join(content)}, which is no JSON"
        return SuccessResponse(number, words, None)

    def _failures(self, responses: JsonObject) -> dict[str, JsonObject | None]:
        failures: dict[str, JsonObject | None] = {}
        for status, node in responses.items():
            if not re.fullmatch(r"4(\d\d|XX)|default", str(status)):
                continue
            try:
                content = self._document.follow(node).get("content") or {}
                media = next((name for name in content if _is_json(name)), None)
                failures[str(status)] = self._responses.convert(content[media].get("schema", {})) if media else None
            except UnsupportedFeature as reason:
                self.notes.append(f"a {status} response cannot be read ({reason}); refusals are texts there")
        return failures


def _find_credential_parameters(document: OpenApiDocument) -> set[str]:
    """Query parameters that carry credentials."""
    components = document.root.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, dict) else None
    names = set()
    for scheme in schemes.values() if isinstance(schemes, dict) else ():
        if isinstance(scheme, dict) and scheme.get("type") == "apiKey" and scheme.get("in") == "query":
            names.add(str(scheme.get("name")))
    return names


def _is_json(media: str) -> bool:
    name = media.split(";")[0].strip().lower()
    return name in ("application/json", "*/*", "application/*", "text/json") or name.endswith("+json")


def _is_form(media: str) -> bool:
    return media.split(";")[0].strip().lower() in ("application/x-www-form-urlencoded", "multipart/form-data")


def _has_file(dialect: Dialect, schema: JsonObject) -> bool:
    properties = [dialect.look(child) for child in dialect.properties(schema).values()]
    return any(child.get("format") == "binary" for child in [dialect.look(schema), *properties])
