"""Configuration of the arena."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PositiveInt

from trajsmith.models import ModelSettings
from trajsmith.pipeline.arena_trainers import TRAINERS
from trajsmith.pipeline.evaluation import EvalConfig
from trajsmith.pipeline.quotas import AcceptSettings
from trajsmith.records import FrozenModel, JsonObject, PlainName, Seed, SourcePath

SERVED = "evaluated"
"""Name of the evaluated model among the models of an evaluation."""
SET_BY_ARENA = ("model", "run", "benchmark", "split", "limit", "out", "transcripts")
"""Settings of an evaluation that the arena itself makes."""


class TrainerSettings(FrozenModel):
    """Trainer of all rounds, and its settings."""

    kind: Annotated[str, AfterValidator(TRAINERS.check_name)] = "sft"
    """`sft`, `dpo`, `command`, or a trainer of a plug-in."""
    settings: JsonObject = {}
    """Its settings: of `sft` and `dpo` those of their commands, without model, dataset and out."""


class StopSettings(FrozenModel):
    """When the arena ends before its last round."""

    least_gain: float = Field(0.0, ge=-1, le=1)
    """Share by which the weak groups must gain in a round: 0.02 is two points. A smaller gain, or just this, stops."""
    patience: PositiveInt = 1
    """Rounds in a row without that gain that stop."""


class ArenaConfig(FrozenModel):
    """Everything that `trajsmith arena` needs."""

    name: PlainName
    seed: Seed = 0
    """Every set of held-out tasks and every synthesis gets a seed of its own, derived from this one."""
    out: Path
    """Folder of all rounds."""
    model: str
    """Model to begin with: folder or Hub name, or with `served` the name that the server knows."""
    data: SourcePath
    """Configuration of a run: environments, language and kinds of tasks, for held-out tasks and for training."""
    held_out: AcceptSettings = AcceptSettings(count=300, by={"environment": "even"})
    """Tasks of each evaluation, and their strata."""
    rows: PositiveInt = 400
    """Training rows of a round, in each arm."""
    rounds: PositiveInt = 2
    """Rounds at most."""
    control: bool = True
    """Train a second model on as many rows drawn without the plan, to compare with."""
    environments: SourcePath | None = None
    """Configuration of `trajsmith env gen`, whose models make environments like those that are weak as a whole; None
    makes none."""
    trainer: TrainerSettings = TrainerSettings()
    evaluation: JsonObject = {}
    """Settings of `trajsmith eval`, such as batch, max_new_tokens and settings."""
    served: ModelSettings | None = None
    """How evaluated models are reached; its `model` is replaced by what the trainer returned. None loads them here."""
    stop: StopSettings = StopSettings()

    def build_evaluation(self, model: str, run: Path, out: Path) -> EvalConfig:
        """Return the configuration of one evaluation.

        Raises:
            ValidationError: A setting of `evaluation` is unknown or wrong, or the arena makes it itself.
        """
        settings = {"run": run, "out": out, "split": "all", "transcripts": True, "model": model}
        if self.served is not None:
            served = {**self.served.model_dump(), "model": model}
            settings |= {"model": SERVED, "models": {**self.evaluation.get("models", {}), SERVED: served}}
        return EvalConfig.model_validate({**self.evaluation, **settings})
