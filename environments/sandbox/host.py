"""The workers of one environment: started when needed, replaced when lost, given up when they keep dying."""

import asyncio
import atexit
import itertools
import logging
from typing import Any

import orjson
from pydantic import ValidationError

from trajsmith.environments.check_time import count_check_time, limit_check_time
from trajsmith.environments.programs import find_loader
from trajsmith.environments.sandbox.codec import Reply, ReplyCodec, SizeLimits
from trajsmith.environments.sandbox.connection import WorkerConnection, WorkerLost
from trajsmith.environments.sandbox.forking import ForkRefused, PlayForker, await_lock, read_pid
from trajsmith.environments.sandbox.limits import choose_user
from trajsmith.environments.sandbox.memory_watch import MemoryWatch
from trajsmith.environments.sandbox.serialization import ReplyStatus, WorkerOp
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.zygote_process import (
    NO_PIDFD,
    ForkedProcess,
    ZygoteOptions,
    ZygoteProcess,
    release,
    terminate,
)
from trajsmith.environments.schema_patterns import find_schema_fault
from trajsmith.records import (
    EnvironmentFault,
    EnvironmentSpec,
    InputError,
    JsonObject,
    RunError,
    format_first_error,
    to_one_line,
)

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
_DYING = 64
"""Processes beyond the allowed ones: the worker itself, and plays that have been killed and are not gone yet."""
_LOCK_SECONDS = 30.0
_BASES = 64
"""Initial states that a worker keeps."""
_LOSSES = 2
"""Workers in a row that may be lost while a play is forked from them; one may have ended before."""
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
            own_process: A process for every play, also where the settings would share.
            layers: Layers other than those of the mode: for tests of the layers themselves.
            hash_seed: Seed of Python's string hashes in the workers.
            shift: Another number, another virtual clock and chance.
            events: Audit events that libraries of this kind of program raise in calls.
        """
        self.name = name
        self.own_process = own_process or settings.mode == "strict" or settings.plays == "process"
        self.settings = settings
        self.notes: tuple[str, ...] = ()
        """What the loader has to say about the environment's files; known with the spec."""
        self.kills = 0
        """Workers lost so far."""
        self._shift = shift
        self._events = events
        self._kind = kind
        self._payload = orjson.dumps(payload)
        self._layers = LAYERS[settings.mode] - set(settings.allow_missing) if layers is None else layers
        loader = find_loader(kind).partition(":")[0]
        imports = tuple(sorted({*settings.imports, loader}))
        self._zygote_options = ZygoteOptions(self._layers & {"namespaces"}, imports, hash_seed, settings.provider)
        self._main: WorkerConnection | None = None
        self._spec: EnvironmentSpec | None = None
        self._starting: asyncio.Lock | None = None
        self._processes: set[WorkerConnection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._codec = ReplyCodec(SizeLimits(settings.result_bytes, settings.state_bytes))
        self._forker: PlayForker | None = None
        self._memory: MemoryWatch | None = None

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
            if self._main is None or not _lives(self._main):
                self._count_idle_loss(self._main)
                self._main = None
                self._main = await self._start()
            return self._main

    async def connect(self) -> WorkerConnection:
        """Return a worker for an episode: the shared one, or a fresh process."""
        losses = 0
        while True:
            self._require_no_quarantine()
            main = await self.main()
            if not self.own_process:
                return main
            try:
                return await self._fork()
            except WorkerLost as lost:  # it went before anybody noticed; the next one is fresh
                losses += not lost.recycled
                if losses and (lost.culprit or losses >= _LOSSES):
                    raise EnvironmentFault(lost.kind, self.name, f"no process for a play: {lost}") from lost

    async def states(self, seed: int) -> list[JsonObject]:
        """The program's initial states.

        Raises:
            EnvironmentFault: Its code broke, or making them ended the worker.
        """
        while True:
            connection = await self.connect()
            try:
                states: list[JsonObject] = unwrap_reply(await connection.send(WorkerOp.STATES, 0, seed), self.name)
                return states
            except WorkerLost as lost:
                if not lost.recycled and lost.kind == "crash":
                    self.count_loss()
                if lost.culprit:
                    kind = "start" if lost.kind == "crash" else lost.kind
                    raise EnvironmentFault(kind, self.name, f"its initial states ended the worker: {lost}") from lost
            finally:
                if self.own_process and connection is not self._main:
                    connection.close()

    def keep_base(self, connection: WorkerConnection, name: str, text: bytes) -> None:
        """See to it that a worker has an initial state before it gets the next request."""
        if name in connection.bases:
            return
        connection.bases[name] = None
        if len(connection.bases) > _BASES:
            oldest = next(iter(connection.bases))
            del connection.bases[oldest]
            connection.send(WorkerOp.DROP, oldest)
        connection.send(WorkerOp.BASE, name, text)

    async def look(self) -> tuple[list[str], list[str]] | None:
        """Return module-level changes since the last call of this method, and the virtual sources that calls used.

        None where plays have processes of their own, so that there is nothing to see.
        """
        if self.own_process:
            return None
        changed, used = unwrap_reply(await (await self.main()).send(WorkerOp.LOOK, 0), self.name)
        return changed, used

    def count_idle_loss(self, connection: WorkerConnection) -> None:
        """Count the process of a play that ended while it was asked for nothing; not if it ended with its worker."""
        if _lives(connection.worker):
            self._count_idle_loss(connection)

    def _count_idle_loss(self, connection: WorkerConnection | None) -> None:
        if connection is not None and self.own_process and connection.loss == "crash" and not connection.recycled:
            self.count_loss()

    def count_loss(self) -> None:
        """Count a lost worker; after too many of them the environment is in quarantine, and nothing is started."""
        self.kills += 1

    def _require_no_quarantine(self) -> None:
        if self.kills >= self.settings.kills:
            message = f"given up for this run: {self.kills} of its workers died or had to be killed"
            raise EnvironmentFault("quarantine", self.name, message)

    def close(self) -> None:
        """End the worker of the program, and the processes that were forked from it."""
        for connection in list(self._processes):
            connection.close()
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
        self.close()
        self._processes.clear()
        self._memory = MemoryWatch(self.settings.total_memory_mb << 20)

    async def _start(self) -> WorkerConnection:
        self._require_no_quarantine()
        process = await get_zygote(self._zygote_options)
        forked = process.fork(
            {
                "layers": sorted(self._layers),
                "limits": self._limits(),
                "forks": self.own_process,
                "events": list(self._events),
            }
        )
        self._check_pidfd(forked)
        listener = await await_lock(forked, _LOCK_SECONDS)
        connection = self._connect(forked, process)
        reply = await self._loaded(connection, None if listener is None else (listener, process))
        if self._spec is None:
            self._describe(unwrap_reply(reply, self.name))
        started = f"restarted after {self.kills} lost workers" if self.kills else "started"
        _log.info("%s: worker %d %s in mode %s", self.name, forked.pid, started, self.settings.mode)
        return connection

    def _connect(
        self, forked: ForkedProcess, zygote: ZygoteProcess | None, since: float | None = None
    ) -> WorkerConnection:
        """Listen to a process: a worker of this zygote, or a play, whose time counts since it was asked for."""
        settings = self.settings
        status = (lambda _: "it ended") if zygote is None else zygote.end
        connection = WorkerConnection(
            forked, self._codec, settings.wall_seconds, settings.call_seconds, settings.load_seconds, status, since
        )
        assert self._memory is not None
        self._memory.add(connection, forked.pid if zygote is None else read_pid(forked))
        connection.on_end(lambda: self._note_end(connection))
        return connection

    def _note_end(self, connection: WorkerConnection) -> None:
        """Count a process that had to be killed; one that crashed is counted with the request that it crashed over."""
        if connection.loss != "crash":
            self.kills += 1

    def _describe(self, description: tuple[bytes, list[str]]) -> None:
        """Take over what the worker says of the environment.

        Raises:
            EnvironmentFault: It is no spec.
        """
        try:
            self._spec = EnvironmentSpec.model_validate_json(description[0])
        except ValidationError as error:
            raise EnvironmentFault("protocol", self.name, f"no description: {format_first_error(error)}") from error
        try:
            with limit_check_time("no description"), count_check_time():
                self._check_schemas(self._spec)
        except InputError as error:
            self._spec = None
            raise EnvironmentFault("protocol", self.name, str(error)) from error
        self.name, self.notes = self._spec.name, tuple(description[1])

    def _check_schemas(self, spec: EnvironmentSpec) -> None:
        """Refuse a description whose schemas are none: this process compiles and walks through them.

        Raises:
            EnvironmentFault: One is no JSON Schema.
        """
        named = {f"tool {tool.name}": (tool.input_schema, tool.output_schema) for tool in spec.tools}
        for where, schemas in {**named, "the state": (spec.state_schema,)}.items():
            for schema in schemas:
                fault = None if schema is None else find_schema_fault(schema)
                if fault is not None:
                    self._spec = None
                    message = to_one_line(fault.message, 200)
                    raise EnvironmentFault("protocol", self.name, f"no description: {where}: no JSON Schema: {message}")

    def _check_pidfd(self, forked: ForkedProcess) -> None:
        """Without a pidfd a worker would be ended by its number, which may be somebody else's by then.

        Raises:
            RunError: The machine has no pidfds, and the mode needs them.
        """
        if forked.pidfd is None and self.settings.mode != "unsafe":
            terminate(forked)
            release(forked)
            raise RunError(f"sandbox: {NO_PIDFD}; `trajsmith env probe` says what works here")

    def _limits(self) -> dict[str, int | None]:
        return {
            "memory_bytes": self.settings.memory_mb << 20,
            "uid": choose_user(next(_workers)),
            "processes": self.settings.processes + _DYING,
            "cpu_seconds": self.settings.session_seconds if self.own_process else None,
        }

    async def _loaded(self, connection: WorkerConnection, door: tuple[int, ZygoteProcess] | None) -> Reply:
        """Send the program and wait for its answer; from now on the worker may be anybody's.

        Raises:
            InputError: Its files are wrong.
            EnvironmentFault: Loading it ended the worker.
        """
        if self.own_process:
            process = await get_zygote(self._zygote_options)
            listener = None if door is None else door[0]
            self._forker = PlayForker(connection, process, listener, self.settings.wall_seconds)
        limits = self.settings.model_dump(include={"call_seconds", "load_seconds", "result_bytes", "state_bytes"})
        limits["shift"] = self._shift
        try:
            reply = await connection.send(WorkerOp.LOAD, 0, self._kind, self._payload, limits)
        except WorkerLost as lost:
            self.kills += lost.kind == "crash"
            kind = "start" if lost.kind == "crash" else lost.kind
            raise EnvironmentFault(kind, self.name, f"loading it ended the worker: {lost}") from lost
        if reply.status != ReplyStatus.OK:
            connection.close()
            unwrap_reply(reply, self.name)
        return reply

    async def _fork(self) -> WorkerConnection:
        """Return a fresh process for a play.

        Raises:
            WorkerLost: The worker that it should come from is gone.
        """
        assert self._forker is not None
        if len(self._processes) >= self.settings.processes:
            limit = self.settings.processes
            raise RunError(f"{self.name}: more than {limit} plays with a process at a time: raise sandbox.processes")
        try:
            forked, asked = await self._forker.fork()
        except ForkRefused as error:
            raise EnvironmentFault("limit", self.name, str(error)) from error
        self._check_pidfd(forked)
        connection = self._connect(forked, None, asked)
        connection.worker = self._main
        self._forker.watch(connection)
        self._processes.add(connection)
        connection.on_end(lambda: self._processes.discard(connection))
        return connection


def unwrap_reply(reply: Reply, environment: str, tool: str | None = None) -> Any:
    """The content of a reply that succeeded.

    Raises:
        InputError: The environment's files are wrong.
        EnvironmentFault: The environment broke.
    """
    status, result = reply.status, reply.value
    if status == ReplyStatus.FAULT:
        kind, message, where = result
        if kind in _LIMITS:
            _log.info("%s.%s: limit of the sandbox reached (%s): %s", environment, where or tool, kind, message)
        raise EnvironmentFault(kind, environment, message, where or tool)
    if status == ReplyStatus.INPUT:
        raise InputError(str(result) if environment in str(result) else f"{environment}: {result}")
    return result
