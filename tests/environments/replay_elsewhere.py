"""Runs gold calls and samples chains in a process of its own; `test_library.py` compares what comes out."""

import asyncio
import random
import sys
from typing import Any

import orjson

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph


async def replayed(name: str, runs: list[dict[str, Any]]) -> list[list[str]]:
    """For each run the state hash and the result hash after every call."""
    cls = ENVIRONMENTS.get(name)
    session = NativeSession(cls, cls.describe())
    found = []
    for run in runs:
        await session.reset(run["state"])
        hashes = []
        for tool, arguments, actor in run["calls"]:
            result = await session.call(tool, arguments, actor)
            hashes += [await session.state_hash(), result.hash]
        found.append(hashes)
    return found


def sampled(name: str) -> list[Any]:
    """A few chains with their dependencies."""
    sampler = Sampler(GraphIndex(build_graph(ENVIRONMENTS.get(name).describe().tools), name), SampleSettings())
    drawn = [sampler.draw(random.Random(seed)) for seed in range(5)]
    return [[tools, [dependency.model_dump() for dependency in dependencies]] for tools, dependencies in drawn]


def everything(request: dict[str, Any]) -> dict[str, Any]:
    """Replays, chains, versions and a freshly seeded state of each environment."""
    return {
        name: {
            "replayed": asyncio.run(replayed(name, runs)),
            "sampled": sampled(name),
            "version": ENVIRONMENTS.get(name).describe().version,
            "seeded": ENVIRONMENTS.get(name).seed_state("small", 3).model_dump(mode="json"),
        }
        for name, runs in request.items()
    }


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(everything(orjson.loads(sys.stdin.buffer.read()))))
