"""The workers of one environment: started when needed, replaced when lost, given up when they keep dying."""

import asyncio
import atexit
import itertools
import logging
import os
from typing import Any

import orjson

from trajsmith.environments.programs import find_loader
from trajsmith.environments.sandbox.connection import WorkerConnection, WorkerLost
from trajsmith.environments.sandbox.serialization import SECRET, Reply, ReplyStatus, WorkerOp
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.zygote_process import (
    NO_PIDFD,
    ForkedProcess,
    ZygoteOptions,
    ZygoteProcess,
    open_channel,
    release,
)
from trajsmith.records import EnvironmentFault, EnvironmentSpec, InputError, JsonObject, RunError

_log = logging.getLogger(__name__)

_LOCKED = frozenset(
    {"uid", "rlimits", "undumpable", "landlock", "no_new_privs", "pdeathsig", "seccomp", "audit", "hide"}
)
LAYERS: dict[str, frozenset[str]] = {
    "default": _LOCKED,
    "strict": _LOCKED | {"namespaces"},
    "unsafe": frozenset({"pdeathsig"}),
}
"""What each mode applies; see docs/sandbox.md."""
_FIRST_UID = 61_000
_UIDS = 4_000
_DYING = 64
"""Processes beyond the allowed ones: the worker itself, and plays that have been killed and are not gone yet."""
_BASES = 64
"""Initial states that a worker keeps."""
_LIMITS = frozenset({"timeout", "limit"})
"""Kinds of faults by which a worker enforces a limit."""
_zygotes: dict[ZygoteOptions, ZygoteProcess] = {}
_workers = itertools.count()


async def get_zygote(options: ZygoteOptions) -> ZygoteProcess:
    """The zygote for these options; started at the first call, shared after it.

    It starts from the calling thread, with which it ends; another thread waits for it, so that the loop goes on.

    Raises:
        InputError: See `ZygoteProcess.await_ready`, as for RunError.
    """
    process = _zygotes.get(options)
    if process is None or not process.alive:
        if not _zygotes:
            atexit.register(_close_all)
        process = _zygotes[options] = ZygoteProcess(options)
    if not process.ready:
        await asyncio.to_thread(process.await_ready)
    return process


def _lives(connection: WorkerConnection | None) -> bool:
    return connection is not None and connection.lost is None


def _close_all() -> None:
    for process in _zygotes.values():
        process.close()
    _zygotes.clear()


