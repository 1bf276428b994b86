"""`trajsmith env probe --attack`: attacks on this machine, in a mode and under a provider, judged from outside.

The same suite is the conformance test of a provider: what it does not stop is named.
"""

import asyncio
import os
import secrets
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from trajsmith.environments.sandbox.attack_sources import ATTACKS, LOADING, write_environment
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.session import Session
from trajsmith.records import EnvironmentFault, FrozenModel, JsonObject, RunError

WALL_SECONDS = 3.0
_LIMITS: JsonObject = {
    "call_seconds": 0.2, "load_seconds": 20.0, "wall_seconds": WALL_SECONDS, "memory_mb": 400, "kills": 100_000,
    "state_bytes": 1 << 20, "result_bytes": 1 << 20,
}  # fmt: skip
_LEGAL_REPLY = 1 << 20
_BARE = frozenset({"huge result", "many values", "deep result", "no JSON", "huge number", "half a character"})
"""Attacks by what a tool returns as it is."""
_BLOCKED = "blocked: "
"""How the report of a loading file begins for an attack that was stopped."""


class AttackOutcome(FrozenModel):
    """Outcome of one attack."""

    kind: str
    name: str
    when: str
    """`call` or `load`."""
    harm: tuple[str, ...]
    """What it achieved; empty if it was stopped."""
    seconds: float


class AttackReport(FrozenModel):
    """All attacks in a mode under a provider."""

    mode: str
    provider: str
    outcomes: tuple[AttackOutcome, ...]
    play_ms: float
    """Wall time of opening and closing a play, in ms."""
    call_us: float
    """Wall time of a call, in us."""

    def count(self) -> dict[str, tuple[int, int]]:
        """Return (tried, not stopped) by class of attack."""
        kinds = dict.fromkeys(outcome.kind for outcome in self.outcomes)
        of_kind = {kind: [one for one in self.outcomes if one.kind == kind] for kind in kinds}
        return {kind: (len(tried), sum(bool(one.harm) for one in tried)) for kind, tried in of_kind.items()}


@dataclass
class _World:
    """Canaries around this process."""

    folder: Path
    secret: str
    listeners: Mapping[str, socket.socket]
    holder: int
    """Process that was started with the secret in its environment."""

    def info(self) -> JsonObject:
        port = self.listeners["tcp"].getsockname()[1]
        names = {name: str(self.folder / name) for name in ("secret", "victim", "socket")}
        return {**names, "folder": str(self.folder), "port": port, "parent": os.getpid(), "holder": self.holder}

    def find_harm(self) -> dict[str, list[str]]:
        """Return what was touched since the last call, by class of attack, and put it right."""
        reached, touched = list[str](), list[str]()
        for name, listener in self.listeners.items():
            with suppress(BlockingIOError):
                listener.recv(100) if name == "udp" else listener.accept()[0].close()
                reached.append(f"it reached the network ({name})")
        victim = self.folder / "victim"
        names = {"secret", "victim", "socket", "thief.py"}
        if not victim.is_file() or victim.read_text() != "untouched" or victim.stat().st_mode & 0o777 != 0o666:
            touched.append("it changed a file")
        for path in self.folder.iterdir():
            if path.name not in names and path.name != "__pycache__":
                touched.append(f"it made {path.name}")
                path.unlink()
        victim.write_text("untouched")
        victim.chmod(0o666)
        return {"network": reached, "files": touched}


@contextmanager
def _make_world() -> Iterator[_World]:
    with tempfile.TemporaryDirectory() as name:
        folder, secret = Path(name), f"secret-{secrets.token_hex(12)}"
        folder.chmod(0o777)
        (folder / "secret").write_text(secret)
        (folder / "thief.py").write_text(f"SECRET = {secret!r}\n")
        (folder / "victim").write_text("untouched")
        (folder / "victim").chmod(0o666)
        listeners = {"tcp": socket.create_server(("127.0.0.1", 0))}
        listeners["udp"] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listeners["udp"].bind(("127.0.0.1", listeners["tcp"].getsockname()[1]))
        listeners["file"] = socket.socket(socket.AF_UNIX)
        listeners["file"].bind(str(folder / "socket"))
        (folder / "socket").chmod(0o777)
        listeners["file"].listen()
        key = f"PROBE_KEY_{os.getpid()}"
        os.environ[key] = secret
        inherited = os.open(folder / "secret", os.O_RDONLY)
        os.set_inheritable(inherited, True)
        holder = subprocess.Popen(
            ["cat"], env={key: secret, "PATH": os.defpath}, stdin=subprocess.PIPE
        )  # ends with this process
        try:
            for listener in listeners.values():
                listener.setblocking(False)
            yield _World(folder, secret, listeners, holder.pid)
        finally:
            del os.environ[key]
            os.close(inherited)
            holder.communicate()
            for listener in listeners.values():
                listener.close()


