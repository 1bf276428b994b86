"""What an agent says of a result that nobody wrote phrases for."""

from collections.abc import Iterator, Sequence
from typing import Any

from chatmodel import capital
from chatmodel.surface import human, mentions, quoted, say, words
from trajectory import GoldCall


def facts_beside(text: str, facts: Sequence[Any], results: Sequence[Any]) -> list[str]:
    """Sentences for the facts that a text leaves out, each by the name of the field in which the results show it."""
    missing = [fact for fact in facts if not mentions(text, fact)]
    fields = [(name, value) for result in results for name, value in _fields(result)]
    named = [(next((name for name, value in fields if value == fact), ""), fact) for fact in missing]
    found = [f"{capital(human(name))}: {quoted(fact)}." for name, fact in named if name]
    bare = [quoted(fact) for name, fact in named if not name]
    return [*found, *([f"It also shows {words(bare)}."] if bare else [])]


def _fields(result: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value of a result with the name of its field."""
    if isinstance(result, dict):
        for key, value in result.items():
            yield from _fields(value, key)
    elif isinstance(result, list):
        for value in result:
            yield from _fields(value, name)
    else:
        yield name, result


def plain_report(call: GoldCall, content: Any) -> str:
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
        rows = "; ".join(say(row) for row in content[:8])
        return f"I found {len(content)}: {rows}."
    if isinstance(content, dict):
        opening = "Here is what I found" if call.effect == "read" else "Done"
        return f"{opening}: {say({key: value for key, value in content.items() if value not in (None, [], {})})}."
    return f"The answer is {say(content)}." if call.effect == "read" else "That's done."
