"""`trajsmith env serve`: an environment as an MCP server, or as an OpenEnv server."""

import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import orjson
import typer

from trajsmith.cli.console import print_note, run_async
from trajsmith.cli.options import MOST_SEED, WHAT, Sandbox
from trajsmith.records import InputError

if TYPE_CHECKING:
    from trajsmith.environments import EnvironmentSource
    from trajsmith.records import Actor, JsonObject

SHORTEST_TOKEN = 16
OPENENV_MISSING = (
    "--openenv needs the package openenv ({}), which does not work with this version of mcp: `make integrations` makes "
    "an environment of its own for both, .integrations/openenv/bin/trajsmith"
)


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
    token_env: Annotated[
        str | None,
        typer.Option(
            "--token-env", metavar="VARIABLE", help="Environment variable with a token that clients must bring."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Name by which clients reach this machine; may be repeated."),
    ] = None,
) -> None:
    """Serve an environment over MCP or OpenEnv; every connection has a session of its own.

    Over stdio one client is served until it closes stdin; over HTTP any number, until Ctrl-C or SIGTERM. An address
    that other machines reach needs --token-env for --admin, and should have it in any case.
    """
    from trajsmith.environments.sandbox.settings import MODES
    from trajsmith.pipeline.environment_references import open_named_source

    if http is not None and openenv is not None:
        raise InputError("--http serves MCP and --openenv serves OpenEnv: choose one, and start the other beside it")
    if actor not in ("assistant", "user"):
        raise InputError(f"--actor is assistant or user, not {actor!r}")
    if sandbox is not None and sandbox not in MODES:
        raise InputError(f"--sandbox is one of {', '.join(MODES)}, not {sandbox!r}")
    if not idle > 0 or sessions <= 0:  # NaN is not more than 0 either
        raise InputError("--idle and --sessions must be more than 0")
    start = {"seed": seed, "state": read_state(state), "actor": cast("Actor", actor), "admin": admin}
    if openenv is None and http is None:
        if token_env is not None or allow_host:
            raise InputError("--token-env and --allow-host go with --http or --openenv: over stdio there is one client")
        _run_stdio(lambda: open_named_source(name, size, sandbox), start)
        return
    host, port = parse_address(http or openenv or "")
    token = read_token(token_env)
    check_exposure(host, token, admin)
    names = tuple(allow_host or ())
    if openenv is not None:
        _run_openenv(lambda: open_named_source(name, size, sandbox), start, host, port, sessions, token, names)
    else:
        _run_http(lambda: open_named_source(name, size, sandbox), start, host, port, sessions, idle, token, names)


def read_token(variable: str | None) -> str | None:
    """Return the token in an environment variable; None if none is named.

    Raises:
        InputError: It is not set, or too short to keep anybody out.
    """
    if variable is None:
        return None
    token = os.environ.get(variable, "").strip()
    if len(token) < SHORTEST_TOKEN:
        raise InputError(
            f"--token-env {variable}: the variable holds no token of {SHORTEST_TOKEN} characters or more: "
            f"export {variable}=$(openssl rand -hex 32)"
        )
    return token


def check_exposure(host: str, token: str | None, admin: bool) -> None:
    """Refuse admin tools at an address that other machines reach without a token.

    Raises:
        InputError: Admin tools would be offered to everybody.
    """
    from trajsmith.environments.serving.access import is_local

    if admin and token is None and not is_local(host):
        raise InputError(f"--admin at {host} without --token-env lets everybody who reaches it load and reset states")


def _announce(text: str, host: str, token: str | None) -> None:
    """Say where is served, and to whom if that is everybody."""
    from trajsmith.environments.serving.access import is_local

    print_note(f"{text}; Ctrl-C ends it")
    if token is None and not is_local(host):
        print_note(f"warning: everybody who reaches {host} can use this environment; --token-env asks for a token")


def read_state(text: str) -> "int | JsonObject":
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
    from trajsmith.environments import require_mcp

    require_mcp("`trajsmith env serve`")
    from trajsmith.environments.serving import prepare_serving
    from trajsmith.environments.serving.stdio import claim_stdio, serve_stdio

    with claim_stdio() as (stdin, stdout):

        async def work() -> None:
            await serve_stdio(await prepare_serving(source(), **start), stdin, stdout)

        run_async(until_stopped(work()))


def _run_http(
    source: Callable[[], "EnvironmentSource"],
    start: dict[str, Any],
    host: str,
    port: int,
    most: int,
    idle: float,
    token: str | None,
    names: Sequence[str],
) -> None:
    from trajsmith.environments import require_mcp

    require_mcp("`trajsmith env serve`")
    from trajsmith.environments.serving import prepare_serving
    from trajsmith.environments.serving.access import AccessSettings
    from trajsmith.environments.serving.http import PATH, listen, serve_http

    async def work() -> None:
        offer = await prepare_serving(source(), **start)
        with listen(host, port) as where:
            shown, taken = where.getsockname()[:2]
            url = f"http://{f'[{shown}]' if ':' in shown else shown}:{taken}{PATH}"
            _announce(f"{offer.spec.name}: serving at {url}", shown, token)
            await serve_http(offer, where, most, idle, AccessSettings.for_address(shown, token, names))

    run_async(until_stopped(work()))


def _run_openenv(
    source: Callable[[], "EnvironmentSource"],
    start: dict[str, Any],
    host: str,
    port: int,
    most: int,
    token: str | None,
    names: Sequence[str],
) -> None:
    from trajsmith.environments.serving import prepare_serving
    from trajsmith.environments.serving.access import AccessSettings
    from trajsmith.environments.serving.sockets import listen

    try:
        from trajsmith.environments.serving.openenv import serve_openenv
    except ImportError as error:
        raise InputError(OPENENV_MISSING.format(error)) from error

    async def work() -> None:
        offer = await prepare_serving(source(), **start)
        with listen(host, port) as where:
            shown, taken = where.getsockname()[:2]
            url = f"http://{f'[{shown}]' if ':' in shown else shown}:{taken}"
            _announce(f"{offer.spec.name}: serving OpenEnv at {url}", shown, token)
            await serve_openenv(offer, where, most, AccessSettings.for_address(shown, token, names))

    run_async(until_stopped(work()))


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, or until SIGTERM or Ctrl-C; what `work` holds is freed either way."""
    import asyncio

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
