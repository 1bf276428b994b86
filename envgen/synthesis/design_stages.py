"""Design an environment before code runs: proposal, requirements, plan (EnvFactory 3.2, EnvScaler 3.2).

Each answer is checked against those before it: every task is served by a tool, every rule kept by one, the code has the
classes and methods that were planned. Names and texts come from the model, structure and references from its code.
"""

import ast
import asyncio
from collections.abc import Sequence

from trajsmith.envgen.generate.identifiers import to_class_name
from trajsmith.envgen.sources import MAX_SHOWN_PASSAGES
from trajsmith.envgen.synthesis.answer_schemas import FIRST_RULES, FIRST_TASKS, Proposal, Requirements, Texts, ToolPlan
from trajsmith.envgen.synthesis.code_assembly import assemble_module
from trajsmith.envgen.synthesis.prompt_specs import describe_native_form
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import Design, EnvironmentDraft, Provenance, Theme
from trajsmith.envgen.synthesis.settings import SynthesisSettings

AnswerProvenance = dict[str, Provenance]


async def propose_environment(generator: PromptedGenerator, theme: Theme) -> tuple[Proposal, Provenance]:
    """Return the theme as an environment, or the reason why it can be none."""
    source = theme.source
    return await generator.answer(
        "propose", theme.id, Proposal, origin=source.kind, name=source.name, summary=source.summary,
        requests=list(source.requests[:30]), passages=list(source.passages[:MAX_SHOWN_PASSAGES]),
    )  # fmt: skip


async def design_environment(
    generator: PromptedGenerator,
    theme: Theme,
    proposal: Proposal,
    proposal_provenance: Provenance,
    settings: SynthesisSettings,
) -> Design:
    """Design tasks, rules, state model, tools and texts."""
    from_where: AnswerProvenance = {"propose": proposal_provenance}
    proposed = proposal.model_dump(mode="json")
    requirements, from_where["require"] = await generator.answer(
        "require", theme.id, Requirements, find_size_fault, proposal=proposed,
        requests=list(theme.source.requests[:30]), passages=list(theme.source.passages[:MAX_SHOWN_PASSAGES]),
    )  # fmt: skip
    wanted = requirements.model_dump(mode="json")
    state_code, from_where["state"] = await generator.code(
        "state", theme.id, lambda code: find_state_fault(code, proposal), proposal=proposed, requirements=wanted,
        form=describe_native_form(), state_class=f"{to_class_name(proposal.name)}State",
    )  # fmt: skip
    plan, from_where["plan"] = await generator.answer(
        "plan", theme.id, ToolPlan, lambda answer: find_plan_fault(answer, requirements, settings.most_tools),
        proposal=proposed, requirements=wanted, state_code=state_code, most=settings.most_tools,
    )  # fmt: skip
    texts, from_where["texts"] = await generator.answer(
        "texts", theme.id, Texts, find_texts_fault, proposal=proposed, state_code=state_code
    )
    return Design(
        theme=theme.id, proposal=proposal, requirements=requirements, plan=plan, texts=texts.lists,
        state_code=state_code, provenance=from_where,
    )  # fmt: skip


async def write_first_draft(generator: PromptedGenerator, design: Design) -> EnvironmentDraft:
    """Write the first version of the file."""
    proposal, wanted = design.proposal.model_dump(mode="json"), design.requirements.model_dump(mode="json")
    names = [tool.name for tool in design.plan.tools]
    tools_code, of_tools = await generator.code(
        "tools", design.theme, lambda code: find_tools_fault(code, names), proposal=proposal, requirements=wanted,
        form=describe_native_form(), state_code=design.state_code, plan=design.plan.model_dump(mode="json")["tools"],
        environment_class=to_class_name(design.proposal.name),
    )  # fmt: skip
    lists = [one.model_dump(mode="json") for one in design.texts]
    seeds_code, of_seeds = await generator.code(
        "seeds", design.theme, find_seeds_fault, proposal=proposal, requirements=wanted, form=describe_native_form(),
        state_code=design.state_code, tools_code=tools_code, texts=lists,
        state_class=f"{to_class_name(design.proposal.name)}State",
    )  # fmt: skip
    blocks = (design.state_code, tools_code, seeds_code)
    code = await asyncio.to_thread(assemble_module, design.proposal.description, design.texts, *blocks)
    return EnvironmentDraft(
        theme=design.theme, design=design.id, number=0, code=code, provenance={"tools": of_tools, "seeds": of_seeds}
    )


