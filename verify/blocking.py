"""`trajsmith.verify`: the verdict on one trajectory, from code that is not asynchronous."""

from trajsmith.environments.blocking import EnvironmentSession
from trajsmith.records import InputError, Task, Trajectory, Verdict, content_hash
from trajsmith.verify.code_checks import CodeCheckRunner
from trajsmith.verify.settings import VerifySettings
from trajsmith.verify.traces.replaying import IMPORTED, verify_dialogue
from trajsmith.verify.verdicts import verify_trajectory


def verify(
    task: Task, trajectory: Trajectory, environment: EnvironmentSession, settings: VerifySettings | None = None
) -> Verdict:
    """Replay a trajectory on an environment, run the checks of its task, and return the verdict.

    The verdict is decided by execution alone; a judge, where a run has one, is not asked.

    Args:
        task: Task that was played.
        trajectory: Trajectory to judge; its calls are made again.
        environment: Open session of the task's environment, started from the task's initial state, as
            `Run.open_environment(task)` gives it.
        settings: Rewards of the verdict, and whether unneeded calls are found.

    Raises:
        InputError: The session starts from another state than the task.

    Example:
        >>> run = trajsmith.load_run("runs/quickstart")
        >>> task, trajectory, _ = next(iter(run.judged))
        >>> with run.open_environment(task) as environment:
        ...     trajsmith.verify(task, trajectory, environment).outcome
        'completed'
    """
    state = environment.initial_state
    if content_hash(state) != task.initial_state:
        raise InputError(
            f"the session of {environment.spec.name} does not start from the initial state of {task.id}: open it with "
            "Run.open_environment(task), or with state="
        )
    settings = settings or VerifySettings()
    code = CodeCheckRunner(settings.sandbox)
    try:
        if task.variant == IMPORTED:
            return environment.run(lambda session: verify_dialogue(task, trajectory, state, session, settings, code))
        return environment.run(
            lambda session: verify_trajectory(task, trajectory, state, session, settings, code, environment.wording)
        )
    finally:
        code.close()
