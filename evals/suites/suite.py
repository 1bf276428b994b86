"""What a suite gives: tasks, execution of calls, and verdicts; `trajsmith bench` does the rest."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from trajsmith.records import FrozenModel, JsonObject, Message, Registry


class CallRecord(FrozenModel):
    """One call of a model."""

    name: str
    arguments: JsonObject


class SuiteTask(FrozenModel):
    """One task of a suite."""

    id: str
    category: str
    turns: tuple[tuple[Message, ...], ...]
    """What is said before the model answers, turn by turn."""
    tools: tuple[JsonObject, ...]
    """In the OpenAI form."""
    arriving: dict[int, tuple[JsonObject, ...]] = {}
    """Turn to the tools that the model is shown from then on."""
    live: bool
    """Calls are executed, and the model sees their results."""
    gold: tuple[tuple[tuple[CallRecord, ...], ...], ...] | None
    """Per turn the steps of calls that the suite holds for right; None where it holds none."""

    @property
    def tool_names(self) -> set[str]:
        """Return the names of all tools, also of those that arrive later."""
        arrived = (tool for tools in self.arriving.values() for tool in tools)
        return {tool["function"]["name"] for tool in (*self.tools, *arrived)}


class Suite(Protocol):
    """One public benchmark."""

    version: str
    """Version of its package."""
    categories: tuple[str, ...]
    """Categories that can be run; the first ones are run where none is named."""

    async def open(self, environment: Path | None) -> None:
        """Start it, installing its package where it is missing.

        Args:
            environment: Virtual environment that has the package; None for one that is made in the user's cache.

        Raises:
            InputError: The package is missing or of another version.
        """

    async def load_tasks(self, category: str) -> list[SuiteTask]:
        """Return the tasks of a category, in the order of the suite."""

    async def execute(self, task: SuiteTask, run: str, calls: Sequence[CallRecord]) -> list[str]:
        """Execute calls on the environments of one run of a task, and return what the model sees."""

    async def check(self, task: SuiteTask, run: str, steps: Sequence[Sequence[Any]]) -> str:
        """Return the suite's own verdict: "" if it is right, else the class of the error.

        Args:
            task: The task.
            run: Name of the run that was executed.
            steps: Per turn the steps, each a sequence of `CallRecord`.
        """

    async def close(self) -> None:
        """Stop it; safe to call twice."""


SUITES: Registry[type[Suite]] = Registry("suites", {"bfcl": "trajsmith.evals.suites.bfcl"})