class WorkerHost:
    """Runs one program in workers."""

    def __init__(
        self,
        name: str,
        kind: str,
        payload: JsonObject,
        settings: SandboxSettings,
        own_process: bool = False,
        layers: frozenset[str] | None = None,
        hash_seed: int = 0,
        shift: int = 0,
        events: tuple[str, ...] = (),
    ) -> None:
        """Nothing starts yet.

        Args:
            name: The environment's name.
            kind: See `trajsmith.environments.programs.find_loader`.
            payload: What its loader gets.
            settings: Limits and mode.
            own_process: A process for every play, also where the mode would share.
            layers: Layers other than those of the mode: for tests of the layers themselves.
            hash_seed: Seed of Python's string hashes in the workers.
            shift: Another number, another virtual clock and chance.
            events: Audit events that libraries of this kind of program raise in calls; its plays should not share.
        """
        self.name = name
        self.own_process = own_process or settings.mode == "strict"
        self.settings = settings
        self.notes: tuple[str, ...] = ()
        """What the loader has to say about the environment's files; known with the spec."""
        self.kills = 0
        self.leak = ""
        """What plays changed for each other, if that made them have a process each."""
        self._shift = shift
        self._events = events
        self._kind = kind
        self._payload = orjson.dumps(payload)
        self._layers = LAYERS[settings.mode] - set(settings.allow_missing) if layers is None else layers
        loader = find_loader(kind).partition(":")[0]
        imports = tuple(sorted({*settings.imports, loader}))
        self._zygote_options = ZygoteOptions(self._layers & {"namespaces"}, imports, hash_seed)
        self._main: WorkerConnection | None = None
        self._spec: EnvironmentSpec | None = None
        self._starting: asyncio.Lock | None = None
        self._processes: set[WorkerConnection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._secret = 0
        """Without it nobody forks a process for a play; the worker is told of it only when it shall."""

    async def spec(self) -> EnvironmentSpec:
        """Return the program's spec.

        Raises:
            InputError: Its files are wrong.
            EnvironmentFault: It cannot be loaded (kind `start`).
            RunError: The sandbox does not work here.
        """
        if self._spec is None:
            await self.main()
        assert self._spec is not None
        return self._spec

    async def main(self) -> WorkerConnection:
        """Return the worker that has the program: for all episodes, or to fork their processes from."""
        self._enter_loop()
        assert self._starting is not None
        async with self._starting:
            while self._main is None or not _lives(self._main):
                shared = not self.own_process
                started = await self._start()
                if shared is self.own_process:  # a leak was seen meanwhile: this worker cannot fork
                    started.close()
                else:
                    self._main = started
            return self._main

    async def connect(self) -> WorkerConnection:
        """Return a worker for an episode: the shared one, or a fresh process."""
        while True:
            main = await self.main()
            if not self.own_process:
                return main
            try:
                return await self._fork(main)
            except WorkerLost as lost:  # it went before anybody noticed; the next one is fresh
                if not lost.recycled:
                    self.count_loss()

    async def states(self, seed: int) -> list[JsonObject]:
        """The program's initial states.

        Raises:
            EnvironmentFault: Its code broke, or making them ended the worker.
        """
        while True:
            connection = await self.connect()
            try:
                states = unwrap_reply(await connection.send(WorkerOp.STATES, 0, seed), self.name)
                return orjson.loads(states)  # type: ignore[no-any-return]
            except WorkerLost as lost:
                if lost.culprit:
                    self.count_loss()
                    raise EnvironmentFault("start", self.name, f"its initial states ended the worker: {lost}") from lost
            finally:
                if self.own_process and connection is not self._main:
                    connection.close()

    async def keep_base(self, connection: WorkerConnection, name: str, text: bytes) -> None:
        """See to it that a worker has an initial state."""
        if name in connection.bases:
            return
        connection.bases[name] = None
        if len(connection.bases) > _BASES:
            oldest = next(iter(connection.bases))
            del connection.bases[oldest]
            connection.send(WorkerOp.DROP, oldest)
        await connection.send(WorkerOp.BASE, name, text)

    async def look(self) -> tuple[list[str], list[str]] | None:
        """Return module-level changes since the last call of this method, and the virtual sources that calls used.

        None where plays have processes of their own, so that there is nothing to see; if they have them because of
        such a change, that one.
        """
        if self.own_process:
            return ([self.leak], []) if self.leak else None
        changed, used = unwrap_reply(await (await self.main()).send(WorkerOp.LOOK, 0), self.name)
        return changed, used

    def leaked(self, paths: list[str]) -> None:
        """Record that episodes changed something outside of their states that others can see.

        From now on each has a process, unless the user wants it otherwise; those that are live are repeated there, and
        what came out differently is a fault. Those that have ended are found by replay.
        """
        if paths and self.settings.plays == "auto" and not self.own_process:
            self.leak = paths[0]
            self.own_process = True
            self.close()

    def count_loss(self) -> None:
        """A worker was lost.

        Raises:
            EnvironmentFault: That was one too many.
        """
        self.kills += 1
        if self.kills >= self.settings.kills:
            raise EnvironmentFault(
                "crash", self.name, f"given up: {self.kills} of its workers died or had to be killed"
            )

    def close(self) -> None:
        """End the worker of the program; processes of episodes are ended by their links."""
        if self._main is not None:
            self._main.close()
            self._main = None

    def _enter_loop(self) -> None:
        """A host outlives event loops: what belongs to an old one is thrown away.

        Raises:
            RunError: The old one is running, so that its plays and those of this one would end each other.
        """
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        starting = self._starting is not None and self._starting.locked()
        if self._loop is not None and self._loop.is_running() and (starting or _lives(self._main)):
            raise RunError(f"{self.name}: another running event loop uses it; open a source of its own for each loop")
        self._loop = loop
        self._starting = asyncio.Lock()
        self._processes.clear()
        self.close()

    async def _start(self) -> WorkerConnection:
        if self.kills >= self.settings.kills:
            raise EnvironmentFault(
                "crash", self.name, f"given up: {self.kills} of its workers died or had to be killed"
            )
        process = await get_zygote(self._zygote_options)
        forked = process.fork(
            {
                "layers": sorted(self._layers),
                "limits": self._limits(),
                "forks": self.own_process,
                "events": list(self._events),
            }
        )
        if self.own_process:
            self._secret = int.from_bytes(os.urandom(8), "little") >> 1
            forked.channel.send(SECRET.pack(self._secret))
        self._check_pidfd(forked)
        connection = WorkerConnection(forked, self.settings.wall_seconds, process.status)
        reply = await self._loaded(connection)
        if self._spec is None:
            spec, notes = unwrap_reply(reply, self.name)
            self._spec = EnvironmentSpec.model_validate_json(spec)
            self.name, self.notes = self._spec.name, tuple(notes)
        started = f"restarted after {self.kills} lost workers" if self.kills else "started"
        _log.info("%s: worker %d %s in mode %s", self.name, forked.pid, started, self.settings.mode)
        return connection

    def _check_pidfd(self, forked: ForkedProcess) -> None:
        """Without a pidfd a worker would be ended by its number, which may be somebody else's by then.

        Raises:
            RunError: The machine has no pidfds, and the mode needs them.
        """
        if forked.pidfd is None and self.settings.mode != "unsafe":
            release(forked)
            raise RunError(f"sandbox: {NO_PIDFD}; `trajsmith env probe` says what works here")

    def _limits(self) -> dict[str, int]:
        return {
            "memory_bytes": self.settings.memory_mb << 20,
            "uid": _FIRST_UID + next(_workers) % _UIDS,
            "processes": self.settings.processes + _DYING,
        }

    async def _loaded(self, connection: WorkerConnection) -> Reply:
        """Send the program and wait for its answer.

        Raises:
            InputError: Its files are wrong.
            EnvironmentFault: Loading it ended the worker.
        """
        limits = self.settings.model_dump(include={"call_seconds", "load_seconds", "result_bytes", "state_bytes"})
        limits["shift"] = self._shift
        try:
            reply = await connection.send(WorkerOp.LOAD, 0, self._kind, self._payload, limits)
        except WorkerLost as lost:
            self.kills += 1
            raise EnvironmentFault("start", self.name, f"loading it ended the worker: {lost}") from lost
        if reply[1] != ReplyStatus.OK:
            connection.close()
            unwrap_reply(reply, self.name)
        return reply

    async def _fork(self, main: WorkerConnection) -> WorkerConnection:
        self._processes = {one for one in self._processes if one.lost is None}
        if len(self._processes) >= self.settings.processes:
            limit = self.settings.processes
            raise RunError(f"{self.name}: more than {limit} plays with a process at a time: raise sandbox.processes")
        channel, theirs, progress, descriptor = open_channel()
        try:
            reply = await main.send_with_descriptors(WorkerOp.FORK, [theirs.fileno(), descriptor], self._secret)
        finally:
            theirs.close()
            os.close(descriptor)
        process = await get_zygote(self._zygote_options)
        pid = int(unwrap_reply(reply, self.name))
        forked = ForkedProcess(channel, progress, pid, process.pidfd(pid))
        self._check_pidfd(forked)
        connection = WorkerConnection(forked, self.settings.wall_seconds, lambda _: "it ended")
        self._processes.add(connection)
        return connection


def unwrap_reply(reply: Reply, environment: str, tool: str | None = None) -> Any:
    """The content of a reply that succeeded.

    Raises:
        InputError: The environment's files are wrong.
        EnvironmentFault: The environment broke.
        RunError: The sandbox does not work here.
    """
    status, result = reply[1], reply[2]
    if status == ReplyStatus.FAULT:
        kind, message, where = result
        if kind in _LIMITS:
            _log.info("%s.%s: limit of the sandbox reached (%s): %s", environment, where or tool, kind, message)
        raise EnvironmentFault(kind, environment, message, where or tool)
    if status == ReplyStatus.INPUT:
        raise InputError(str(result))
    if status == ReplyStatus.LAYER:
        raise RunError(f"sandbox: {result}; `trajsmith env probe` says what works here")
    return result
