"""From a theme to everything that can be thought out before code runs: EnvFactory 3.2 and EnvScaler 3.2, in records.

Each answer is checked against those before it: every task is served by a tool, every rule kept by one, the code has the
classes and methods that were planned. Names and texts come from the model, structure and references from its code.
"""

import ast
import asyncio

from envgen.sources import SHOWN_PASSAGES
from envgen.synthesis.desk import Desk
from envgen.synthesis.parts import Proposal, Requirements, Texts, ToolPlan
from envgen.synthesis.prompting import native_form
from envgen.synthesis.records import Design, Draft, Provenance, Theme
from envgen.synthesis.settings import SynthesisSettings
from envgen.synthesis.tidy import assembled

Answers = dict[str, Provenance]


async def propose(desk: Desk, theme: Theme) -> tuple[Proposal, Provenance]:
    """The theme as an environment, or the reason why it can be none."""
    source = theme.source
    return await desk.answer(
        "propose", theme.id, Proposal, origin=source.kind, name=source.name, summary=source.summary,
        requests=list(source.requests[:30]), passages=list(source.passages[:SHOWN_PASSAGES]),
    )  # fmt: skip


async def design(desk: Desk, theme: Theme, proposal: Proposal, told: Provenance, settings: SynthesisSettings) -> Design:
    """Tasks, rules, state model, tools and words."""
    from_where: Answers = {"propose": told}
    proposed = proposal.model_dump(mode="json")
    requirements, from_where["require"] = await desk.answer(
        "require", theme.id, Requirements, proposal=proposed, requests=list(theme.source.requests[:30]),
        passages=list(theme.source.passages[:SHOWN_PASSAGES]),
    )  # fmt: skip
    wanted = requirements.model_dump(mode="json")
    state_code, from_where["state"] = await desk.code(
        "state", theme.id, lambda code: wrong_state(code, proposal), proposal=proposed, requirements=wanted,
        form=native_form(), state_class=f"{class_name(proposal.name)}State",
    )  # fmt: skip
    plan, from_where["plan"] = await desk.answer(
        "plan", theme.id, ToolPlan, lambda found: wrong_plan(found, requirements, settings.most_tools),
        proposal=proposed, requirements=wanted, state_code=state_code, most=settings.most_tools,
    )  # fmt: skip
    texts, from_where["texts"] = await desk.answer(
        "texts", theme.id, Texts, wrong_texts, proposal=proposed, state_code=state_code
    )
    return Design(
        theme=theme.id, proposal=proposal, requirements=requirements, plan=plan, texts=texts.lists,
        state_code=state_code, provenance=from_where,
    )  # fmt: skip


async def first_draft(desk: Desk, made: Design) -> Draft:
    """The first version of the file."""
    proposal, wanted = made.proposal.model_dump(mode="json"), made.requirements.model_dump(mode="json")
    names = [tool.name for tool in made.plan.tools]
    tools_code, of_tools = await desk.code(
        "tools", made.theme, lambda code: wrong_tools(code, names), proposal=proposal, requirements=wanted,
        form=native_form(), state_code=made.state_code, plan=made.plan.model_dump(mode="json")["tools"],
        environment_class=class_name(made.proposal.name),
    )  # fmt: skip
    lists = [one.model_dump(mode="json") for one in made.texts]
    seeds_code, of_seeds = await desk.code(
        "seeds", made.theme, wrong_seeds, proposal=proposal, requirements=wanted, form=native_form(),
        state_code=made.state_code, tools_code=tools_code, texts=lists,
        state_class=f"{class_name(made.proposal.name)}State",
    )  # fmt: skip
    blocks = (made.state_code, tools_code, seeds_code)
    code = await asyncio.to_thread(assembled, made.proposal.description, made.texts, *blocks)
    return Draft(
        theme=made.theme, design=made.id, number=0, code=code, provenance={"tools": of_tools, "seeds": of_seeds}
    )


def class_name(name: str) -> str:
    """The environment's class for a name in snake case."""
    return "".join(part.capitalize() for part in name.split("_"))


def wrong_state(code: str, proposal: Proposal) -> str:
    """What is wrong with the code of a state model; empty if nothing is."""
    wanted = f"{class_name(proposal.name)}State"
    classes = {node.name: node for node in ast.parse(code).body if isinstance(node, ast.ClassDef)}
    if wanted not in classes or not _derives(classes[wanted], "EnvironmentState"):
        return f"there must be a class {wanted}(EnvironmentState)."
    fields = {_target(node) for node in classes[wanted].body}
    missing = [entity for entity in proposal.entities if entity not in fields]
    if missing:
        return f"{wanted} must have a table for each entity; {', '.join(missing)} are missing."
    return ""


def _target(node: ast.stmt) -> str:
    """The field that a statement of a class declares."""
    return node.target.id if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else ""


def _derives(node: ast.ClassDef, base: str) -> bool:
    names = [part.value if isinstance(part, ast.Subscript) else part for part in node.bases]
    return any(isinstance(part, ast.Name) and part.id == base for part in names)


def wrong_plan(plan: ToolPlan, requirements: Requirements, most: int) -> str:
    """What is wrong with a plan of tools; empty if nothing is."""
    names = [tool.name for tool in plan.tools]
    if len(set(names)) < len(names):
        return "two tools have one name."
    if len(names) > most:
        return f"there are {len(names)} tools; {most} is the most."
    if {tool.effect for tool in plan.tools} != {"read", "write"}:
        return "there must be tools that read and tools that write."
    unserved = {task.id for task in requirements.tasks} - {one for tool in plan.tools for one in tool.serves}
    if unserved:
        return f"no tool serves {', '.join(sorted(unserved))}."
    unkept = {rule.id for rule in requirements.rules} - {one for tool in plan.tools for one in tool.rules}
    return f"no tool keeps {', '.join(sorted(unkept))}." if unkept else ""


def wrong_texts(texts: Texts) -> str:
    """What is wrong with lists of words; empty if nothing is."""
    names = [one.name for one in texts.lists]
    return "two lists have one name." if len(set(names)) < len(names) else ""


def wrong_tools(code: str, names: list[str]) -> str:
    """What is wrong with the code of an environment's class, seen from outside; empty if nothing is."""
    classes = [
        node for node in ast.parse(code).body if isinstance(node, ast.ClassDef) and _derives(node, "Environment")
    ]
    if len(classes) != 1:
        return "there must be exactly one class that derives from Environment[...]."
    methods = {node.name for node in classes[0].body if isinstance(node, ast.FunctionDef) and node.decorator_list}
    missing = [name for name in names if name not in methods]
    return f"these tools of the plan are missing: {', '.join(missing)}." if missing else ""


def wrong_seeds(code: str) -> str:
    """What is wrong with the generator's code, seen from outside; empty if nothing is."""
    functions = {node.name: node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)}
    if "make_state" not in functions:
        return "there must be a function make_state(size, seed)."
    given = [argument.arg for argument in functions["make_state"].args.args]
    return "" if given == ["size", "seed"] else "make_state must take exactly size and seed."
