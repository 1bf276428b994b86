"""Failed attempts at a model request, classified by how they can be handled."""

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time

import orjson

from trajsmith.models.model import Usage
from trajsmith.records import InputError, ModelFault, ModelFaultKind, RunError, TrajsmithError, to_one_line

OUTAGE: frozenset[ModelFaultKind] = frozenset({"timeout", "connection", "rate_limit", "server"})
MAX_MESSAGE_LENGTH = 300
LONGEST_ERROR = 20_000
"""Characters of an error's text that are looked at; the patterns below are not meant for more."""

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
_NO_FORMAT = re.compile(r"response_format|text\.format|json_schema|structured[_ ]output|guided", re.IGNORECASE)
_NO_ENCRYPTION = re.compile(
    r"reasoning\.encrypted_content|encrypted content is not supported"
    r"|(unknown|unsupported|unrecognized) (parameter|field|argument):? ['\"`]include\b",
    re.IGNORECASE,
)


class ResponseFormatUnsupported(Exception):
    """Raised when the server does not support `response_format`: the schema must go into the prompt."""


class EncryptionUnsupported(Exception):
    """Raised when the model gives no encrypted reasoning: it must not be asked for."""


@dataclass
class FailedAttempt(Exception):
    """One attempt that gave no usable answer."""

    kind: ModelFaultKind
    message: str
    retryable: bool
    """A later attempt may well succeed."""
    after: float | None = None
    """Seconds that the server asked to wait."""
    reply: str = ""
    usage: Usage | None = None
    """What the server counted, where it answered and so was paid."""

    def as_fault(self, model: str, sent: int) -> ModelFault:
        times = f" (sent {sent} times)" if sent > 1 else ""
        return ModelFault(self.kind, model, to_one_line(self.message, MAX_MESSAGE_LENGTH) + times, self.reply)


@dataclass(frozen=True)
class HttpErrorResponse:
    """An HTTP answer with an error status."""

    status: int
    code: str
    """Machine-readable code in the body, where there is one."""
    message: str
    retry_after: float | None

    @classmethod
    def read(cls, status: int, body: bytes, headers: dict[str, str]) -> "HttpErrorResponse":
        code, message = _read_error_body(body)
        message = message[:LONGEST_ERROR] or f"HTTP {status}"
        return cls(status, code[:MAX_MESSAGE_LENGTH], message, _retry_after(headers))

    @property
    def text(self) -> str:
        return f"{self.code} {self.message}"

    def about_format(self) -> bool:
        return self.status in {400, 404, 422, 501} and bool(_NO_FORMAT.search(self.text))

    def about_encryption(self) -> bool:
        return self.status in {400, 422} and bool(_NO_ENCRYPTION.search(self.text))

    def to_error(self, where: str, asked_tools: bool) -> FailedAttempt | TrajsmithError:
        """Convert the error response to a failed attempt, or to an error that ends the run.

        Args:
            where: Entry, model and address, for the line that the user reads.
            asked_tools: The request showed tools.
        """
        summary = f"HTTP {self.status}: {to_one_line(self.message, MAX_MESSAGE_LENGTH)}"
        if self.status in {401, 403}:
            return InputError(f"{where}: the server refuses the key ({summary}); set the variable named by key_env")
        if self.status == 429 and "insufficient_quota" in self.text:
            return RunError(f"{where}: the account has no quota left ({summary}); add credit, then resume")
        if self.status == 429:
            return FailedAttempt("rate_limit", summary, retryable=True, after=self.retry_after)
        if self.status in {408, 409, 425} or (self.status >= 500 and self.status != 501):
            return FailedAttempt("server", summary, retryable=True, after=self.retry_after)
        if self.status == 413 or _OVERFLOW.search(self.text):
            return FailedAttempt("context_overflow", summary, retryable=False)
        if _FILTER.search(self.text):
            return FailedAttempt("content_filter", summary, retryable=False)
        if "model_not_found" in self.code or _NO_SUCH_MODEL.search(self.message):
            return InputError(f"{where}: the server has no such model ({summary})")
        if self.status == 404:
            return InputError(f"{where}: nothing answers there ({summary}); base_url must end like http://host:port/v1")
        if asked_tools and _NO_TOOLS.search(self.text):
            return InputError(
                f"{where}: the server takes no tools ({summary}); start it with tool calling (vLLM: "
                "--enable-auto-tool-choice --tool-call-parser NAME, llama.cpp: --jinja) or choose another model"
            )
        return FailedAttempt("bad_request", summary, retryable=False)


def _read_error_body(body: bytes) -> tuple[str, str]:
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
        header = headers["retry-after"]
        try:
            return max(0.0, float(header))
        except ValueError:
            return max(0.0, parsedate_to_datetime(header).timestamp() - time())
    except (ValueError, OverflowError):
        return None
