"""Plan what a model adds to an environment and write the first draft (complexification, Agent-World 3.1).

The designer says which records, rules, tools and tasks are added, the programmer writes the whole file anew with them.
"""

import ast
import asyncio
from collections.abc import Sequence

from pydantic import Field, ValidationError

from trajsmith.envgen.generate.formatting import fix_and_format_code
from trajsmith.envgen.growth.model_parent import ModelParent
from trajsmith.envgen.synthesis.answer_schemas import (
    BusinessRule,
    PlannedTool,
    Requirements,
    SnakeName,
    TaskRequirement,
    TextList,
    ToolPlan,
    UnitTest,
)
from trajsmith.envgen.synthesis.design_stages import (
    find_missing_table,
    find_plan_fault,
    find_seeds_fault,
    find_tools_fault,
)
from trajsmith.envgen.synthesis.prompt_specs import describe_native_form
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import Design, EnvironmentDraft, Provenance, Theme
from trajsmith.records import FrozenModel, format_first_error

MAX_NEW_ENTITIES = 3
"""Kinds of records that are added at most in one generation."""


class ExtendedTool(FrozenModel):
    """Existing tool that also has to enforce new rules."""

    tool: SnakeName
    rules: tuple[str, ...]


class GrowthPlan(FrozenModel):
    """Additions to an environment, as a model plans them."""

    impossible: str
    """Why nothing sensible can be added; empty if something can."""
    entities: tuple[SnakeName, ...] = Field(max_length=MAX_NEW_ENTITIES)
    tasks: tuple[TaskRequirement, ...] = ()
    rules: tuple[BusinessRule, ...] = ()
    tools: tuple[PlannedTool, ...] = ()
    keeps: tuple[ExtendedTool, ...] = ()
    texts: tuple[TextList, ...] = ()


async def plan_growth(
    generator: PromptedGenerator, theme: Theme, parent: ModelParent, earlier: Sequence[UnitTest], most: int
) -> tuple[GrowthPlan, Design]:
    """Return the planned additions and the child's design, which includes all of the parent's.

    Args:
        earlier: Tests that the child must pass.
        most: Tools that an environment has at most.
    """
    old = parent.design
    growth, provenance = await generator.answer(
        "enlarge", theme.id, GrowthPlan, lambda one: find_growth_fault(one, parent, theme.source.name, most),
        proposal=old.proposal.model_dump(mode="json"), requirements=old.requirements.model_dump(mode="json"),
        plan=[tool.model_dump(mode="json") for tool in parent.plan], code=parent.code,
        wish=next(iter(theme.source.requests), ""), room=most - len(parent.plan),
        task=_next_id([task.id for task in old.requirements.tasks]),
        rule=_next_id([rule.id for rule in old.requirements.rules]),
    )  # fmt: skip
    if growth.impossible.strip():
        return growth, old
    return growth, build_child_design(growth, parent, theme, tuple(earlier), {"enlarge": provenance})


def _next_id(ids: Sequence[str]) -> int:
    return max(int(one[1:]) for one in ids) + 1


def build_child_design(
    growth: GrowthPlan,
    parent: ModelParent,
    theme: Theme,
    earlier: tuple[UnitTest, ...],
    provenance: dict[str, Provenance],
) -> Design:
    """Return the parent's design with the additions.

    Raises:
        ValidationError: There would be too many tasks or rules, or two of one id.
    """
    old = parent.design
    entities = (*old.proposal.entities, *growth.entities)
    proposal = old.proposal.model_copy(update={"name": theme.source.name, "entities": entities})
    requirements = Requirements(
        tasks=(*old.requirements.tasks, *growth.tasks), rules=(*old.requirements.rules, *growth.rules)
    )
    also = {one.tool: one.rules for one in growth.keeps}
    tools = [tool.model_copy(update={"rules": (*tool.rules, *also.get(tool.name, ()))}) for tool in parent.plan]
    return Design(
        theme=theme.id, proposal=proposal, requirements=requirements, plan=ToolPlan(tools=(*tools, *growth.tools)),
        texts=(*old.texts, *growth.texts), state_code=old.state_code, earlier=earlier,
        provenance=old.provenance | provenance,
    )  # fmt: skip


def find_growth_fault(growth: GrowthPlan, parent: ModelParent, child: str, most: int) -> str:
    """Return the fault of an addition; empty if there is none."""
    if growth.impossible.strip():
        return ""
    if not growth.tools:
        return "add at least one tool, or say why nothing can be added."
    twice = set(growth.entities) & set(parent.design.proposal.entities)
    if twice:
        return f"{sorted(twice)[0]} is there already: entities are new ones only."
    names = {tool.name for tool in parent.plan}
    unknown = [one.tool for one in growth.keeps if one.tool not in names]
    if unknown:
        return f"keeps: there is no tool {unknown[0]} yet."
    texts = {one.name for one in parent.design.texts} & {one.name for one in growth.texts}
    if texts:
        return f"there is a list {sorted(texts)[0]} already: give the new one another name."
    theme = Theme(source=parent.source(child, ""))
    try:
        design = build_child_design(growth, parent, theme, (), {})
    except ValidationError as error:
        return f"{format_first_error(error)}."
    return find_plan_fault(design.plan, design.requirements, most)


async def write_extension(generator: PromptedGenerator, design: Design, parent: ModelParent) -> EnvironmentDraft:
    """Write the first version of the child's file."""
    tools = {tool.name for tool in parent.plan}
    rules = {rule.id for rule in parent.design.requirements.rules}
    extended = [
        {"tool": tool.name, "rules": [one for one in tool.rules if one not in rules]} for tool in design.plan.tools
    ]
    texts = {one.name for one in parent.design.texts}
    code, provenance = await generator.code(
        "extend",
        design.theme,
        lambda one: find_extension_fault(one, design),
        form=describe_native_form(),
        code=parent.code,
        name=design.proposal.name,
        entities=list(design.proposal.entities[len(parent.design.proposal.entities) :]),
        rules=[rule.model_dump(mode="json") for rule in design.requirements.rules if rule.id not in rules],
        tools=[tool.model_dump(mode="json") for tool in design.plan.tools if tool.name not in tools],
        keeps=[one for one in extended if one["tool"] in tools and one["rules"]],
        texts=[one.model_dump(mode="json") for one in design.texts if one.name not in texts],
    )
    whole = await asyncio.to_thread(fix_and_format_code, code)
    return EnvironmentDraft(
        theme=design.theme, design=design.id, number=0, code=whole, provenance={"extend": provenance}
    )


def find_extension_fault(code: str, design: Design) -> str:
    """Return the fault of a child's code, checked statically; empty if there is none."""
    classes = [node for node in ast.parse(code).body if isinstance(node, ast.ClassDef)]
    fault = find_missing_table(design.proposal, classes)
    if fault:
        return fault
    names = {_find_name_value(part) for node in classes for part in node.body}
    if design.proposal.name not in names:
        return f'the class must say name = "{design.proposal.name}".'
    return find_tools_fault(code, [tool.name for tool in design.plan.tools]) or find_seeds_fault(code)


def _find_name_value(node: ast.stmt) -> str:
    """The text that a statement of a class gives to `name`, if it does."""
    named = isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == "name" for one in node.targets)
    return str(node.value.value) if named and isinstance(node.value, ast.Constant) else ""  # type: ignore[attr-defined]
