"""What a user may choose about the sandbox; every default is the measured one of docs/sandbox.md."""

from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from trajsmith.records import FrozenModel

Mode = Literal["default", "strict", "unsafe"]
MODES = ("default", "strict", "unsafe")


class SandboxSettings(FrozenModel):
    """Settings of the sandbox for foreign code of an environment."""

    mode: Mode = "default"
    """`default`: locked-down workers, plays of one environment share one where its code allows it. `strict`: a process
    for every play, in namespaces of its own, on an empty root. `unsafe`: a process without any lock, for development
    only; it is written into the run and the dataset card."""
    call_seconds: PositiveFloat = 1.0
    """CPU seconds that a call may take."""
    load_seconds: PositiveFloat = 10.0
    """CPU seconds that loading the environment, or making its initial states, may take."""
    wall_seconds: PositiveFloat = 30.0
    """Seconds without any progress after which a worker is killed."""
    memory_mb: PositiveInt = 768
    """Address space of a worker."""
    result_bytes: PositiveInt = 1 << 20
    """Largest result of a call, as JSON."""
    state_bytes: PositiveInt = 32 << 20
    """Largest change of the state that a look at it may bring, as JSON."""
    imports: tuple[str, ...] = ()
    """Installed modules that the environment needs beside the standard library: imported before the lock."""
    plays: Literal["auto", "shared", "process"] = "auto"
    """Whether plays may share a worker: `auto` looks at the code, and gives each play a process where in doubt."""
    kills: PositiveInt = 20
    """Workers of one environment that may be killed or die before it is given up for this run."""
    allow_missing: tuple[Literal["landlock"], ...] = ()
    """Kernel features that may be missing in mode `default`; recorded with the run."""
    processes: PositiveInt = 1024
    """Plays of one environment that may have a process at a time; one more is an error that says so."""
