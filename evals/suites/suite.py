"""What a suite gives: tasks, execution of calls, and verdicts; `trajsmith bench` does the rest."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from trajsmith.models import ChatReply, ChatRequest
from trajsmith.records import Actor, FrozenModel, JsonObject, Message, Registry

Responder = Callable[[str, ChatRequest], Awaitable[ChatReply]]
"""Answers a request to the `agent`, the `user` or the `judge` of a conversation."""


class CallRecord(FrozenModel):
    """One call of a model."""

    name: str
    arguments: JsonObject
    actor: Actor = "assistant"
    """Who made it: in some suites the user has tools, too."""


class SuitePlay(FrozenModel):
    """One played task."""

    steps: tuple[tuple[tuple[CallRecord, ...], ...], ...]
    """Per turn the steps of calls."""
    messages: tuple[Message, ...] = ()
    tokens: int = 0
    """Tokens that the model wrote."""
    prompt_tokens: int = 0
    """Tokens that it read, counted again at each request."""
    error: str = ""
    """What ended it before its end; of a conversation that the suite plays also what its checker found wrong."""
    undecided: str = ""
    """Why the suite's checker came to no verdict."""


class SuiteTask(FrozenModel):
    """One task of a suite."""

    id: str
    category: str
    turns: tuple[tuple[Message, ...], ...]
    """What is said before the model answers, turn by turn; of a conversation only what the user comes for."""
    tools: tuple[JsonObject, ...]
    """In the OpenAI form."""
    arriving: dict[int, tuple[JsonObject, ...]] = {}
    """Turn to the tools that the model is shown from then on."""
    live: bool
    """Calls are executed, and the model sees their results."""
    gold: tuple[tuple[tuple[CallRecord, ...], ...], ...] | None
    """Per turn the steps of calls that the suite holds for right; None where it holds none."""
    says: tuple[str, ...] = ()
    """What the agent must say, word by word."""
    scenario: str = ""
    """What the user of a conversation knows and wants."""

    @property
    def tool_names(self) -> set[str]:
        """Return the names of all tools, also of those that arrive later."""
        arrived = (tool for tools in self.arriving.values() for tool in tools)
        return {tool["function"]["name"] for tool in (*self.tools, *arrived)}


class Suite(Protocol):
    """One public benchmark: a `CallSuite` or a `ConversationSuite`."""

    version: str
    """Version of its package, known once it is open."""
    categories: tuple[str, ...]
    """Categories that can be run; the first ones are run where none is named."""

    async def open(self, environment: Path | None, path: Path | None) -> None:
        """Start it, installing its package where it is missing.

        Args:
            environment: Virtual environment that has the package; None for one that is made in the user's cache.
            path: Checkout of the benchmark, for one that no package holds.

        Raises:
            InputError: The package is missing or of another version.
        """

    async def load_tasks(self, category: str) -> list[SuiteTask]:
        """Return the tasks of a category, in the order of the suite."""

    async def close(self) -> None:
        """Stop it; safe to call twice."""


class CallSuite(Suite, Protocol):
    """A benchmark that executes calls and judges them."""

    async def execute(self, task: SuiteTask, run: str, calls: Sequence[CallRecord]) -> list[str]:
        """Execute calls on the environments of one run of a task, and return what the model sees."""

    async def check(self, task: SuiteTask, run: str, steps: Sequence[Sequence[Any]]) -> str:
        """Return the suite's own verdict: "" if it is right, else the class of the error.

        Args:
            task: The task.
            run: Name of the run that was executed.
            steps: Per turn the steps, each a sequence of `CallRecord`.
        """


@runtime_checkable
class ConversationSuite(Suite, Protocol):
    """A benchmark that plays and judges conversations of an agent and a user itself."""

    def needs_judge(self, task: SuiteTask) -> bool:
        """Return True if a model judges a part of this task."""

    async def converse(self, task: SuiteTask, run: str, trial: int, respond: Responder, judged: bool) -> SuitePlay:
        """Play one conversation, and judge it.

        Args:
            task: The task.
            run: Name of the run.
            trial: Number of the play of this task, from 0.
            respond: Who speaks as agent, as user, and as judge.
            judged: Whether there is a judge; without one, what it would decide is left out.

        Raises:
            ModelFault: A model could not answer.
        """


_BUILT_IN = {"bfcl": "trajsmith.evals.suites.bfcl", "tau2": "trajsmith.evals.suites.tau2"}
AnySuite = CallSuite | ConversationSuite
SUITES: Registry[type[AnySuite]] = Registry("suites", _BUILT_IN)
