"""Calls per core-second through the sandbox: CPU time of parent and worker together, less moved by a busy machine.

python benchmarks/sandbox.py [--calls N] [--repeat N]
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trajsmith.environments.sandbox.batching import call_batch
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.session import Session

SHOP = '''
from datetime import datetime
from trajsmith import Environment, EnvironmentState, StateModel, ToolError, tool


class User(StateModel):
    user_id: str
    name: str
    balance: float


class Order(StateModel):
    order_id: str
    user_id: str
    items: list[str]
    price: float
    status: str = "pending"


class ShopState(EnvironmentState):
    users: dict[str, User]
    orders: dict[str, Order]


class Shop(Environment[ShopState]):
    """A shop."""

    @classmethod
    def seed_state(cls, size: str, seed: int) -> ShopState:
        users = {f"U{n}": User(user_id=f"U{n}", name=f"Name {n}", balance=100.0) for n in range(40)}
        items = ["tea", "cup"]
        orders = {f"W{n}": Order(order_id=f"W{n}", user_id=f"U{n % 40}", items=items, price=n + 0.5) for n in range(60)}
        return ShopState(now=datetime(2026, 1, 1), seed=seed, users=users, orders=orders)

    @tool(effect="read")
    def get_user(self, user_id: str) -> User:
        """Read a user."""
        return self.lookup(self.state.users, user_id, "user")

    @tool(effect="read")
    def get_order(self, order_id: str) -> Order:
        """Read an order."""
        return self.lookup(self.state.orders, order_id, "order")

    @tool(effect="write")
    def set_status(self, order_id: str, status: str) -> Order:
        """Change the status of an order."""
        order = self.lookup(self.state.orders, order_id, "order")
        order.status = status
        return order
'''


def calls_of(number: int, count: int) -> list[tuple[str, dict[str, str]]]:
    """Two reads and a write, over and over."""
    kinds = [
        lambda n: ("get_user", {"user_id": f"U{n % 40}"}),
        lambda n: ("get_order", {"order_id": f"W{n % 60}"}),
        lambda n: ("set_status", {"order_id": f"W{n % 60}", "status": f"s{n % 7}"}),
    ]
    return [kinds[n % 3](number + n) for n in range(count)]


ended: list[float] = []
"""CPU seconds of the processes of plays that were closed meanwhile."""


def cpu_of(pid: int) -> float:
    """CPU seconds of a process; the kernel counts them in nanoseconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


async def measured(
    source: SandboxSource, count: int, work: Callable[[], Awaitable[None]]
) -> tuple[float, float, float]:
    """(calls per core-second, parent us per call, us per call of the worker and of the processes of plays)."""
    worker = (await source.host.main()).forked.pid
    ended.clear()
    plays = [connection.forked.pid for connection in source.host._processes]
    parent, other = time.process_time(), sum(map(cpu_of, [worker, *plays]))
    await work()
    parent, other = time.process_time() - parent, sum(map(cpu_of, [worker, *plays])) + sum(ended) - other
    return count / (parent + other), parent / count * 1e6, other / count * 1e6


async def opened(source: SandboxSource, plays: int) -> list[Session]:
    state = (await source.states(1))[0]
    sessions = [await source.open() for _ in range(plays)]
    await asyncio.gather(*(session.reset(state) for session in sessions))
    return sessions


async def lockstep(sessions: list[Session], rounds: int) -> None:
    """One message carries a call of every session."""
    plans = [calls_of(number, rounds) for number in range(len(sessions))]
    for step in range(rounds):
        await call_batch([(session, *plan[step]) for session, plan in zip(sessions, plans, strict=True)])


async def own_pace(source: SandboxSource, plays: int, rounds: int) -> None:
    """Every play opens, calls, looks at its state and closes, as fast as it can."""
    state = (await source.states(1))[0]

    async def play(number: int) -> None:
        session = await source.open()
        await session.reset(state)
        for tool, arguments in calls_of(number, rounds):
            await session.call(tool, arguments)
        await session.snapshot()
        if source.host.own_process:
            ended.append(cpu_of(session.link._connection.forked.pid))
        await session.close()

    await asyncio.gather(*(play(number) for number in range(plays)))


async def run(calls: int, repeat: int, scale: int) -> None:
    table = Table("plays", "what", "calls / core-second", "parent us", "worker us")
    for mode in ("shared", "process"):
        payload = {"source": SHOP, "file": "shop.py", "cls": "", "sizes": {"small": 1}}
        source = SandboxSource("shop", "native", payload, SandboxSettings(plays=mode))
        await source.spec()
        for batch in (1, 8, 32, 128):
            sessions = await opened(source, batch)
            rounds = max(4, calls // batch)
            await lockstep(sessions, 4)
            rates = [await measured(source, rounds * batch, lambda: lockstep(sessions, rounds)) for _ in range(repeat)]  # noqa: B023
            _add(table, mode, f"{batch} calls a message", rates)
            for session in sessions:
                await session.close()
        plays = 1024 // (1 if mode == "shared" else scale)
        rates = [await measured(source, plays * 20, lambda: own_pace(source, plays, 20)) for _ in range(repeat)]  # noqa: B023
        _add(table, mode, f"{plays:,} live plays x 20 calls, with open, snapshot and close", rates)
        source.close()
    Console(width=120).print(table)


def _add(table: Table, mode: str, label: str, rates: list[tuple[float, float, float]]) -> None:
    best = max(rates)
    middle = statistics.median(rate for rate, _, _ in rates)
    table.add_row(mode, label, f"{best[0]:,.0f} (median {middle:,.0f})", f"{best[1]:.1f}", f"{best[2]:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=6000, help="calls per measurement")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--scale", type=int, default=1, help="a part of the live plays where each has a process")
    chosen = parser.parse_args()
    asyncio.run(run(chosen.calls, chosen.repeat, chosen.scale))
