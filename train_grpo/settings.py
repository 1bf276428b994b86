"""The configuration of one reinforcement learning; loads without torch."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from trajsmith.models import BudgetSettings, ModelSettings, RoleSettings, RolesSettings
from trajsmith.models.settings import RoleEntry
from trajsmith.records import FrozenModel, JsonObject, SourcePath, ToolStyle
from trajsmith.verify.rewards import RewardName


class PassRateSettings(FrozenModel):
    """Band of pass rates in which tasks are trained on."""

    evaluation: Path | None = None
    """Folder that `trajsmith eval` wrote: the model that the training starts from, on tasks of its split `train`."""
    solver: str | None = None
    """In place of an evaluation: a solver that `trajsmith calibrate` let play the tasks of the run; `all` is the mean
    of all solvers."""
    low: float = Field(0.1, ge=0, le=1)
    high: float = Field(0.9, ge=0, le=1)
    measure: Literal["passed", "checks"] = "passed"
    """Share of episodes that passed, or mean share of checks, for models that pass hardly anything."""

    @model_validator(mode="after")
    def _low_before_high(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low: {self.low:g} is above high: {self.high:g}")
        if (self.evaluation is None) == (self.solver is None):
            raise ValueError("name either an evaluation or a solver")
        return self


class GrpoConfig(FrozenModel):
    """Everything that `trajsmith grpo` needs."""

    model: str
    """Folder or Hub name of the model to start from; best one that `trajsmith sft` made."""
    run: Path
    """Run directory that has the tasks; those of its split `train` are played."""
    out: Path
    """Folder of the finished model; checkpoints lie in its `checkpoints`."""
    reward: RewardName = "composite"
    """How an episode is rewarded; `trajsmith plugins --kind rewards` lists all."""
    limit: PositiveInt | None = None
    """At most this many tasks of each environment."""
    pass_rates: PassRateSettings | None = None
    """Play only tasks that the model does sometimes; None plays all."""
    tools: ToolStyle | None = None
    """How tools are shown: `full` schemas, or `compact`; None is as the model was trained before, else full."""
    max_steps: PositiveInt = 12
    """Messages of the model per turn."""
    history: PositiveInt | None = None
    """Assistant turns of history that the model sees when it acts and when it learns (AWM, history-aware training, 3).
    One message of each episode is learnt, drawn at random. None shows all, and all messages are learnt."""
    turn_weight: float = Field(0.0, ge=0, le=1)
    """Weight of what a user turn earned from it on, against the whole episode, in the reward. With more than 0 one turn
    of each episode is learnt, in one step the same of all episodes of a task."""
    strict_format: bool = False
    """End an episode as a format error also at a call of a tool that is not shown, or with arguments that its schema
    refuses (AWM, appendix A.4); without it only at a call that cannot be read."""
    user: RoleEntry = RoleSettings()
    """Who plays the user: scripted, or a name among `models`."""
    models: dict[str, ModelSettings] = {}
    """Models behind endpoints, for the user."""
    prompts: SourcePath | None = None
    """Folder with prompts that take the place of ours, as in a run."""
    budget: BudgetSettings = BudgetSettings()
    """What the user's model may cost."""
    episode_tokens: PositiveInt
    """Tokens of an episode after its first message from the user: the model's, the tools' and the user's together."""
    message_tokens: PositiveInt | None = None
    """Tokens of one message; None is no limit but that of the episode. A batch waits for its longest message."""
    lora: JsonObject | None = None
    """Settings of peft's `LoraConfig`; None trains all weights."""
    trainer: dict[str, Any] = Field(default_factory=dict)
    """Settings of TRL's `GRPOConfig`, by their names there; vLLM's (`use_vllm`, `vllm_mode`, ...) among them."""
    report_to: tuple[Literal["tensorboard", "trackio", "wandb"], ...] = ()
    """Where the metrics go; they are always in `metrics.jsonl` of the model's folder too."""

    @property
    def roles(self) -> RolesSettings:
        """Return the role settings in the form of the model registry."""
        return RolesSettings(user=self.user)

    @model_validator(mode="after")
    def _roles_are_played(self) -> Self:
        self.roles.check(self.models)
        return self
