"""Play transcripts through an OpenEnv server with one of OpenEnv's own clients, and print rewards.

python drive_openenv.py URL TRANSCRIPTS (MCPToolClient | GenericEnvClient)
"""

import asyncio
import json
import sys
from importlib.metadata import version
from pathlib import Path

from openenv import GenericEnvClient
from openenv.core.env_server.mcp_types import CallToolAction
from openenv.core.mcp_client import MCPToolClient


async def main(url, lines, name):
    mcp = name == "MCPToolClient"
    client = (MCPToolClient if mcp else GenericEnvClient)(base_url=url)
    async with client:
        for line in lines:
            transcript = json.loads(line)
            begun = await client.reset(task_id=transcript["task_id"])
            tools = [tool.name for tool in await client.list_tools(use_cache=False)] if mcp else []
            step, calls = begun, list(transcript["lines"])
            while not step.done:
                call = calls.pop(0) if calls else {"tool": "message_user", "arguments": {"text": ""}}
                if mcp:
                    action = CallToolAction(tool_name=call["tool"], arguments=call["arguments"])
                else:
                    action = {"type": "call_tool", "tool_name": call["tool"], "arguments": call["arguments"]}
                step = await client.step(action)
            sys.stdout.write(json.dumps({"reward": step.reward, "tools": tools}) + "\n")
    sys.stdout.write(json.dumps({"version": version("openenv")}) + "\n")


url, file, name = sys.argv[1:]
asyncio.run(main(url, Path(file).read_text("utf-8").splitlines(), name))
