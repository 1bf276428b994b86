"""Answers questions about τ²-bench in an environment with its requirements: tasks, and judged conversations.

Runs as a program of its own, with nothing of trajsmith: one JSON object per line in, one out. τ²-bench's own agent,
user simulator, orchestrator and evaluators work here; what they ask a language model is asked back over the line.
"""

import json
import os
import sys
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

AGENT, USER, JUDGE = "agent", "user", "judge"
TASK_SETS = {"telecom_small": "telecom"}
"""Domains of task sets that are called otherwise."""
SPLITS = {"telecom_small": "small"}


class ModelReplyError(Exception):
    """A model's reply that ends a conversation; the text is the class of the error."""


class WorkerLine:
    """The line to the caller, shared by all threads."""

    def __init__(self) -> None:
        self._out, sys.stdout = sys.stdout, sys.stderr  # their modules print
        self._lock = threading.Lock()
        self._replies: dict[int, SimpleQueue[dict[str, Any]]] = {}
        self._question = threading.local()

    def write(self, entry: dict[str, Any]) -> None:
        """Write one line."""
        text = json.dumps(entry, default=str)
        with self._lock:
            self._out.write(text + "\n")
            self._out.flush()

    def begin(self, number: int) -> None:
        """Say that this thread works on a question from now on."""
        self._question.number = number
        self._replies[number] = SimpleQueue()

    def end(self) -> None:
        """Say that this thread's question is answered."""
        del self._replies[self._question.number]

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Ask back within this thread's question, and wait for the reply."""
        number = self._question.number
        self.write({"id": number, "ask": asked})
        return self._replies[number].get()

    def deliver(self, number: int, reply: dict[str, Any]) -> None:
        """Hand a reply to the thread that waits for it."""
        if number in self._replies:
            self._replies[number].put(reply)


LINE = WorkerLine()


def complete(model: str, messages: list[dict[str, Any]], tools: Any = None, **settings: Any) -> Any:
    """Stand in for litellm's `completion`: the caller has the models."""
    from litellm.types.utils import ModelResponse

    role = model if model in (AGENT, USER) else JUDGE
    reply = LINE.ask({"role": role, "messages": messages, "tools": tools or [], "seed": settings.get("seed")})
    if "fault" in reply:
        raise ModelReplyError(reply["fault"])
    if role == AGENT and not (reply["content"] or "").strip() and not reply["tool_calls"]:
        raise ModelReplyError("empty_message")
    message = {"role": "assistant", "content": reply["content"], "tool_calls": reply["tool_calls"] or None}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return ModelResponse(model=role, choices=[choice])


def load_tasks(category: str) -> dict[str, Any]:
    """Return the tasks of a category by id."""
    from tau2.registry import registry

    loader = registry.get_tasks_loader(TASK_SETS.get(category, category))
    tasks = loader(SPLITS[category]) if category in SPLITS else loader()
    return {task.id: task for task in tasks}


def describe(category: str, task: Any) -> dict[str, Any]:
    """Return a task as the caller needs it."""
    from tau2.registry import registry

    environment = registry.get_env_constructor(TASK_SETS.get(category, category))()
    criteria, instructions = task.evaluation_criteria, task.user_scenario.instructions
    calls = [
        {"name": one.name, "arguments": one.arguments, "actor": one.requestor} for one in criteria.actions or ()
    ] if criteria else []  # fmt: skip
    return {
        "id": task.id,
        "request": instructions if isinstance(instructions, str) else instructions.reason_for_call,
        "scenario": str(task.user_scenario),
        "tools": [tool.openai_schema for tool in environment.get_tools()],
        "gold": calls,
        "says": list(criteria.communicate_info or ()) if criteria else [],
        "judged": bool(criteria and criteria.nl_assertions)
        and "NL_ASSERTION" in {one.value for one in criteria.reward_basis},
    }


