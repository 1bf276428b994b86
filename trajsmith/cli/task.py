"""`trajsmith task`: one task of a run as an MCP server, calls of it, and the verdict on what was done."""

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import orjson
import typer

from trajsmith.cli.console import print_line, print_note, run_async
from trajsmith.records import InputError

if TYPE_CHECKING:
    from trajsmith.records import JsonObject, Task
    from trajsmith.train_grpo import EpisodeSource

app = typer.Typer(help="Play one task of a run from outside: serve it, call its tools, judge what was done.")
URL = "http://127.0.0.1:8765/mcp"
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or the folder of a task.")]
TaskId = Annotated[str, typer.Option("--task", help="Id of the task; needed where there are several.")]
Url = Annotated[str, typer.Option("--url", help="Address of the server of a task.")]


@app.command()
def serve(
    run: Run,
    task: TaskId = "",
    http: Annotated[str, typer.Option("--http", metavar="HOST:PORT", help="Where to listen.")] = "127.0.0.1:8765",
    transcript: Annotated[Path | None, typer.Option("--transcript", help="File for what is called and said.")] = None,
    openenv: Annotated[
        str | None,
        typer.Option("--openenv", metavar="HOST:PORT", help="Serve all tasks over OpenEnv, in place of one over MCP."),
    ] = None,
    reward: Annotated[
        str, typer.Option("--reward", help="Reward of --openenv: accepted (1 or 0), or a name such as composite.")
    ] = "accepted",
) -> None:
    """Serve one episode of a task over MCP: its tools, and message_user to talk with the simulated user.

    All connections share the episode. Judge it from the transcript:

        trajsmith task serve RUN --task ID --transcript t.jsonl
        trajsmith task judge RUN --task ID --transcript t.jsonl

    With --openenv, every session has an episode of its own: reset(task_id=ID), calls, and the reward when the
    conversation is over.
    """
    from trajsmith.cli.env_serve import parse_address, until_stopped

    host, port = parse_address(openenv or http)
    if openenv is not None:
        _serve_openenv(run, host, port, reward)
        return
    from trajsmith.environments import require_mcp

    require_mcp("`trajsmith task serve`")
    from trajsmith.environments.serving.access import AccessSettings
    from trajsmith.environments.serving.http import listen, serve_http
    from trajsmith.pipeline.hub_runs import open_run
    from trajsmith.pipeline.task_server import build_serving, open_tasks

    with open_tasks(open_run(run)) as source:
        offer = build_serving(source, _choose(source, task), transcript)

        async def work() -> None:
            with listen(host, port) as where:
                print_note(f"serving at http://{host}:{where.getsockname()[1]}/mcp")
                await serve_http(offer, where, 1000, 86_400, AccessSettings.for_address(host, None, ()))

        run_async(until_stopped(work()))


def _serve_openenv(run: Path, host: str, port: int, reward: str) -> None:
    """Serve all tasks of a run over OpenEnv.

    Raises:
        InputError: The package openenv is missing, or the reward is unknown.
    """
    from trajsmith.cli.env_serve import OPENENV_MISSING, until_stopped
    from trajsmith.environments.serving.access import AccessSettings
    from trajsmith.environments.serving.sockets import listen
    from trajsmith.pipeline.hub_runs import open_run
    from trajsmith.pipeline.task_server import open_tasks

    try:
        from trajsmith.environments.serving.openenv import serve_application
        from trajsmith.pipeline.openenv_tasks import build_task_application
    except ImportError as error:
        raise InputError(OPENENV_MISSING.format(error)) from error
    with open_tasks(open_run(run)) as source:
        application = build_task_application(source, reward)

        async def work() -> None:
            with listen(host, port) as where:
                url = f"http://{host}:{where.getsockname()[1]}"
                print_note(f"{len(source.tasks)} tasks: serving OpenEnv at {url}; Ctrl-C ends it")
                await serve_application(application, where, AccessSettings.for_address(host, None, ()))

        run_async(until_stopped(work()))


@app.command()
def tools(url: Url = URL) -> None:
    """List the tools of a task that is served."""
    from trajsmith.environments import require_mcp

    require_mcp("`trajsmith task tools`")
    from mcp import Client

    _check_server(url)

    async def work() -> list[Any]:
        async with Client(url) as client:
            return list((await client.list_tools()).tools)

    for tool in run_async(work()):
        print_line(f"{tool.name}: {tool.description}\n  {orjson.dumps(tool.input_schema).decode()}")


