"""τ²-bench by a checkout of it: its agent, user simulator, orchestrator and evaluators, in a process of its own."""

import asyncio
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from trajsmith.evals.suites.suite import SUITES, CallRecord, Responder, SuitePlay, SuiteTask
from trajsmith.evals.suites.worker_process import CACHE, WorkerProcess, make_environment
from trajsmith.models import ChatRequest, Usage
from trajsmith.records import FunctionCall, InputError, JsonObject, Message, ModelFault, RunError, ToolCall

NEEDS = (
    "rich", "tabulate", "fastapi", "uvicorn", "pandas", "psutil", "loguru", "docstring-parser",
    "litellm>=1.80.15,<1.82.7", "tenacity", "deepdiff", "addict", "PyYAML", "toml", "python-dotenv", "typer",
    "requests", "numpy", "httpx",
)  # fmt: skip
"""What its pyproject.toml asks for."""
WORKER = Path(__file__).with_name("_tau2_worker.py")
CHECKOUT = "git clone https://github.com/sierra-research/tau2-bench"
MAX_STEPS = 200
"""Messages of a conversation, τ²-bench's own limit."""
FILES = ("src/tau2/**/*.py", "data/tau2/domains/*/*.*", "data/tau2/user_simulator/*.md")
"""What results depend on."""
FENCE = re.compile(r"^```\w*\n(.*)\n```$", re.DOTALL)


