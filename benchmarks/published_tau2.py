"""Replays the gold actions of τ²-bench's tasks on its domains, as published, through our adapter.

    .venv/bin/python benchmarks/published_tau2.py --path ../tau2-bench
    .venv/bin/python benchmarks/published_tau2.py --path ../tau2-bench --domains retail --check

For each domain: how many gold actions execute without an error, how many tasks do as a whole, and what a call costs
(CPU of this process and of the sandbox's worker). Some gold actions are refused by the published tools themselves; with
--check every action is also made on the published environment, in this process and without the sandbox, and counted
where it comes to something else. Domains whose data is not in the checkout are left out, with the reason.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from trajsmith.environments.adapters.tau2.program import get_toolkits, load
from trajsmith.environments.adapters.tau2.settings import (
    PRELOAD,
    Tau2Settings,
    build_payload,
    get_environment_name,
    read_tasks,
)
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.records import EnvironmentFault, InputError, JsonObject

DOMAINS = ("mock", "retail", "telecom", "airline")
HEADINGS = (
    "domain",
    "tools",
    "states",
    "tasks",
    "without error",
    "actions",
    "ok",
    "refused",
    "fault",
    "other",
    "us a call",
)


def settings_of(path: Path, domain: str, data: Path | None) -> Tau2Settings:
    """Tasks are in tasks.json, or, where a checkout lacks that, in tasks_small.json."""
    settings = Tau2Settings(domain=domain, path=path, data=data, max_states=0)
    try:
        read_tasks(settings)
    except InputError:
        settings = settings.model_copy(update={"tasks": "tasks_small.json"})
    return settings


def cpu() -> float:
    """Seconds of this process and of all below it."""
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return sum(used.user + used.system for used in times)


async def run(settings: Tau2Settings, check: bool) -> list[str]:
    tasks = read_tasks(settings)
    payload = build_payload(settings)
    source = SandboxSource(
        get_environment_name(settings), "tau2", payload, SandboxSettings(imports=PRELOAD, load_seconds=60)
    )
    published = Published(payload) if check else None
    try:
        spec, states = await source.spec(), await source.states(0)
        session = await source.open()
        counts, why, clean, spent = Counter[str](), Counter[str](), 0, 0.0
        for task in tasks:
            await session.reset(states[task["state"]])
            before, differences = cpu(), []
            for call in task["calls"]:
                differences.append(await outcome(session, call, why))
            spent += cpu() - before
            counts += Counter(kind for kind, _ in differences)
            clean += all(kind == "ok" for kind, _ in differences)
            if published is not None:
                counts["other"] += published.differences(task, differences)
        await session.close()
    finally:
        source.close()
    actions = sum(len(task["calls"]) for task in tasks)
    for reason, number in why.most_common():
        print(f"  {settings.domain}: {number} x {reason}")
    numbers = (
        len(spec.tools),
        len(states),
        len(tasks),
        clean,
        actions,
        counts["ok"],
        counts["refused"],
        counts["fault"],
    )
    other = str(counts["other"]) if check else "-"
    return [settings.domain, *map(str, numbers), other, f"{1e6 * spent / max(actions, 1):,.0f}"]


async def outcome(session: Any, call: JsonObject, why: Counter[str]) -> tuple[str, str]:
    try:
        result = await session.call(call["tool"], call["arguments"], call["actor"])
    except EnvironmentFault as fault:
        why[str(fault)[:120]] += 1
        return "fault", str(fault)
    if not result.ok:
        why[f"{call['tool']}: {result.content['error'][:80]}"] += 1
        return "refused", result.content["error"]
    return "ok", result.text


class Published:
    """The published environment, called as its own runner calls it."""

    def __init__(self, payload: JsonObject) -> None:
        self._program = load(payload)
        self._initial = payload["initial"]

    def differences(self, task: JsonObject, calls: list[tuple[str, str]]) -> int:
        """Actions of a task that come to another outcome or text here."""
        environment = self._program.environment(self._initial[task["state"]])
        different = 0
        for call, (kind, text) in zip(task["calls"], calls, strict=True):
            kit = get_toolkits(environment)[call["actor"]]
            try:
                value = kit.use_tool(call["tool"], **call["arguments"])
                environment.sync_tools()
                own = ("ok", self._program.toolbox.content(call["tool"], value))
            except Exception as error:  # noqa: BLE001 - foreign code; its runner takes any exception for an answer
                own = ("refused", str(error))
            if kind == "ok" and own[0] == "ok":
                answer = json.loads(text) if text[:1] in "{[" else text
                different += answer not in (own[1], {"result": own[1]})
            else:
                different += (kind, " ".join(text.split())) != (own[0], " ".join(str(own[1]).split()))
        return different


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, required=True, help="a checkout of tau2-bench")
    parser.add_argument("--data", type=Path, help="what holds tau2/domains, if not the checkout's data")
    parser.add_argument("--domains", nargs="*", default=DOMAINS)
    parser.add_argument("--check", action="store_true", help="make every action on the published environment too")
    chosen = parser.parse_args()
    table = Table(*HEADINGS, title="τ²-bench, gold actions")
    start = time.monotonic()
    for domain in chosen.domains:
        try:
            table.add_row(*await run(settings_of(chosen.path, domain, chosen.data), chosen.check))
        except InputError as error:
            print(f"  {domain}: left out: {error}")
    Console(width=140).print(table)
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    asyncio.run(main())
