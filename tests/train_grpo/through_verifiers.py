"""Plays and scores the trajectories of a run through the `verifiers` package; runs where `verifiers` is.

Every gold call goes through an MCP client to the tool server that a rollout has, and must give the recorded result;
then the conversation, as a trace, is scored by the task.

    python through_verifiers.py RUN
"""

import asyncio
import sys
from pathlib import Path

import orjson
import verifiers.v1 as vf
from mcp import Client
from mcp.server.mcpserver import MCPServer
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, TraceTask
from verifiers.v1.types import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from verifiers.v1.utils.loaders import environment_class, taskset_class

from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.verifiers_env import RunEnv, RunTaskset, RunTasksetConfig, RunTools, RunToolsConfig


def as_verifiers(message):
    if message.role == "assistant":
        calls = [
            ToolCall(id=call.id, name=call.function.name, arguments=orjson.dumps(call.function.arguments).decode())
            for call in message.tool_calls or ()
        ]
        return AssistantMessage(content=message.content, tool_calls=calls or None)
    if message.role == "tool":
        return ToolMessage(tool_call_id=message.tool_call_id, content=message.content, name=message.name)
    return (SystemMessage if message.role == "system" else UserMessage)(content=message.content)


def trace_of(task, record):
    messages = [as_verifiers(message) for message in record.messages]
    nodes = [
        MessageNode(parent=at - 1 if at else None, message=message, sampled=message.role == "assistant")
        for at, message in enumerate(messages)
    ]
    about = TraceTask(type=type(task).__name__, data=task.data)
    return vf.Trace(task=about, agent=AgentInfo(config=vf.AgentConfig()), nodes=nodes)


async def results(task, record):
    """What the tools of a rollout give to the gold calls, and the schemas that they show."""
    tools = RunTools(RunToolsConfig())
    await tools.setup_task(task.data)
    server = MCPServer("tools")
    tools.register(server)
    found = []
    async with Client(server) as client:
        shown = [
            tool.model_dump(mode="json", by_alias=True)["inputSchema"] for tool in (await client.list_tools()).tools
        ]
        for message in record.messages:
            for call in message.tool_calls or ():
                (block,) = (await client.call_tool(call.function.name, call.function.arguments)).content
                found.append(block.text)
    await tools.session_manager.close()
    return found, shown


async def main(run):
    assert taskset_class("trajsmith") is RunTaskset and environment_class("trajsmith") is RunEnv
    known = {task.id: (record, verdict) for task, record, verdict in join_verdicts(RunDirectory.open(Path(run)))}
    for task in RunTaskset(RunTasksetConfig(run=run, split="all")):
        record, _ = known[task.data.task_id]
        trace = trace_of(task, record)
        await task.score(trace)
        gave, shown = await results(task, record)
        recorded = [message.content for message in record.messages if message.role == "tool"]
        line = {
            "id": record.id,
            "reward": trace.reward,
            "metrics": trace.metrics,
            "same_results": gave == recorded,
            "tools": len(shown),
            "messages": len(record.messages),
        }
        sys.stdout.write(orjson.dumps(line).decode() + "\n")


asyncio.run(main(*sys.argv[1:]))
