"""The configuration of one fine-tuning; loads without torch."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from trajsmith.records import FrozenModel, JsonObject, Seed, ToolStyle


class ScratchSettings(FrozenModel):
    """A small Qwen3-architecture model with random weights and a tokenizer trained on the rows."""

    hidden: PositiveInt = 128
    layers: PositiveInt = 4
    heads: PositiveInt = 4
    vocabulary: PositiveInt = 4096
    """Tokens that byte-pair merging may make."""
    bare_words: bool = False
    """Make words tokens without the space before them: a name in a result is then copied into an answer token by token.
    Rows have more tokens."""
    seed: Seed = 0


class HistorySettings(FrozenModel):
    """Unit of one training row, and how much of the conversation it includes."""

    unit: Literal["whole", "per_turn", "per_step"] = "whole"
    """Whole conversations; one row per user turn (EnvScaler); one per assistant message (AWM)."""
    window: PositiveInt | None = None
    """Assistant turns of history in `per_turn` and `per_step`; None is the unit's own default (AWM: 3)."""

    @model_validator(mode="after")
    def _window_has_a_use(self) -> "HistorySettings":
        if self.unit == "whole" and self.window is not None:
            raise ValueError("whole conversations have no window: leave it out, or take per_turn or per_step")
        return self


class DatasetShare(FrozenModel):
    """One of several datasets of a training."""

    dataset: Path
    """Run directory, or the folder of a dataset."""
    weight: PositiveFloat = 1.0
    """Times that a row is seen in an epoch: 0.5 is half of the rows, 2 is every row twice."""
    variants: tuple[str, ...] = ()
    """Only rows of these variants of tasks, `base` for tasks as they were written; empty takes all."""
    without_tools: tuple[str, ...] = ()
    """Rows that call one of these tools are left out: to see what a model lacks that was never shown them."""


class ValidationSettings(FrozenModel):
    """Loss on rows that are not trained on, and an end of the training when it no longer falls."""

    split: Literal["validation", "test"] = "validation"
    """Split of the datasets; `export.split` of a run makes it."""
    rows: PositiveInt = 100
    """At most this many rows of each dataset, the first ones."""
    every: PositiveInt = 50
    """Steps between two measurements. A checkpoint is saved at each, and the best one becomes the model."""
    patience: PositiveInt | None = None
    """Measurements without a lower loss after which the training ends; None goes on to the end."""


class FreezeSettings(FrozenModel):
    """Parameters that are not trained."""

    embeddings: bool = False
    """The embeddings of tokens at both ends."""
    layers: NonNegativeInt = 0
    """So many of the lowest layers."""


