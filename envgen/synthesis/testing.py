"""Tests of a draft that starts: written by a tester who sees tools, tasks and rules, and no code (EnvScaler 3.3)."""

from collections.abc import Sequence

from envgen.synthesis.desk import Desk
from envgen.synthesis.parts import Suite, UnitTest
from envgen.synthesis.records import Design, Provenance
from trajectory import EnvironmentSpec, JsonObject, JsonValue

ROWS = 3
"""Rows of every table that a tester is shown."""


async def write_tests(
    desk: Desk, design: Design, spec: EnvironmentSpec, state: JsonObject
) -> tuple[tuple[UnitTest, ...], Provenance]:
    """An answered call of every tool at least, and for each rule one that it forbids.

    Of an environment that was grown only the tests that its ancestors do not have.
    """
    suite, told = await desk.answer(
        "test", design.theme, Suite, lambda found: wrong_suite(found.tests, spec, design),
        earlier=[{"name": test.name, "tool": test.tool, "rule": test.rule} for test in design.earlier],
        requirements=design.requirements.model_dump(mode="json"), tools=tools_shown(spec), state=shown(state),
    )  # fmt: skip
    return suite.tests, told


def wrong_suite(tests: Sequence[UnitTest], spec: EnvironmentSpec, design: Design) -> str:
    """What is missing from a set of tests; empty if nothing is."""
    names = {tool.name for tool in spec.tools}
    rules = {rule.id for rule in design.requirements.rules}
    known = {test.name for test in design.earlier}
    for test in tests:
        if test.name in known:
            return f"test {test.name} is there already: leave it out, or give another name."
        unknown = [call.tool for call in test.calls if call.tool not in names]
        if unknown:
            return f"test {test.name} calls {unknown[0]}, which is no tool."
        if test.rule and test.rule not in rules:
            return f"test {test.name} is about {test.rule}, which is no rule."
    every = (*design.earlier, *tests)
    untested = names - {test.tool for test in every if test.expect == "answered"}
    if untested:
        return f"no test has an answered call of {', '.join(sorted(untested))}."
    untried = rules - {test.rule for test in every}
    return f"no test shows that these rules bind: {', '.join(sorted(untried))}." if untried else ""


def tools_shown(spec: EnvironmentSpec) -> list[JsonValue]:
    """Tools as somebody sees them who sees no code."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "effect": "read" if tool.annotations.read_only_hint else "write",
            "arguments": tool.input_schema,
            "result": tool.output_schema,
        }
        for tool in spec.tools
    ]


def shown(state: JsonObject, rows: int = ROWS) -> JsonObject:
    """A state with the first rows of every table, and how many there are."""
    found: JsonObject = {}
    for name, value in state.items():
        if isinstance(value, dict) and name != "counters" and len(value) > rows:
            kept = dict(sorted(value.items())[:rows])
            found[name] = {**kept, "…": f"{len(value)} in all"}
        else:
            found[name] = value
    return found
