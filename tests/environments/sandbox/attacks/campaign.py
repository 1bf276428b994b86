"""Every attack, through the pool as it is used: a process of its own that is attacked, with canaries in it.

Prints one JSON object a line: {"id", "where", "said", "found"}. `found` tells what the attack achieved: nothing.
Arguments: mode, layers to leave out; then names or categories of attacks, or none for all.
"""

import asyncio
import dataclasses
import json
import os
import signal
import sys
import tempfile
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from attacks import templates
from attacks.catalog import HOST_CATEGORIES, Attack, all_attacks
from attacks.world import World, look, offspring

from trajsmith.environments.program_sessions import ProgramSession
from trajsmith.environments.sandbox import host as pool
from trajsmith.environments.sandbox.host import WorkerHost
from trajsmith.environments.sandbox.link import SandboxLink
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.records import EnvironmentFault, InputError, RunError

SETTINGS = {
    "call_seconds": 0.1, "load_seconds": 0.6, "wall_seconds": 3.0, "memory_mb": 320, "kills": 100_000,
    "state_bytes": 8 << 20,
}  # fmt: skip
_LONGEST = 15.0
_BROKEN = (EnvironmentFault, InputError, RunError)


class Campaign:
    """Attacks one after the other, and what each achieved."""

    def __init__(self, mode: str, without: Iterable[str], world: World) -> None:
        self.settings = SandboxSettings(mode=mode, **SETTINGS)
        self.layers = pool.LAYERS[mode] - set(without)
        self.world = world
        self._hosts: list[WorkerHost] = []
        self.bystander = self.host("native", templates.native([Attack("none", "", "def attack(info): pass\n")]))
        self._seen: dict[int, set[str]] = {}
        self._touched = False

    def host(self, kind: str, source: str, own_process: bool = False) -> WorkerHost:
        payload: dict[str, Any] = {"name": "lab", "file": "lab.py", "source": source}
        payload |= {"cls": "", "sizes": {"A": 1, "B": 1}}
        payload |= {"metadata": None, "scenarios": [], "moment": "2025-01-01T00:00:00", "hide": []}
        payload |= {"function": "check"}
        made = WorkerHost("lab", kind, payload, self.settings, own_process, layers=self.layers)
        self._hosts.append(made)
        return made

    async def run(self, wanted: list[Attack]) -> None:
        await self._session(self.bystander, "A")
        self._old = offspring(os.getpid())
        called = [found for found in wanted if found.when == "call"]
        on_host = [found for found in called if found.category in HOST_CATEGORIES]
        await self._many([found for found in on_host if found.shares], "tool")
        for found in called:
            if not (found in on_host and found.shares):
                await self._soon(found, self._one(found))
        self._close_hosts()
        if on_host:
            await self._at_load([found for found in on_host if found.shares])
        if on_host and self.layers == pool.LAYERS[self.settings.mode]:
            await self._in_a_check([found for found in on_host if found.shares])
        self._close_hosts()
        for found in wanted:
            if found.when in ("load", "states", "start"):
                await self._soon(found, self._while_loading(found))
            elif found.when == "check":
                await self._soon(found, self._check(found))
            elif found.when.startswith("file_"):
                await self._soon(found, self._file(found))

    async def _soon(self, found: Attack, trial: Coroutine[Any, Any, None]) -> None:
        """No attack may keep the parent waiting, or break it."""
        try:
            await asyncio.wait_for(trial, _LONGEST)
        except TimeoutError:
            self._tell(found.id, found.when, "", ["the parent waits for ever"])
        except Exception as error:  # noqa: BLE001 - an error of the pool is what attacks are after
            self._tell(found.id, found.when, "", [f"the parent broke: {type(error).__name__}: {error}"])
        self._close_hosts()

    def _close_hosts(self) -> None:
        for made in self._hosts[1:]:  # the first is the bystander
            made.close()
        del self._hosts[1:]

    def info(self) -> dict[str, Any]:
        """What attacks are told: the other worker is that of the bystander."""
        connection = self.bystander._main
        sibling = connection.forked.pid if connection is not None else 0
        return self.world.info() | {"sibling": sibling, "sibling_address": 0}

    # One kind after the other

    async def _many(self, attacks: list[Attack], where: str) -> None:
        """Attacks that leave the worker alive share an environment, and a play."""
        if not attacks:
            return
        host = self.host("native", templates.native(attacks))
        attacker, victim = await self._session(host, "A"), await self._session(host, "B")
        for count, found in enumerate(attacks, 1):
            self._begin()
            said = await self._act(attacker, found.id)
            if self._is_gone(said):
                attacker = await self._session(host, "A")
            self._tell(found.id, where, said, await self._harm(victim, count))

    async def _one(self, found: Attack) -> None:
        """An attack with an environment of its own."""
        host = self.host("native", templates.native([found]))
        attacker, victim = await self._session(host, "A"), await self._session(host, "B")
        self._begin()
        said, first = await self._together(found, attacker, victim)
        harm = [] if first == {"token": "B", "counter": 0} else [f"the victim's first answer was {first}"]
        said += " | " + await self._snapshot(attacker)
        harm += await self._harm(victim, 1)
        if found.category == "plays":
            later = await self._session(host, "B")
            harm += [f"later: {text}" for text in await self._harm(later, 1)]
        self._tell(found.id, "tool", said, harm)

    async def _together(self, found: Attack, attacker: ProgramSession, victim: ProgramSession) -> tuple[str, Any]:
        """The attack while the victim asks for something: in the same frame, or in the frame after it."""
        if found.category != "channel":
            return await asyncio.gather(self._act(attacker, found.id), self._get(victim))
        attack = asyncio.create_task(self._act(attacker, found.id))
        await asyncio.sleep(0.02)
        asked = asyncio.create_task(self._get(victim))
        said = [await attack, await self._act(attacker, found.id)]
        return " | ".join(said), await asked

    async def _at_load(self, attacks: list[Attack]) -> None:
        """All attacks on the host, while the module is executed: nothing but the kernel layers is awake then."""
        moved = [dataclasses.replace(found, when="load_all") for found in attacks]
        host = self.host("native", templates.native(moved, self.info()))
        self._begin()
        session = await self._session(host, "A")
        result = await session.call("act", {"name": "report", "info": {}})
        report = result.content if isinstance(result.content, dict) else {}
        report = report.get("result", report)
        together = self._found()
        for found in attacks:
            self._tell(found.id, "load", str(report.get(found.id, "it did not run")), together, looked=True)
            together = []

    async def _in_a_check(self, attacks: list[Attack]) -> None:
        host = self.host("check", templates.check(attacks, self.info()))
        for found in attacks:
            if found is attacks[0]:
                self._begin()
            self._tell(found.id, "check", await self._verdict(host, found.id), [], looked=found is not attacks[-1])

    async def _while_loading(self, found: Attack) -> None:
        self._begin()
        host = self.host("native", templates.native([found], self.info()))
        said = ""
        try:
            await host.states(0)
            session = await self._session(host, "A")
            said = f"it went on: {await self._get(session)}"
        except _BROKEN as error:
            said = str(error)
        self._tell(found.id, found.when, said, await self._bystander())

    async def _check(self, found: Attack) -> None:
        host = self.host("check", templates.check([found, self._honest()], self.info()))
        self._begin()
        said = await self._verdict(host, found.id)
        honest = await self._verdict(host, "honest")
        harm = [] if honest == "False" else [f"another verdict became {honest}"]
        if found.id.startswith("check_that_") and said == "True" and "reads" in found.id:
            harm.append("it did what it wanted")
        self._tell(found.id, "check", said, harm)

    @staticmethod
    def _honest() -> Attack:
        return Attack("honest", "checks", "def attack(info):\n    return info['initial'] == 'changed'\n", "check")

    async def _file(self, found: Attack) -> None:
        host = self.host("envfactory", templates.file(found, self.info()))
        self._begin()
        harm: list[str] = []
        try:
            attacker, victim = await self._session(host, "A"), await self._session(host, "B")
            said = await self._act(attacker, None) + " | " + await self._snapshot(attacker)
            if found.when != "file_save":
                harm = await self._harm(victim, 1)
        except _BROKEN as error:
            said = str(error)
        self._tell(found.id, found.when, said, harm + await self._bystander())

    # Steps

    async def _session(self, host: WorkerHost, token: str) -> ProgramSession:
        session = ProgramSession(await host.spec(), SandboxLink(host))
        state = {"now": "2025-01-01T00:00:00", "counters": {}, "seed": 0, "notes": {}} if host._kind == "native" else {}
        await session.reset(state | {"token": token, "counter": 0})
        return session

    async def _act(self, session: ProgramSession, name: str | None) -> str:
        try:
            arguments = {} if name is None else {"name": name, "info": self.info()}
            result = await session.call("act", arguments)
            return repr(result.content)[:2000]
        except _BROKEN as error:
            return str(error)

    @staticmethod
    def _is_gone(said: str) -> bool:
        return "its worker was lost" in said or "the play ended" in said or "broke the protocol" in said

    async def _get(self, session: ProgramSession) -> Any:
        try:
            return (await session.call("get", {})).content
        except _BROKEN as error:
            return str(error)

    async def _snapshot(self, session: ProgramSession) -> str:
        try:
            return str(await session.snapshot())[:200]
        except _BROKEN as error:
            return str(error)

    async def _harm(self, victim: ProgramSession, count: int) -> list[str]:
        """What became of the victim; `count` is how often it has counted after this."""
        try:
            before = (await victim.call("get", {})).content
            added = (await victim.call("add", {"number": 1})).content
            state = await victim.snapshot()
        except _BROKEN as error:
            return [f"the victim's play broke: {error}"]
        number = added.get("counter", added.get("result")) if isinstance(added, dict) else added
        if (
            before != {"token": "B", "counter": count - 1}
            or number != count
            or (state["token"], state["counter"]) != ("B", count)
        ):
            return [f"the victim's play was changed: {before} {added} {str(state)[:200]}"]
        return []

    async def _bystander(self) -> list[str]:
        session = await self._session(self.bystander, "A")
        said = await self._get(session)
        await session.close()
        return [] if said == {"token": "A", "counter": 0} else [f"another environment broke: {said}"]

    async def _verdict(self, host: WorkerHost, name: str) -> str:
        link = SandboxLink(host)
        try:
            await link.start(b"{}", ())
            arguments = {"initial": {"token": "A"}, "final": {"token": "A"}, "answer": name}
            result = await link.call("check", arguments, "assistant", 0)
            return str(result.content["result"] if isinstance(result.content, dict) else result.content)
        except _BROKEN as error:
            return str(error)
        finally:
            with suppress(*_BROKEN):
                await link.close()

    # Judgement

    def _begin(self) -> None:
        if self._touched:
            self.world.reset()
            self._touched = False
        for pid in self._workers() - self._seen.keys():
            self._seen[pid] = look(pid, self._memory)

    @property
    def _memory(self) -> int:
        return self.settings.memory_mb << 20

    def _workers(self) -> set[int]:
        """All processes but the zygotes, what waits for them, and those from before the first attack."""
        return {pid for pid in offspring(os.getpid()) - self._old if not offspring(pid)}

    def _found(self) -> list[str]:
        """What was touched, and what workers have now that they had not before."""
        found = self.world.evidence()
        self._touched = bool(found)
        for pid in self._workers() & self._seen.keys():
            seen = look(pid, self._memory)
            found += sorted(seen - self._seen[pid])
            self._seen[pid] = seen
        connection = self.bystander._main
        return found + (["another environment's worker was lost"] if connection is None or connection.lost else [])

    def _tell(self, name: str, where: str, said: str, harm: list[str], looked: bool = False) -> None:
        found = harm + ([] if looked else self._found()) + self.world.stolen(said)
        if "did: " in said:
            found.append("it says so")
        _say({"id": name, "where": where, "said": said[:300], "found": found})


async def _run(mode: str, without: list[str], names: list[str], world: World) -> None:
    attacks = [found for found in all_attacks() if not names or found.id in names or found.category in names]
    campaign = Campaign(mode, without, world)
    await campaign.run(attacks)
    campaign.bystander.close()
    expected = len(pool._zygotes) * (2 if "namespaces" in campaign.layers else 1)
    for _ in range(100):  # plays die with their worker, which takes the kernel a moment
        left = [pid for pid in offspring(os.getpid()) if _state(pid) != "Z"]
        if len(left) <= expected:
            break
        await asyncio.sleep(0.05)
    _say({"id": "end", "where": "end", "said": "", "found": ["processes are left"] * (len(left) > expected)})


def _say(result: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


def _state(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    mode, without, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_run(mode, [layer for layer in without.split(",") if layer], names, World(Path(folder))))


if __name__ == "__main__":
    main()
