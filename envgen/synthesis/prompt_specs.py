"""The prompts of the loop, with a value for every variable, so that they are checked before any work."""

from collections.abc import Mapping
from functools import cache
from importlib import resources

from trajsmith.models.prompts import PromptSpec
from trajsmith.records import JsonValue

PACKAGE = "envgen.synthesis"

_PROPOSAL: Mapping[str, JsonValue] = {
    "unusable": "", "name": "tool_rental", "title": "Tool rental", "domain": "leisure/tool_rental",
    "description": "Counter of a shop that rents out tools.", "entities": ["customers", "tools", "rentals"],
}  # fmt: skip
_REQUIREMENTS: Mapping[str, JsonValue] = {
    "tasks": [{"id": "T1", "request": "I want to hand back the drill.", "outcome": "The rental is over."}],
    "rules": [{"id": "R1", "text": "A rental that is over cannot be extended."}],
}
_TOOLS: list[JsonValue] = [
    {"name": "end_rental", "description": "End a rental.", "effect": "write", "arguments": {}, "result": {}}
]
_PLANNED: list[JsonValue] = [
    {"name": "end_rental", "effect": "write", "actor": "assistant", "does": "ends it",
     "parameters": ["rental_id: which"], "returns": "it",
     "refuses": ["it is over"], "rules": ["R1"], "serves": ["T1"]}
]  # fmt: skip
_COMPLAINT: Mapping[str, JsonValue] = {
    "id": "T1", "kind": "test", "tool": "end_rental", "test": "ends", "what": "test ends fails", "seen": "",
    "expected": "it is over", "calls": ["start", "end_rental({}) answers {}"],
}  # fmt: skip
_CALL: Mapping[str, JsonValue] = {
    "trial": 0,
    "call": {"tool": "end_rental", "arguments": {}, "aim": "positive", "expects": "it is over"},
    "outcome": "answers {}",
    "changes": "changes nothing",
}
_STATE: dict[str, JsonValue] = {"rentals": {}}

_EXAMPLES: dict[str, dict[str, JsonValue]] = {
        "propose": {"origin": "domain", "name": "tool rental", "summary": "", "requests": ["a"], "passages": ["b"]},
        "require": {"proposal": dict(_PROPOSAL), "requests": ["a"], "passages": ["b"]},
        "state": {"proposal": dict(_PROPOSAL), "requirements": dict(_REQUIREMENTS), "form": "", "state_class": "S"},
        "plan": {
            "proposal": dict(_PROPOSAL), "requirements": dict(_REQUIREMENTS), "state_code": "", "most": 20,
        },
        "tools": {
            "proposal": dict(_PROPOSAL), "requirements": dict(_REQUIREMENTS), "form": "", "state_code": "",
            "plan": _PLANNED, "environment_class": "ToolRental",
        },
        "texts": {"proposal": dict(_PROPOSAL), "state_code": ""},
        "seeds": {
            "proposal": dict(_PROPOSAL), "requirements": dict(_REQUIREMENTS), "form": "", "state_code": "",
            "tools_code": "", "texts": [{"name": "NAMES", "values": ["Ada"]}], "state_class": "S",
        },
        "phrase": {"proposal": dict(_PROPOSAL), "tools": _TOOLS, "tasks": _REQUIREMENTS["tasks"]},
        "test": {
            "requirements": dict(_REQUIREMENTS), "tools": _TOOLS, "state": _STATE,
            "earlier": [{"name": "ends", "tool": "end_rental", "rule": ""}],
        },
        "repair": {
            "number": 1, "form": "", "code": "", "worse": "", "complaints": [dict(_COMPLAINT)],
            "tests": [{"name": "ends"}], "requirements": dict(_REQUIREMENTS), "more": 0, "slow": [], "fixed": ["ends"],
        },
        "try": {
            "number": 1, "count": 12, "tools": _TOOLS, "state": _STATE, "tried": {"end_rental": 0},
            "rules": [{"id": "R1", "text": "x"}],
        },
        "check": {
            "calls": [dict(_CALL)], "sources": {"end_rental": "def"}, "rules": [{"id": "R1", "text": "x"}],
            "descriptions": {"end_rental": "End a rental."},
        },
        "enlarge": {
            "proposal": dict(_PROPOSAL), "requirements": dict(_REQUIREMENTS), "plan": _PLANNED, "code": "",
            "wish": "workshops", "room": 9, "task": 2, "rule": 2,
        },
        "extend": {
            "form": "", "code": "", "name": "tool_rental_g2", "entities": ["workshops"],
            "rules": [{"id": "R2", "text": "x"}], "tools": _PLANNED, "keeps": [{"tool": "end_rental", "rules": ["R2"]}],
            "texts": [{"name": "NAMES", "values": ["Ada"]}],
        },
}  # fmt: skip
_SOURCE_EXAMPLES: dict[str, dict[str, JsonValue]] = {
        "search": {
            "name": "tool rental", "summary": "", "round": 1, "rounds": 4, "tables": ["tools (name): 1 rows"],
            "queries": ["tool rental rules"], "most": 3, "pages": 3, "statements": 0, "results": ["a"],
        },
        "expand": {
            "count": 20, "full": ["travel"], "categories": ["travel (9)"],
            "examples": [{"name": "tool rental", "summary": "Rents tools out.", "category": "leisure"}],
        },
        "screen": {"domains": [{"name": "tool rental", "summary": "Rents tools out.", "category": "leisure"}]},
        "read": {"name": "tool rental", "tables": ["tools (name): 1 rows"], "paragraphs": ["a"]},
}  # fmt: skip
SPECS = {stage: PromptSpec(f"{PACKAGE}/{stage}", example) for stage, example in _EXAMPLES.items()}
"""The prompt of every stage of an environment."""
SOURCE_SPECS = {stage: PromptSpec(f"{PACKAGE}/{stage}", example) for stage, example in _SOURCE_EXAMPLES.items()}
"""The prompt of every stage that finds themes, or what is known of them."""


@cache
def describe_native_form() -> str:
    """Describe the native form of an environment, for those who write code."""
    return resources.files(f"trajsmith.{PACKAGE}").joinpath("prompts", "native_form.md").read_text(encoding="utf-8")
