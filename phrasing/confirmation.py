"""Confirmation rules: for which calls the agent needs the user's yes, and the section of the policy that says so.

A tool declares its rule (`ToolSpec.confirm`). Where it declares none, the rule follows from what a foreign tool says
of itself: never for a read, always for a tool with `destructiveHint`, never where that hint is false, and without hints
always for a tool whose name or description opens with a verb that takes something away for good or spends money.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from trajsmith.phrasing.value_formatting import format_value, humanize, join_words
from trajsmith.phrasing.wording import derive_request_phrase
from trajsmith.phrasing.words import singularize, split_identifier, word_set
from trajsmith.records import ConfirmationRule, EnvironmentSpec, JsonObject, JsonValue, ToolSpec

RuleSource = Literal["declared", "hint", "words"]
"""Where the rule of a tool comes from: its declaration, its MCP hints, or its name, description and schema."""
NEVER = ConfirmationRule()
ALWAYS = ConfirmationRule(always=True)
_FOR_GOOD = word_set("delete remove cancel erase destroy purge wipe uninstall terminate deactivate")
_SPENDS = word_set("pay purchase buy")
_MOVES = word_set("transfer send withdraw")
_READS = word_set(
    "get list find search show check view read count describe calculate compute estimate preview lookup query fetch is "
    "has can compare"
)
_MONEY = word_set("amount money funds sum payment cash")
_IDENTIFIES = re.compile(r"(^|_)(id|ids|uuid|code|number|key|ref|sku|serial|name|title|email|path)$")
_MOST_NAMED = 12
"""Tools with a rule up to which the policy describes them in words; beyond it gives their names only."""


def get_confirmation_rule(tool: ToolSpec) -> ConfirmationRule:
    """Return the rule of a tool, declared or not."""
    return _find_rule(tool)[0]


def _find_rule(tool: ToolSpec) -> tuple[ConfirmationRule, RuleSource]:
    hints = tool.annotations
    if tool.confirm is not None or tool.actor == "user":
        return tool.confirm or NEVER, "declared"
    if hints.read_only_hint is True or hints.destructive_hint is not None:
        destroys = hints.read_only_hint is not True and hints.destructive_hint is True
        return (ALWAYS if destroys else NEVER), "hint"
    return (ALWAYS if _sounds_final(tool) else NEVER), "words"


def _sounds_final(tool: ToolSpec) -> bool:
    """Return True if name or description open with a verb that takes something away for good or spends money.

    The first verb of the name counts and the first word of the description, so that `list_cancelled_orders` and
    "Returns what was paid" are nothing; `transfer` and its like need money in the schema.
    """
    name = split_identifier(tool.name)
    opening = split_identifier(" ".join(tool.description.split()[:1]))
    verbs = {singularize(word) for word in opening} | set(name)
    if (set(name[:1]) | verbs.intersection(map(singularize, opening))) & _READS:
        return False
    spoken = {*verbs, *(word for parameter in tool.parameters for word in split_identifier(parameter))}
    return bool(verbs & (_FOR_GOOD | _SPENDS)) or bool(verbs & _MOVES and spoken & _MONEY)


def needs_confirmation(tool: ToolSpec, arguments: JsonObject, shown: Sequence[JsonValue] = ()) -> bool:
    """Return True if the agent needs the user's yes before this call.

    Args:
        tool: The tool.
        arguments: Arguments of the call.
        shown: Results that the agent has seen so far, the oldest first: for rules about the thing that is identified.
    """
    rule = get_confirmation_rule(tool)
    if rule.always:
        return True
    for name, bound in rule.above.items():
        value = arguments.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > bound:
            return True
    if any(arguments.get(name) in values for name, values in rule.arguments.items() if name in arguments):
        return True
    for field, values in rule.shown.items():
        row = find_shown_row(arguments, shown, field)
        if row and row[field] in values:
            return True
    return False


def find_shown_row(arguments: Mapping[str, Any], shown: Sequence[JsonValue], field: str = "") -> dict[str, Any]:
    """Return the newest row of the results that the arguments identify best; empty if there is none.

    Args:
        arguments: Argument to value; one that looks like an identifier must stand in the row.
        shown: Results, the oldest first.
        field: A field that the row must have.
    """
    best: dict[str, Any] = {}
    most = 0
    for row in (row for content in shown for row in iterate_rows(content)):
        if field and field not in row:
            continue
        matching = [name for name, value in arguments.items() if _has_value(row, name, value)]
        score = 10 * sum(_IDENTIFIES.search(name) is not None for name in matching) + len(matching)
        if score >= max(most, 10):
            best, most = row, score
    return best


def iterate_rows(content: JsonValue) -> Iterator[dict[str, Any]]:
    """Yield every object inside a result, the outer ones first."""
    if isinstance(content, dict):
        yield content
    for inner in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from iterate_rows(inner)


def _has_value(row: Mapping[str, Any], name: str, value: Any) -> bool:
    if not isinstance(value, str | int) or isinstance(value, bool):
        return False
    return any(other == value and (key == name or name.endswith(f"_{key}")) for key, other in row.items())


def render_confirmation_policy(
    tools: Sequence[ToolSpec], mode: Literal["conversation", "direct"] = "conversation", named: bool = True
) -> str:
    """Render the section of the policy that says before which calls the agent asks; empty if no tool writes.

    Tools with the same condition and reason share a line. Many of them are given by their names only.

    Args:
        tools: The tools that the agent is shown; those of the user are left out.
        mode: In direct mode the user has agreed to everything already.
        named: Give many tools by their names; else, where the agent does not know the names, always in words.
    """
    writes = [tool for tool in tools if tool.actor == "assistant" and tool.declares_write]
    if not writes:
        return ""
    if mode == "direct":
        return "The user has already agreed to everything that they ask for: do it without asking."
    groups: dict[tuple[str, str], list[ToolSpec]] = {}
    for tool in writes:
        rule = get_confirmation_rule(tool)
        if rule.model_copy(update={"because": ""}) != NEVER:
            groups.setdefault((_render_condition(rule), rule.because.strip().rstrip(".")), []).append(tool)
    if not groups:
        return "Do what the user asks for without asking back whether you should."
    words = not named or sum(len(members) for members in groups.values()) <= _MOST_NAMED
    lines = [
        "Before you do one of the following, say exactly what will happen and wait for the user's yes; "
        "one question may cover several of them:"
    ]
    for (condition, because), members in groups.items():
        phrases = [derive_request_phrase(tool) if words else f"`{tool.name}`" for tool in members]
        text = ("; " if words else ", ").join(dict.fromkeys(phrases))
        text = f"{condition}: {text}" if condition and len(members) > 1 else f"{text} {condition}".rstrip()
        lines.append(f"- {text}{f' ({because})' if because else ''}")
    lines.append("Do everything else that the user asks for without asking back whether you should.")
    return "\n".join(lines)


def _render_condition(rule: ConfirmationRule) -> str:
    """Render when a rule applies: "if the amount is above 200"; empty if it always does."""
    parts = [f"the {humanize(name)} is above {format_value(bound)}" for name, bound in rule.above.items()]
    parts += [f"the {humanize(name)} is {_join_choices(values)}" for name, values in rule.arguments.items()]
    for field, values in rule.shown.items():
        if set(values) <= {True, False} and len(values) == 1:
            parts.append(f"it is shown as {'' if values[0] else 'not '}{humanize(field).removeprefix('is ')}")
        else:
            parts.append(f"its {humanize(field)} is shown as {_join_choices(values)}")
    return f"if {' or '.join(parts)}" if parts else ""


def _join_choices(values: Sequence[JsonValue]) -> str:
    return join_words(map(format_value, values)).replace(" and ", " or ")


def summarize_rule(tool: ToolSpec) -> str:
    """Summarize when the agent asks before a call of this tool, and what says so if it is not declared."""
    rule, source = _find_rule(tool)
    text = "always" if rule.always else _render_condition(rule)
    return f"{text} (by its {source})" if text and source != "declared" else text


def render_full_policy(spec: EnvironmentSpec) -> str:
    """Render the policy of an environment with the section on confirmation, as its servers and `env show` give it."""
    section = render_confirmation_policy(spec.tools)
    return "\n\n".join(part for part in (spec.policy, section) if part)