@SUITES.register("tau2")
class Tau2:
    """The suite of τ²-bench."""

    version = ""
    categories = ("airline", "retail", "telecom", "telecom_small", "mock")

    def __init__(self) -> None:
        self._worker: WorkerProcess | None = None
        self._judged: set[str] = set()

    async def open(self, environment: Path | None, path: Path | None) -> None:
        """Start the worker.

        Raises:
            InputError: The checkout is missing or is something else, or its requirements are missing.
        """
        if path is None:
            raise InputError(f"tau2 needs a checkout: {CHECKOUT}, and name it with --path (its data is in no package)")
        if not (path / "src" / "tau2" / "registry.py").is_file() or not (path / "data" / "tau2" / "domains").is_dir():
            raise InputError(f"{path} is no checkout of tau2-bench: {CHECKOUT}, and name that folder with --path")
        if environment is None:
            digest = hashlib.sha256("\n".join(NEEDS).encode()).hexdigest()[:8]
            environment = CACHE / f"tau2-{digest}"
            await asyncio.to_thread(make_environment, environment, (NEEDS,), "what tau2-bench needs")
        python = environment / "bin" / "python"
        if not python.is_file():
            raise InputError(f"{environment} is no virtual environment: make one with `make .integrations/.tau2`")
        self._worker = await WorkerProcess.start("tau2-bench", python, WORKER, [str(path)])
        try:
            version = await self._worker.ask({"kind": "version"})
        except RunError as error:
            raise InputError(f"tau2-bench does not start with {environment}: {error}") from error
        self.version = f"{version}+{await asyncio.to_thread(_digest_checkout, path)}"

    async def load_tasks(self, category: str) -> list[SuiteTask]:
        """Return the tasks of a category.

        Raises:
            InputError: The checkout has no data for it.
        """
        try:
            rows = await self._get_worker().ask({"kind": "tasks", "category": category})
        except RunError as error:
            if "FileNotFoundError" in str(error):
                raise InputError(f"the checkout of tau2-bench has no data for {category}: {error}") from error
            raise
        tasks = [_build_task(row, category) for row in rows]
        self._judged |= {task.id for task, row in zip(tasks, rows, strict=True) if row["judged"]}
        return tasks

    def needs_judge(self, task: SuiteTask) -> bool:
        """Return True if a model judges a part of this task."""
        return task.id in self._judged

    async def converse(self, task: SuiteTask, run: str, trial: int, respond: Responder, judged: bool) -> SuitePlay:
        """Play one conversation, judged by τ²-bench's evaluators.

        Raises:
            ModelFault: A model could not answer.
        """
        used = Usage()

        async def complete(asked: JsonObject) -> JsonObject:
            nonlocal used
            role = asked["role"]
            request = ChatRequest(
                messages=tuple(map(_read_message, asked["messages"])), tools=tuple(asked["tools"]),
                seed=trial or None, purpose=role, record=task.id,
            )  # fmt: skip
            reply = await respond(role, request)
            if role == "agent":
                used += reply.usage
            if reply.malformed and role == "agent":
                return {"fault": "malformed_call"}
            if role != "agent" and not reply.message.content.strip() and not reply.message.tool_calls:
                raise ModelFault("bad_reply", role, f"the {role} said nothing")
            content = reply.message.content
            fenced = FENCE.match(content.strip()) if role == "judge" else None
            calls = [_write_call(call) for call in reply.message.tool_calls or ()]
            return {"content": fenced.group(1) if fenced else content, "tool_calls": calls}

        question = {
            "kind": "play",
            "category": task.category,
            "task": task.id.partition(":")[2],
            "run": run,
            "seed": trial,
            "judged": judged,
            "max_steps": MAX_STEPS,
        }
        ended = await self._get_worker().ask(question, complete)
        return SuitePlay(
            steps=_read_steps(ended["messages"]), messages=tuple(map(_read_played, ended["messages"])),
            tokens=used.completion_tokens, prompt_tokens=used.prompt_tokens, error=ended.get("error", ""),
            undecided=ended.get("undecided", ""),
        )  # fmt: skip

    def _get_worker(self) -> WorkerProcess:
        if self._worker is None:
            raise RunError("the benchmark is not open")
        return self._worker

    async def close(self) -> None:
        """Stop the worker."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()


def _digest_checkout(path: Path) -> str:
    """Return a short hash of the code and data that results depend on."""
    digest = hashlib.sha256()
    for pattern in FILES:
        for file in sorted(path.glob(pattern)):
            if file.is_file() and "voice" not in file.name and "audio" not in file.name:
                digest.update(f"{file.relative_to(path)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:8]


def _build_task(row: JsonObject, category: str) -> SuiteTask:
    gold = tuple(CallRecord(**call) for call in row["gold"])
    return SuiteTask(
        id=f"{category}:{row['id']}",
        category=category,
        turns=((Message(role="user", content=row["request"]),),),
        tools=tuple(row["tools"]),
        live=True,
        gold=(tuple((call,) for call in gold),),
        says=tuple(row["says"]),
        scenario=row["scenario"],
    )


def _read_message(entry: JsonObject) -> Message:
    """Return a message as τ²-bench sends it to a model."""
    calls = tuple(
        ToolCall(
            id=call["id"],
            function=FunctionCall(name=call["function"]["name"], arguments=json.loads(call["function"]["arguments"])),
        )
        for call in entry.get("tool_calls") or ()
    )
    return Message(
        role=entry["role"], content=entry.get("content") or "", tool_calls=calls or None,
        tool_call_id=entry.get("tool_call_id"),
    )  # fmt: skip


def _write_call(call: ToolCall) -> JsonObject:
    function = {"name": call.function.name, "arguments": json.dumps(call.function.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _read_played(entry: JsonObject) -> Message:
    """Return a message of a conversation as τ²-bench keeps it; users may call tools, too."""
    calls = tuple(
        ToolCall(id=call["id"], function=FunctionCall(name=call["name"], arguments=call["arguments"]))
        for call in entry.get("tool_calls") or ()
    )
    result = entry["role"] == "tool"
    return Message(
        role=entry["role"], content=entry.get("content") or "", tool_calls=calls or None,
        tool_call_id=entry["id"] if result else None,
    )  # fmt: skip


def _read_steps(messages: Sequence[JsonObject]) -> tuple[tuple[tuple[CallRecord, ...], ...], ...]:
    """Return the calls, step by step, in turns that begin with what the user says."""
    turns: list[list[tuple[CallRecord, ...]]] = []
    for entry in messages:
        calls = entry.get("tool_calls") or ()
        if (entry["role"] == "user" and not calls) or not turns:
            turns.append([])
        if calls:
            turns[-1].append(
                tuple(CallRecord(name=call["name"], arguments=call["arguments"], actor=entry["role"]) for call in calls)
            )
    return tuple(map(tuple, turns))
