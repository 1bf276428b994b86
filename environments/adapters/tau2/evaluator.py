"""Plays of the tasks of a τ²-bench checkout, judged by its own evaluators in the sandbox; nothing of it runs here."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from trajsmith.environments.adapters.tau2.evaluation import MODULES, TOOL
from trajsmith.environments.adapters.tau2.settings import (
    PRELOAD,
    Tau2Settings,
    build_evaluation_payload,
    find_package,
    read_raw_tasks,
)
from trajsmith.environments.sandbox.host import WorkerHost
from trajsmith.environments.sandbox.link import SandboxLink
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.records import EnvironmentFault, JsonObject, RecordDropped

LOADER = "trajsmith.environments.adapters.tau2.evaluation:load"
LIMITS = SandboxSettings(call_seconds=20.0, load_seconds=30.0, wall_seconds=120.0, memory_mb=1024)
"""A judgement builds the environment three times."""


def list_domains(checkout: Path) -> list[str]:
    """Return the names of the domains of a checkout.

    Raises:
        InputError: It is none.
    """
    return sorted(file.parent.name for file in find_package(checkout).glob("domains/*/environment.py"))


class Tau2Judgement(msgspec.Struct, forbid_unknown_fields=True):
    """Judgement of one play; a worker may say anything, so that its form is checked."""

    rewards: dict[str, float]
    """Part of the reward basis to its reward."""
    left_out: list[str]
    """Parts that a model would judge."""
    states: list[str]
    """Hashes of the databases at the end."""
    refused: list[str]
    """Calls that were refused, with the answers."""

    @property
    def passed(self) -> bool:
        """Return True if every part that was judged gives the full reward."""
        return all(reward >= 1.0 for reward in self.rewards.values())

    @property
    def failed_parts(self) -> str:
        """The parts that do not, joined."""
        return "+".join(sorted(part for part, reward in self.rewards.items() if reward < 1.0))


class Tau2Evaluator:
    """The evaluators of one domain, with a process for every play.

    Attributes:
        tasks: The tasks as they stand in the domain's file.
    """

    def __init__(self, checkout: Path, domain: str, file: str = "", sandbox: SandboxSettings = LIMITS) -> None:
        """Read sources and tasks; nothing starts yet.

        Args:
            checkout: A checkout of tau2-bench.
            domain: Name of the domain.
            file: File of the tasks, if they are not in `tasks.json`.
            sandbox: Limits and mode.

        Raises:
            InputError: The checkout lacks a file.
        """
        settings = Tau2Settings(domain=domain, path=checkout, **({"tasks": file} if file else {}))
        payload = build_evaluation_payload(settings, MODULES)
        preloaded = sandbox.model_copy(update={"imports": (*sandbox.imports, *PRELOAD)})
        self.tasks = read_raw_tasks(settings)
        self._host = WorkerHost(payload["name"], LOADER, payload, preloaded, own_process=True)

    async def judge(self, task: JsonObject, calls: Sequence[JsonObject], texts: Sequence[str]) -> Tau2Judgement:
        """Play the calls on the task's initial state, say the texts, and judge the conversation.

        Args:
            task: As it stands in the domain's file.
            calls: Each {"tool", "arguments", "actor"}.
            texts: What the agent says at the end.

        Raises:
            EnvironmentFault: The code of the checkout broke.
            InputError: It does not load.
            RecordDropped: The task is malformed.
        """
        link = SandboxLink(self._host)
        try:
            await link.start(b"{}", ())
            arguments: JsonObject = {"task": task, "calls": list(calls), "texts": list(texts)}
            result = await link.call(TOOL, arguments, "assistant", 0)
        finally:
            await link.close()
        if not result.ok:
            raise RecordDropped("malformed_task", result.text)
        try:
            return msgspec.convert(result.content, Tau2Judgement, strict=False)
        except msgspec.ValidationError as error:
            raise EnvironmentFault("protocol", self._host.name, f"no judgement: {error}", TOOL) from error

    def close(self) -> None:
        """End the worker."""
        self._host.close()
