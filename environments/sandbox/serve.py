"""The loop of a worker: requests in, replies out. It trusts nothing that foreign code returns or raises."""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from trajsmith.environments.foreign import LOADED
from trajsmith.environments.programs import EnvironmentEpisode, EnvironmentProgram, StateChange, prepare
from trajsmith.environments.sandbox.codec import (
    LONGEST_NAME,
    MOST_TEXTS,
    SPEC_BYTES,
    WORKER_FAULTS,
    check_json,
    encode_content,
)
from trajsmith.environments.sandbox.digest import collect_module_entries, find_differences
from trajsmith.environments.sandbox.serialization import (
    CHANNEL,
    PROGRESS,
    RawReply,
    ReplyStatus,
    Request,
    WorkerOp,
    make_sender,
    read_frames,
)
from trajsmith.environments.sandbox.virtual import VirtualSources
from trajsmith.environments.session import InitialAction
from trajsmith.records import EnvironmentFault, InputError

_REFIRE = 0.02
"""CPU seconds after which a timeout that was swallowed is raised again."""
_PATIENCE = 50
"""Timeouts that one request may swallow before the worker ends itself."""
_REFUSALS = {
    None: ReplyStatus.OK,
    "refused": ReplyStatus.REFUSED,
    "invalid_arguments": ReplyStatus.INVALID_ARGUMENTS,
    "unknown_tool": ReplyStatus.UNKNOWN_TOOL,
}
_NAME_OF_TYPE = type.__dict__["__name__"].__get__
"""The name of a class, even where its metaclass says otherwise."""
_TRACEBACK = BaseException.__dict__["__traceback__"].__get__
"""The traceback of an exception, even where its class says otherwise."""
_LONGEST_MESSAGE = 500
_ENCODED = frozenset({WorkerOp.CHANGES, WorkerOp.PREPARE, WorkerOp.END, WorkerOp.LOOK})
"""Requests whose content is a MessagePack value; others give JSON, or nothing."""
_FOREIGN = frozenset({WorkerOp.CALL, WorkerOp.START, WorkerOp.CHANGES, WorkerOp.STATES, WorkerOp.PREPARE})
"""Requests that run code of the environment; the others run none, and look at what the audit hook forbids."""
_LOOK_EVERY = 16
"""After every so many plays, a look at what they may have left behind for each other; the first play is one."""


class CallTimeout(BaseException):
    """A request took more CPU time than it may; raised inside it by the timer."""


class Timer:
    """CPU-time limit of a request. Wall time would fail calls whenever the machine is busy."""

    def __init__(self) -> None:
        self._armed = False
        self._fired = 0
        self._set = signal.setitimer

    def install(self) -> None:
        """Take over the profiling timer; other timers and their signals have no effect from now on."""
        signal.signal(signal.SIGPROF, self._fire)
        for number in (signal.SIGALRM, signal.SIGVTALRM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)

    def start(self, seconds: float) -> None:
        self._armed, self._fired = True, 0
        self._set(signal.ITIMER_PROF, seconds, _REFIRE)

    def stop(self) -> None:
        """End the limit. The timer itself goes on, which costs no system call: what it does next has no effect."""
        self._armed = False

    def disarm(self) -> None:
        """End the limit and the timer, whose signal would interrupt the fork of a play."""
        self._armed = False
        self._set(signal.ITIMER_PROF, 0)

    def _fire(self, number: int, frame: Any) -> None:
        if self._armed:
            self._fired += 1
            if self._fired > _PATIENCE:
                os._exit(70)
            raise CallTimeout


@dataclass(frozen=True)
class RequestLimits:
    """Time and size limits of one request."""

    call_seconds: float
    load_seconds: float
    result_bytes: int
    state_bytes: int
    shift: int
    """How far the virtual clock and chance are from the usual ones; 0 but for the doctor."""


