"""Keys, tokens and passwords in recordings: replaced before anything else reads them."""

import re
from typing import Any

from trajsmith.records import known_secrets, redact_key_shapes, redact_secrets

PLACEHOLDER = "[redacted]"
SECRET_FIELD = re.compile(
    r"authorization|cookie|api[_-]?key|access[_-]?key|private[_-]?key|passw(or)?d|passphrase|secret|credential"
    r"|(^|[_-])(access|refresh|auth|session|bearer|csrf|id)[_-]?token$|^token$|^session[_-]?id$|^bearer$",
    re.I,
)
"""Names of fields and parameters whose texts are secrets."""
BEARER = re.compile(r"\b(bearer|basic|token)\s+[A-Za-z0-9._~+/=-]{12,}", re.I)


class Redactor:
    """Replaces secrets in JSON values: of fields that bear one by name, and of known forms anywhere."""

    def __init__(self) -> None:
        self._known = tuple(known_secrets())
        self.count = 0

    def redact(self, value: Any, name: str = "") -> Any:
        """Return a value without secrets."""
        if isinstance(value, dict):
            return {self._redact_text(key): self.redact(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.redact(inner, name) for inner in value]
        if isinstance(value, str):
            if name and value and SECRET_FIELD.search(name):
                self.count += 1
                return PLACEHOLDER
            return self._redact_text(value)
        return value

    def _redact_text(self, text: str) -> str:
        plain = redact_secrets(BEARER.sub(PLACEHOLDER, redact_key_shapes(text)), self._known)
        self.count += plain != text
        return plain
