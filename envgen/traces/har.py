"""HAR files of a JSON HTTP API: every request with a JSON answer is a call, named after its method and path."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson

from trajsmith.envgen.traces.recordings import ToolDefinition, TracedCall, extract_fault
from trajsmith.phrasing import pluralize, singularize, to_snake_case
from trajsmith.records import JsonObject, is_too_deep

IDENTIFIER = re.compile(r"\A(?:\d+|[0-9a-fA-F-]{16,}|(?=.*\d)(?!v\d+\Z)[\w.~-]{3,})\Z")
"""Part of a path that names a record rather than a collection."""
VERBS = {"POST": "create", "PUT": "replace", "PATCH": "update", "DELETE": "delete"}
MOST_SEGMENTS = 12


def fits_har(value: Any) -> bool:
    """Return True for the document of a HAR file."""
    return (
        isinstance(value, dict) and isinstance(value.get("log"), dict) and isinstance(value["log"].get("entries"), list)
    )


def read_har(
    document: JsonObject, left_out: list[tuple[str, str]]
) -> Iterator[tuple[str, list[TracedCall], dict[str, ToolDefinition]]]:
    """Yield the calls of each page, or of the whole file if it names no pages. Headers and cookies are not read.

    Args:
        left_out: Gets the requests that are no calls, with the reason.
    """
    pages: dict[str, list[tuple[TracedCall, ToolDefinition]]] = {}
    entries = [entry for entry in document["log"]["entries"] if isinstance(entry, dict)]
    for place, entry in enumerate(sorted(entries, key=lambda one: str(one.get("startedDateTime") or ""))):
        read = _read_entry(entry)
        if isinstance(read, str):
            left_out.append((f"request {place}", read))
        else:
            pages.setdefault(str(entry.get("pageref") or ""), []).append(read)
    for page, calls in pages.items():
        yield page or "requests", [call for call, _ in calls], {call.tool: definition for call, definition in calls}


def _read_entry(entry: JsonObject) -> tuple[TracedCall, ToolDefinition] | str:
    """Return the call of a request, or why it is none."""
    request, response = entry.get("request"), entry.get("response")
    if not isinstance(request, dict) or not isinstance(response, dict):
        return "it has no request or no response"
    method, status = str(request.get("method") or "").upper(), response.get("status")
    if method not in ("GET", *VERBS) or not isinstance(status, int):
        return f"method {method[:20]} is no call of an API"
    result = _parse_body(response.get("content"))
    if result is None and status not in (200, 201, 202, 204) and status < 400:
        return f"status {status}"
    if isinstance(result, str):
        return result
    failed = status >= 400
    if result is None and failed:
        result = [f"status {status}"]
    path = _split_path(str(request.get("url") or ""))
    if path is None:
        return "its address has too many parts, or none"
    tool, arguments = path
    for name, value in parse_qsl(urlsplit(str(request.get("url"))).query)[:40]:
        arguments.setdefault(name, _to_scalar(value))
    body = request.get("postData")
    if isinstance(body, dict):
        sent = _parse_body(body)
        if isinstance(sent, list) and isinstance(sent[0], dict):
            arguments |= sent[0]
    value = result[0] if result is not None else {}
    if is_too_deep(value) or is_too_deep(arguments):
        return "nested too deep"
    name = _name_tool(method, tool)
    call = TracedCall(name, arguments, extract_fault(value) if failed else value, failed)
    return call, ToolDefinition(f"{method.capitalize()} /{'/'.join(tool)}.", None, method == "GET")


def _parse_body(content: Any) -> list[Any] | str | None:
    """Return the JSON of a body in a list, None for an empty body, or why it is not JSON."""
    text = content.get("text") if isinstance(content, dict) else None
    if not isinstance(text, str) or not text:
        return None
    if "json" not in str(content.get("mimeType")).lower():
        return f"its body is {str(content.get('mimeType'))[:40]}, not JSON"
    try:
        data = base64.b64decode(text, validate=True) if content.get("encoding") == "base64" else text.encode()
        return [orjson.loads(data)]
    except (orjson.JSONDecodeError, binascii.Error, UnicodeEncodeError):
        return "its body is broken JSON"


def _split_path(url: str) -> tuple[tuple[str, ...], JsonObject] | None:
    """Return the fixed parts of a path, `{name}` for others, and the arguments that stand in it."""
    try:
        parts = [unquote(part) for part in urlsplit(url).path.split("/") if part]
    except ValueError:
        return None
    if not parts or len(parts) > MOST_SEGMENTS:
        return None
    fixed, arguments = list[str](), JsonObject()
    for part in parts:
        if IDENTIFIER.match(part) and fixed:
            noun = singularize(to_snake_case(fixed[-1])) if not fixed[-1].startswith("{") else "value"
            name = f"{noun}_id"
            arguments[name] = part
            fixed.append(f"{{{name}}}")
        else:
            fixed.append(part)
    return tuple(fixed), arguments


def _name_tool(method: str, path: tuple[str, ...]) -> str:
    """Return a name such as list_orders, get_order, create_order or cancel_order."""
    words = [to_snake_case(part) for part in path if not part.startswith("{") and not re.fullmatch(r"api|v\d+", part)]
    one = path[-1].startswith("{")
    noun = words[-1] if words else "resource"
    owner = singularize(words[-2]) if len(words) > 1 else ""
    if method == "POST" and owner and len(path) > 1 and path[-2].startswith("{") and singularize(noun) == noun:
        return f"{noun}_{owner}"  # POST /orders/{order_id}/cancel
    many = f"{owner}_{noun}" if owner and any(part.startswith("{") for part in path[:-1]) and not one else noun
    if method == "GET":
        return f"get_{singularize(noun)}" if one else f"list_{pluralize(singularize(many))}"
    return f"{VERBS[method]}_{singularize(many)}"


def _to_scalar(text: str) -> str | int | bool:
    if re.fullmatch(r"-?[1-9]\d{0,8}|0", text):
        return int(text)
    return text == "true" if text in ("true", "false") else text
