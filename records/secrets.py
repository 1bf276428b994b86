"""Keys and tokens: find them in texts, and keep them out of what is stored and published."""

import os
import re
from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

PLACEHOLDER = "[redacted]"
SHORTEST = 8
"""Values of environment variables shorter than this are not searched for: they would match by chance."""
REFERENCE = re.compile(r"\$\{\w+\}")
SECRET_NAME = re.compile(
    r"(?:^|[_-])(?:api_?key|key|token|secret|passwd|password|credentials?)$|authorization|cookie|api-?key", re.I
)
SHAPES = re.compile(
    r"(?<![\w-])(?:sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{30,}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{40,}|glpat-[\w-]{20,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
"""Keys of well-known services, JSON web tokens and private keys."""


def known_secrets() -> dict[str, str]:
    """Environment variables that bear a key by their name, by their value; the longest first."""
    secrets = {
        value.strip(): name
        for name, value in os.environ.items()
        if SECRET_NAME.search(name) and len(value.strip()) >= SHORTEST and not os.path.exists(value)  # noqa: PTH110
    }
    return dict(sorted(secrets.items(), key=lambda item: -len(item[0])))


def find_secret(text: str, known: dict[str, str]) -> str | None:
    """Say which key a text holds, without the key; None if it holds none. `known` is that of `known_secrets`."""
    for value, name in known.items():
        if value in text:
            return f"the value of the environment variable {name}"
    match = SHAPES.search(text)
    return f"what looks like a key ({match[0][:4]}…)" if match else None


def redact_key_shapes(text: str) -> str:
    """Replace what looks like a key of a well-known service, a JSON web token or a private key."""
    return SHAPES.sub(PLACEHOLDER, text)


def redact_secrets(text: str, values: tuple[str, ...]) -> str:
    """Replace secret values in a text."""
    pattern = _pattern(values)
    return text if pattern is None else pattern.sub(PLACEHOLDER, text)


@lru_cache(maxsize=64)
def _pattern(values: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True)))) if values else None


def redact_url(url: str) -> str:
    """Replace the user and the query of an address; references to environment variables stay."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    user = user if not user or REFERENCE.search(user) else PLACEHOLDER
    query = parts.query if not parts.query or REFERENCE.search(parts.query) else PLACEHOLDER
    return urlunsplit(parts._replace(netloc=f"{user}{at}{host}", query=query))
