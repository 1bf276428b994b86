"""Virtual clock and randomness for foreign code: both depend on nothing but the call.

Generated environments read the wall clock, draw random numbers and make uuids. Replaying a log of calls is exact only
if they get the same ones again, in any process, whatever other sessions did in between. So a worker installs a
`VirtualWorld` before it loads foreign code and sets it before every call; each of these sources is then a pure
function of a key, a number and how often the call has asked.

Virtual:
    * The wall clock, through time-machine: `datetime.now`, `utcnow`, `today`, `date.today`, `time.time`, `time_ns`,
      `gmtime`, `localtime`, `strftime`, `clock_gettime(CLOCK_REALTIME)`; here also `time.ctime`, `asctime`, and
      `perf_counter`, because tools report how long they took. Each reading is a microsecond after the last one, so
      loops that wait for a moment end, and two timestamps of one call differ. The local zone is UTC.
    * `time.sleep` moves the virtual clock on and returns at once.
    * `random` (the shared generator and `random.Random()` without a seed), `os.urandom`, `os.getrandom`, `secrets`,
      `random.SystemRandom`, `uuid.uuid1`, `uuid.uuid4`; numpy's shared generator if numpy is loaded before `install`.

A play that seeds `random` itself while its state is loaded keeps that seed (see `own_seed`): each of its calls draws
from the seed and its own number, and from nothing else.

Real:
    * `time.monotonic`, `process_time`, `thread_time` and the other clocks of `clock_gettime`: event loops, waits and
      CPU limits measure with them. `signal.setitimer` is not touched.
    * Addresses: `id(x)` and the default `hash(x)` of an object.
    * The hash seed of strings, which whoever starts the process fixes (`PYTHONHASHSEED=0`).
    * Names that other modules imported from these modules (`from time import sleep`) before `install`; the names
      under the first point follow even there.

This is for exactness and is no boundary: foreign code that wants to leave the virtual world can.
"""

import hashlib
import importlib
import os
import random
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinMethodType, MethodType, ModuleType
from typing import Any

EPOCH_NS = 1_748_854_800 * 10**9
"""2025-06-02T09:00:00Z, a Monday: the time of call 0."""
CALL_NS = 60 * 10**9
"""Between two calls of a play: a minute."""
READ_NS = 1000
"""Between two readings within a call: a microsecond, the smallest step that a datetime shows."""
SHIFT_NS = (400 * 86400 + 26_473) * 10**9
"""Between two shifts: 400 days, 7 hours, 21 minutes and 13 seconds. Year, month, weekday and hour all differ."""
NODE = 0x0200_5E10_0001
"""Hardware address in `uuid1`: one that no network card has (locally administered)."""

SourceNames = set[str]
"""Named here, because `set` means something else within the class."""


