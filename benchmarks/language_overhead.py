"""What the language layer costs beside the waiting: wall time, CPU and memory of many requests to a server.

    python benchmarks/language_overhead.py [--requests 50000] [--concurrency 256] [--latency 0.2]

The server is a process of its own that answers each request after the latency. Requests look like those of a
dialogue: 15 tools, 14 messages. Everything is on: cache, usage, budget, limits, retries. Bounds: wall time within 1.15
of requests x latency / concurrency, under 3 ms of CPU a request, memory flat. Wall time needs a quiet machine.
"""

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "language_server"))

from running_server import RunningServer

from chatmodel import BudgetSettings, ChatModel, ChatRequest, ModelSettings, RoleSettings, RolesSettings, function_tool
from chatmodel.board import Board
from trajectory import Message

STEPS = 10
"""Parts of the run between which memory is compared."""
PARAMETERS = {
    "type": "object",
    "properties": {"order_id": {"type": "string", "description": "Number of the order."}, "count": {"type": "integer"}},
    "required": ["order_id"],
}
TOOLS = tuple(function_tool(f"tool_{number}", "Does one thing to an order.", PARAMETERS) for number in range(15))
SYSTEM = Message(role="system", content="You work at the back office of a shop. Follow the policy. " * 50)
TALK = tuple(
    Message(role="user" if number % 2 == 0 else "assistant", content="Please look at my order once more. " * 3)
    for number in range(12)
)


def request(number: int) -> ChatRequest:
    last = Message(role="user", content=f"This is about order {number}.")
    return ChatRequest(messages=(SYSTEM, *TALK, last), tools=TOOLS, purpose="agent", record=f"task_{number}")


def memory() -> float:
    """Resident MiB now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def ask_all(talker: ChatModel, first: int, stop: int, concurrency: int) -> None:
    numbers = iter(range(first, stop))

    async def worker() -> None:
        for number in numbers:
            await talker.complete(request(number))

    await asyncio.gather(*(worker() for _ in range(concurrency)))


async def measure(url: str, folder: Path, requests: int, concurrency: int, latency: float) -> bool:
    model = ModelSettings(model="test-model", base_url=url, concurrency=concurrency)
    roles = RolesSettings(agent=RoleSettings(model="main"))
    board = Board({"main": model}, roles, BudgetSettings(max_tokens=10**12), folder, "runs/bench")
    talker = board.talker("agent")
    assert talker is not None
    await ask_all(talker, -concurrency, 0, concurrency)  # connections are made, code is warm
    cpu, wall, levels = time.process_time(), time.monotonic(), [memory()]
    for step in range(STEPS):
        await ask_all(talker, requests * step // STEPS, requests * (step + 1) // STEPS, concurrency)
        levels.append(memory())
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    spent = board.ledger.spent.requests
    await board.close()
    return report(requests, spent - concurrency, wall / (requests * latency / concurrency), cpu, levels)


def report(requests: int, paid: int, ratio: float, cpu: float, levels: list[float]) -> bool:
    each = 1000 * cpu / requests
    growth = levels[-1] - levels[len(levels) // 2]
    print(f"requests                          {requests}, answered and paid {paid}")
    print(f"wall / (requests x latency / concurrency)   {ratio:.2f}   (bound 1.15 on a machine of one's own)")
    print(f"client CPU a request              {each:.2f} ms   (bound 3 ms)")
    print(f"memory after each tenth, MiB      {' '.join(f'{level:.0f}' for level in levels)}")
    print(f"growth over the second half       {growth:.1f} MiB   (bound 4 MiB)")
    print(f"load of the machine               {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"highest memory                    {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return paid == requests and each < 3.0 and growth < 4.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--latency", type=float, default=0.2)
    given = parser.parse_args()
    with RunningServer(latency=given.latency) as server, tempfile.TemporaryDirectory() as folder:
        work = measure(server.url, Path(folder), given.requests, given.concurrency, given.latency)
        held = asyncio.run(work)
        print(f"sent more than once               {server.stats()['answered_twice']}")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
