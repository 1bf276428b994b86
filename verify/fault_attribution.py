"""Attribution of faults: from the checks, and from actions that only the simulated user can have taken."""

from collections.abc import Sequence

from trajsmith.records import CheckOutcome, JsonObject, Outcome, Task, Trajectory


def decide_outcome(outcomes: Sequence[CheckOutcome], right_state: bool, script_faults: Sequence[str]) -> Outcome:
    """Decide the outcome of a trajectory that replays.

    A check that failed for sure decides, whatever others could not tell; a user who broke the script excuses the
    agent. Only where all that could tell is well does it count that something could not.

    Args:
        outcomes: All checks of the turns that were played.
        right_state: All turns were played, and the final state is the gold state.
        script_faults: What the user did that the task does not have.
    """
    failed = any(outcome.passed is False for outcome in outcomes) or not right_state
    if not failed:
        return "undecided" if any(outcome.passed is None for outcome in outcomes) else "completed"
    if script_faults:
        return "user_error"
    done = any(outcome.passed and outcome.kind in ("state", "answer", "code") for outcome in outcomes)
    return "partial" if done else "agent_error"


def decide_turn_outcome(outcomes: Sequence[CheckOutcome], right_state: bool) -> Outcome:
    """Decide the outcome of one turn; faults of the user are decided for all turns together."""
    return decide_outcome(outcomes, right_state, ())


def find_script_faults(task: Task, trajectory: Trajectory) -> tuple[str, ...]:
    """Return the faults of the simulated user that the record shows: calls on their own device that the task does
    not have, and an end before the last request was made."""
    planned: list[tuple[str, JsonObject]] = [
        (call.tool, call.arguments) for call in task.gold_calls if call.actor == "user"
    ]
    faults = []
    for event in trajectory.events:
        if event.actor == "user":
            if (event.tool, event.arguments) in planned:
                planned.remove((event.tool, event.arguments))
            else:
                faults.append(f"user: {event.tool} was not to be called")
    if trajectory.stop_reason == "user_stop" and len(trajectory.turns) < len(task.turns):
        faults.append("user: stopped before the last request")
    return tuple(dict.fromkeys(faults))
