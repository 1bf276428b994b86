"""What a tool list says of each tool, as far as it can be trusted: name, meaning, description, parameters."""

import re
from dataclasses import dataclass

from trajsmith.envgen.generate.identifiers import to_identifier
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.generate.tool_names import ToolMeaning
from trajsmith.environments import find_tool_actor
from trajsmith.phrasing import normalize_name, singularize, to_snake_case
from trajsmith.records import Actor, JsonObject, content_hash

JOIN = " + "
"""Between the servers whose tools a composed service has."""
_EMPTY_WORDS = frozenset(
    {"", "mcp", "server", "servers", "api", "ts", "py", "js", "python", "typescript", "v1", "v2", "ext"}
)
_STRANGE = re.compile(r"[^\w@/ .+&:'()-]|__|\.\./|.{100}", re.ASCII)
_JUNK = re.compile(r"not available|playground|deploy server|claim server|[<>{}`|\\]|https?:|@|ignore|instruction", re.I)


@dataclass
class ListedTool:
    """A tool of the list, and what its name means."""

    name: str
    means: ToolMeaning
    description: str
    parameters: dict[str, JsonObject]
    actor: Actor


def name_service(server: str) -> str:
    """Return the name of an environment for a server: of its own name, else of its publisher's.

    The name stands in the policy: one with markup, code or orders is replaced by a hash of it.
    """
    if _STRANGE.search(server) or _JUNK.search(server.replace("@", " ")):
        return f"service_{content_hash(server, 4)}"
    owner, _, own = server.rpartition("/")
    for text in (own, owner):
        words = [word for word in re.split(r"[^a-z0-9]+", to_snake_case(text)) if word not in _EMPTY_WORDS]
        if words and len("_".join(words)) > 2:
            return to_identifier("_".join(words), "service")
    return to_identifier(server, "service")


def list_words(tool_list: ToolList) -> frozenset[str]:
    """Return the words of a service's name and of its tools' names, which tell what its nouns mean."""
    own = [] if JOIN in tool_list.server else [name_service(tool_list.server)]
    names = [*own, *(str(raw["name"]) for raw in tool_list.tools)]
    words = {word for name in names for word in re.split(r"[^a-z0-9]+", to_snake_case(name)) if len(word) > 1}
    return frozenset(words | {singularize(word) for word in words})


def find_actor(raw: JsonObject) -> Actor:
    return find_tool_actor(str(raw["name"]), str(raw.get("description") or ""), raw)


def clean_description(raw: JsonObject) -> str:
    """Return the first sentence of a tool's description if it can stand in a docstring; nothing else is taken over."""
    text = " ".join(str(raw.get("description") or "").split())
    first = re.split(r"(?<=[.!?])\s", text)[0]
    plain = first.isascii() and first[:1].isupper() and 12 <= len(first) <= 140
    return first if plain and not _JUNK.search(first) else ""


def read_parameters(raw: JsonObject) -> dict[str, JsonObject]:
    schema = raw.get("input_schema") or raw.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    name = normalize_name(str(raw.get("name")))
    return {
        str(label): child if isinstance(child, dict) else {}
        for label, child in (properties.items() if isinstance(properties, dict) else ())
        if normalize_name(str(label)) != name and not str(label)[:1].isupper() and len(str(label)) > 1
    }
