"""What a tool gave, as JSON data. Imports `mcp_types`, so import it only where it is used."""

from collections.abc import Callable
from typing import get_args

import orjson
from mcp_types import CallToolResult, ContentBlock, EmbeddedResource, ResourceLink, TextContent, TextResourceContents

from trajsmith.environments.adapters.mcp.literals import parse_literal, unwrap_data
from trajsmith.environments.serving.protocol_keys import REFUSAL
from trajsmith.environments.session import RefusalKind, ToolResult
from trajsmith.records import JsonValue, hash_bytes


def read_content(result: CallToolResult, literals: bool = False) -> JsonValue:
    """The structured result; else the text, parsed if it is a JSON object or array; else the text as it is.

    Args:
        literals: A text of a Python list or dict is parsed, too, and one that FastMCP wraps as `{"result": ...}`.
    """
    structured = result.structured_content
    if structured is not None:
        return unwrap_data(structured) if literals else structured
    text = join_text(result)
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return parse_literal(text) if literals else text
    return parsed if isinstance(parsed, dict | list) else text


def read_refusal(result: CallToolResult, public: Callable[[str], str]) -> ToolResult:
    """An error result as a refusal. One that reads `{"error": ...}` is taken as it is, not wrapped once more, so that
    the agent sees the same text from an environment of our own that is served over MCP."""
    text = public(join_text(result))
    reported = (result.meta or {}).get(REFUSAL)
    kind: RefusalKind = next((kind for kind in get_args(RefusalKind) if kind == reported), "refused")
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ToolResult.refusal(kind, text)
    if isinstance(parsed, dict) and parsed.keys() == {"error"} and isinstance(parsed["error"], str):
        text = parsed["error"]
    return ToolResult.refusal(kind, text)


def join_text(result: CallToolResult) -> str:
    """All content blocks as one text."""
    return "\n".join(_text(block) for block in result.content)


def _text(block: ContentBlock) -> str:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, ResourceLink):
        return block.uri
    if isinstance(block, EmbeddedResource):
        inner = block.resource
        return inner.text if isinstance(inner, TextResourceContents) else _binary(inner.blob, inner.mime_type)
    return _binary(block.data, block.mime_type)


def _binary(data: str, mime_type: str | None) -> str:
    """Data that no agent reads as text is named by its hash."""
    return f"[{mime_type or 'binary'} sha256:{hash_bytes(data.encode(), 16)}]"
