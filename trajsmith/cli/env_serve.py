"""`trajsmith env serve`: an environment as an MCP server, or as an OpenEnv server."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import orjson
import typer

from trajsmith.cli.console import print_note
from trajsmith.cli.options import MOST_SEED, WHAT, Sandbox
from trajsmith.records import Actor, InputError, JsonObject

if TYPE_CHECKING:
    from trajsmith.environments import EnvironmentSource


def serve(
    name: Annotated[str, typer.Argument(help=WHAT)],
    http: Annotated[
        str | None, typer.Option("--http", metavar="HOST:PORT", help="Streamable HTTP at /mcp, in place of stdio.")
    ] = None,
    openenv: Annotated[
        str | None, typer.Option("--openenv", metavar="HOST:PORT", help="As an OpenEnv server, in place of MCP.")
    ] = None,
    admin: Annotated[
        bool,
        typer.Option(
            "--admin",
            help="Also offer load_state, save_state and reset. A client with these tools controls everything.",
        ),
    ] = False,
    actor: Annotated[str, typer.Option("--actor", help="Whose tools: assistant, or user.")] = "assistant",
    seed: Annotated[int, typer.Option("--seed", min=0, max=MOST_SEED, help="Seed of the initial states.")] = 0,
    size: Annotated[str | None, typer.Option("--size", help="Initial state: small, medium or large.")] = None,
    sandbox: Sandbox = None,
    state: Annotated[
        str, typer.Option("--state", help="Initial state: its number for that seed, or a JSON file.")
    ] = "0",
    idle: Annotated[float, typer.Option("--idle", help="Seconds without a request that end an HTTP session.")] = 1800,
    sessions: Annotated[int, typer.Option("--sessions", help="HTTP sessions at a time.")] = 1000,
) -> None:
    """Serve an environment over MCP or OpenEnv; every connection has a session of its own.

    Over stdio one client is served until it closes stdin; over HTTP any number, until Ctrl-C or SIGTERM.
    """
    from trajsmith.environments.sandbox.settings import MODES
    from trajsmith.pipeline.environment_references import open_named_source

    if http is not None and openenv is not None:
        raise InputError("--http serves MCP and --openenv serves OpenEnv: choose one, and start the other beside it")
    if actor not in ("assistant", "user"):
        raise InputError(f"--actor is assistant or user, not {actor!r}")
    if sandbox is not None and sandbox not in MODES:
        raise InputError(f"--sandbox is one of {', '.join(MODES)}, not {sandbox!r}")
    if idle <= 0 or sessions <= 0:
        raise InputError("--idle and --sessions must be more than 0")
    start = {"seed": seed, "state": read_state(state), "actor": cast(Actor, actor), "admin": admin}
    if openenv is not None:
        _run_openenv(lambda: open_named_source(name, size, sandbox), start, *parse_address(openenv), most=sessions)
    elif http is None:
        _run_stdio(lambda: open_named_source(name, size, sandbox), start)
    else:
        _run_http(lambda: open_named_source(name, size, sandbox), start, *parse_address(http), most=sessions, idle=idle)


def read_state(text: str) -> int | JsonObject:
    """The number of a state, or the state in a JSON file.

    Raises:
        InputError: It is neither.
    """
    if text.isdecimal():
        return int(text)
    try:
        state = orjson.loads(Path(text).read_bytes())
    except OSError as error:
        raise InputError(f"--state {text}: neither a number nor a file that can be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise InputError(f"--state {text}: not JSON: {error}") from error
    if not isinstance(state, dict):
        raise InputError(f"--state {text}: a state is a JSON object")
    return state


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, also [::1]:PORT.

    Raises:
        InputError: It is written in another way.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"--http {text}: write it as HOST:PORT, for example 127.0.0.1:8000")
    return host, int(port)


def _run_stdio(source: Callable[[], "EnvironmentSource"], start: dict[str, Any]) -> None:
    from trajsmith.environments.serving import prepare_serving
    from trajsmith.environments.serving.stdio import claim_stdio, serve_stdio

    with claim_stdio() as (stdin, stdout):

        async def work() -> None:
            await serve_stdio(await prepare_serving(source(), **start), stdin, stdout)

        asyncio.run(_until_stopped(work()))


def _run_http(
    source: Callable[[], "EnvironmentSource"], start: dict[str, Any], host: str, port: int, most: int, idle: float
) -> None:
    from trajsmith.environments.serving import prepare_serving
    from trajsmith.environments.serving.http import PATH, listen, serve_http

    async def work() -> None:
        offer = await prepare_serving(source(), **start)
        with listen(host, port) as where:
            shown, taken = where.getsockname()[:2]
            url = f"http://{f'[{shown}]' if ':' in shown else shown}:{taken}{PATH}"
            print_note(f"{offer.spec.name}: serving at {url}; Ctrl-C ends it")
            await serve_http(offer, where, most, idle)

    asyncio.run(_until_stopped(work()))


def _run_openenv(
    source: Callable[[], "EnvironmentSource"], start: dict[str, Any], host: str, port: int, most: int
) -> None:
    from trajsmith.environments.serving import prepare_serving
    from trajsmith.environments.serving.sockets import listen

    try:
        from trajsmith.environments.serving.openenv import serve_openenv
    except ImportError as error:
        raise InputError(
            f"--openenv needs the package openenv ({error}), which does not work with this version of mcp: `make "
            "integrations` makes an environment of its own for both, .integrations/openenv/bin/trajsmith"
        ) from error

    async def work() -> None:
        offer = await prepare_serving(source(), **start)
        with listen(host, port) as where:
            shown, taken = where.getsockname()[:2]
            url = f"http://{f'[{shown}]' if ':' in shown else shown}:{taken}"
            print_note(f"{offer.spec.name}: serving OpenEnv at {url}; Ctrl-C ends it")
            await serve_openenv(offer, where, most)

    asyncio.run(_until_stopped(work()))


async def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, or until SIGTERM or Ctrl-C; what `work` holds is freed either way."""
    task = asyncio.create_task(work)
    stopped = asyncio.Event()

    def stop() -> None:
        stopped.set()
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped.is_set():
            raise
