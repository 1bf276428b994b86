"""What a user may choose about the sandbox; every default is the measured one of docs/sandbox.md."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, NonNegativeInt, PositiveFloat, PositiveInt

from trajsmith.records import FrozenModel

Mode = Literal["default", "strict", "unsafe"]
MODES = ("default", "strict", "unsafe")


def _read_former_value(value: Any) -> Any:
    """Read `auto` of older runs, in which some plays shared a process, as `process`."""
    return "process" if value == "auto" else value


class SandboxSettings(FrozenModel):
    """Settings of the sandbox for foreign code of an environment."""

    mode: Mode = "default"
    """`default`: locked-down processes, one for every play. `strict`: the same in namespaces of their own, on an empty
    root. `unsafe`: processes without any lock, for development; it is written into the run and the dataset card."""
    call_seconds: PositiveFloat = 1.0
    """CPU seconds that a call may take."""
    load_seconds: PositiveFloat = 10.0
    """CPU seconds that loading the environment, or making its initial states, may take."""
    wall_seconds: PositiveFloat = 30.0
    """Seconds within which a call must be answered, or its process is killed, whatever it says of its progress;
    loading and initial states have `load_seconds` more."""
    session_seconds: PositiveInt = 3600
    """CPU seconds of the process of a play, in all its calls and between them."""
    memory_mb: PositiveInt = 768
    """Address space of a process."""
    total_memory_mb: NonNegativeInt = 0
    """Memory that all processes of one environment may take together; 0 stands for half of the machine's."""
    result_bytes: PositiveInt = 1 << 20
    """Largest result of a call, as JSON."""
    state_bytes: PositiveInt = 32 << 20
    """Largest change of the state that a look at it may bring, as JSON."""
    imports: tuple[str, ...] = ()
    """Installed modules that the environment needs beside the standard library: imported before the lock."""
    plays: Annotated[Literal["process", "shared"], BeforeValidator(_read_former_value)] = "process"
    """Where plays run: `process` gives each a process of its own. `shared` puts all plays of the environment into one,
    where calls are cheaper and code can reach other plays: only for code that you trust. Mode `strict` never shares."""
    kills: PositiveInt = 20
    """Workers of one environment that may be killed or die before it is given up for this run."""
    allow_missing: tuple[Literal["landlock"], ...] = ()
    """Kernel features that may be missing in mode `default`; recorded with the run."""
    processes: PositiveInt = 1024
    """Plays of one environment that may have a process at a time; one more is an error that says so."""
