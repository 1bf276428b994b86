"""Score transcripts in the environment of an exported package by verifiers, and print the rewards.

"score" makes traces of them, which the task scores. "rollout" plays them by verifiers' own harness: a server of chat
completions stands for the model, and transcript number N is the model at /N/v1.

python drive_verifiers.py MODULE TRANSCRIPTS (score | rollout)
"""

import asyncio
import importlib
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import verifiers.v1 as vf
from verifiers.v1.clients import ModelContext
from verifiers.v1.configs.client import EvalClientConfig
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, TraceTask
from verifiers.v1.types import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage


class Model(BaseHTTPRequestHandler):
    """Says what the transcript says next."""

    transcripts: list = []

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        lines = self.transcripts[int(self.path.split("/")[1])]["lines"]
        said = sum(message["role"] == "assistant" for message in request["messages"])
        line = lines[said] if said < len(lines) else {"tool": "message_user", "arguments": {"text": ""}}
        message, reason = {"role": "assistant", "content": line["arguments"].get("text", "")}, "stop"
        if line["tool"] != "message_user":
            function = {"name": line["tool"], "arguments": json.dumps(line["arguments"])}
            call = {"index": 0, "id": f"call_{said}", "type": "function", "function": function}
            message, reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        about = {"id": "chat", "created": 0, "model": "model"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if request.get("stream"):
            choice = {"index": 0, "delta": message, "finish_reason": reason}
            chunk = about | {"object": "chat.completion.chunk", "choices": [choice]}
            last = about | {"object": "chat.completion.chunk", "choices": [], "usage": usage}
            body = "".join(f"data: {json.dumps(one)}\n\n" for one in (chunk, last)) + "data: [DONE]\n\n"
            kind = "text/event-stream"
        else:
            choice = {"index": 0, "message": message, "finish_reason": reason}
            body = json.dumps(about | {"object": "chat.completion", "choices": [choice], "usage": usage})
            kind = "application/json"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        """Say nothing."""


def convert_message(message):
    """Return a message of ours as one of verifiers."""
    if message["role"] == "assistant":
        calls = [
            ToolCall(id=call["id"], name=call["function"]["name"], arguments=json.dumps(call["function"]["arguments"]))
            for call in message.get("tool_calls") or ()
        ]
        return AssistantMessage(content=message["content"], tool_calls=calls or None)
    if message["role"] == "tool":
        return ToolMessage(tool_call_id=message["tool_call_id"], content=message["content"], name=message["name"])
    return (SystemMessage if message["role"] == "system" else UserMessage)(content=message["content"])


async def score(module):
    tasks = {task.data.task_id: task for task in importlib.import_module(module).load_environment().taskset}
    for number, transcript in enumerate(Model.transcripts):
        if transcript["task_id"] not in tasks:
            continue
        task = tasks[transcript["task_id"]]
        nodes = [
            MessageNode(parent=at - 1 if at else None, message=convert_message(one), sampled=one["role"] == "assistant")
            for at, one in enumerate(transcript["messages"])
        ]
        about = TraceTask(type=type(task).__name__, data=task.data)
        trace = vf.Trace(task=about, agent=AgentInfo(config=vf.AgentConfig()), nodes=nodes)
        await task.score(trace)
        sys.stdout.write(json.dumps({"number": number, "reward": trace.reward, "faults": []}) + "\n")
    sys.stdout.write(json.dumps({"version": version("verifiers"), "tasks": len(tasks)}) + "\n")


async def roll_out(module):
    env = importlib.import_module(module).load_environment()
    tasks = {task.data.task_id: task for task in env.taskset}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["MODEL_KEY"] = "none"
    async with env.serving():
        gate = asyncio.Semaphore(2)

        async def play(number, transcript):
            url = f"http://127.0.0.1:{server.server_port}/{number}/v1"
            context = ModelContext(model="model", client=EvalClientConfig(base_url=url, api_key_var="MODEL_KEY"))
            async with gate:
                episode = await env.run_episode(tasks[transcript["task_id"]], context)
            trace = episode.traces[0] if episode.traces else None
            faults = [error.message for error in (*episode.errors, *(trace.errors if trace else ()))]
            reward = trace.reward if trace and not faults else None
            result = {"number": number, "reward": reward, "faults": faults}
            sys.stdout.write(json.dumps(result) + "\n")
            sys.stdout.flush()

        await asyncio.gather(
            *(play(number, one) for number, one in enumerate(Model.transcripts) if one["task_id"] in tasks)
        )
    server.shutdown()
    sys.stdout.write(json.dumps({"version": version("verifiers"), "tasks": len(tasks)}) + "\n")


module, file, way = sys.argv[1:]
Model.transcripts = [json.loads(line) for line in Path(file).read_text("utf-8").splitlines()]
asyncio.run({"score": score, "rollout": roll_out}[way](module))
