"""Any OpenAI-compatible server, through the official client.

Requests are encoded and replies decoded here, and the client is used for what is between them (address, key, connection
pool, errors of the connection): its typed front end costs 5 ms of CPU a request, this way half a millisecond.
"""

import os
from asyncio import timeout
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

import orjson

from chatmodel.failure import FailedAttempt, FormatRefused, Refusal, one_line
from chatmodel.model import ChatReply, ChatRequest
from chatmodel.settings import ModelSettings
from chatmodel.wire import read_reply, to_body
from trajectory import InputError, TrajsmithError
from trajectory.errors import ModelFaultKind

if TYPE_CHECKING:
    from openai import APIConnectionError, APIStatusError, AsyncOpenAI

NO_KEY = "none"
CONNECT_SECONDS = 20.0
CHECK_SECONDS = 30.0
JSON = {"Content-Type": "application/json"}


class ServedModel:
    """One model on one server."""

    def __init__(self, entry: str, settings: ModelSettings) -> None:
        self.settings = settings
        self.where = f"models.{entry} ({settings.model} at {settings.base_url})"
        self._key = read_key(entry, settings)
        self._native = settings.structured != "prompt"
        self._opened = False

    @cached_property
    def client(self) -> "AsyncOpenAI":
        """The client; its own repeating is off, and connections are as many as requests may be in flight."""
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient

        self._opened = True
        seconds = self.settings.timeout
        waits = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds), pool=None)
        most = self.settings.concurrency
        limits = httpx2.Limits(max_connections=most, max_keepalive_connections=most, keepalive_expiry=30.0)
        http = DefaultAioHttpClient(limits=limits, timeout=waits)
        return AsyncOpenAI(
            api_key=self._key, base_url=self.settings.base_url, max_retries=0, timeout=waits, http_client=http
        )

    async def send(self, request: ChatRequest) -> ChatReply:
        if request.reply_schema is None or not self._native:
            return await self._send(request, native=False)
        try:
            return await self._send(request, native=True)
        except FormatRefused as refused:
            if self.settings.structured == "native":
                raise InputError(
                    f"{self.where}: the server does not take response_format ({refused}); set structured: auto"
                ) from refused
            self._native = False
            return await self._send(request, native=False)

    async def _send(self, request: ChatRequest, native: bool) -> ChatReply:
        body = orjson.dumps(to_body(request, self.settings, native))
        return read_reply(await self._post("/chat/completions", body, bool(request.tools), native))

    async def _post(self, path: str, body: bytes, asked_tools: bool, native: bool) -> bytes:
        import httpx2
        from openai import APIConnectionError, APIStatusError

        try:
            answer = await self.client.post(path, cast_to=httpx2.Response, content=body, options={"headers": JSON})
        except APIStatusError as error:
            refusal = self._read(error)
            if native and refusal.about_format():
                raise FormatRefused(one_line(refusal.message)) from None
            raise refusal.sort(self.where, asked_tools) from None
        except APIConnectionError as error:
            raise self.lost(error) from None
        return answer.content

    def lost(self, error: "APIConnectionError") -> FailedAttempt:
        """A request that was not answered at all."""
        root = _root(error)  # the client calls a dropped connection a timeout, too
        kind: ModelFaultKind = "timeout" if isinstance(root, TimeoutError) else "connection"
        return FailedAttempt(kind, self._hide(_told(root)), again=True)

    def refused(self, error: "APIStatusError") -> FailedAttempt | TrajsmithError:
        """A request that was answered with an error status."""
        return self._read(error).sort(self.where, asked_tools=False)

    async def check(self) -> bool:
        """Ask for the list of models. A server that has no such list is left to the first request."""
        import httpx2
        from openai import APIConnectionError, APIStatusError

        try:
            async with timeout(CHECK_SECONDS):
                answer = await self.client.get("/models", cast_to=httpx2.Response)
        except TimeoutError:
            raise InputError(f"{self.where}: no answer within {CHECK_SECONDS:g} s; is base_url right?") from None
        except APIStatusError as error:
            refusal = self._read(error)
            if refusal.status in {401, 403}:
                raise refusal.sort(self.where, asked_tools=False) from None
            return False
        except APIConnectionError as error:
            raise InputError(
                f"{self.where}: cannot be reached ({self._hide(_told(_root(error)))}); is base_url right?"
            ) from None
        return self._look_for_model(answer.content)

    def _look_for_model(self, listed: bytes) -> bool:
        try:
            names = [str(row["id"]) for row in orjson.loads(listed)["data"]]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return False
        if names and self.settings.model not in names:
            close = get_close_matches(self.settings.model, names, n=3, cutoff=0.3) or sorted(names)[:3]
            raise InputError(f"{self.where}: the server has no such model; it has {', '.join(close)}")
        return bool(names)

    async def close(self) -> None:
        if self._opened:
            await self.client.close()

    def _read(self, error: Any) -> Refusal:
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        return Refusal.read(error.status_code, self._hide(error.response.text).encode(), headers)

    def _hide(self, text: str) -> str:
        """What a server or a library says, without the key."""
        return text if self._key == NO_KEY else text.replace(self._key, "[key]")


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


def _root(error: BaseException) -> BaseException:
    """The innermost of a chain of errors; the outer ones only say that there is one."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__ or error
    return error


def _told(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
