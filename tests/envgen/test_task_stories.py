"""Required tasks become scenarios: which tools are the goal, what is tied, and what is refused."""

from pathlib import Path

import pytest
import yaml

from trajsmith.envgen.synthesis.answer_schemas import PlannedTool, Requirements, TaskStory, ToolPlan
from trajsmith.envgen.synthesis.records import Design
from trajsmith.envgen.synthesis.task_stories import (
    build_requirement_stories,
    find_stories_fault,
    format_scenarios,
)
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.grounding import check_scenarios
from trajsmith.phrasing import load_scenarios
from trajsmith.records import EnvironmentSpec

REQUESTS = {
    "T1": "Something is broken; open a ticket and note what I tried.",
    "T2": "Which tickets do I have?",
    "T3": "Open ticket 4711 again.",
    "T4": "Send flowers.",
    "T5": "Take me home.",
    "T6": "Open a ticket and get me access.",
}
SERVED = {
    "find_employee_by_email": ("T1", "T2", "T3"),
    "list_tickets": ("T2", "T3"),
    "open_ticket": ("T1", "T5", "T6"),
    "add_comment": ("T1",),
    "request_access": ("T6",),
    "reopen_ticket": ("T3",),
    "list_devices": ("T4",),
    "send_flowers": ("T4",),
}


def planned(name: str, serves: tuple[str, ...]) -> PlannedTool:
    effect = "read" if name.startswith(("find_", "list_")) else "write"
    return PlannedTool(
        name=name, effect=effect, does="it", parameters=(), returns="it", refuses=(), rules=(), serves=serves
    )  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def spec() -> EnvironmentSpec:
    return ENVIRONMENTS.get("helpdesk").describe()


@pytest.fixture(scope="module")
def design() -> Design:
    tasks = [{"id": name, "request": request, "outcome": "done"} for name, request in REQUESTS.items()]
    rules = [{"id": f"R{number}", "text": "no"} for number in (1, 2)]
    return Design.model_construct(
        requirements=Requirements.model_validate({"tasks": tasks, "rules": rules}),
        plan=ToolPlan(tools=tuple(planned(name, serves) for name, serves in SERVED.items())),
    )


def test_each_required_task_becomes_a_scenario_or_says_why_not(
    design: Design, spec: EnvironmentSpec, tmp_path: Path
) -> None:
    told = ("T1", "T2", "T3", "T4", "T6")
    stories = [TaskStory(task=name, motives=("It has been one of those days.",)) for name in told]
    made = {one.task.id: one for one in build_requirement_stories(design, stories, spec)}
    assert {name: one.reason for name, one in made.items() if one.scenario is None} == {
        "T4": "no tool is left that serves it",
        "T5": "nobody said why somebody comes with it",
    }
    goals = {name: [step.tool for step in one.scenario.steps] for name, one in made.items() if one.scenario}
    assert goals == {
        "T1": ["open_ticket", "add_comment"],
        "T2": ["list_tickets"],
        "T3": ["reopen_ticket"],
        "T6": ["open_ticket", "request_access"],
    }
    ticket, access = made["T1"].scenario, made["T6"].scenario
    assert ticket is not None and ticket.steps[1].same_as == {"ticket_id": "open_ticket.ticket_id"}
    assert access is not None and access.steps[1].same_as == {"employee_id": "open_ticket.employee_id"}
    assert "4711" not in format_scenarios(list(made.values()), "helpdesk"), "a ticket that no state has"
    file = tmp_path / "scenarios.yaml"
    file.write_text(format_scenarios(list(made.values()), "helpdesk"))
    book = load_scenarios(file)
    assert [one.id for one in book.scenarios] == [
        "t1_open_ticket", "t2_list_tickets", "t3_reopen_ticket", "t6_open_ticket"
    ]  # fmt: skip
    check_scenarios(book, spec)
    assert yaml.safe_load(file.read_text())["scenarios"][1]["steps"] == [{"tool": "list_tickets"}]
    assert format_scenarios([one for one in made.values() if one.scenario is None], "helpdesk") == ""


def test_a_story_may_want_a_step_of_the_user(design: Design, spec: EnvironmentSpec) -> None:
    tools = [tool.model_copy(update={"actor": "user"}) if tool.name == "reopen_ticket" else tool for tool in spec.tools]
    stories = [TaskStory(task="T3", motives=("It has been one of those days.",))]
    made = build_requirement_stories(design, stories, spec.model_copy(update={"tools": tuple(tools)}))
    scenario = made[2].scenario
    assert scenario is not None and [step.tool for step in scenario.steps] == ["reopen_ticket"]


@pytest.mark.parametrize(
    ("task", "motive", "said"),
    [
        ("T1", "It has been one of those days.", ""),
        ("T9", "It has been one of those days.", "T9 is no task"),
        ("T1", "Ticket 4711 is still open.", "without numbers"),
        ("T1", "My {ticket_id} is still open.", "without numbers"),
        ("T1", "because of the rain", "whole sentence"),
    ],
    ids=["right", "task", "number", "braces", "no-sentence"],
)
def test_motives_are_whole_sentences_without_values(task: str, motive: str, said: str, design: Design) -> None:
    fault = find_stories_fault([TaskStory(task=task, motives=(motive,))], design.requirements.tasks)
    assert said in fault if said else not fault