class WorkerServer:
    """Serves a program with its episodes over the channel."""

    def __init__(
        self,
        program: EnvironmentProgram,
        limits: RequestLimits,
        timer: Timer,
        world: VirtualSources,
        wake: Callable[[bool], None],
    ) -> None:
        self.program = program
        self._limits = limits
        self._timer = timer
        self._world = world
        self._wake = wake
        self._bases: dict[str, bytes] = {}
        self._episodes: dict[int, tuple[EnvironmentEpisode, bytes, int | None]] = {}
        """With the key of each, and the seed that it gave `random` while it was loaded."""
        self._unreported: dict[int, list[StateChange]] = {}
        """Changes that nobody asked for yet: each call of a tool that may write is looked at, to tell if it did."""
        self._reading = frozenset(tool.name for tool in program.spec.tools if not tool.declares_write)
        self._modules = collect_module_entries(LOADED)
        self._shift = limits.shift
        self._ended = 0
        self._decode, self._encode = msgspec.msgpack.Decoder().decode, msgspec.msgpack.Encoder().encode
        self._handlers: dict[int, Callable[..., Any]] = {
            WorkerOp.START: self._start,
            WorkerOp.CHANGES: self._changes,
            WorkerOp.END: self._end,
            WorkerOp.BASE: self._base,
            WorkerOp.DROP: self._drop,
            WorkerOp.STATES: self._states,
            WorkerOp.LOOK: self._look,
            WorkerOp.PREPARE: self._prepare,
        }

    def run(self, channel: int = CHANNEL, progress: memoryview | None = None) -> None:
        """Serve until the channel ends; with memory for the progress, where frames have many requests."""
        send, mark, answer, begun = make_sender(channel), PROGRESS.pack_into, self._answer, 0
        decode, encode = self._decode, self._encode
        for frame in read_frames(channel):
            replies: list[RawReply] = []
            for request in decode(frame):
                if progress is not None:
                    begun += 1
                    mark(progress, 0, begun, request[0])
                replies.append(answer(request))
            if progress is not None:
                mark(progress, 0, begun, 0)
            send(encode(replies))

    def _answer(self, request: Request) -> RawReply:
        """One reply of plain values, whatever happens inside. What errors say is foreign code as well."""
        timer, operation = self._timer, request[1]
        limit = self._limits.load_seconds if operation == WorkerOp.STATES else self._limits.call_seconds
        try:
            try:
                timer.start(limit)
                self._wake(operation in _FOREIGN)
                if operation == WorkerOp.CALL:
                    return self._call(*request)
                content = self._handlers[operation](*request[2:])
                return request[0], ReplyStatus.OK, encode_content(content) if operation in _ENCODED else content or b""
            except CallTimeout:
                return make_fault(request, "timeout", f"more than {limit:g} s of CPU time")
            except EnvironmentFault as fault:
                self._wake(False)
                where = _line_of(fault.__cause__)
                timer.start(self._limits.call_seconds)
                return make_fault(request, fault.kind, cut_text(fault.message) + where, fault.tool)
            except BaseException as error:  # noqa: BLE001 - foreign code may raise anything, SystemExit included
                if operation == WorkerOp.STATES and isinstance(
                    error, InputError
                ):  # elsewhere it is the tool's own doing
                    timer.start(self._limits.call_seconds)
                    return request[0], ReplyStatus.INPUT, encode_content(cut_text(str(error)))
                message = describe_exception(error, timer, self._limits.call_seconds)
                return make_fault(request, "crash", message)
            finally:
                timer.stop()
                self._wake(False)
        except BaseException:  # noqa: BLE001 - what an error says may raise anything
            return make_fault(request, "crash", "an exception that cannot be printed")

    def _call(self, rid: int, _op: int, play: int, tool: str, arguments: Any, actor: Any, step: int) -> RawReply:
        episode, key, seed = self._episodes[play]
        self._world.set(key, step, self._shift, seed)
        result = episode.call(tool, arguments, actor)
        content = orjson.dumps(result.content)
        if len(content) > self._limits.result_bytes:
            return make_fault([rid], "limit", f"a result of {len(content)} bytes of JSON")
        try:
            check_json(content, self._limits.result_bytes)
        except ValueError as error:
            return make_fault([rid], "limit", f"a result of {error}")
        if b"null" in content and _holds_nan(result.content):
            return make_fault([rid], "output_schema", "the result holds NaN or infinity, which is no JSON")
        if result.error is None and tool not in self._reading:
            changes = self._collect_changes(play)
            self._unreported[play] += changes
            return rid, ReplyStatus.WROTE if changes else ReplyStatus.OK, content
        return rid, _REFUSALS[result.error], content

    def _start(self, play: int, base: str, changes: list[StateChange]) -> None:
        key = base.encode()
        self._world.set(key, 0, self._shift)
        self._episodes[play] = self.program.start(self._bases[base], changes), key, self._world.own_seed()
        self._unreported[play] = []

    def _prepare(self, play: int, actions: list[InitialAction]) -> str | None:
        episode, key, seed = self._episodes[play]
        self._world.set(key, 0, self._shift, seed)
        refused = prepare(episode, actions)
        return None if refused is None else cut_text(refused)

    def _changes(self, play: int) -> list[StateChange]:
        changes = self._unreported[play] + self._collect_changes(play)
        self._unreported[play] = []
        self._check_size(changes)
        return changes

    def _collect_changes(self, play: int) -> list[StateChange]:
        """Return the changes of an episode since the last call of this method."""
        changes = self._episodes[play][0].changes()
        self._check_size(changes)
        return changes

    def _check_size(self, changes: list[StateChange]) -> None:
        size = sum(len(name) + len(key or "") + len(text or b"") for name, key, text in changes)
        if size > self._limits.state_bytes:
            raise EnvironmentFault("limit", self.program.spec.name, f"the state changed by {size} bytes of JSON")

    def _end(self, play: int) -> list[str]:
        """Forget an episode; now and then also report changes that episodes made to shared objects."""
        self._episodes.pop(play, None)
        self._unreported.pop(play, None)
        self._ended += 1
        return self._leaks() if self._ended % _LOOK_EVERY == 1 else []

    def _leaks(self) -> list[str]:
        now = collect_module_entries(LOADED)
        changed, self._modules = find_differences(self._modules, now), now
        return [cut_text(path) for path in changed[:MOST_TEXTS]]

    def _base(self, name: str, text: bytes) -> None:
        self._bases[name] = text

    def _drop(self, name: str) -> None:
        self._bases.pop(name, None)

    def _states(self, _play: int, seed: int) -> bytes:
        self._world.set(b"states", 0, self._shift)
        states = orjson.dumps(self.program.states(seed))
        limit = 2 * self._limits.state_bytes
        if len(states) > limit:
            raise EnvironmentFault("limit", self.program.spec.name, f"initial states of {len(states)} bytes of JSON")
        return states

    def _look(self, _play: int) -> list[list[str]]:
        return [self._leaks(), sorted(self._world.used_sources())]


