"""Fuzz one parser by coverage, with Atheris (`pip install atheris`): python tests/hostile/fuzz.py NAME [CPU_SECONDS].

Inputs that reach new code stay in `.fuzz/NAME/`; an input that is a fault lies there as `crash-...`, `timeout-...` or
`oom-...`, and the exit code is not 0. `make fuzz` gives every parser its turn.
"""

import functools
import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MEMORY_MB = 3000
SLOW_SECONDS = 10
CLEARED_EVERY = 20_000
"""Inputs after which caches are emptied: they are bounded by words, and a fuzzer invents new ones without end."""


def main() -> None:
    """Run the fuzzer until its time is over, or a fault is found."""
    if sys.argv[1] == "--list":
        sys.path.insert(0, str(HERE))
        from fuzz_targets import TARGETS as names

        print(*names)
        return
    import atheris

    name, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "600"
    sys.path.insert(0, str(HERE))
    with atheris.instrument_imports(include=["trajsmith"]):
        from fuzz_targets import SEEDS, TARGETS

        for seed in SEEDS[name]:
            TARGETS[name](seed)  # imports what it needs, while imports are instrumented
        TARGETS[name](b"")
    folder = ROOT / ".fuzz" / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[name]):
        (folder / f"seed-{number}").write_bytes(seed)
    options = [
        f"-rss_limit_mb={MEMORY_MB}", f"-timeout={SLOW_SECONDS}", "-max_len=8192",
        f"-artifact_prefix={folder}/", "-print_final_stats=1", "-verbosity=0",
    ]  # fmt: skip

    def end(number: int, frame: object) -> None:
        """End libFuzzer, whose own clock is the wall's, with its statistics. The timer may run fast."""
        left = float(seconds) - time.process_time()
        if left > 0:
            signal.setitimer(signal.ITIMER_PROF, max(left, 0.1))
        else:
            os.kill(os.getpid(), signal.SIGUSR1)

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, float(seconds))
    atheris.Setup([sys.argv[0], *options, str(folder)], clear_caches_between(TARGETS[name]))
    atheris.Fuzz()


def clear_caches_between(target: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Return a target that empties all caches of functions after every so many inputs."""
    inputs = 0

    def run(data: bytes) -> None:
        nonlocal inputs
        inputs += 1
        if inputs % CLEARED_EVERY == 0:
            for cache in [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]:
                cache.cache_clear()
        target(data)

    return run


if __name__ == "__main__":
    main()
