"""What an environment gets more of, and the first draft that has it: complexification by models (Agent-World 3.1).

The designer says which records, rules, tools and tasks are added, the programmer writes the whole file anew with them.
"""

import ast
import asyncio
from collections.abc import Sequence

from pydantic import Field, ValidationError

from envgen.generate.tidying import tidied
from envgen.growth.model_parent import ModelParent
from envgen.synthesis.designing import wrong_plan, wrong_seeds, wrong_tools
from envgen.synthesis.desk import Desk
from envgen.synthesis.parts import Need, PlannedTool, Requirements, Rule, SnakeName, TextList, ToolPlan, UnitTest
from envgen.synthesis.prompting import native_form
from envgen.synthesis.records import Design, Draft, Provenance, Theme
from trajectory import Frozen, first_fault

ENTITIES = 3
"""Kinds of records that are added at most in one generation."""


class Kept(Frozen):
    """A tool that is there already and keeps new rules as well."""

    tool: SnakeName
    rules: tuple[str, ...]


class Growth(Frozen):
    """What is added."""

    impossible: str
    """Why nothing sensible can be added; empty if something can."""
    entities: tuple[SnakeName, ...] = Field(max_length=ENTITIES)
    tasks: tuple[Need, ...] = ()
    rules: tuple[Rule, ...] = ()
    tools: tuple[PlannedTool, ...] = ()
    keeps: tuple[Kept, ...] = ()
    texts: tuple[TextList, ...] = ()


async def enlarge(
    desk: Desk, theme: Theme, parent: ModelParent, earlier: Sequence[UnitTest], most: int
) -> tuple[Growth, Design]:
    """What is added, and the design of the child: all of the parent's with it.

    Args:
        earlier: Tests that the child must pass.
        most: Tools that an environment has at most.
    """
    old = parent.design
    found, told = await desk.answer(
        "enlarge", theme.id, Growth, lambda one: wrong_growth(one, parent, theme.source.name, most),
        proposal=old.proposal.model_dump(mode="json"), requirements=old.requirements.model_dump(mode="json"),
        plan=[tool.model_dump(mode="json") for tool in parent.plan], code=parent.code,
        wish=next(iter(theme.source.requests), ""), room=most - len(parent.plan),
        task=_next([task.id for task in old.requirements.tasks]),
        rule=_next([rule.id for rule in old.requirements.rules]),
    )  # fmt: skip
    if found.impossible.strip():
        return found, old
    return found, child_design(found, parent, theme, tuple(earlier), {"enlarge": told})


def _next(ids: Sequence[str]) -> int:
    return max(int(one[1:]) for one in ids) + 1


def child_design(
    growth: Growth, parent: ModelParent, theme: Theme, earlier: tuple[UnitTest, ...], told: dict[str, Provenance]
) -> Design:
    """The parent's design with what is added.

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
    kept = [tool.model_copy(update={"rules": (*tool.rules, *also.get(tool.name, ()))}) for tool in parent.plan]
    return Design(
        theme=theme.id, proposal=proposal, requirements=requirements, plan=ToolPlan(tools=(*kept, *growth.tools)),
        texts=(*old.texts, *growth.texts), state_code=old.state_code, earlier=earlier,
        provenance=old.provenance | told,
    )  # fmt: skip


def wrong_growth(growth: Growth, parent: ModelParent, child: str, most: int) -> str:
    """What is wrong with an addition; empty if nothing is."""
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
        made = child_design(growth, parent, theme, (), {})
    except ValidationError as error:
        return f"{first_fault(error)}."
    return wrong_plan(made.plan, made.requirements, most)


async def extension(desk: Desk, made: Design, parent: ModelParent) -> Draft:
    """The first version of the child's file."""
    tools = {tool.name for tool in parent.plan}
    rules = {rule.id for rule in parent.design.requirements.rules}
    kept = [{"tool": tool.name, "rules": [one for one in tool.rules if one not in rules]} for tool in made.plan.tools]
    texts = {one.name for one in parent.design.texts}
    code, told = await desk.code(
        "extend", made.theme, lambda one: wrong_extension(one, made), form=native_form(), code=parent.code,
        name=made.proposal.name, entities=list(made.proposal.entities[len(parent.design.proposal.entities) :]),
        rules=[rule.model_dump(mode="json") for rule in made.requirements.rules if rule.id not in rules],
        tools=[tool.model_dump(mode="json") for tool in made.plan.tools if tool.name not in tools],
        keeps=[one for one in kept if one["tool"] in tools and one["rules"]],
        texts=[one.model_dump(mode="json") for one in made.texts if one.name not in texts],
    )  # fmt: skip
    whole = await asyncio.to_thread(tidied, code)
    return Draft(theme=made.theme, design=made.id, number=0, code=whole, provenance={"extend": told})


def wrong_extension(code: str, made: Design) -> str:
    """What is wrong with the code of a child, seen from outside; empty if nothing is."""
    classes = [node for node in ast.parse(code).body if isinstance(node, ast.ClassDef)]
    fields = {_target(part) for node in classes for part in node.body}
    missing = [entity for entity in made.proposal.entities if entity not in fields]
    if missing:
        return f"the state must have a table for each entity; {', '.join(missing)} are missing."
    names = {_value(part) for node in classes for part in node.body}
    if made.proposal.name not in names:
        return f'the class must say name = "{made.proposal.name}".'
    return wrong_tools(code, [tool.name for tool in made.plan.tools]) or wrong_seeds(code)


def _target(node: ast.stmt) -> str:
    """The field that a statement of a class declares."""
    return node.target.id if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else ""


def _value(node: ast.stmt) -> str:
    """The text that a statement of a class gives to `name`, if it does."""
    named = isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == "name" for one in node.targets)
    return str(node.value.value) if named and isinstance(node.value, ast.Constant) else ""  # type: ignore[attr-defined]
