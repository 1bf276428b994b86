"""The evaluators of τ²-bench as a program of the sandbox: plays of its tasks, judged by its own code.

An evaluation gets the calls and texts of a play, makes the calls in a fresh environment of the task, and gives the
conversation that comes of it to the published evaluators of environment, actions and texts. What a model would judge
is left out, and said.
"""

import sys
from collections.abc import Sequence
from enum import Enum
from types import ModuleType
from typing import Any, Self

from pydantic import ValidationError

from trajsmith.environments.adapters.tau2.module_stubs import DataFiles
from trajsmith.environments.adapters.tau2.package import run_modules
from trajsmith.environments.programs import StateChange
from trajsmith.environments.session import ToolResult
from trajsmith.records import (
    Actor,
    EnvironmentSpec,
    JsonObject,
    ToolSpec,
    content_hash,
    environment_boundary,
    format_first_error,
)

TOOL = "evaluate"
EVALUATORS = {
    "DB": ("evaluator_env", "EnvironmentEvaluator"),
    "ENV_ASSERTION": ("evaluator_env", "EnvironmentEvaluator"),
    "ACTION": ("evaluator_action", "ActionEvaluator"),
    "COMMUNICATE": ("evaluator_communicate", "CommunicateEvaluator"),
}
"""Part of a reward to the module and the class that judge it."""
NEEDED = 3
"""Environments of one judgement: for the play, and the two that the evaluator compares."""
MODULES = tuple(dict.fromkeys(f"tau2.evaluator.{module}" for module, _ in EVALUATORS.values()))


class Tau2Evaluation:
    """A domain with its tasks and evaluators; see `trajsmith.environments.programs.EnvironmentProgram`."""

    def __init__(self, payload: JsonObject) -> None:
        _stub_pandas()
        modules = run_modules(payload["modules"], DataFiles(payload["domain"], payload["data"]))
        self._get_environment = vars(modules[f"tau2.domains.{payload['domain']}.environment"])["get_environment"]
        self._ready = [self._get_environment() for _ in range(NEEDED)]
        self._tasks = vars(modules["tau2.data_model.tasks"])
        self._messages = vars(modules["tau2.data_model.message"])
        self._evaluators = {
            part: vars(modules[f"tau2.evaluator.{module}"])[name] for part, (module, name) in EVALUATORS.items()
        }
        self.notes: list[str] = []
        inputs: JsonObject = {"task": {"type": "object"}, "calls": {"type": "array"}, "texts": {"type": "array"}}
        schema: JsonObject = {"type": "object", "properties": inputs, "required": list(inputs)}
        self.spec = EnvironmentSpec(
            name=payload["name"],
            version=content_hash(payload["modules"], 16),
            description="Judges plays.",
            tools=(ToolSpec(server=payload["name"], name=TOOL, input_schema=schema),),
            source=f"tau2:{payload['domain']}",
        )

    def states(self, seed: int) -> list[JsonObject]:
        """Return the only state, which is empty."""
        return [{}]

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> Self:
        """Return this program as an episode."""
        return self

    def changes(self) -> list[StateChange]:
        """Return no change."""
        return []

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Judge a play: {"rewards": part to reward, "left_out": parts, "states": hashes at its end, "refused": texts}.

        A task that the data model refuses is a refusal.
        """
        with environment_boundary(self.spec.name, tool):
            try:
                task = self._tasks["Task"].model_validate(arguments["task"])
            except ValidationError as error:
                return ToolResult.refusal("refused", format_first_error(error))
            return ToolResult(self._judge(task, arguments["calls"], arguments["texts"]))

    def _make_environment(self, **options: Any) -> Any:
        """Return a fresh environment. Those that are ready are used once: every play is in a process of its own."""
        usual = not any(options.values())
        return self._ready.pop() if usual and self._ready else self._get_environment(**options)

    def _judge(self, task: Any, calls: Sequence[JsonObject], texts: Sequence[str]) -> JsonObject:
        environment = self._make_environment()
        initial = task.initial_state
        messages = list(initial.message_history or ()) if initial is not None else []
        environment.set_state(
            initialization_data=initial.initialization_data if initial is not None else None,
            initialization_actions=initial.initialization_actions if initial is not None else None,
            message_history=messages,
        )
        messages = list(messages)
        refused = []
        speakers = {"assistant": self._messages["AssistantMessage"], "user": self._messages["UserMessage"]}
        for number, call in enumerate(calls):
            asked = self._messages["ToolCall"](
                id=f"audit_{number}", name=call["tool"], arguments=call["arguments"], requestor=call["actor"]
            )
            reply = environment.get_response(asked)
            messages += [speakers[call["actor"]](role=call["actor"], content=None, tool_calls=[asked]), reply]
            if reply.error:
                refused.append(f"{call['tool']}: {str(reply.content)[:200]}")
        messages += [speakers["assistant"](role="assistant", content=text) for text in texts]
        criteria = task.evaluation_criteria
        basis = (
            [part.value if isinstance(part, Enum) else str(part) for part in criteria.reward_basis or ()]
            if criteria
            else []
        )
        rewards = {part: self._reward(part, task, messages) for part in basis if part in self._evaluators}
        return {
            "rewards": rewards,
            "left_out": [part for part in basis if part not in self._evaluators and _asks_a_model(part, criteria)],
            "states": [str(environment.get_db_hash()), str(environment.get_user_db_hash())],
            "refused": refused,
        }

    def _reward(self, part: str, task: Any, messages: Sequence[Any]) -> float:
        known: dict[str, Any] = {"task": task, "full_trajectory": list(messages)}
        if part in ("DB", "ENV_ASSERTION"):
            known["environment_constructor"] = self._make_environment
        judged = self._evaluators[part].calculate_reward(**known)
        for name, reward in (judged.reward_breakdown or {}).items():
            if (name.value if isinstance(name, Enum) else str(name)) == part:
                return float(reward)
        return float(judged.reward)


def _asks_a_model(part: str, criteria: Any) -> bool:
    """Return False for assertions in words of which the task has none: these are held, as published."""
    return part != "NL_ASSERTION" or bool(criteria.nl_assertions)


def _stub_pandas() -> None:
    """Stand in for pandas, which the data model of simulations names in annotations only."""
    if "pandas" not in sys.modules:
        pandas = ModuleType("pandas")
        vars(pandas)["DataFrame"] = object
        sys.modules["pandas"] = pandas


def load(payload: JsonObject) -> Tau2Evaluation:
    """Load a domain with its evaluators; see `trajsmith.environments.adapters.tau2.evaluator`.

    Raises:
        InputError: Its code does not run; the text names the file.
    """
    return Tau2Evaluation(payload)
