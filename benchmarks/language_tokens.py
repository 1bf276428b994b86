"""Prompt tokens for one accepted trajectory, all roles played by models; counted on the rendered prompts.

    python benchmarks/language_tokens.py [TASKS]

Tasks of the bundled library near the length of EnvFactory's trajectories (4.8 turns, 3.3 steps a turn). Every request
is rendered as a server would render it and counted with the o200k_base tokenizer, whose vocabulary the package
bpe-openai carries; the scripted roles' texts stand for what models would write. A prefix counts as cached if a server
with an unlimited prefix cache in blocks of 16 tokens has seen it, as vLLM has. EnvFactory, Table 4: 228,000 prompt and
84,000 completion tokens.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "language_server")]

import speaking  # noqa: E402 - beside the tests
from bpe_openai import get_encoding  # noqa: E402

from trajsmith.models.model import ChatReply, ChatRequest  # noqa: E402
from trajsmith.models.serialization import build_request_body, parse_reply  # noqa: E402
from trajsmith.models.settings import ModelSettings  # noqa: E402
from trajsmith.pipeline.config import load_config  # noqa: E402
from trajsmith.pipeline.run_context import RunContext  # noqa: E402
from trajsmith.pipeline.run_directory import RunDirectory  # noqa: E402
from trajsmith.pipeline.runner import run_one_stage  # noqa: E402
from trajsmith.pipeline.stages import RoleFactory  # noqa: E402
from trajsmith.pipeline.yaml_settings import dump_settings  # noqa: E402
from trajsmith.records import GroundedChain, RecordDropped  # noqa: E402
from trajsmith.records.journal import read_records  # noqa: E402

BLOCK = 16
CONFIG = """
name: tokens
seed: 11
environments: [{library: "*", states: {small: 2}}]
sample: {length: [15, 20]}
write: {mean_calls: 3.8}
judge: {compare: 0.1}
"""


class Counted:
    """A model that says what the scripted roles say, and counts what it is sent."""

    name = "counted"

    def __init__(self) -> None:
        self.encoding = get_encoding("o200k_base")
        self.seen: set[int] = set()
        self.settings = ModelSettings(model="counted")
        self.tokens: defaultdict[str, Counter[str]] = defaultdict(Counter)

    async def complete(self, request: ChatRequest) -> ChatReply:
        body = build_request_body(request, self.settings, native=True)
        reply = speaking.answer(body)
        message = {"role": "assistant", **({"content": reply} if isinstance(reply, str) else reply)}
        prompt = self.encoding.encode(rendered(body))
        count = self.tokens[request.purpose]
        count["requests"] += 1
        count["prompt"] += len(prompt)
        count["cached"] += self._cached(prompt)
        count["completion"] += len(self.encoding.encode(json.dumps(message)))
        return parse_reply(json.dumps({"choices": [{"message": message}]}).encode())

    def _cached(self, prompt: list[int]) -> int:
        cached, key = 0, 0
        for start in range(0, len(prompt) - BLOCK, BLOCK):
            key = hash((key, tuple(prompt[start : start + BLOCK])))
            if key in self.seen and cached == start:
                cached += BLOCK
            self.seen.add(key)
        return cached

    async def close(self) -> None:
        """Nothing to close."""


def rendered(body: dict[str, Any]) -> str:
    """The prompt as a ChatML template with tools writes it; a schema for the reply is no part of the prompt."""
    parts = []
    for message in body["messages"]:
        text = message["content"]
        if message is body["messages"][0] and body.get("tools"):
            text += "\n\n# Tools\n\n<tools>\n" + "\n".join(json.dumps(tool) for tool in body["tools"]) + "\n</tools>"
        for call in message.get("tool_calls", ()):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            text += f'\n<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
        parts.append(f"<|im_start|>{message['role']}\n{text}<|im_end|>\n")
    return "".join(parts) + "<|im_start|>assistant\n"


class Spoken(RoleFactory):
    """All roles by one model."""

    def __init__(self, world: RunContext, model: Counted) -> None:
        super().__init__(world)
        self.writer = self.agent = self.user = self.judge = model


async def play(folder: Path, tasks: int) -> tuple[Counted, Counter[str]]:
    config_file = folder / "config_in.yaml"
    config_file.write_text(CONFIG)
    config = load_config(config_file, [f"run={folder / 'run'}", f"sample.count={tasks}"])
    run = RunDirectory.create(config.run, dump_settings(config))
    for stage in ("sample", "ground"):
        await run_one_stage(run, stage)
    os.environ[speaking.RUN] = str(run.path)
    model = Counted()
    tally: Counter[str] = Counter()
    with run.lock():
        cast = Spoken(await RunContext.open(config, run), model)
        for grounded in read_records(run.file("grounded.jsonl"), GroundedChain):
            await one(cast, grounded, run, tally)
    return model, tally


async def one(cast: RoleFactory, grounded: GroundedChain, run: RunDirectory, tally: Counter[str]) -> None:
    try:
        task = await cast.write(grounded)
    except RecordDropped as drop:
        tally[f"dropped: {drop.reason}"] += 1
        return
    with run.file("tasks.jsonl").open("ab") as file:
        file.write(task.to_line())
    trajectory = await cast.play(task, 0)
    verdict = await cast.verify(task, trajectory)
    tally["played"] += 1
    if not verdict.accepted:
        tally[f"rejected: {verdict.reasons[0]}"] += 1
        return
    tally["accepted"] += 1
    tally["turns"] += len(trajectory.turns)
    tally["calls"] += len(trajectory.events)


def show(model: Counted, tally: Counter[str]) -> None:
    accepted = tally["accepted"]
    print(f"{tally['played']} played, {accepted} accepted; {tally['turns'] / accepted:.1f} turns, ", end="")
    print(f"{tally['calls'] / tally['turns']:.1f} calls a turn")
    print({name: number for name, number in tally.items() if ":" in name})
    print("\ntokens for one accepted trajectory; those of dropped and rejected ones are in it")
    print(f"| {'role':<8} | requests | prompt | of it cached | not cached | completion |")
    print("|---|---:|---:|---:|---:|---:|")
    total: Counter[str] = Counter()
    for role, count in model.tokens.items():
        total.update(count)
        print(line(role, count, accepted))
    print(line("all", total, accepted))


def line(role: str, count: Counter[str], accepted: int) -> str:
    fresh = count["prompt"] - count["cached"]
    numbers = (count["prompt"], count["cached"], fresh, count["completion"])
    cells = " | ".join(f"{number / accepted:,.0f}" for number in numbers)
    return f"| {role:<8} | {count['requests'] / accepted:.1f} | {cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="?", type=int, default=120, help="chains that are drawn")
    tasks = parser.parse_args().tasks
    with tempfile.TemporaryDirectory() as folder:
        show(*asyncio.run(play(Path(folder), tasks)))


if __name__ == "__main__":
    main()