@app.command()
def call(
    name: Annotated[str, typer.Argument(help="Tool.")] = "",
    arguments: Annotated[str, typer.Argument(help="Arguments, as a JSON object.")] = "{}",
    url: Url = URL,
    file: Annotated[Path | None, typer.Option("--file", help="Make the calls of a transcript in place of one.")] = None,
) -> None:
    """Call a tool of a task that is served, and print the result."""
    from trajsmith.environments import require_mcp

    require_mcp("`trajsmith task call`")
    from mcp import Client

    if (file is None) == (not name):
        raise InputError("give a tool and its arguments, or --file TRANSCRIPT")
    _check_server(url)
    calls: list[JsonObject] = [{"tool": name, "arguments": _parse_arguments(arguments)}]
    if file is not None:
        calls = _read_transcript(file)

    async def work() -> None:
        async with Client(url) as client:
            for one in calls:
                result = await client.call_tool(one["tool"], one["arguments"])
                print_line("".join(getattr(block, "text", "") for block in result.content))

    run_async(work())


@app.command()
def judge(
    run: Run,
    transcript: Annotated[Path, typer.Option("--transcript", help="File of `trajsmith task serve`.")],
    task: TaskId = "",
    answer: Annotated[
        Path | None, typer.Option("--answer", help="File with the last message to the user, if it was not said.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="JSON file for the rewards.")] = None,
) -> None:
    """Play a transcript again, and print the rewards: reward is 1 if the play is accepted, else 0.

    If the environment or the user broke, nothing is written and the exit code is 1.
    """
    from trajsmith.pipeline.hub_runs import open_run
    from trajsmith.pipeline.task_server import judge_transcript, open_tasks
    from trajsmith.records import EnvironmentFault
    from trajsmith.train_grpo import MESSAGE_USER

    lines = _read_transcript(transcript) if transcript.is_file() else []
    if answer is not None and answer.is_file():
        spoken = answer.read_text("utf-8", "replace")  # whatever the agent wrote is judged
        lines.append({"tool": MESSAGE_USER.name, "arguments": {"text": spoken}})
    with open_tasks(open_run(run)) as source:
        chosen = _choose(source, task)
        _, verdict = judge_transcript(source, chosen, lines)
    if verdict.outcome in ("environment_error", "user_error", "undecided"):
        raise EnvironmentFault("state", chosen.environments[0], f"cannot be scored: {verdict.outcome}")
    rewards = {"reward": float(verdict.accepted), **verdict.rewards}
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(orjson.dumps(rewards))
    print_line(orjson.dumps({"outcome": verdict.outcome, "reasons": verdict.reasons, **rewards}).decode())


def _check_server(url: str) -> None:
    """Refuse an address where nothing listens.

    Raises:
        InputError: With the command that serves.
    """
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 80), 5).close()
    except OSError as error:
        raise InputError(
            f"nothing listens at {url} ({error.strerror or error}): start `trajsmith task serve RUN`"
        ) from error


def _choose(source: "EpisodeSource", task: str) -> "Task":
    """Return the task of an id, or the only one.

    Raises:
        InputError: There is none, or several and no id.
    """
    if task:
        if task not in source.tasks:
            raise InputError(f"the run has no task {task} that can be played from outside")
        return source.tasks[task]
    if len(source.tasks) != 1:
        raise InputError(f"the run has {len(source.tasks)} tasks: choose one with --task ID")
    return next(iter(source.tasks.values()))


def _parse_arguments(text: str) -> "JsonObject":
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"the arguments are not JSON: {error.msg}") from error
    if not isinstance(value, dict):
        raise InputError("the arguments are a JSON object")
    return value


def _read_transcript(file: Path) -> "list[JsonObject]":
    try:
        lines = [orjson.loads(line) for line in file.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise InputError(f"{file} cannot be read as a transcript: {error}") from error
    if not all(isinstance(line, dict) and isinstance(line.get("arguments"), dict) and "tool" in line for line in lines):
        raise InputError(f"{file}: each line of a transcript has `tool` and `arguments`")
    return lines
