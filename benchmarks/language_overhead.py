"""What the language layer costs beside the waiting: wall time, CPU and memory of many requests to a server.

    python benchmarks/language_overhead.py [--requests 50000] [--concurrency 256] [--latency 0.2]

The server is a process of its own that answers each request after the latency and does little else. Requests look like
those of a dialogue: 15 tools, 14 messages. Everything is on: cache, usage, budget, limits, retries. Bounds: wall time
within 1.15 of requests x latency / concurrency, under 3 ms of CPU a request, memory flat. Wall time needs a quiet
machine: on another one, the best tenth and the time without a core say more. Exit code 1 if CPU or memory is out of
bounds.
"""

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "language_server"))

from running_server import SERVER, RunningServer

from trajsmith.models import (
    BudgetSettings,
    ChatModel,
    ChatRequest,
    ModelSettings,
    RoleSettings,
    RolesSettings,
    function_tool,
)
from trajsmith.models.registry import ModelRegistry
from trajsmith.records import Message
from trajsmith.records.garbage_collection import reduce_gc_frequency

PARTS = 10
"""Parts of the run that are compared."""
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


class Watch:
    """CPU, waiting for a core, wall time and memory at ten places of the run."""

    def __init__(self, requests: int) -> None:
        self.each = requests // PARTS
        self.done = 0
        self.marks: list[tuple[float, float, float, float]] = []
        self.mark()

    def mark(self) -> None:
        self.marks.append((time.process_time(), waited_for_a_core(), time.monotonic(), memory()))

    def answered(self) -> None:
        self.done += 1
        if self.done % self.each == 0:
            self.mark()


def waited_for_a_core() -> float:
    """Seconds that this process was ready to run and another one had its core."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


async def ask_all(model: ChatModel, first: int, stop: int, concurrency: int, watch: Watch | None = None) -> None:
    numbers = iter(range(first, stop))

    async def worker() -> None:
        for number in numbers:
            await model.complete(request(number))
            if watch is not None:
                watch.answered()

    await asyncio.gather(*(worker() for _ in range(concurrency)))


async def measure(url: str, folder: Path, requests: int, concurrency: int, latency: float) -> bool:
    model = ModelSettings(model="test-model", base_url=url, concurrency=concurrency)
    roles = RolesSettings(agent=RoleSettings(model="main"))
    registry = ModelRegistry({"main": model}, roles, BudgetSettings(max_tokens=10**12), folder, "the same again")
    model = registry.role_model("agent")
    assert model is not None
    await ask_all(model, -concurrency, 0, concurrency)  # connections are made, code is warm
    watch = Watch(requests)
    await ask_all(model, 0, requests, concurrency, watch)
    paid = registry.ledger.spent.requests - concurrency
    await registry.close()
    return report(requests, paid, latency / concurrency, watch)


def report(requests: int, paid: int, ideal: float, watch: Watch) -> bool:
    cpu, waited, wall, _ = (last - first for first, last in zip(watch.marks[0], watch.marks[-1], strict=True))
    levels = [mark[3] for mark in watch.marks]
    parts = [(later[2] - sooner[2]) / (ideal * watch.each) for sooner, later in pairwise(watch.marks)]
    each, growth = 1000 * cpu / requests, levels[-1] - levels[len(levels) // 2]
    print(f"requests                          {requests}, answered and paid {paid}")
    print(f"client CPU a request              {each:.2f} ms   (bound 3 ms)")
    print(f"wall / (requests x latency / concurrency)   {wall / (ideal * requests):.2f}   (bound 1.15, quiet machine)")
    print(f"the same for each tenth           {' '.join(f'{part:.2f}' for part in parts)}")
    print(f"ready, but without a core         {waited / wall:.0%} of the time")
    print(f"memory after each tenth, MiB      {' '.join(f'{level:.0f}' for level in levels)}")
    print(f"growth over the second half       {growth:.1f} MiB   (bound 4 MiB)")
    print(f"load of the machine               {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"highest memory                    {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return paid == requests and each < 3.0 and growth < 4.0


def server_seconds(process: int) -> float:
    """CPU that the server has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--latency", type=float, default=0.2)
    arguments = parser.parse_args()
    reduce_gc_frequency()  # as the command line does
    quick = RunningServer(SERVER.with_name("quick_server.py"), latency=arguments.latency)
    with quick as server, tempfile.TemporaryDirectory() as folder:
        work = measure(server.url, Path(folder), arguments.requests, arguments.concurrency, arguments.latency)
        held = asyncio.run(work)
        stats = server.stats()
        cpu = 1000 * server_seconds(server.process.pid) / stats["requests"]
        print(f"sent                              {stats['requests']}, {arguments.concurrency} of them to warm up")
        print(f"most in flight                    {stats['most_in_flight']}")
        print(f"server CPU a request              {cpu:.3f} ms")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