def find_state_fault(code: str, proposal: Proposal) -> str:
    """Return the fault of a state model's code; empty if there is none."""
    wanted = f"{to_class_name(proposal.name)}State"
    classes = {node.name: node for node in ast.parse(code).body if isinstance(node, ast.ClassDef)}
    if wanted not in classes or not _derives_from(classes[wanted], "EnvironmentState"):
        return f"there must be a class {wanted}(EnvironmentState)."
    return find_missing_table(proposal, [classes[wanted]])


def find_missing_table(proposal: Proposal, classes: Sequence[ast.ClassDef]) -> str:
    """Return which entities are no field of any of the classes; empty if all are."""
    nodes = [node for one in classes for node in one.body if isinstance(node, ast.AnnAssign)]
    fields = {node.target.id for node in nodes if isinstance(node.target, ast.Name)}
    missing = [entity for entity in proposal.entities if entity not in fields]
    return f"the state must have a table for each entity; {', '.join(missing)} are missing." if missing else ""


def _derives_from(node: ast.ClassDef, base: str) -> bool:
    names = [part.value if isinstance(part, ast.Subscript) else part for part in node.bases]
    return any(isinstance(part, ast.Name) and part.id == base for part in names)


def find_size_fault(requirements: Requirements) -> str:
    """Return why there are too many tasks or rules for a first draft; empty if there are not."""
    for noun, count, most in (
        ("tasks", len(requirements.tasks), FIRST_TASKS), ("rules", len(requirements.rules), FIRST_RULES)
    ):  # fmt: skip
        if count > most:
            return f"there are {count} {noun}; {most} is the most."
    return ""


def find_plan_fault(plan: ToolPlan, requirements: Requirements, most: int) -> str:
    """Return the fault of a plan of tools; empty if there is none."""
    names = [tool.name for tool in plan.tools]
    if len(set(names)) < len(names):
        return "two tools have one name."
    if len(names) > most:
        return f"there are {len(names)} tools; {most} is the most."
    if {tool.effect for tool in plan.tools if tool.actor == "assistant"} != {"read", "write"}:
        return "the assistant needs tools that read and tools that write."
    unserved = {task.id for task in requirements.tasks} - {one for tool in plan.tools for one in tool.serves}
    if unserved:
        return f"no tool serves {', '.join(sorted(unserved))}."
    unkept = {rule.id for rule in requirements.rules} - {one for tool in plan.tools for one in tool.rules}
    return f"no tool keeps {', '.join(sorted(unkept))}." if unkept else ""


def find_texts_fault(texts: Texts) -> str:
    """Return the fault of lists of texts; empty if there is none."""
    names = [one.name for one in texts.lists]
    return "two lists have one name." if len(set(names)) < len(names) else ""


def find_tools_fault(code: str, names: list[str]) -> str:
    """Return the fault of an environment class, checked statically; empty if there is none."""
    classes = [
        node for node in ast.parse(code).body if isinstance(node, ast.ClassDef) and _derives_from(node, "Environment")
    ]
    if len(classes) != 1:
        return "there must be exactly one class that derives from Environment[...]."
    methods = {node.name for node in classes[0].body if isinstance(node, ast.FunctionDef) and node.decorator_list}
    missing = [name for name in names if name not in methods]
    return f"these tools of the plan are missing: {', '.join(missing)}." if missing else ""


def find_seeds_fault(code: str) -> str:
    """Return the fault of the seed generator's code, checked statically; empty if there is none."""
    functions = {node.name: node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)}
    if "make_state" not in functions:
        return "there must be a function make_state(size, seed)."
    parameters = [argument.arg for argument in functions["make_state"].args.args]
    return "" if parameters == ["size", "seed"] else "make_state must take exactly size and seed."
