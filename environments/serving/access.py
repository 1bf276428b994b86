"""Who may talk to a server: checked before anything of a request is read, for HTTP and WebSocket alike.

A browser that shows a page of somebody else reaches servers of this machine: by a name that its owner points here (DNS
rebinding), which the Host header gives away, and by requests across sites, which the Origin header gives away.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")
POLICY_VIOLATION = 1008
"""Code with which a WebSocket is closed."""


@dataclass(frozen=True)
class AccessSettings:
    """Conditions that a request must meet."""

    hosts: frozenset[str] | None = None
    """Names in the Host header, without port; None takes any."""
    token: str | None = None
    """Bearer token; None asks for none."""

    @classmethod
    def for_address(cls, address: str, token: str | None = None, hosts: Iterable[str] = ()) -> "AccessSettings":
        """Return the settings of a server by the address that it listens on: local ones take local names only.

        Args:
            token: Bearer token that every request must bring.
            hosts: Further names by which clients reach it.
        """
        names = frozenset(name.lower() for name in hosts)
        if is_local(address):
            return cls(names | frozenset(LOCAL_NAMES), token)
        return cls(names or None, token)


def is_local(address: str) -> bool:
    """Return True for an address that only this machine reaches."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


class AccessControl:
    """An ASGI application that lets through to another one what the settings allow."""

    def __init__(self, inner: ASGIApp, settings: AccessSettings) -> None:
        self._inner = inner
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refuse(Headers(scope=scope)) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._inner(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": refusal[1]})
        else:
            status, text = refusal
            headers = {"www-authenticate": "Bearer"} if status == 401 else None
            await PlainTextResponse(text, status, headers)(scope, receive, send)

    def _refuse(self, headers: Headers) -> tuple[int, str] | None:
        """Return status and text for a request that may not pass."""
        host = headers.get("host", "")
        if self._settings.hosts is not None and _get_name(f"//{host}") not in self._settings.hosts:
            return 421, "this server is not reached by that name"
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin, host):
            return 403, "requests from pages of other sites are refused"
        if self._settings.token is not None and not _has_token(headers, self._settings.token):
            return 401, "a bearer token is needed"
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        """Return True for a page of this server, and for pages of this machine where it is reached locally."""
        name = _get_name(origin)
        local = self._settings.hosts is not None and name in LOCAL_NAMES and name in self._settings.hosts
        return local or (bool(name) and urlsplit(origin).netloc.lower() == host.lower())


def _get_name(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _has_token(headers: Headers, token: str) -> bool:
    kind, _, brought = headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and secrets.compare_digest(brought.strip().encode(), token.encode())
