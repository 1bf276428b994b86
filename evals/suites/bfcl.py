"""BFCL v4 by the package `bfcl-eval`: its data, its environments and its checker, in a process of its own."""

import ast
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trajsmith.evals.suites.suite import SUITES, CallRecord, SuiteTask
from trajsmith.evals.suites.worker_process import CACHE, WorkerProcess, make_environment
from trajsmith.records import InputError, JsonObject, Message, RunError

VERSION = "2026.3.23"
NEEDS = (
    "numpy", "requests", "python-dotenv", "mpmath", "tenacity", "overrides", "tqdm", "rank_bm25", "typer", "tabulate",
    "pydantic", "beautifulsoup4", "html2text", "filelock", "networkx",
)  # fmt: skip
"""What its data and checker import; the model clients that its wheel asks for are left out."""
WORKER = Path(__file__).with_name("_bfcl_worker.py")
TYPES = {"dict": "object", "float": "number", "tuple": "array", "HashMap": "object", "ArrayList": "array"}
"""Types of BFCL's functions that JSON Schema calls otherwise."""
JSON_TYPES = frozenset({"object", "number", "integer", "string", "boolean", "array", "null"})


@SUITES.register("bfcl")
class Bfcl:
    """The suite of BFCL."""

    version = VERSION
    categories = (
        "simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance", "live_simple", "live_multiple",
        "live_parallel", "live_parallel_multiple", "live_irrelevance", "live_relevance", "multi_turn_base",
        "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context",
    )  # fmt: skip

    def __init__(self) -> None:
        self._worker: WorkerProcess | None = None
        self._dotted: dict[tuple[str, str], str] = {}
        """Task and function name as models are shown it to BFCL's own."""

    async def open(self, environment: Path | None, path: Path | None) -> None:
        """Start the worker.

        Raises:
            InputError: The package is missing in `environment`, of another version, or cannot be installed.
        """
        if path is not None:
            raise InputError("bfcl takes no --path: its data is in its package")
        if environment is None:
            installs = (("--no-deps", f"bfcl-eval=={VERSION}"), NEEDS)
            environment = CACHE / f"bfcl-eval-{VERSION}"
            await asyncio.to_thread(make_environment, environment, installs, f"bfcl-eval {VERSION}")
        python = environment / "bin" / "python"
        if not python.is_file():
            raise InputError(f"{environment} is no virtual environment: make one with `make .integrations/.bfcl`")
        self._worker = await WorkerProcess.start("bfcl-eval", python, WORKER)
        try:
            version = await self._ask(kind="version")
        except RunError as error:
            raise InputError(f"{environment} has no bfcl-eval: install bfcl-eval=={VERSION} there") from error
        if version != VERSION:
            raise InputError(
                f"{environment} has bfcl-eval {version}, and results are those of {VERSION}: name another "
                "environment, or leave --environment out"
            )

    async def _ask(self, **question: Any) -> Any:
        if self._worker is None:
            raise RunError("the benchmark is not open")
        return await self._worker.ask(question)

    async def load_tasks(self, category: str) -> list[SuiteTask]:
        """Return the tasks of a category."""
        return [self._build_task(row, category) for row in await self._ask(kind="tasks", category=category)]

    def _build_task(self, row: JsonObject, category: str) -> SuiteTask:
        live = category.startswith("multi_turn")
        tools = tuple(self._build_tool(row["id"], one) for one in row["function"])
        later: dict[str, list[JsonObject]] = row.get("arriving", {})
        arriving = {int(turn): tuple(self._build_tool(row["id"], one) for one in new) for turn, new in later.items()}
        turns = tuple(
            tuple(Message(role=one["role"], content=one["content"]) for one in turn) for turn in row["question"]
        )
        gold = _build_gold(row["ground_truth"], live, "irrelevance" in category)
        return SuiteTask(
            id=row["id"], category=category, turns=turns, tools=tools, arriving=arriving, live=live, gold=gold
        )

    def _build_tool(self, task: str, function: JsonObject) -> JsonObject:
        shown = function["name"].replace(".", "_")
        self._dotted[task, shown] = function["name"]
        parameters = _convert_schema(function["parameters"])
        entry = {"name": shown, "description": function["description"], "parameters": parameters}
        return {"type": "function", "function": entry}

    async def execute(self, task: SuiteTask, run: str, calls: Sequence[CallRecord]) -> list[str]:
        """Execute calls of a multi-turn task; one that its functions do not allow is not executed."""
        allowed = task.tool_names
        texts = [_write_call(call) if call.name in allowed and _is_plain(call) else "" for call in calls]
        results = iter(
            await self._ask(
                kind="execute", category=task.category, task=task.id, run=run, calls=[text for text in texts if text]
            )
        )
        return [
            next(results) if text else f"Error during execution: no function {call.name}"
            for text, call in zip(texts, calls, strict=True)
        ]

    async def check(self, task: SuiteTask, run: str, steps: Sequence[Sequence[Any]]) -> str:
        """Return BFCL's verdict."""
        calls: list[Any]
        if task.live:
            allowed = task.tool_names
            calls = [
                [[_write_call(call) for call in step if call.name in allowed and _is_plain(call)] for step in turn]
                for turn in steps
            ]
        else:
            called = [call for turn in steps for step in turn for call in step]
            calls = [{self._dotted.get((task.id, call.name), call.name): call.arguments} for call in called]
        verdict = await self._ask(kind="check", category=task.category, task=task.id, run=run, calls=calls)
        return "" if verdict["valid"] else str(verdict.get("error_type", "invalid"))

    async def close(self) -> None:
        """Stop the worker."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()


def _convert_schema(schema: Any) -> Any:
    """Return a parameter schema as JSON Schema."""
    if isinstance(schema, list):
        return [_convert_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {key: _convert_schema(value) for key, value in schema.items()}
    kind = schema.get("type")
    if isinstance(kind, str):
        name = TYPES.get(kind, kind)
        if name in JSON_TYPES:
            converted["type"] = name
        else:
            del converted["type"]
    return converted


def _build_gold(answers: Any, live: bool, refused: bool) -> tuple[tuple[tuple[CallRecord, ...], ...], ...] | None:
    """Return the calls that BFCL holds for right; of several accepted values the first."""
    if refused:
        return ((),)
    if not answers:
        return None
    if live:
        return tuple((tuple(map(_read_call, turn)),) if turn else () for turn in answers)
    calls = tuple(
        CallRecord(name=name.replace(".", "_"), arguments=_pick_values(arguments))
        for answer in answers
        for name, arguments in answer.items()
    )
    return ((calls,),)


def _pick_values(arguments: JsonObject) -> JsonObject:
    """Return the first accepted value of each argument; one that may be left out first is left out."""
    picked: JsonObject = {}
    for name, values in arguments.items():
        options = values if isinstance(values, list) and values else [values]
        if options[0] != "":
            picked[name] = _pick(options[0])
    return picked


def _pick(value: Any) -> Any:
    if isinstance(value, dict):
        return _pick_values(value)
    return [_pick(one) for one in value] if isinstance(value, list) else value


def _read_call(text: str) -> CallRecord:
    """Read a gold call; arguments by position have the names "0", "1", and so on."""
    node = ast.parse(text.strip(), mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise RunError(f"bfcl-eval: {text!r} is no call")
    arguments = {str(place): ast.literal_eval(value) for place, value in enumerate(node.args)}
    arguments |= {str(one.arg): ast.literal_eval(one.value) for one in node.keywords}
    return CallRecord(name=node.func.id, arguments=arguments)


def _is_plain(call: CallRecord) -> bool:
    """Return True if a call can be written as text: the names of its arguments are names."""
    return all(name.isidentifier() or name.isdigit() for name in call.arguments)


def _write_call(call: CallRecord) -> str:
    """Return a call as BFCL executes it; values are literals, so that nothing else can stand in it."""
    parts = [repr(value) if name.isdigit() else f"{name}={value!r}" for name, value in call.arguments.items()]
    return f"{call.name}({', '.join(parts)})"
