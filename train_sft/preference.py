"""`trajsmith dpo`: pairs of an accepted and a rejected message train a model with TRL's `DPOTrainer`."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trajsmith.export.loss_mask import MaskedRow, MaskPreview, read_tools
from trajsmith.models import CheckpointInfo, read_checkpoint_info
from trajsmith.records import InputError, JsonObject, RecordDropped, ToolStyle, has_records, render_tools
from trajsmith.train_sft.checkpoint import (
    open_training_model,
    open_training_tokenizer,
)
from trajsmith.train_sft.libraries import build_lora_config, build_trainer_arguments, require_train
from trajsmith.train_sft.mixing import mix_rows, select_rows
from trajsmith.train_sft.settings import DpoConfig
from trajsmith.train_sft.training import (
    MAX_REFUSED_SHARE,
    build_datasets,
    build_validation_arguments,
    check_resume,
    load_split,
    run_training,
)


@dataclass
class PreferencePlan:
    """Pairs, tokens and refused pairs of a training, known before it starts."""

    rows: list[JsonObject] = field(default_factory=list)
    """Columns `prompt`, `chosen`, `rejected`, `tools`."""
    tokens: int = 0
    """Of prompts, and both messages."""
    longest: int = 0
    """Tokens of the longest prompt with one of its messages."""
    compared: int = 0
    """Tokens of the messages, which are all that is scored."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Mistake to pairs that show it."""
    refused: Counter[str] = field(default_factory=Counter)
    example: tuple[MaskedRow, MaskedRow, JsonObject] | None = None
    """A pair as the trainer sees it, and its row."""
    sources: list[JsonObject] = field(default_factory=list)
    validation: list[JsonObject] = field(default_factory=list)


def read_pairs(folder: Path, split: str = "train") -> list[JsonObject]:
    """Return the pairs of one split: of a run's `exports/dpo`, or of a folder that has them.

    Raises:
        InputError: There are none, or the folder has another format.
    """
    place = folder / "exports" / "dpo" if has_records(folder / "verdicts.jsonl") else folder
    if not place.is_dir():
        raise InputError(f"no pairs at {place}: run `trajsmith export {folder} --format dpo`")
    return load_split(place, split, ("prompt", "chosen", "rejected", "tools"), "trajsmith dpo", "dpo")


def plan_preference(config: DpoConfig, rows: Iterable[JsonObject], tokenizer: Any, style: ToolStyle) -> PreferencePlan:
    """Look at both sides of every pair through the training template; keep the pairs that can be learnt from.

    Raises:
        InputError: So many pairs are refused that something is set wrong.
    """
    preview, plan = MaskPreview(tokenizer), PreferencePlan()
    for row in rows:
        tools = render_tools(read_tools(row["tools"], str(row.get("id", ""))), style)
        pair = {"prompt": row["prompt"], "chosen": row["chosen"], "rejected": row["rejected"], "tools": tools}
        try:
            chosen, rejected = (inspect_side(preview, pair, side, config) for side in ("chosen", "rejected"))
        except RecordDropped as dropped:
            plan.refused[dropped.reason] += 1
            continue
        plan.rows.append(pair)
        plan.example = plan.example or (chosen, rejected, row)
        plan.tokens += chosen.tokens + rejected.tokens
        plan.compared += chosen.trained + rejected.trained
        plan.longest = max(plan.longest, chosen.tokens, rejected.tokens)
        plan.kinds[str(row.get("kind", "not stated"))] += 1
    if plan.refused.total() > MAX_REFUSED_SHARE * (plan.refused.total() + len(plan.rows)) or not plan.rows:
        why, number = (plan.refused.most_common(1) or [("no pairs", 0)])[0]
        raise InputError(f"{number} pairs cannot be learnt from ({why}): raise max_length, or choose another model")
    return plan


def inspect_side(preview: MaskPreview, pair: JsonObject, side: str, config: DpoConfig) -> MaskedRow:
    """Return tokens and mask of one side of a pair.

    Raises:
        RecordDropped: Training would damage it, or it is longer than `max_length`: the sides would be cut unequally.
    """
    row = {"prompt": pair["prompt"], "completion": pair[side], "tools": pair["tools"]}
    masked = preview.inspect_row(row, side)
    if masked.tokens > config.max_length:
        raise RecordDropped("longer_than_max_length", f"{side}: {masked.tokens} tokens")
    return masked


def prepare_preference(config: DpoConfig) -> tuple[Any, PreferencePlan]:
    """Prepare tokenizer and plan, without training.

    Raises:
        InputError: The extra is missing, a setting is wrong, or dataset and model do not fit.
    """
    check_settings(config)
    rows, sources = mix_rows(config.shares, read_pairs, int(config.trainer.get("seed", 0)))
    tokenizer = open_training_tokenizer(config.model)
    style = config.tools or read_checkpoint_info(config.model).tools
    plan = plan_preference(config, rows, tokenizer, style)
    plan.sources = sources
    if config.validation is not None:
        settings = config.validation
        held = [
            row
            for share in config.shares
            for row in select_rows(read_pairs(share.dataset, settings.split)[: settings.rows], share)
        ]
        plan.validation = plan_preference(config, held, tokenizer, style).rows
    return tokenizer, plan


def check_settings(config: DpoConfig) -> Any:
    """Return TRL's `DPOConfig`, made before any work.

    Raises:
        InputError: The extra is missing, or a setting of `trainer` or `lora` is unknown, of another type or refused.
    """
    require_train("dpo")
    from trl import DPOConfig as TrlConfig

    build_lora_config(config.lora)
    return build_trainer_arguments(
        TrlConfig,
        build_validation_arguments(config) | config.trainer,
        model=config.model,
        output_dir=str(config.out / "checkpoints"),
        report_to=list(config.report_to) or "none",
        max_length=config.max_length,
    )


def train(config: DpoConfig, resume: bool = False) -> PreferencePlan:
    """Train and save; returns the plan that was carried out.

    Raises:
        InputError: Pairs, model or settings cannot be used.
        RunError: The disk is full; checkpoints are kept.
    """
    arguments, checkpoint = check_settings(config), check_resume(config.out, resume)
    tokenizer, plan = prepare_preference(config)
    from trl import DPOTrainer

    model = open_training_model(config.model, adapters=config.lora is not None)
    data = build_datasets(plan.rows, plan.validation)
    data |= {"model": model, "args": arguments, "processing_class": tokenizer}
    run_training(DPOTrainer, data, config, checkpoint, lambda steps: build_checkpoint_info(config, plan, steps))
    return plan


def build_checkpoint_info(config: DpoConfig, plan: PreferencePlan, steps: int) -> CheckpointInfo:
    """Build the notes of the finished model: those of the model before it, and this training."""
    before = read_checkpoint_info(config.model)
    training = {
        "kind": "dpo",
        "steps": steps,
        "pairs": len(plan.rows),
        "tokens": plan.tokens,
        "tokens_compared": plan.compared,
        "mistakes": dict(plan.kinds.most_common()),
        "data": plan.sources,
        "settings": config.model_dump(mode="json", exclude={"dataset", "datasets", "out", "report_to", "model"}),
    }
    origin = before.origin or {"model": Path(config.model).name if Path(config.model).is_dir() else config.model}
    return CheckpointInfo(origin=origin, tools=config.tools or before.tools, training=(*before.training, training))
