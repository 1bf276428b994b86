"""Any OpenAI-compatible server, through the official client and the library that carries it.

The client says where requests go and what they carry (address, key, headers), and makes all but one kind of them.
Completions, of which there are tens of thousands, are encoded and decoded here and sent over aiohttp by themselves: the
client's typed front end costs 5 ms of CPU a request, its untyped one 0.8 ms, aiohttp 0.2 ms.
"""

import json
import os
from asyncio import timeout
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson

from trajsmith.models.failures import (
    MAX_MESSAGE_LENGTH,
    EncryptionUnsupported,
    FailedAttempt,
    HttpErrorResponse,
    ResponseFormatUnsupported,
)
from trajsmith.models.model import ChatReply, ChatRequest
from trajsmith.models.responses_api import build_responses_body, parse_response
from trajsmith.models.serialization import build_request_body, parse_reply
from trajsmith.models.settings import ModelSettings
from trajsmith.records import (
    InputError,
    JsonObject,
    ModelFaultKind,
    TrajsmithError,
    known_secrets,
    redact_secrets,
    suggest_names,
    to_one_line,
)

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from openai import APIConnectionError, APIStatusError, AsyncOpenAI

NO_KEY = "none"
CONNECT_SECONDS = 20.0
CHECK_SECONDS = 30.0
PATHS = {"chat_completions": "/chat/completions", "responses": "/responses"}
"""API to where its requests go, below the address of a server."""
LONGEST_REPLY = 16 << 20
"""Bytes of a response, unpacked; a model that writes its whole context again writes less."""
KEEPALIVE_SECONDS = 30.0
"""A connection without a request is closed after so long."""


