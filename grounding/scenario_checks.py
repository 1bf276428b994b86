"""Check of scenarios against the tools that they speak of, before anything is drawn."""

from collections.abc import Iterator

from trajsmith.grounding.constraints import PARTS, match_leaves
from trajsmith.grounding.fields import list_input_fields, list_output_fields
from trajsmith.grounding.paths import split_path
from trajsmith.phrasing import Scenario, ScenarioBook, ScenarioStep, list_slots
from trajsmith.records import EnvironmentSpec, InputError, ToolSpec


def check_scenarios(book: ScenarioBook, spec: EnvironmentSpec) -> None:
    """Check that all tools, parameters, fields and slots of scenarios exist.

    Raises:
        InputError: One does not; the text names file, scenario and step.
    """
    tools = {tool.name: tool for tool in spec.tools}
    fields = {name for tool in spec.tools for name in list_field_suffixes(tool)}
    for scenario in book.scenarios:
        fault = next(_find_motive_faults(scenario, tools, fields), None)
        if fault is not None:
            raise InputError(f"scenarios {book.file or f'of {spec.name}'}: scenario {scenario.id}, {fault}")
        for step in scenario.steps:
            fault = next(_find_faults(scenario, step, tools, fields), None)
            if fault is not None:
                where = book.file or f"of {spec.name}"
                raise InputError(f"scenarios {where}: scenario {scenario.id}, step {step.name}: {fault}")


def _find_motive_faults(scenario: Scenario, tools: dict[str, ToolSpec], fields: set[str]) -> Iterator[str]:
    for motive in scenario.motives:
        if isinstance(motive, str):
            continue
        for reference in motive.references:
            name, _, field = reference.partition(".")
            step = scenario.find_step(name)
            tool = tools.get(step.tool) if step is not None else None
            if tool is not None and field not in fields and field not in tool.parameters:
                yield f"motive {motive.say!r}: {name} has no parameter, and no tool a result, with a field {field!r}"


def _find_faults(scenario: Scenario, step: ScenarioStep, tools: dict[str, ToolSpec], fields: set[str]) -> Iterator[str]:
    tool = tools.get(step.tool)
    if tool is None:
        yield f"there is no tool {step.tool!r}"
        return
    leaves = list_input_fields(tool)
    for kind in ("arguments", "same_as", "other_than", "later_than", "days_ahead", "days_within"):
        for parameter in getattr(step, kind):
            if not match_leaves(leaves, parameter):
                yield f"{kind}: {step.tool} has no parameter {parameter!r}"
    for kind in ("same_as", "other_than", "later_than"):
        for reference in getattr(step, kind).values():
            yield from _find_reference_faults(scenario, kind, reference, tools)
    for reference in step.where_same.values():
        if "." not in reference.strip("."):
            yield f"where_same: {reference!r} names no field; write step.field"
    for field in (
        *step.where,
        *step.where_same,
        *step.days_old,
        *step.days_near,
        *step.days_coming,
        *step.up_to,
        *step.at_least,
        *(_get_field(value) for value in step.where_same.values()),
    ):
        if field not in fields:
            yield f"where: no result of any tool has a field {field!r}"
    listed = {field.name for field in list_output_fields(tool)}
    for name in step.every:
        if name not in listed:
            yield f"every: no result of {step.tool} has a field {name!r}"
    if scenario.change_of_mind and step.same_as and not (step.has_words or step.reasons):
        yield "nothing says why the user changes their mind; give it reasons, or words of its own"
    texts = (*step.ask, *step.say, *((*step.question.ask, *step.question.say) if step.question else ()))
    row = {"row"} if step.question is not None and step.question.row else set()
    for text in texts:
        unknown = list_slots(text) - set(tool.parameters) - row
        if unknown:
            yield f"{step.tool} has no parameter {min(unknown)!r} for the slot in {text!r}"


def _get_field(reference: str) -> str:
    return reference.partition(".")[2]


def _find_reference_faults(scenario: Scenario, kind: str, reference: str, tools: dict[str, ToolSpec]) -> Iterator[str]:
    name, dot, rest = reference.partition(".")
    field, bar, part = rest.partition("|")
    if bar and part not in PARTS:
        yield f"{kind}: {reference!r} asks for {part!r}; there are {', '.join(PARTS)}"
    earlier = scenario.find_step(name)
    tool = tools.get(earlier.tool) if earlier is not None else None
    if not dot or not field:
        yield f"{kind}: {reference!r} names no field; write step.field"
    elif tool is not None and not match_leaves(list_input_fields(tool), field):
        known = list_field_suffixes(tool)
        if field not in tool.parameters and known and field not in known:
            yield f"{kind}: {tool.name} has no parameter and no result field {field!r}"


def list_field_suffixes(tool: ToolSpec) -> set[str]:
    """Return the names by which fields of a result can be spoken of: "city" and "address.city"."""
    names = (tuple(part for part in split_path(field.path) if part != "*") for field in list_output_fields(tool))
    return {
        ".".join(parts[start:stop])
        for parts in names
        for start in range(len(parts))
        for stop in range(start + 1, len(parts) + 1)
    }