def make_fault(request: Request, kind: object, message: str, tool: object = None) -> RawReply:
    """Return the reply that names a fault; foreign code may make faults of its own, with any kind and tool."""
    kind = kind if type(kind) is str and kind in WORKER_FAULTS else "crash"
    tool = tool[:LONGEST_NAME] if type(tool) is str else None
    return request[0], ReplyStatus.FAULT, encode_content([kind, cut_text(message, 2 * _LONGEST_MESSAGE), tool])


def describe_spec(program: EnvironmentProgram) -> bytes:
    """Return the content of the reply to LOAD: the spec as JSON, and the notes of the loader.

    Raises:
        EnvironmentFault: The spec is too large (kind `limit`).
    """
    spec = orjson.dumps(program.spec.model_dump(mode="json", exclude_none=True))
    content = encode_content([spec, [cut_text(note) for note in program.notes[:MOST_TEXTS]]])
    if len(content) > SPEC_BYTES:
        raise EnvironmentFault("limit", program.spec.name, f"a description of {len(content)} bytes")
    check_json(spec, SPEC_BYTES)
    return content


def describe_exception(error: BaseException, timer: Timer, seconds: float) -> str:
    """Describe an exception; formatting it runs foreign code too, so it has its own time limit."""
    try:
        try:
            timer.start(seconds)
            return cut_text(f"{_NAME_OF_TYPE(type(error))}: {error}")
        finally:
            timer.stop()
    except BaseException:  # noqa: BLE001 - its text may raise anything
        return "an exception that cannot be printed"


def _line_of(error: object) -> str:
    """Return " (file:line)" of the environment's own code that raised an exception, or "". Runs no foreign code."""
    named = (vars(sys.modules[name]).get("__file__") for name in LOADED if name in sys.modules)
    files = {file for file in named if type(file) is str}
    trace, location = _TRACEBACK(error) if isinstance(error, BaseException) else None, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file in files:
            location = f" ({file}:{trace.tb_lineno})"
        trace = trace.tb_next
    return location


def cut_text(text: str, longest: int = _LONGEST_MESSAGE) -> str:
    """Printable and short: a lone surrogate must not break the reply, nor a class that only looks like a text."""
    text = str.__str__(text)
    return " ".join(text[: 4 * longest].split())[:longest].encode("utf-8", "replace").decode()


def _holds_nan(value: Any) -> bool:
    """Return whether a float is not a number; only called where a null could have been one."""
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, float):
            if item != item or item in (float("inf"), float("-inf")):
                return True
        elif isinstance(item, dict):
            rest += dict.values(item)
        elif isinstance(item, list | tuple):
            rest += item
    return False


def hide_modules(names: tuple[str, ...]) -> None:
    """Forget modules that foreign code has no use for."""
    for name in names:
        sys.modules.pop(name, None)
        package, _, module = name.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(module, None)