def leave_out_judged(task: Any) -> Any:
    """Return a task without the assertions that a model judges."""
    criteria = task.evaluation_criteria
    if criteria is None:
        return task
    basis = [one for one in criteria.reward_basis if one.value != "NL_ASSERTION"]
    return task.model_copy(update={"evaluation_criteria": criteria.model_copy(update={"reward_basis": basis})})


def play(category: str, task: Any, run: str, seed: int, judged: bool, max_steps: int) -> dict[str, Any]:
    """Play a conversation by their orchestrator and return it with the verdict of their evaluators."""
    from tau2.data_model.simulation import TextRunConfig
    from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation
    from tau2.runner.build import build_text_orchestrator

    domain = TASK_SETS.get(category, category)
    config = TextRunConfig(
        domain=domain, agent="llm_agent", llm_agent=AGENT, llm_args_agent={}, user="user_simulator", llm_user=USER,
        llm_args_user={}, max_steps=max_steps,
    )  # fmt: skip
    if not judged:
        task = leave_out_judged(task)
    orchestrator = build_text_orchestrator(config, task, seed=seed, simulation_id=run)
    try:
        simulation = orchestrator.run()
    except ModelReplyError as error:
        return {"messages": [one.model_dump(mode="json") for one in orchestrator.trajectory], "error": str(error)}
    messages = [one.model_dump(mode="json") for one in simulation.messages]
    try:
        reward = evaluate_simulation(simulation, task, EvaluationType.ALL, solo_mode=False, domain=domain)
    except ModelReplyError:
        raise
    except Exception as error:  # noqa: BLE001 - an evaluator that breaks decides nothing
        return {"messages": messages, "undecided": f"{type(error).__name__}: {error}"[:300]}
    return {"messages": messages, "error": name_error(simulation, reward)}


def name_error(simulation: Any, reward: Any) -> str:
    """Return "" for full reward, else what ended the conversation or the parts of the reward that are missing."""
    if reward.reward >= 1.0:
        return ""
    if reward.reward_breakdown:
        return "+".join(sorted(part.value.lower() for part, share in reward.reward_breakdown.items() if share < 1.0))
    return str(simulation.termination_reason.value)


def answer(question: dict[str, Any], tasks: dict[str, dict[str, Any]], path: Path) -> Any:
    """Answer one question."""
    if question["kind"] == "version":
        import tau2.registry  # noqa: F401 - it shows that the requirements are there

        return tomllib.loads((path / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    category = question["category"]
    if question["kind"] == "tasks":
        tasks[category] = load_tasks(category)
        return [describe(category, task) for task in tasks[category].values()]
    task = tasks[category][question["task"]]
    return play(category, task, question["run"], question["seed"], question["judged"], question["max_steps"])


def work(question: dict[str, Any], tasks: dict[str, dict[str, Any]], path: Path) -> None:
    """Answer one question on a thread of its own."""
    LINE.begin(question["id"])
    try:
        entry = {"answer": answer(question, tasks, path)}
    except Exception as error:  # noqa: BLE001 - whatever their code raises is the answer to this line
        entry = {"error": f"{type(error).__name__}: {error}"}
    LINE.end()
    LINE.write({"id": question["id"]} | entry)


def main() -> None:
    """Answer lines until the input ends."""
    path = Path(sys.argv[1]).resolve()
    os.environ |= {"TAU2_DATA_DIR": str(path / "data"), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    sys.path.insert(0, str(path / "src"))
    tasks: dict[str, dict[str, Any]] = {}
    ready = False
    with ThreadPoolExecutor(max_workers=256) as threads:
        for line in sys.stdin:
            entry = json.loads(line)
            if "reply" in entry:
                LINE.deliver(entry["id"], entry["reply"])
                continue
            if not ready and entry["kind"] != "version":
                from loguru import logger
                from tau2.utils import llm_utils

                logger.remove()
                llm_utils.completion = complete
                ready = True
            threads.submit(work, entry, tasks, path)
        os._exit(0)  # threads that wait for replies would keep it


if __name__ == "__main__":
    main()
