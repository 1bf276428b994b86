"""The configuration of one reinforcement learning; loads without torch."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt

from trajectory import Frozen, JsonObject


class GrpoConfig(Frozen):
    """Everything that `trajsmith grpo` needs."""

    model: str
    """Folder or Hub name of the model to start from; best one that `trajsmith sft` made."""
    run: Path
    """Run directory that has the tasks; those of its split `train` are played."""
    out: Path
    """Folder of the finished model; checkpoints lie in its `checkpoints`."""
    reward: Literal["composite", "format_outcome", "checks", "state", "trajectory"] = "composite"
    """How an episode is rewarded; `docs/training.md` has them all."""
    limit: PositiveInt | None = None
    """At most this many tasks of each environment."""
    max_steps: PositiveInt = 12
    """Messages of the model per turn."""
    episode_tokens: PositiveInt
    """Tokens of an episode after its first message from the user: the model's, the tools' and the user's together."""
    lora: JsonObject | None = None
    """Settings of peft's `LoraConfig`; None trains all weights."""
    trainer: dict[str, Any] = Field(default_factory=dict)
    """Settings of TRL's `GRPOConfig`, by their names there; vLLM's (`use_vllm`, `vllm_mode`, ...) among them."""
    report_to: tuple[Literal["tensorboard", "trackio", "wandb"], ...] = ()
    """Where the metrics go; they are always in `metrics.jsonl` of the model's folder too."""
