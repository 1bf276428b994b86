"""The error vocabulary, named after the boundary that was crossed.

These outcomes must never be mixed up: the user gave wrong input (`InputError`, exit code 2), the run could not go on
(`RunError`, exit code 1, resumable), an environment broke (`EnvironmentFault`, never the agent's fault), and a language
model could not answer (`ModelFault`, nobody's score). A tool's refusal is none of these: it is a result that the agent
sees (`ToolError`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

ModelFaultKind = Literal[
    "timeout", "connection", "rate_limit", "server", "bad_reply", "content_filter", "context_overflow", "bad_request"
]
FaultKind = Literal[
    "crash",
    "timeout",
    "limit",
    "output_schema",
    "server_exited",
    "protocol",
    "start",
    "state",
    "quarantine",
    "recycled",
]
"""`quarantine`: too many of its workers were lost, so it is not started again in this run. `recycled` is the only kind
that trajsmith itself causes: it closed the worker, and making the calls again failed."""


class TrajsmithError(Exception):
    """Base of everything that trajsmith raises on purpose; its text is one line that says what to do."""

    exit_code = 1


class InputError(TrajsmithError):
    """Invalid user input: a configuration key, a file, a schema. Exit code 2, nothing was started."""

    exit_code = 2


class RunError(TrajsmithError):
    """The run cannot go on (full disk, second writer, interruption). What was written stays; `resume` goes on."""


class BudgetExceeded(RunError):
    """The run's budget of money or tokens is used up. It ends like any other interruption: `resume` goes on."""


class ModelFault(TrajsmithError):
    """A language model gave no usable answer, after the retries that its kind of fault deserves.

    Attributes:
        kind: Which boundary broke.
        model: Name of the model.
        message: What happened, one line.
        reply: What the model did say, where it said something that cannot be used.
    """

    def __init__(self, kind: ModelFaultKind, model: str, message: str, reply: str = "") -> None:
        self.kind = kind
        self.model = model
        self.message = message
        self.reply = reply
        super().__init__(f"{model}: {kind}: {message}")


class EnvironmentFault(TrajsmithError):
    """An environment broke: crash, timeout, broken protocol, output that violates its own schema.

    Attributes:
        kind: Which boundary broke.
        environment: Name of the environment.
        tool: Tool that was being called, or None outside a call.
        message: What happened, without the names.
    """

    def __init__(self, kind: FaultKind, environment: str, message: str, tool: str | None = None) -> None:
        self.kind = kind
        self.environment = environment
        self.tool = tool
        self.message = message
        where = f"{environment}.{tool}" if tool else environment
        super().__init__(f"{where}: {kind}: {message}")


class ToolError(Exception):
    """Raised inside a tool to refuse a call; the agent sees the message. State must be unchanged."""


class RecordDropped(Exception):
    """Raised when a stage drops a record, with a reason from a small vocabulary and an optional detail.

    The engine counts reasons per stage; nothing is ever dropped without one.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}" if detail else reason)


@contextmanager
def environment_boundary(environment: str, tool: str | None = None, trusted: bool = False) -> Iterator[None]:
    """Turn any exception of foreign code into an `EnvironmentFault`; only refusals and faults pass through.

    Foreign code can import and raise `InputError`, `RunError` and the like, which would end the run of every
    environment; they are crashes of this one.

    Args:
        environment: Name of the environment.
        tool: Tool that is called, or None outside a call.
        trusted: True around code of trajsmith that tells wrong input and failed runs apart: its errors pass through.
    """
    try:
        yield
    except (EnvironmentFault, ToolError):
        raise
    except Exception as error:
        if trusted and isinstance(error, TrajsmithError | RecordDropped):
            raise
        raise EnvironmentFault("crash", environment, f"{type(error).__name__}: {error}", tool) from error
