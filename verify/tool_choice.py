"""Checks of which tools the agent calls: those of other environments serve no request, and what has to be searched for
is not called before a search has shown it.
"""

from collections.abc import Sequence

from trajsmith.environments import ToolResult
from trajsmith.phrasing import ToolIndex
from trajsmith.records import SEARCH_TOOLS, CheckOutcome, Task, ToolSpec, Trajectory
from trajsmith.records.trajectory import MALFORMED
from trajsmith.verify.batch_checks import build_conduct_outcome

OWN_TOOLS = "the agent calls no tool of another environment"
SHOWN_TOOLS = "the agent calls only tools that a search has shown"
UnseenCall = tuple[int, str]
"""Message and tool of a call."""


def build_tool_choice_checks(
    task: Task, trajectory: Trajectory, turn: int, unseen: Sequence[UnseenCall] = ()
) -> list[CheckOutcome]:
    """Return the outcomes for one turn; nothing for a task that shows only tools of its own.

    Args:
        turn: Number of the turn.
        unseen: Calls of tools that no search had shown, as `find_unseen_calls` gives them.
    """
    outcomes, span = [], trajectory.turns[turn]
    if task.distractors:
        foreign = {tool.name for tool in task.distractors}
        called = [
            event.tool
            for event in trajectory.events
            if span.start <= event.message < span.stop and event.tool in foreign
        ]
        outcomes.append(build_conduct_outcome(OWN_TOOLS, not called, ", ".join(called[:3])))
    if task.search is not None:
        called = [name for message, name in unseen if span.start <= message < span.stop]
        outcomes.append(build_conduct_outcome(SHOWN_TOOLS, not called, ", ".join(called[:3])))
    return outcomes


def find_unseen_calls(task: Task, trajectory: Trajectory, tools: Sequence[ToolSpec]) -> list[UnseenCall]:
    """Return the calls of tools that had to be searched for and that no message before had shown.

    The searches are made again: a recorded result that differs shows nothing.

    Args:
        tools: Tools of the environment.
    """
    if task.search is None:
        return []
    events = [event for event in trajectory.events if event.actor == "assistant" and event.error != MALFORMED]
    if set(trajectory.tools) != set(task.shown_tools):
        return [(event.message, event.tool) for event in events]
    index = ToolIndex(task.find_searched_specs(tools))
    shown_in: dict[str, int] = {}
    unseen = []
    for event in events:
        if event.tool == SEARCH_TOOLS:
            matches = index.list_matches(str(event.arguments.get("query")), task.search.results)
            if ToolResult({"tools": matches}).hash == event.result_hash:
                for tool in matches:
                    shown_in.setdefault(tool["name"], event.message)
        elif shown_in.get(event.tool, event.message) >= event.message:
            unseen.append((event.message, event.tool))
    return unseen
