"""Check that the agent chooses among the tools that it is shown: those of other environments serve no request."""

from trajsmith.records import CheckOutcome, Task, Trajectory
from trajsmith.verify.batch_checks import build_conduct_outcome


def build_tool_choice_checks(task: Task, trajectory: Trajectory, turn: int) -> list[CheckOutcome]:
    """Return the outcome for one turn; nothing for a task without distractors."""
    if not task.distractors:
        return []
    span, foreign = trajectory.turns[turn], {tool.name for tool in task.distractors}
    called = [
        event.tool for event in trajectory.events if span.start <= event.message < span.stop and event.tool in foreign
    ]
    says = "the agent calls no tool of another environment"
    return [build_conduct_outcome(says, not called, ", ".join(called[:3]))]
