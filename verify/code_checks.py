"""Check functions that somebody wrote (EnvScaler 4.2: a model writes one per item of a checklist), run in the sandbox.

A function that raises, runs too long, takes too much memory, returns no truth value or changes what it is given could
not tell: that is an outcome of its own, with its reason, and never a failure of the agent.
"""

from collections.abc import Sequence

from trajsmith.environments.sandbox.checks import SandboxedCheck
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.records import Check, CheckOutcome, CodeCheck, EnvironmentFault, InputError, JsonObject, content_hash
from trajsmith.verify.checks import CheckedCall, run_check
from trajsmith.verify.normalized_state import NormalizedState

MAX_WORKERS = 8
"""Check functions that keep a worker at a time."""
CHECK_SANDBOX = SandboxSettings(call_seconds=1.0, wall_seconds=5.0, memory_mb=512)


class CodeCheckRunner:
    """Workers for check functions, one per source text."""

    def __init__(self, settings: SandboxSettings = CHECK_SANDBOX) -> None:
        """Nothing starts before the first check."""
        self.settings = settings
        self._running: dict[str, SandboxedCheck] = {}

    async def run(self, check: CodeCheck, initial: JsonObject, final: JsonObject, answer: str) -> CheckOutcome:
        """Run the function on a run and return its outcome; with the reason where it could not tell."""
        passed, detail = None, ""
        try:
            passed = await self._worker(check).verdict(initial, final, answer)
        except EnvironmentFault as fault:
            detail = f"{fault.kind}: {fault.message}"
        except InputError as error:
            detail = f"source: {error}"
        return CheckOutcome(says=check.says, kind=check.kind, passed=passed, detail=detail)

    def close(self) -> None:
        """End all workers."""
        for worker in self._running.values():
            worker.close()
        self._running.clear()

    def _worker(self, check: CodeCheck) -> SandboxedCheck:
        key = content_hash([check.source, check.function], 16)
        if key not in self._running:
            while len(self._running) >= MAX_WORKERS:
                self._running.pop(next(iter(self._running))).close()
            self._running[key] = SandboxedCheck(f"check_{key}", check.source, check.function, self.settings)
        return self._running[key]


async def run_checks(
    checks: Sequence[Check],
    form: NormalizedState,
    states: tuple[JsonObject, JsonObject],
    answer: str,
    calls: Sequence[CheckedCall],
    code: CodeCheckRunner | None,
) -> list[CheckOutcome]:
    """Run the checks of one turn.

    Args:
        checks: The checks.
        form: The state after the turn as checks see it.
        states: The initial state and the state after the turn as they are.
        answer: What the agent said in the turn.
        calls: All calls until the end of the turn.
        code: Where written functions run; without it they could not tell.
    """
    outcomes = []
    for check in checks:
        if isinstance(check, CodeCheck) and code is not None:
            outcomes.append(await code.run(check, *states, answer))
        else:
            outcomes.append(
                run_check(check, form.initial, form.document, answer, form.changes, form.generated_values, calls)
            )
    return outcomes