async def run_attacks(mode: str, provider: str = "built_in") -> AttackReport:
    """Make every attack, in calls and while a file loads, and judge each from outside.

    Args:
        mode: Mode of the sandbox; `unsafe` shows what the attacks do where nothing stops them, on this machine.
        provider: What starts the workers.

    Raises:
        RunError: The mode or the provider does not work here, or the attacks of a loading file were not reported.
    """
    settings = SandboxSettings.model_validate({"mode": mode, "provider": provider, **_LIMITS})
    with _make_world() as world:
        source = _open(settings, write_environment())
        bystander = await _start(source, "B")
        outcomes = []
        for kind, attacks in ATTACKS.items():
            for name in attacks:
                outcomes.append(await _attack(world, source, bystander, kind, name))
        outcomes += await _attack_while_loading(world, settings)
        costs = await _measure(source)
        source.close()
    return AttackReport(
        mode=mode, provider=provider, outcomes=tuple(outcomes), play_ms=costs[0] * 1e3, call_us=costs[1] * 1e6
    )


def _open(settings: SandboxSettings, text: str) -> SandboxSource:
    payload: JsonObject = {"source": text, "file": "lab.py", "cls": "", "sizes": {"A": 1, "B": 1}}
    return SandboxSource("lab", "native", payload, settings)


async def _start(source: SandboxSource, token: str) -> Session:
    session = await source.open()
    (state, *_) = await source.states(0)
    await session.reset({**state, "token": token})
    return session


async def _attack(world: _World, source: SandboxSource, bystander: Session, kind: str, name: str) -> AttackOutcome:
    attacker = await _start(source, "A")
    before, began = _read_peak(), time.monotonic()
    reply, harm = "", list[str]()
    try:
        tool = "act_bare" if name in _BARE else "act"
        reply = repr((await attacker.call(tool, {"name": name, "info": world.info()})).content)
    except EnvironmentFault as fault:
        reply = str(fault)
        if not reply.isprintable():
            harm.append("its error drives the terminal")
    except Exception as error:  # noqa: BLE001 - an error of the parent is what the attack is after
        harm.append(f"the parent broke: {type(error).__name__}")
    seconds = time.monotonic() - began
    if seconds > WALL_SECONDS + 1:
        harm.append(f"the parent waited {seconds:.1f} s")
    if _read_peak() - before > 3 * _LEGAL_REPLY + (1 << 20):
        harm.append(f"the parent grew by {(_read_peak() - before) >> 20} MB")
    harm += chain.from_iterable(world.find_harm().values())
    harm += _judge_words(world, reply)
    try:
        if (await bystander.call("get", {})).content not in ("B", {"result": "B"}):
            harm.append("another play was changed")
    except EnvironmentFault as fault:
        harm.append(f"another play broke: {fault.kind}")
    with suppress(EnvironmentFault):
        await attacker.close()
    return AttackOutcome(kind=kind, name=name, when="call", harm=tuple(harm), seconds=round(seconds, 3))


def _judge_words(world: _World, reply: str) -> list[str]:
    """Return what an attack tells of its success."""
    return ["it says so"] if "did: " in reply else ["it read a secret"] if world.secret in reply else []


async def _attack_while_loading(world: _World, settings: SandboxSettings) -> list[AttackOutcome]:
    source = _open(settings, write_environment(world.info()))
    began, unjudged = time.monotonic(), list[str]()
    replies = dict[str, str]()
    try:
        session = await _start(source, "A")
        content = (await session.call("act", {"name": "loaded", "info": {}})).content
        replies = _read_report(content.get("result", content) if isinstance(content, dict) else content)
    except EnvironmentFault as fault:
        unjudged.append(f"it could not be judged: {fault}")
    finally:
        source.close()
    seconds = round(time.monotonic() - began, 3)
    touched = world.find_harm()
    outcomes = []
    for kind, names in LOADING.items():
        unblocked = [name for name in names if not replies.get(name, "").startswith(_BLOCKED)]
        for name in names:
            harm = [*unjudged, *_judge_words(world, replies.get(name, ""))]
            if name in (unblocked or names):
                harm += touched.get(kind, [])
            outcomes.append(AttackOutcome(kind=kind, name=name, when="load", harm=tuple(harm), seconds=seconds))
    return outcomes


def _read_report(report: object) -> dict[str, str]:
    """Read what each attack of a loading file says.

    Raises:
        RunError: An attack was not made, so that nothing is known of it.
    """
    replies = {str(name): str(text) for name, text in report.items()} if isinstance(report, dict) else {}
    missing = [name for names in LOADING.values() for name in names if name not in replies]
    if missing:
        raise RunError(f"sandbox: {len(missing)} attacks of a loading file were not reported, first: {missing[0]}")
    return replies


async def _measure(source: SandboxSource, plays: int = 10, calls: int = 50) -> tuple[float, float]:
    """Return the wall seconds of a play, and of a call."""
    began = time.monotonic()
    for _ in range(plays):
        await (await _start(source, "A")).close()
    each = (time.monotonic() - began) / plays
    session = await _start(source, "A")
    began = time.monotonic()
    for _ in range(calls):
        await session.call("get", {})
    spent = (time.monotonic() - began) / calls
    await session.close()
    return each, spent


def _read_peak() -> int:
    """Return the largest size that this process has had, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def run_attacks_here(mode: str, provider: str = "built_in") -> AttackReport:
    """Run the attacks from a program that has no event loop; see `run_attacks`."""
    return asyncio.run(run_attacks(mode, provider))