class OpenAIProvider:
    """One model on one server."""

    def __init__(self, entry: str, settings: ModelSettings) -> None:
        self.settings = settings
        self.where = f"models.{entry} ({settings.model} at {settings.base_url})"
        self._key = read_key(entry, settings)
        own = () if self._key == NO_KEY else (self._key,)
        self._secrets = tuple(dict.fromkeys((*own, *known_secrets())))
        self._escaped_secrets = tuple(json.dumps(secret, ensure_ascii=False)[1:-1] for secret in self._secrets)
        self._native = settings.structured != "prompt"
        self._encrypted = True
        self._opened = False

    @cached_property
    def client(self) -> "AsyncOpenAI":
        """The client; its own repeating is off."""
        from openai import AsyncOpenAI, DefaultAioHttpClient, Timeout

        self._opened = True
        seconds = self.settings.timeout
        waits = Timeout(seconds, connect=min(CONNECT_SECONDS, seconds), pool=None)
        http = DefaultAioHttpClient(timeout=waits)
        return AsyncOpenAI(
            api_key=self._key, base_url=self.settings.base_url, max_retries=0, timeout=waits, http_client=http
        )

    @cached_property
    def _session(self) -> "ClientSession":
        """Connections for completions, as many as requests may be in flight, with the client's headers."""
        import httpx2
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

        headers = {name: value for name, value in self.client.default_headers.items() if isinstance(value, str)}
        return ClientSession(
            connector=TCPConnector(
                limit=self.settings.connections, keepalive_timeout=KEEPALIVE_SECONDS, ssl=httpx2.create_ssl_context()
            ),
            timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),  # the rest is `Persistent`'s
            headers={**headers, "Authorization": f"Bearer {self.client.api_key}"},
            cookie_jar=DummyCookieJar(),
            proxy=find_proxy(self.settings.base_url),
        )

    @cached_property
    def _address(self) -> Any:
        from yarl import URL

        return URL(f"{self.settings.base_url}{PATHS[self.settings.api]}")

    async def send(self, request: ChatRequest) -> ChatReply:
        if request.reply_schema is None or not self._native:
            return await self._send(request, native=False)
        try:
            return await self._send(request, native=True)
        except ResponseFormatUnsupported as refused:
            if self.settings.structured == "native":
                name = "text.format" if self.settings.api == "responses" else "response_format"
                raise InputError(
                    f"{self.where}: the server does not take {name} ({refused}); set structured: auto"
                ) from refused
            self._native = False
            return await self._send(request, native=False)

    async def _send(self, request: ChatRequest, native: bool) -> ChatReply:
        encrypted = self._encrypted
        try:
            return self.read_reply(await self._post(request, native, encrypted))
        except EncryptionUnsupported:
            self._encrypted = False
            return self.read_reply(await self._post(request, native, encrypted=False))

    def build_body(self, request: ChatRequest, native: bool, encrypted: bool) -> JsonObject:
        """Build the body of a request for the server's API."""
        if self.settings.api == "responses":
            return build_responses_body(request, self.settings, native, encrypted)
        return build_request_body(request, self.settings, native)

    def read_reply(self, content: bytes) -> ChatReply:
        r"""Parse a response without keys that it repeats, also as escaped JSON (`\u003d`, `\/`): replies are published.

        Raises:
            FailedAttempt: It is no reply.
        """
        parse = parse_response if self.settings.api == "responses" else parse_reply
        reply = parse(self.hide_keys(content))
        if b"\\" not in content:
            return reply
        text = reply.model_dump_json()
        hidden = redact_secrets(text, self._escaped_secrets)
        return reply if hidden == text else ChatReply.model_validate_json(hidden)

    def hide_keys(self, content: bytes) -> bytes:
        """Return a server's response without keys that stand in it as they are."""
        return redact_secrets(content.decode("utf-8", "surrogateescape"), self._secrets).encode(
            "utf-8", "surrogateescape"
        )

    async def _post(self, request: ChatRequest, native: bool, encrypted: bool) -> bytes:
        from aiohttp import ClientError

        body = orjson.dumps(self.build_body(request, native, encrypted))
        try:
            async with self._session.post(self._address, data=body) as answer:
                content = await _read_body(answer)
        except (ClientError, OSError) as error:
            raise self._fallen(error) from None
        if answer.status < HTTPStatus.BAD_REQUEST:
            return content
        refusal = self._refusal(answer.status, content.decode("utf-8", "replace"), answer.headers)
        if native and refusal.about_format():
            raise ResponseFormatUnsupported(to_one_line(refusal.message, MAX_MESSAGE_LENGTH)) from None
        if self.settings.api == "responses" and encrypted and request.tools and refusal.about_encryption():
            raise EncryptionUnsupported from None
        raise refusal.to_error(self.where, bool(request.tools))

    def lost(self, error: "APIConnectionError") -> FailedAttempt:
        """Return the failed attempt for a request without a response."""
        return self._fallen(_find_root_cause(error))  # the client calls a dropped connection a timeout, too

    def _fallen(self, error: BaseException) -> FailedAttempt:
        kind: ModelFaultKind = "timeout" if isinstance(error, TimeoutError) else "connection"
        return FailedAttempt(kind, self._hide(_describe_error(error)), retryable=True)

    def refused(self, error: "APIStatusError") -> FailedAttempt | TrajsmithError:
        """Return the failure for a response with an error status."""
        return self._read(error).to_error(self.where, asked_tools=False)

    async def check(self) -> bool:
        """Ask for the list of models. A server that has no such list is left to the first request."""
        from openai import APIConnectionError, APIStatusError

        try:
            async with timeout(CHECK_SECONDS):
                answer = await self.client.models.with_raw_response.list()
        except TimeoutError:
            raise InputError(f"{self.where}: no answer within {CHECK_SECONDS:g} s; is base_url right?") from None
        except APIStatusError as error:
            refusal = self._read(error)
            if refusal.status in {401, 403}:
                raise refusal.to_error(self.where, asked_tools=False) from None
            return False
        except APIConnectionError as error:
            raise InputError(
                f"{self.where}: cannot be reached "
                f"({self._hide(_describe_error(_find_root_cause(error)))}); is base_url right?"
            ) from None
        return self._look_for_model(answer.content)

    def _look_for_model(self, listed: bytes) -> bool:
        try:
            names = [str(row["id"]) for row in orjson.loads(listed)["data"]]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return False
        if names and self.settings.model not in names:
            hint = suggest_names(self.settings.model, names, most=3, cutoff=0.3)
            hint = hint or f"it has {', '.join(sorted(names)[:3])}"
            raise InputError(f"{self.where}: the server has no such model; {hint}")
        return bool(names)

    async def close(self) -> None:
        if self._opened:
            await self.client.close()
        if "_session" in self.__dict__:
            await self._session.close()

    def _read(self, error: "APIStatusError") -> HttpErrorResponse:
        return self._refusal(error.status_code, error.response.text, error.response.headers)

    def _refusal(self, status: int, text: str, headers: Mapping[str, str]) -> HttpErrorResponse:
        lower = {name.lower(): value for name, value in headers.items()}
        return HttpErrorResponse.read(status, self._hide(text).encode(), lower)

    def _hide(self, text: str) -> str:
        """Redact the key in a message of a server or library."""
        return text if self._key == NO_KEY else text.replace(self._key, "[key]")


async def _read_body(answer: "ClientResponse") -> bytes:
    """Read a response, as long as it is no longer than any answer of a model.

    Raises:
        FailedAttempt: It is longer.
    """
    parts, size = list[bytes](), 0
    async for part in answer.content.iter_any():
        size += len(part)
        if size > LONGEST_REPLY:
            answer.close()
            raise FailedAttempt("bad_reply", f"a reply of more than {LONGEST_REPLY} bytes", retryable=True)
        parts.append(part)
    return b"".join(parts)


def read_key(entry: str, settings: ModelSettings) -> str:
    """The key, from the environment variable that is named.

    Raises:
        InputError: The variable is not set.
    """
    name = settings.key_variable
    if name is None:
        return NO_KEY
    key = os.environ.get(name, "").strip()
    if not key:
        raise InputError(
            f"models.{entry}: the environment variable {name} is not set: put the key for {settings.base_url} into it"
        )
    return key


def find_proxy(address: str) -> str | None:
    """The proxy that the environment names for an address, looked up once."""
    parts = urlsplit(address)
    if proxy_bypass(parts.netloc):
        return None
    known = getproxies()
    return known.get(parts.scheme) or known.get("all")


def _find_root_cause(error: BaseException) -> BaseException:
    """The innermost of a chain of errors; the outer ones only say that there is one."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__ or error
    return error


def _describe_error(error: BaseException) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return to_one_line(f"{type(error).__name__}: {text}" if text else type(error).__name__, MAX_MESSAGE_LENGTH)
