"""What serving over MCP costs: calls per CPU second of a bundled environment, raw and through the official client.

    python benchmarks/serving.py [--environment retail] [--calls 400]

CPU time is that of client and server together, because a rollout pays for both.
"""

import argparse
import asyncio
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from mcp import Client, StdioServerParameters

from trajsmith.environments.native_source import build_library_source
from trajsmith.environments.serving import prepare_serving
from trajsmith.environments.serving.http import listen, serve_http

Call = Callable[[], Awaitable[object]]


def cpu() -> float:
    """Seconds of this process and of its children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


async def first_read(environment: str) -> tuple[str, dict[str, object]]:
    """A tool that reads, with arguments that it accepts: enums by their first value, keys by the state's first key."""
    source = build_library_source(environment, {"small": 1})
    spec = await source.spec()
    state = (await source.states(0))[0]
    keys = [next(iter(table)) for table in state.values() if isinstance(table, dict) and table]
    session = await source.open()
    for tool in (tool for tool in spec.tools if tool.actor == "assistant" and not tool.declares_write):
        for key in keys:
            arguments = {name: tool.parameters[name].get("enum", [key])[0] for name in tool.required}
            await session.reset(state)
            if (await session.call(tool.name, arguments)).ok:
                return tool.name, arguments
    raise SystemExit(f"no tool of {environment} reads something by one key")


async def repeat(calls: list[Call], number: int) -> float:
    """CPU seconds of so many calls, shared out evenly and made one after another by each, after some to warm up."""

    async def several(call: Call, times: int) -> None:
        for _ in range(times):
            await call()

    await asyncio.gather(*(several(call, 5) for call in calls))
    before = cpu()
    await asyncio.gather(*(several(call, number // len(calls)) for call in calls))
    return cpu() - before


async def raw(environment: str, tool: str, arguments: dict[str, object], calls: int) -> float:
    source = build_library_source(environment, {"small": 1})
    session = await source.open()
    await session.reset((await source.states(0))[0])
    return await repeat([lambda: session.call(tool, dict(arguments))], calls)


async def http(environment: str, tool: str, arguments: dict[str, object], calls: int, clients: int) -> float:
    offer = await prepare_serving(build_library_source(environment, {"small": 1}))
    with listen("127.0.0.1", 0) as where:
        serving = asyncio.create_task(serve_http(offer, where))
        url = f"http://127.0.0.1:{where.getsockname()[1]}/mcp"

        async with AsyncExitStack() as stack:
            opened = [await stack.enter_async_context(Client(url)) for _ in range(clients)]
            spent = await repeat([partial(client.call_tool, tool, arguments) for client in opened], calls)
        serving.cancel()
        await asyncio.wait([serving])
        return spent


async def stdio(environment: str, tool: str, arguments: dict[str, object], calls: int) -> float:
    """The server's share is known only when it has ended, so that of a start without calls is taken off."""
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "trajsmith", "env", "serve", environment], cwd="."
    )

    async def whole(number: int) -> float:
        before = cpu()
        async with Client(program) as client:
            for _ in range(number):
                await client.call_tool(tool, arguments)
        return cpu() - before

    idle = min([await whole(1) for _ in range(2)])
    return await whole(calls + 1) - idle


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", default="retail")
    parser.add_argument("--calls", type=int, default=400)
    wanted = parser.parse_args()
    tool, arguments = await first_read(wanted.environment)
    print(f"{wanted.environment}.{tool}({arguments}), {wanted.calls} calls\n")
    print(f"{'interface':<34}{'calls per CPU second':>22}{'CPU ms per call':>18}")
    rows = [
        ("session in this process", await raw(wanted.environment, tool, arguments, wanted.calls)),
        ("streamable HTTP, one client", await http(wanted.environment, tool, arguments, wanted.calls, 1)),
        ("streamable HTTP, 20 clients", await http(wanted.environment, tool, arguments, wanted.calls, 20)),
        ("stdio", await stdio(wanted.environment, tool, arguments, wanted.calls)),
    ]
    for name, seconds in rows:
        print(f"{name:<34}{wanted.calls / seconds:>22,.0f}{1000 * seconds / wanted.calls:>18.2f}")


asyncio.run(main())