class SftConfig(FrozenModel):
    """Everything that `trajsmith sft` needs."""

    model: str = ""
    """Folder or Hub name of an instruct model; leave it empty with `scratch`."""
    scratch: ScratchSettings | None = None
    """Start from random weights instead of a model."""
    dataset: Path | None = None
    """Run directory, or the folder of a dataset that `trajsmith export` wrote."""
    datasets: tuple[DatasetShare, ...] = ()
    """Several of them with weights, in place of `dataset`."""
    validation: ValidationSettings | None = None
    """Rows that measure the training; None measures nothing."""
    freeze: FreezeSettings = FreezeSettings()
    """What is left as it is; not with `lora`, which leaves everything."""
    out: Path
    """Folder of the finished model; checkpoints lie in its `checkpoints`."""
    history: HistorySettings = HistorySettings()
    mask_steps: bool = False
    """Leave messages out of the loss that make a call labelled redundant or harmful; they stay context. The runs need
    `verify: {step_labels: true, prune: false}`."""
    tools: ToolStyle | None = None
    """How tools are shown: `full` schemas, or `compact`; None is as the model was trained before, else full. It is
    noted beside the finished model, and evaluation and later trainings take it from there."""
    max_length: PositiveInt
    """Tokens of a row; a row of which nothing would be learnt is refused, never dropped without a word."""
    longer_rows: Literal["cut", "leave_out"] = "cut"
    """What becomes of rows of more tokens than `max_length`: they lose their end, or are left out and counted. Where
    the time of a training is short, more rows that are short teach more."""
    share_prefix: bool = False
    """Compute what rows of a device batch begin with once (system prompt and tools), with the same loss; rows that
    begin alike come into the same batch. Needs a model whose layers all attend to all earlier tokens."""
    shared_tools: PositiveInt | None = None
    """Show rows of one environment and system message the same tools, at most so many: those that one of a device
    batch calls, and others of theirs. None leaves each row its own; with `share_prefix` only."""
    compile_layers: bool = False
    """Compile the model's layers with `torch.compile`, with `share_prefix` what they compute between matrix products;
    the first step takes 10 to 60 seconds longer. For a GPU with batches as large as its memory allows, and for
    `share_prefix` on a processor, where it needs a C++ compiler."""
    lora: JsonObject | None = None
    """Settings of peft's `LoraConfig`; None trains all weights."""
    trainer: dict[str, Any] = Field(default_factory=dict)
    """Settings of TRL's `SFTConfig`, by their names there."""
    report_to: tuple[Literal["tensorboard", "trackio", "wandb"], ...] = ()
    """Where the metrics go; they are always in `metrics.jsonl` of the model's folder too."""

    @model_validator(mode="after")
    def _one_start(self) -> "SftConfig":
        if bool(self.model) == (self.scratch is not None):
            raise ValueError("name a model or give scratch, one of the two")
        if (self.dataset is None) == (not self.datasets):
            raise ValueError("name a dataset or give datasets, one of the two")
        if self.lora is not None and self.freeze != FreezeSettings():
            raise ValueError("lora trains adapters only: leave freeze out")
        if self.compile_layers and self.lora is not None:
            raise ValueError("compile_layers is for all weights: leave lora out")
        if self.shared_tools is not None and not self.share_prefix:
            raise ValueError("shared_tools is for share_prefix: true")
        if self.share_prefix and self.history.unit != "whole":
            raise ValueError("share_prefix is for whole conversations: leave history out")
        return self

    @property
    def shares(self) -> tuple[DatasetShare, ...]:
        """Return the datasets with their weights."""
        return self.datasets if self.dataset is None else (DatasetShare(dataset=self.dataset),)


class DpoConfig(FrozenModel):
    """Everything that `trajsmith dpo` needs."""

    model: str
    """Folder or Hub name of the model to start from, also the reference; best one that `trajsmith sft` made."""
    dataset: Path | None = None
    """Run directory with `exports/dpo`, or the folder of pairs that `trajsmith export --format dpo` wrote."""
    datasets: tuple[DatasetShare, ...] = ()
    """Several of them with weights, in place of `dataset`."""
    validation: ValidationSettings | None = None
    """Pairs that measure the training; None measures nothing."""
    out: Path
    """Folder of the finished model; checkpoints lie in its `checkpoints`."""
    tools: ToolStyle | None = None
    """How tools are shown: `full` schemas, or `compact`; None is as the model was trained before, else full."""
    max_length: PositiveInt
    """Tokens of a prompt with one message; a longer pair is refused."""
    lora: JsonObject | None = None
    """Settings of peft's `LoraConfig`; None trains all weights, and keeps a second model in memory as the reference."""
    trainer: dict[str, Any] = Field(default_factory=dict)
    """Settings of TRL's `DPOConfig`, by their names there."""
    report_to: tuple[Literal["tensorboard", "trackio", "wandb"], ...] = ()
    """Where the metrics go; they are always in `metrics.jsonl` of the model's folder too."""

    @model_validator(mode="after")
    def _one_source(self) -> "DpoConfig":
        if (self.dataset is None) == (not self.datasets):
            raise ValueError("name a dataset or give datasets, one of the two")
        return self

    @property
    def shares(self) -> tuple[DatasetShare, ...]:
        """Return the datasets with their weights."""
        return self.datasets if self.dataset is None else (DatasetShare(dataset=self.dataset),)
