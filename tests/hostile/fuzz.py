"""Fuzz one parser by coverage, with Atheris (`pip install atheris`): python tests/hostile/fuzz.py NAME [CPU_SECONDS].

Inputs that reach new code stay in `.fuzz/NAME/`; an input that is a fault lies there as `crash-...`, `timeout-...` or
`oom-...`, and the exit code is not 0. `make fuzz` gives every parser its turn.
"""

import os
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MEMORY_MB = 3000
SLOW_SECONDS = 10


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
    atheris.Setup([sys.argv[0], *options, str(folder)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
