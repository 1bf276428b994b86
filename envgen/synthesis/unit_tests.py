"""Tests of a draft that starts: written by a tester who sees tools, tasks and rules, and no code (EnvScaler 3.3)."""

from collections.abc import Sequence

from trajsmith.envgen.synthesis.answer_schemas import UnitTest, UnitTestSuite
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import Design, Provenance
from trajsmith.records import EnvironmentSpec, JsonObject, JsonValue

SHOWN_ROWS = 3
"""Rows of every table that a tester is shown."""


async def write_tests(
    generator: PromptedGenerator, design: Design, spec: EnvironmentSpec, state: JsonObject
) -> tuple[tuple[UnitTest, ...], Provenance]:
    """Request tests: an answered call of every tool at least, and for each rule one that it forbids.

    Of an environment that was grown only the tests that its ancestors do not have.
    """
    suite, provenance = await generator.answer(
        "test",
        design.theme,
        UnitTestSuite,
        lambda answer: find_suite_fault(answer.tests, spec, design),
        earlier=[{"name": test.name, "tool": test.tool, "rule": test.rule} for test in design.earlier],
        requirements=design.requirements.model_dump(mode="json"),
        tools=describe_tools(spec),
        state=shorten_state(state),
    )
    return suite.tests, provenance


def find_suite_fault(tests: Sequence[UnitTest], spec: EnvironmentSpec, design: Design) -> str:
    """Return what a set of tests lacks; empty if nothing."""
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


def describe_tools(spec: EnvironmentSpec) -> list[JsonValue]:
    """Return tools as their users see them, without code."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "effect": "read" if tool.annotations.read_only_hint else "write",
            **({"actor": tool.actor} if tool.actor == "user" else {}),
            "arguments": tool.input_schema,
            "result": tool.output_schema,
        }
        for tool in spec.tools
    ]


def shorten_state(state: JsonObject, rows: int = SHOWN_ROWS) -> JsonObject:
    """Return a state with the first rows of every table, and their number."""
    shortened: JsonObject = {}
    for name, value in state.items():
        if isinstance(value, dict) and name != "counters" and len(value) > rows:
            first_rows = dict(sorted(value.items())[:rows])
            shortened[name] = {**first_rows, "…": f"{len(value)} in all"}
        else:
            shortened[name] = value
    return shortened
