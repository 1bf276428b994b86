"""Verifies the trajectories of a run through an OpenEnv server, with OpenEnv's own client; runs where `openenv` is.

python through_openenv.py RUN URL ENVIRONMENT
"""

import asyncio
import sys
from pathlib import Path

import orjson
from openenv import GenericEnvClient

from trajsmith.environments import ToolResult
from trajsmith.environments.serving.openenv import ERRORS
from trajsmith.pipeline.eval_contexts import open_eval_contexts
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import compute_state_digest
from trajsmith.verify import verify_trajectory

KINDS = {error.value: kind for kind, error in ERRORS.items()}


class OpenEnvFace:
    """A session as a verifier wants it, through the client."""

    def __init__(self, client, spec):
        self.client = client
        self.spec = spec

    async def _step(self, tool, arguments):
        step = await self.client.step({"type": "call_tool", "tool_name": tool, "arguments": arguments})
        return step.observation

    async def reset(self, state):
        await self.client.reset()
        await self._step("load_state", {"state": state})

    async def call(self, tool, arguments, actor="assistant"):
        seen = await self._step(tool, arguments)
        return ToolResult(seen["result"], KINDS[seen["error"]["error_type"]] if seen["error"] else None)

    async def snapshot(self):
        return (await self._step("save_state", {}))["result"]

    async def state_hash(self):
        return compute_state_digest(await self.snapshot())

    async def close(self):
        """The client closes the connection."""


async def main(run, url, environment):
    directory = RunDirectory.open(Path(run))
    grounds = await open_eval_contexts(directory)
    async with GenericEnvClient(base_url=url) as client:
        for task, record, _ in join_verdicts(directory):
            if record.environment == environment:
                ground = grounds[environment]
                face = OpenEnvFace(client, ground.spec)
                state = ground.state(task.initial_state)
                verdict = await verify_trajectory(task, record, state, face, None, None, ground.wording)
                sys.stdout.write(orjson.dumps([record.id, verdict.model_dump(mode="json")]).decode() + "\n")


asyncio.run(main(*sys.argv[1:]))
