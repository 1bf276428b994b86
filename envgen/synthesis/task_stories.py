"""Requirements as stories: every task that an environment must serve becomes a scenario, of which tasks are made.

The designer says why somebody comes; which tools are the goal follows from the plan. Look-ups, arguments, words, checks
and proof are those of any scenario. The requirement's own request is not used: it names things that no state has (AWM
3.2, EnvScaler 3.2: such tasks are listed before the environment is built).
"""

from collections.abc import Sequence

import yaml

from trajsmith.envgen.synthesis.answer_schemas import TaskRequirement, TaskStory
from trajsmith.envgen.synthesis.records import Design
from trajsmith.grounding import check_scenarios, is_identifier, list_output_fields
from trajsmith.phrasing import Scenario, ScenarioBook, ScenarioStep
from trajsmith.records import EnvironmentSpec, FrozenModel, InputError, ToolSpec


class RequirementStory(FrozenModel):
    """Outcome of a required task: its scenario, or the reason why there is none."""

    task: TaskRequirement
    scenario: Scenario | None = None
    reason: str = ""


def find_stories_fault(stories: Sequence[TaskStory], tasks: Sequence[TaskRequirement]) -> str:
    """Return the fault of what the designer says of motives; empty if there is none."""
    known = {task.id for task in tasks}
    for story in stories:
        if story.task not in known:
            return f"stories: {story.task} is no task."
        for motive in story.motives:
            whole = motive[:1].isupper() and motive.endswith((".", "!", "?"))
            if not whole or set(motive) & set("{}%#0123456789"):
                return f"stories: a motive is a whole sentence without numbers and braces: {motive!r}."
    return ""


def build_requirement_stories(
    design: Design, stories: Sequence[TaskStory], spec: EnvironmentSpec
) -> list[RequirementStory]:
    """Return of each required task the scenario that tells it, or why there is none."""
    motives = {story.task: story.motives for story in stories}
    return [_build_story(task, motives.get(task.id, ()), design, spec) for task in design.requirements.tasks]


def _build_story(
    task: TaskRequirement, motives: Sequence[str], design: Design, spec: EnvironmentSpec
) -> RequirementStory:
    tools = {tool.name: tool for tool in spec.tools}
    planned = [one for one in design.plan.tools if task.id in one.serves]
    serving = [tools[one.name] for one in planned if one.name in tools]
    writes = [tool for tool in serving if tool.declares_write]
    if not serving or (not writes and any(one.effect == "write" for one in planned)):
        return RequirementStory(task=task, reason="no tool is left that serves it")
    if not motives:
        return RequirementStory(task=task, reason="nobody said why somebody comes with it")
    steps = _tie_steps(writes) if writes else [ScenarioStep(tool=serving[-1].name)]
    name = f"{task.id.lower()}_{steps[0].tool}"
    scenario = Scenario(id=name, motives=tuple(motives), steps=tuple(steps))
    try:
        check_scenarios(ScenarioBook(scenarios=(scenario,)), spec)
    except InputError as error:
        return RequirementStory(task=task, reason=str(error))
    return RequirementStory(task=task, scenario=scenario)


def _tie_steps(writes: Sequence[ToolSpec]) -> list[ScenarioStep]:
    """Return the first write, and those after it that are about a thing of one before: they share an identifier."""
    steps = [ScenarioStep(tool=writes[0].name)]
    for number, tool in enumerate(writes[1:], 1):
        shared = {
            name: f"{earlier.name}.{name}"
            for name in tool.parameters if is_identifier(name)
            for earlier in writes[:number]
            if earlier.name in {step.tool for step in steps} and name in _list_names(earlier)
        }  # fmt: skip
        if shared:
            steps.append(ScenarioStep(tool=tool.name, same_as=shared))
    return steps


def _list_names(tool: ToolSpec) -> set[str]:
    """Return the parameters of a tool and the fields of its result."""
    return {*tool.parameters, *(field.name for field in list_output_fields(tool))}


def format_scenarios(stories: Sequence[RequirementStory], name: str) -> str:
    """Return the text of a `scenarios.yaml`; empty if there is no story."""
    scenarios = [story.scenario for story in stories if story.scenario is not None]
    if not scenarios:
        return ""
    head = f"# The tasks that {name} must serve, as stories. See phrasing/scenarios.py for what each key means.\n"
    content = {"scenarios": [scenario.model_dump(mode="json", exclude_defaults=True) for scenario in scenarios]}
    return head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=118)
