"""Trainers of the arena by name: rows of a run and a model become another model. A trainer is an extension point."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import Field

from trajsmith.records import FrozenModel, InputError, JsonObject, Registry, RunError, to_one_line
from trajsmith.train_sft import DpoConfig, SftConfig
from trajsmith.train_sft.checkpoint import find_newest_checkpoint
from trajsmith.train_sft.libraries import require_train


@dataclass(frozen=True)
class TrainingJob:
    """One training of one arm."""

    model: str
    """Model to start from: folder, Hub name, or whatever the trainer before returned."""
    run: Path
    """Run directory with the rows, in the formats that the trainer asks for."""
    out: Path
    """Folder for the finished model; what an interrupted training left is in it."""
    settings: JsonObject
    """`trainer.settings` of the arena's configuration."""


class Trainer(Protocol):
    """A way to train a model on the rows of a run."""

    def list_formats(self, settings: JsonObject) -> tuple[str, ...]:
        """Return the formats of `trajsmith export` that it reads, beside the dataset that every run has."""

    def check(self, settings: JsonObject) -> None:
        """Check settings and installed packages before any work.

        Raises:
            InputError: Something is wrong or missing.
        """

    def train(self, job: TrainingJob) -> str:
        """Train, or go on with an interrupted training, and return the model: a folder, or a name that a server knows.

        Raises:
            InputError: Rows, model or settings cannot be used.
            RunError: The training failed.
        """


TRAINERS: Registry[Trainer] = Registry("trainers", dict.fromkeys(("command", "dpo", "sft"), __name__))


class SftTrainer:
    """Fine-tune as `trajsmith sft` does; the settings are its own, without `model`, `dataset` and `out`."""

    def list_formats(self, settings: JsonObject) -> tuple[str, ...]:
        return ()

    def check(self, settings: JsonObject) -> None:
        require_train("sft")
        self._configure(TrainingJob("model", Path("run"), Path("out"), settings))

    def train(self, job: TrainingJob) -> str:
        from trajsmith.train_sft.training import train

        config = self._configure(job)
        train(config, resume=find_newest_checkpoint(job.out) is not None)
        return str(job.out)

    def _configure(self, job: TrainingJob) -> SftConfig:
        """Build the configuration; `datasets` of the settings are mixed with the new rows, against forgetting."""
        rows = {"dataset": str(job.run)}
        if older := job.settings.get("datasets"):
            rows = {"datasets": [*older, rows]}  # type: ignore[dict-item]
        return SftConfig.model_validate({**job.settings, **rows, "model": job.model, "out": job.out})


class DpoTrainer:
    """Train on preference pairs as `trajsmith dpo` does; the settings are its own."""

    def list_formats(self, settings: JsonObject) -> tuple[str, ...]:
        return ("dpo",)

    def check(self, settings: JsonObject) -> None:
        require_train("dpo")
        self._configure(TrainingJob("model", Path("run"), Path("out"), settings))

    def train(self, job: TrainingJob) -> str:
        from trajsmith.train_sft.preference import train

        train(self._configure(job), resume=find_newest_checkpoint(job.out) is not None)
        return str(job.out)

    def _configure(self, job: TrainingJob) -> DpoConfig:
        own = {"dataset": str(job.run), "model": job.model, "out": job.out}
        return DpoConfig.model_validate({**job.settings, **own})


class CommandSettings(FrozenModel):
    """Settings of a training by another program."""

    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments; {model}, {run}, {dataset} and {out} are filled in. No shell reads it."""
    formats: tuple[str, ...] = ()
    """Formats that the run exports for it."""


class CommandTrainer:
    """Train by a command of your own, say of another framework; it leaves the model in {out} and ends with 0."""

    def list_formats(self, settings: JsonObject) -> tuple[str, ...]:
        return CommandSettings.model_validate(settings).formats

    def check(self, settings: JsonObject) -> None:
        CommandSettings.model_validate(settings)

    def train(self, job: TrainingJob) -> str:
        fields = {"model": job.model, "run": job.run, "dataset": job.run / "dataset", "out": job.out}
        words = CommandSettings.model_validate(job.settings).command
        try:
            command = [word.format(**fields) for word in words]
        except (KeyError, IndexError, ValueError) as error:
            raise InputError(
                f"trainer.settings.command: {to_one_line(error)}: only {{model}}, {{run}}, {{dataset}} and {{out}} are "
                "filled in"
            ) from error
        job.out.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run(command, check=False)
        except OSError as error:
            raise InputError(f"trainer.settings.command: {command[0]}: {error.strerror}") from error
        if done.returncode:
            raise RunError(
                f"the training command ended with {done.returncode}; mend that and give the same command again"
            )
        return str(job.out)


for _name, _trainer in (("sft", SftTrainer()), ("dpo", DpoTrainer()), ("command", CommandTrainer())):
    TRAINERS.register(_name)(_trainer)
