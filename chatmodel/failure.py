"""Failed attempts at a request, sorted by what may be done about them."""

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time

import orjson

from chatmodel.model import Usage
from trajectory import InputError, ModelFault, RunError, TrajsmithError
from trajectory.errors import ModelFaultKind

OUTAGE: frozenset[ModelFaultKind] = frozenset({"timeout", "connection", "rate_limit", "server"})
LONGEST = 300

_OVERFLOW = re.compile(
    r"context[_ ](length|size|window)|maximum context|exceed_context|prompt is too long|too many (input )?tokens"
    r"|max_model_len|input is too long",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content_filter|content[_ ](policy|management)|safety system|flagged", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"tool[_ -]?(choice|call(ing|s)?|use)|tools\b|function[_ -]?call|enable-auto-tool-choice|--jinja", re.IGNORECASE
)
_NO_SUCH_MODEL = re.compile(r"model.{0,200}(does not exist|not found|not exist|unknown)|unknown model", re.IGNORECASE)
_NO_FORMAT = re.compile(r"response_format|json_schema|structured[_ ]output|guided", re.IGNORECASE)


class FormatRefused(Exception):
    """The server does not take `response_format`: the reply must be asked for in words."""


@dataclass
class FailedAttempt(Exception):
    """One attempt that gave no usable answer."""

    kind: ModelFaultKind
    message: str
    again: bool
    """A later attempt may well succeed."""
    after: float | None = None
    """Seconds that the server asked to wait."""
    reply: str = ""
    usage: Usage | None = None
    """What the server counted, where it answered and so was paid."""

    def as_fault(self, model: str, sent: int) -> ModelFault:
        times = f" (sent {sent} times)" if sent > 1 else ""
        return ModelFault(self.kind, model, one_line(self.message) + times, self.reply)


@dataclass(frozen=True)
class Refusal:
    """An HTTP answer with an error status."""

    status: int
    code: str
    """Machine-readable code in the body, where there is one."""
    message: str
    retry_after: float | None

    @classmethod
    def read(cls, status: int, body: bytes, headers: dict[str, str]) -> "Refusal":
        code, message = _told(body)
        return cls(status, code, message or f"HTTP {status}", _retry_after(headers))

    @property
    def text(self) -> str:
        return f"{self.code} {self.message}"

    def about_format(self) -> bool:
        return self.status in {400, 404, 422, 501} and bool(_NO_FORMAT.search(self.text))

    def sort(self, where: str, asked_tools: bool) -> FailedAttempt | TrajsmithError:
        """What the refusal means for the request, or for the whole run.

        Args:
            where: Entry, model and address, for the line that the user reads.
            asked_tools: The request showed tools.
        """
        said = f"HTTP {self.status}: {one_line(self.message)}"
        if self.status in {401, 403}:
            return InputError(f"{where}: the server refuses the key ({said}); set the variable named by key_env")
        if self.status == 429 and "insufficient_quota" in self.text:
            return RunError(f"{where}: the account has no quota left ({said}); add credit, then resume")
        if self.status == 429:
            return FailedAttempt("rate_limit", said, again=True, after=self.retry_after)
        if self.status in {408, 409, 425} or (self.status >= 500 and self.status != 501):
            return FailedAttempt("server", said, again=True, after=self.retry_after)
        if self.status == 413 or _OVERFLOW.search(self.text):
            return FailedAttempt("context_overflow", said, again=False)
        if _FILTER.search(self.text):
            return FailedAttempt("content_filter", said, again=False)
        if "model_not_found" in self.code or _NO_SUCH_MODEL.search(self.message):
            return InputError(f"{where}: the server has no such model ({said})")
        if self.status == 404:
            return InputError(f"{where}: nothing answers there ({said}); base_url must end like http://host:port/v1")
        if asked_tools and _NO_TOOLS.search(self.text):
            return InputError(
                f"{where}: the server takes no tools ({said}); start it with tool calling (vLLM: "
                "--enable-auto-tool-choice --tool-call-parser NAME, llama.cpp: --jinja) or choose another model"
            )
        return FailedAttempt("bad_request", said, again=False)


def one_line(text: str) -> str:
    """Foreign text, short and on one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[:LONGEST] + "…"


def _told(body: bytes) -> tuple[str, str]:
    """Code and message of an error body, in the forms that servers use."""
    text = body.decode("utf-8", "replace")
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "", text
    if isinstance(parsed, dict) and isinstance(parsed.get("error"), dict):
        parsed = parsed["error"]
    if not isinstance(parsed, dict):
        return "", text
    code = " ".join(str(parsed[key]) for key in ("code", "type") if parsed.get(key))
    message = next((parsed[key] for key in ("message", "detail", "error") if parsed.get(key)), text)
    return code, message if isinstance(message, str) else orjson.dumps(message).decode()


def _retry_after(headers: dict[str, str]) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        if "retry-after" not in headers:
            return None
        told = headers["retry-after"]
        try:
            return max(0.0, float(told))
        except ValueError:
            return max(0.0, parsedate_to_datetime(told).timestamp() - time())
    except (ValueError, OverflowError):
        return None
