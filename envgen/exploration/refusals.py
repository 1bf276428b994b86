"""Refusals that a server gives as plain texts: patterns of how they begin, from calls that were wrong for certain."""

import re
from collections.abc import Iterable

_FIELDS = re.compile(
    r'\s*\{\s*"(?:(?P<flag>ok|success|successful|found|valid)":\s*false|(?P<error>error|errors|error_message)":\s*[^n\s]'
    r'|(?P<status>status|result)":\s*"(?P<word>error|failed|failure|not_found)")'
)
_ERROR = re.compile(r"(?i)\b(?:error|exception|failed|failure|invalid|unknown|cannot|refused|denied|unable|illegal)\b")
_ABSENT = re.compile(
    r"(?i)\b(?:not found|no such|does not exist|doesn't exist|not exist|is required|must be|no \w+ (?:with|found))\b"
)
_HEAD = re.compile(r"[^\n:]{1,40}:")
_OPENING = 160
"""Characters at the beginning of a result that tell a refusal."""


def looks_refused(text: str) -> bool:
    """Return True if the beginning of a result reads like a refusal."""
    opening = text[:_OPENING].lstrip("❌⚠️ ")
    if _FIELDS.match(text):
        return True
    if opening.startswith(("{", "[")):
        return False
    head = _HEAD.match(opening)
    if head and _ERROR.search(head[0]):
        return True
    first = re.split(r"[.\n]", opening, maxsplit=1)[0]
    return bool(_ABSENT.search(first)) or bool(
        re.match(r"(?i)(?:invalid|unknown|failed|cannot|could not|unable)\b", opening)
    )


def infer_pattern(text: str, values: Iterable[str]) -> str:
    """Return a regular expression of how a refusal begins.

    Args:
        text: The refusal.
        values: Arguments of the call; the pattern takes any text in their place.
    """
    fields = _FIELDS.match(text)
    if fields:
        if fields["flag"]:
            return rf'\s*\{{\s*"{fields["flag"]}":\s*false'
        if fields["error"]:
            return rf'\s*\{{\s*"{fields["error"]}":\s*[^n\s]'
        return rf'\s*\{{\s*"{fields["status"]}":\s*"{fields["word"]}"'
    lead = re.match(r"[❌⚠️\s]*", text)
    start = lead[0] if lead else ""
    head = _HEAD.match(text[len(start) :])
    if head and _ERROR.search(head[0]):
        return re.escape(start) + re.escape(head[0])
    first = re.split(r"(?<=[^\d])[.\n]", text[:_OPENING], maxsplit=1)[0]
    pattern = re.escape(first)
    for value in sorted((str(value) for value in values), key=len, reverse=True):
        if value and value in first:
            pattern = pattern.replace(re.escape(value), "\0")
    return re.sub(r"\d+", r"\\d+", pattern).replace("\0", r"[^\n]{1,80}?")


def infer_refusals(wrong: Iterable[tuple[str, tuple[str, ...]]], right: Iterable[str]) -> list[str]:
    """Return the patterns of the texts that were refusals, without those that match a right result.

    Args:
        wrong: Texts that read like refusals, each with the arguments of its call.
        right: Texts of results that do not.
    """
    texts = list(right)
    patterns = dict.fromkeys(infer_pattern(text, values) for text, values in wrong)
    return [pattern for pattern in patterns if not any(re.match(pattern, text) for text in texts)]
