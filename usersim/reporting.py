"""Default reports of results without phrases, for the scripted agent."""

from collections.abc import Iterator, Sequence
from typing import Any

from trajsmith.phrasing import capitalize_first
from trajsmith.phrasing.value_formatting import format_quoted, format_value, humanize, is_value_mentioned, join_words
from trajsmith.records import GoldCall


def render_missing_facts(text: str, facts: Sequence[Any], results: Sequence[Any]) -> list[str]:
    """Return sentences for the facts that a text leaves out, each with the field name from the results."""
    missing = [fact for fact in facts if not is_value_mentioned(text, fact)]
    fields = [(name, value) for result in results for name, value in _iter_fields(result)]
    named = [(next((name for name, value in fields if value == fact), ""), fact) for fact in missing]
    sentences = [f"{capitalize_first(humanize(name))}: {format_quoted(fact)}." for name, fact in named if name]
    bare = [format_quoted(fact) for name, fact in named if not name]
    return [*sentences, *([f"It also shows {join_words(bare)}."] if bare else [])]


def _iter_fields(result: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value of a result with the name of its field."""
    if isinstance(result, dict):
        for key, value in result.items():
            yield from _iter_fields(value, key)
    elif isinstance(result, list):
        for value in result:
            yield from _iter_fields(value, name)
    else:
        yield name, result


def render_plain_report(call: GoldCall, content: Any) -> str:
    """A report for tools that nobody wrote phrases for: the text itself, or the fields with their names."""
    while isinstance(content, dict) and len(content) == 1:
        content = next(iter(content.values()))
    if isinstance(content, str):
        return (
            f"Here is what I got:\n{content.strip()}"
            if "\n" in content.strip()
            else f"Here is what I got: {content.strip()}"
        )
    if isinstance(content, list):
        rows = "; ".join(format_value(row) for row in content[:8])
        return f"I found {len(content)}: {rows}."
    if isinstance(content, dict):
        opening = "Here is what I found" if call.effect == "read" else "Done"
        return (
            f"{opening}: {format_value({key: value for key, value in content.items() if value not in (None, [], {})})}."
        )
    return f"The answer is {format_value(content)}." if call.effect == "read" else "That's done."