class VirtualSources:
    """Virtual clock and randomness of the foreign code in this process. One per process."""

    def __init__(self) -> None:
        self._key, self._number, self._shift = b"", 0, 0
        self._now = EPOCH_NS
        self._seed: bytes | None = None
        self._own: int | None = None
        self._drawn = 0
        self._clock_read = self._random_drawn = self._uuid_made = self._entropy_drawn = False
        self._shared = _SharedRandom(0)
        self._shared.fresh_seed = self._shared_seed
        self._undo: list[Callable[[], object]] = []

    def install(self) -> None:
        """Put the virtual sources in place of the real ones, at key `b""` and number 0.

        Call it before foreign code is loaded, and before the lock-down. Keep `time_machine` in `sys.modules`.

        Raises:
            RuntimeError: A virtual world is installed in this process already.
        """
        if isinstance(random._inst, _SharedRandom):
            raise RuntimeError("this process has a virtual world already: install one per process")
        self._install_clock()
        self._install_random()
        self._install_entropy()
        if "numpy" in sys.modules:
            importlib.import_module("numpy.random")  # numpy imports it when it is first used: in the middle of a call
        self.set(b"", 0)

    def remove(self) -> None:
        """Put the real sources back. For tests; workers end with their world."""
        while self._undo:
            self._undo.pop()()

    def set(self, key: bytes, number: int, shift: int = 0, own: int | None = None) -> None:
        """Begin a call: from here on clock and chance follow from these three alone.

        Args:
            key: Whose call it is, such as the identity of a play.
            number: Which call of the play; each is a minute later than the one before.
            shift: Another clock and other entropy for the same call, to find code that depends on them. A small number.
            own: What `own_seed` gave when the play was loaded; the shared generator then follows from it and `number`.
        """
        self._key, self._number, self._shift = key, number, shift
        self._now = EPOCH_NS + number * CALL_NS + shift * SHIFT_NS
        self._seed, self._own = None, own
        self._clock_read = self._random_drawn = self._uuid_made = self._entropy_drawn = False
        self._shared.stale, self._shared.seeded = True, False
        uuid._last_timestamp = None  # type: ignore[attr-defined]
        numpy = sys.modules.get("numpy.random")
        if numpy is not None:
            numpy.seed(int.from_bytes(self._seeded()[:4], "little"))

    def own_seed(self) -> int | None:
        """A number that stands for the seed that code has given the shared generator since the last `set`, if any."""
        return self._shared.getrandbits(64) if self._shared.seeded else None

    def used_sources(self) -> SourceNames:
        """Return the sources used since the last `set`: some of "clock", "random", "uuid" and "entropy".

        Best effort. A seeded generator is not "random": it gives the same in any world. `uuid1` is "uuid" and
        "clock". Of numpy's shared generator a draw is seen unless it was a multiple of 624 words. Code that drew from
        the sources before `install` put them in place goes unseen.
        """
        seen = {
            "clock": self._clock_read,
            "random": self._random_drawn or _numpy_drawn(),
            "uuid": self._uuid_made,
            "entropy": self._entropy_drawn,
        }
        return {name for name, happened in seen.items() if happened}

    def _install_clock(self) -> None:
        with _without_pytest():
            import time_machine
        travel = time_machine.travel(0, tick=False)
        travel.start().time_ns = self._read_clock  # type: ignore[method-assign] # 20 times cheaper than move_to
        self._undo.append(travel.stop)
        self._undo.append(_zone("UTC0"))
        real_ctime, real_asctime = time.ctime, time.asctime

        def ctime(seconds: float | None = None, /) -> str:
            return real_ctime(time.time() if seconds is None else seconds)

        def asctime(t: Any = None, /) -> str:
            return real_asctime(time.localtime() if t is None else t)

        self._replace(time, "ctime", ctime)
        self._replace(time, "asctime", asctime)
        self._replace(time, "sleep", self._sleep)
        self._replace(time, "perf_counter", self._perf_counter)
        self._replace(time, "perf_counter_ns", self._perf_counter_ns)

    def _install_random(self) -> None:
        real, shared, real_seed = random._inst, self._shared, random.Random.seed

        def seed(generator: random.Random, a: Any = None, version: int = 2) -> None:
            real_seed(generator, self._random_seed() if a is None else a, version)

        for name, value in list(vars(random).items()):
            if isinstance(value, MethodType | BuiltinMethodType) and value.__self__ is real:
                self._replace(random, name, getattr(shared, name))
        self._replace(random, "_inst", shared)
        self._replace(random.Random, "seed", seed)

    def _install_entropy(self) -> None:
        real_uuid1 = uuid.uuid1

        def uuid1(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
            self._uuid_made = True
            return real_uuid1(node, int.from_bytes(self._stream(2)) >> 2 if clock_seq is None else clock_seq)

        def uuid4() -> uuid.UUID:
            self._uuid_made = True
            return uuid.UUID(bytes=self._stream(16), version=4)

        def getrandom(size: int, flags: int = 0) -> bytes:
            return self._entropy(size)

        self._replace(os, "urandom", self._entropy)
        self._replace(os, "getrandom", getrandom)
        self._replace(random, "_urandom", self._entropy)
        self._replace(uuid, "_node", NODE)
        self._replace(uuid, "uuid1", uuid1)
        self._replace(uuid, "uuid4", uuid4)

    def _replace(self, owner: ModuleType | type, name: str, value: object) -> None:
        real = vars(owner)[name]
        self._undo.append(lambda: setattr(owner, name, real))
        setattr(owner, name, value)

    def _read_clock(self) -> int:
        self._clock_read = True
        self._now += READ_NS
        return self._now

    def _perf_counter_ns(self) -> int:
        return self._read_clock() - EPOCH_NS

    def _perf_counter(self) -> float:
        return (self._read_clock() - EPOCH_NS) / 10**9

    def _sleep(self, seconds: float, /) -> None:
        if seconds != seconds:
            raise ValueError("Invalid value NaN (not a number)")
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        if seconds > 1e9:
            raise OverflowError("timestamp too large to convert to C _PyTime_t")
        self._now += int(seconds * 10**9)

    def _seeded(self) -> bytes:
        if self._seed is None:
            which = self._number.to_bytes(16, "little", signed=True) + self._shift.to_bytes(16, "little", signed=True)
            self._seed = hashlib.blake2b(which + self._key, digest_size=32, person=b"virtual world").digest()
            self._drawn = 0
        return self._seed

    def _stream(self, size: int) -> bytes:
        start = self._seeded()
        self._drawn += 1
        return hashlib.shake_128(start + self._drawn.to_bytes(8, "little")).digest(size)

    def _entropy(self, size: int, /) -> bytes:
        if size < 0:
            raise ValueError("negative argument not allowed")
        self._entropy_drawn = True
        return self._stream(size)

    def _shared_seed(self) -> int:
        if self._own is None:
            return self._random_seed()
        which = self._number.to_bytes(16, "little", signed=True) + self._own.to_bytes(8, "little")
        return int.from_bytes(hashlib.blake2b(which, digest_size=16, person=b"seeded play").digest())

    def _random_seed(self) -> int:
        self._random_drawn = True
        return int.from_bytes(self._stream(16))


class _SharedRandom(random.Random):
    """The generator behind the functions of `random`; seeded when a call first draws, as that costs 6 us."""

    stale = False
    """True from `VirtualWorld.set` to the first use."""
    seeded = False
    """True if code has seeded it, or set its state, since `VirtualWorld.set`."""
    fresh_seed: Callable[[], int]

    def random(self) -> float:
        if self.stale:
            self._freshen()
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        if self.stale:
            self._freshen()
        return super().getrandbits(k)

    def getstate(self) -> tuple[Any, ...]:
        if self.stale:
            self._freshen()
        return super().getstate()

    def setstate(self, state: tuple[Any, ...]) -> None:
        self.stale, self.seeded = False, True
        super().setstate(state)

    def seed(self, a: Any = None, version: int = 2) -> None:
        self.stale, self.seeded = False, a is not None
        super().seed(a, version)

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        if self.stale:  # the second of a pair waits in `gauss_next`, which belongs to the call before
            self._freshen()
        return super().gauss(mu, sigma)

    def __reduce__(self) -> tuple[Any, ...]:
        return random.Random, (), self.getstate()

    def _freshen(self) -> None:
        self.seed(self.fresh_seed())
        self.seeded = False


def _numpy_drawn() -> bool:
    numpy = sys.modules.get("numpy.random")
    return numpy is not None and numpy.get_state(legacy=False)["state"]["pos"] != 624


def _zone(name: str) -> Callable[[], None]:
    """Make it the local zone; returns what puts the former one back."""
    former = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()

    def back() -> None:
        if former is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = former
        time.tzset()

    return back


@contextmanager
def _without_pytest() -> Iterator[None]:
    """Importing time-machine imports pytest where that is installed: 100 ms and megabytes of no use to a worker."""
    if "pytest" in sys.modules:
        yield
        return
    sys.modules["pytest"] = None  # type: ignore[assignment] # this is how an import is made to fail
    try:
        yield
    finally:
        del sys.modules["pytest"]
