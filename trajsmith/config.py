"""The configuration of a run: it only composes the settings that the packages own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt

from environments.sources import EnvironmentSettings, expand
from grounding import GroundSettings
from querygen import WriteSettings
from querygen.vary import VarySettings, names
from toolgraph import GraphSettings, SampleSettings
from trajectory import Frozen, InputError
from trajsmith.quotas import AcceptSettings
from trajsmith.settings import load_settings
from usersim import PlaySettings
from verify.duplicates import DuplicateSettings


class EngineSettings(Frozen):
    """How the stages are run."""

    kind: Literal["local"] = "local"
    """asyncio on this machine."""
    concurrency: PositiveInt = 8
    """Records in work at a time."""


class ExportSettings(Frozen):
    """What becomes of accepted trajectories."""

    license: str = "apache-2.0"
    """Licence in the dataset card."""
    rows_per_shard: PositiveInt = 2000
    gallery: PositiveInt = 120
    """Trajectories shown in the report."""


class RunConfig(Frozen):
    """Everything that a run needs; saved in the run directory as it was resolved."""

    name: str
    seed: int = 0
    """Two runs with one seed give the same records, byte for byte."""
    run: Path = Path("runs/run")
    """Run directory."""
    environments: tuple[EnvironmentSettings, ...] = Field(min_length=1)
    graph: GraphSettings = GraphSettings()
    sample: SampleSettings = SampleSettings()
    ground: GroundSettings = GroundSettings()
    write: WriteSettings = WriteSettings()
    vary: VarySettings = VarySettings()
    play: PlaySettings = PlaySettings()
    duplicates: DuplicateSettings | None = None
    """When two trajectories are too much alike; without it, all are kept."""
    decontaminate: tuple[Path, ...] = ()
    """Files of benchmarks; rows that stand in them are dropped."""
    accept: AcceptSettings | None = None
    """How many rows the dataset has, and of which kinds; without it, all that were accepted."""
    export: ExportSettings = ExportSettings()
    engine: EngineSettings = EngineSettings()


def load_config(path: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read, override, validate; entries that stand for several (`library: "*"`, a checkout) are spelled out.

    Raises:
        InputError: One line with file, line and what to do.
    """
    config = load_settings(path, RunConfig, overrides)
    entries = tuple(one for entry in config.environments for one in expand(entry))
    _check_accept(config)
    return config.model_copy(update={"environments": entries})


def _check_accept(config: RunConfig) -> None:
    shares = config.accept.by.get("variant", {}) if config.accept else {}
    for name in shares if isinstance(shares, dict) else ():
        if name != "base" and name not in names():
            raise InputError(f"accept.by.variant: no variant {name!r}; there are base, {', '.join(names())}")
        if name != "base" and not config.vary.on:
            raise InputError(f"accept.by.variant wants {name}, but no variants are made: set vary.rates.{name}")
