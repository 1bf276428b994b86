"""`trajsmith sft`: rows become what TRL's `SFTTrainer` takes, it trains, and the model is saved with its templates."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trajsmith.export.loss_mask import MaskedRow, MaskPreview
from trajsmith.models import CheckpointInfo, read_checkpoint_info
from trajsmith.records import InputError, JsonObject, RecordDropped, ToolStyle, has_records
from trajsmith.train_sft.checkpoint import (
    find_newest_checkpoint,
    open_training_model,
    open_training_tokenizer,
    save_result,
    set_templates,
    translate_write_errors,
)
from trajsmith.train_sft.compiled_parts import check_compiler, compile_between_products, compile_layers
from trajsmith.train_sft.freezing import freeze_parameters
from trajsmith.train_sft.libraries import (
    build_lora_config,
    build_trainer_arguments,
    require_train,
    restrict_logits_to_loss_tokens,
)
from trajsmith.train_sft.mixing import mix_rows, select_rows
from trajsmith.train_sft.scratch import create_model, train_tokenizer
from trajsmith.train_sft.settings import DpoConfig, FreezeSettings, SftConfig, ValidationSettings
from trajsmith.train_sft.shared_prefix import (
    LabelledRow,
    build_label,
    build_tree_arguments,
    build_tree_dataset,
    collate_tree,
    count_processes,
    share_tools,
)
from trajsmith.train_sft.training_units import leave_out_longer_rows, split_masked_units
from trajsmith.train_sft.tree_attention import use_tree_attention

MAX_REFUSED_SHARE = 0.5
"""More rows than this share refused means that dataset, model and max_length do not fit together."""


@dataclass
class TrainingPlan:
    """Rows, tokens and refused rows of a training, known before it starts."""

    rows: list[JsonObject] = field(default_factory=list)
    tokens: int = 0
    longest: int = 0
    trained: int = 0
    """Tokens in the loss."""
    masked_messages: int = 0
    """Messages of the assistant that stay context: those of repaired plays before the correction, and those for whose
    calls `mask_steps` leaves them out."""
    masked_rows: int = 0
    """Rows left out because all of their messages would stay context."""
    longer_rows: int = 0
    """Rows left out because they are longer than `max_length`."""
    labels: bool = False
    """The template alone does not say what is learnt: rows are trained on as tokens with labels."""
    empty_think_blocks: int = 0
    """Empty `<think></think>` blocks in the loss."""
    refused: Counter[str] = field(default_factory=Counter)
    example: MaskedRow | None = None
    sources: list[JsonObject] = field(default_factory=list)
    """Where the rows come from, dataset by dataset."""
    validation: list[JsonObject] = field(default_factory=list)
    """Rows that measure the training."""
    labelled: list[LabelledRow] = field(default_factory=list)
    """Tokens and labels of the rows."""
    validation_labelled: list[LabelledRow] = field(default_factory=list)
    """Those of the rows that measure the training."""


def read_rows(folder: Path, split: str = "train") -> list[JsonObject]:
    """Rows of one split of a dataset that was exported.

    Raises:
        InputError: There is no dataset, or it has another shape.
    """
    place = folder / "dataset" if has_records(folder / "verdicts.jsonl") else folder
    if not place.is_dir():
        raise InputError(f"no dataset at {place}: run `trajsmith run` or `trajsmith export` first")
    return load_split(place, split, ("messages", "tools"), "trajsmith sft", "trl")


def load_split(place: Path, split: str, columns: Sequence[str], command: str, form: str) -> list[JsonObject]:
    """Load one split of an exported format.

    Args:
        place: Folder of the format.
        split: Name of the split.
        columns: Columns that it must have.
        command: Who reads it, for errors.
        form: Name of the format, for errors.

    Raises:
        InputError: It is no dataset, or has another shape.
    """
    from datasets import load_dataset
    from datasets.exceptions import DatasetNotFoundError

    try:
        loaded = load_dataset(str(place), streaming=True)
    except (DatasetNotFoundError, ValueError, OSError) as error:
        raise InputError(f"{place} is no dataset ({str(error).splitlines()[0]})") from error
    if split not in loaded:
        raise InputError(f"{place} has no split {split!r}; there are {', '.join(loaded)}")
    rows = list(loaded[split])
    missing = sorted(set(columns) - set(rows[0])) if rows else []
    if missing or not rows:
        problem = f"no column {missing[0]!r}" if missing else "no rows"
        raise InputError(f"{place}: {problem}; `{command}` trains on the format {form}: export it with --format {form}")
    return rows


def read_validation_rows(folder: Path, settings: ValidationSettings) -> list[JsonObject]:
    """Return the rows of a dataset that measure a training.

    Raises:
        InputError: It has no such split.
    """
    return read_rows(folder, settings.split)[: settings.rows]


def choose_tool_style(config: SftConfig) -> ToolStyle:
    """Return how tools are shown: as configured, else as the model was trained before."""
    return config.tools or (read_checkpoint_info(config.model).tools if config.model else "full")


def plan_training(config: SftConfig, rows: Iterable[JsonObject], tokenizer: Any, labels: bool = False) -> TrainingPlan:
    """Look at every row through the training template; keep what can be learnt from.

    Args:
        config: Settings of the training.
        rows: Rows of the main dataset.
        tokenizer: Tokenizer of the model.
        labels: Keep tokens and labels of the rows, as `needs_labels` says.

    Raises:
        InputError: So many rows are refused that something is set wrong.
    """
    whole = config.longer_rows == "leave_out"
    preview = MaskPreview(tokenizer, None if whole else config.max_length)
    plan, style = TrainingPlan(), choose_tool_style(config)
    plan.labels = labels
    for number, unit in enumerate(split_masked_units(rows, config.history, style, config.mask_steps)):
        try:
            if isinstance(unit, RecordDropped):
                raise unit
            if not unit.teaches:
                plan.masked_rows += 1
                continue
            masked = preview.inspect_row(unit.row, str(number), unit.unlearnt)
        except RecordDropped as dropped:
            plan.refused[dropped.reason] += 1
            continue
        if whole and masked.tokens > config.max_length:
            plan.longer_rows += 1
            continue
        plan.rows.append(unit.row)
        plan.masked_messages += len(unit.unlearnt)
        if labels or config.share_prefix:
            plan.labelled.append(build_label(masked.ids, masked.mask, config.max_length))
        plan.example = plan.example or masked
        plan.tokens += masked.tokens
        plan.trained += masked.trained
        plan.empty_think_blocks += masked.empty_think_blocks
        plan.longest = max(plan.longest, masked.tokens)
    if plan.refused.total() > MAX_REFUSED_SHARE * (plan.refused.total() + len(plan.rows)):
        why, number = plan.refused.most_common(1)[0]
        if why == "no_step_labels":
            raise InputError(
                f"mask_steps: {number} rows have no step labels: make the run with verify: {{step_labels: true, "
                "prune: false}"
            )
        raise InputError(f"{number} rows cannot be learnt from ({why}): look at them with `trajsmith export --preview`")
    if plan.longer_rows and not plan.rows:
        raise build_length_error(plan.longer_rows, config)
    return plan


def build_length_error(rows: int, config: SftConfig) -> InputError:
    """Build the error of a dataset of which no row fits."""
    return InputError(f"max_length: all {rows} rows are longer than {config.max_length} tokens")


def needs_labels(config: SftConfig, rows: Iterable[JsonObject]) -> bool:
    """Return True if messages of the assistant stay context that the template would mark as learnt."""
    return config.mask_steps or any(row.get("learnt_from") for row in rows)


def prepare_training(config: SftConfig) -> tuple[Any, TrainingPlan, list[JsonObject]]:
    """Prepare tokenizer, plan and rows, without training.

    Raises:
        InputError: The extra is missing, a setting is wrong, or dataset and model do not fit.
    """
    check_settings(config)
    rows, sources = mix_rows(config.shares, read_rows, int(config.trainer.get("seed", 0)))
    if config.scratch is not None:
        tokenizer = set_templates(
            train_tokenizer(rows, config.scratch.vocabulary, config.scratch.bare_words), config.model
        )
    else:
        tokenizer = open_training_tokenizer(config.model)
    longer = 0
    if config.shared_tools is not None:
        rows, longer = share_fitting_tools(config, rows, tokenizer)
    held = list_held_rows(config)
    labels = needs_labels(config, (*rows, *held))
    plan = plan_training(config, rows, tokenizer, labels)
    plan.sources, plan.longer_rows = sources, plan.longer_rows + longer
    if config.validation is not None:
        measured = plan_training(config, held, tokenizer, labels)
        plan.validation, plan.validation_labelled = measured.rows, measured.labelled
    return tokenizer, plan, rows


def share_fitting_tools(config: SftConfig, rows: list[JsonObject], tokenizer: Any) -> tuple[list[JsonObject], int]:
    """Show the same tools to rows that fit; return them, and the number of rows that are left out as too long.

    Rows that are left out later would have had a place among those that share a beginning. A few still are: those that
    fit with fewer tools than they show in the end.
    """
    shown, fitting = config.shared_tools or 0, rows
    if config.longer_rows == "leave_out":
        fitting = leave_out_longer_rows(rows, choose_tool_style(config), tokenizer, config.max_length, shown)
        if rows and not fitting:
            raise build_length_error(len(rows), config)
    shared = share_tools(fitting, shown, read_batch_size(config), int(config.trainer.get("seed", 0)))
    return shared, len(rows) - len(fitting)


def list_held_rows(config: SftConfig) -> list[JsonObject]:
    """Return the rows that measure a training; none if nothing does."""
    if config.validation is None:
        return []
    return [
        row
        for share in config.shares
        for row in select_rows(read_validation_rows(share.dataset, config.validation), share)
    ]


def read_batch_size(config: SftConfig) -> int:
    """Return the number of rows of a device batch; 8 is that of Transformers."""
    return int(config.trainer.get("per_device_train_batch_size", 8))


def check_settings(config: SftConfig) -> Any:
    """Return TRL's `SFTConfig`, made before any work.

    Raises:
        InputError: The extra is missing, or a setting of `trainer` or `lora` is unknown, of another type or refused.
    """
    require_train("sft")
    from trl import SFTConfig as TrlConfig

    build_lora_config(config.lora)
    if config.compile_layers:
        check_compiler()
    settings = build_validation_arguments(config) | config.trainer
    if config.share_prefix:
        settings |= build_tree_arguments(config.trainer)
    arguments = build_trainer_arguments(
        TrlConfig,
        {"train_sampling_strategy": "group_by_length"} | settings,
        model=config.model,
        output_dir=str(config.out / "checkpoints"),
        report_to=list(config.report_to) or "none",
        max_length=config.max_length,
        assistant_only_loss=not (config.share_prefix or config.mask_steps),
    )
    if config.share_prefix and arguments.n_gpu > 1:
        raise InputError(
            f"share_prefix: this process sees {arguments.n_gpu} GPUs, and its batches are for one: set "
            "CUDA_VISIBLE_DEVICES=0, or start a process for each with `accelerate launch -m trajsmith sft ...`"
        )
    return arguments


def build_validation_arguments(config: SftConfig | DpoConfig) -> JsonObject:
    """Return TRL's settings of a training that is measured; the configuration overrides them."""
    if config.validation is None:
        return {}
    every = config.validation.every
    return {
        "eval_strategy": "steps",
        "eval_steps": every,
        "save_strategy": "steps",
        "save_steps": every,
        "save_total_limit": 2,
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_loss",
        "greater_is_better": False,
        "per_device_eval_batch_size": config.trainer.get("per_device_train_batch_size", 8),
    }


def check_resume(out: Path, resume: bool) -> str | None:
    """Return the checkpoint to go on from; None for a new training.

    Raises:
        InputError: There is none to go on from, or there is one and nobody asked to go on.
    """
    checkpoint = find_newest_checkpoint(out)
    if resume and checkpoint is None:
        raise InputError(f"{out} has no checkpoint to resume from: start without --resume")
    if checkpoint and not resume:
        raise InputError(f"{out} holds checkpoints: continue with --resume, or name another folder as out")
    return checkpoint


def train(config: SftConfig, resume: bool = False) -> TrainingPlan:
    """Train and save; returns the plan that was carried out.

    Raises:
        InputError: Dataset, model or settings cannot be used.
        RunError: The disk is full; checkpoints are kept.
    """
    arguments, checkpoint = check_settings(config), check_resume(config.out, resume)
    tokenizer, plan, _ = prepare_training(config)
    arguments.assistant_only_loss = arguments.assistant_only_loss and not plan.labels
    from trl import SFTTrainer

    model = open_starting_model(config, tokenizer)
    if config.freeze != FreezeSettings():
        freeze_parameters(model, config.freeze)
    if config.share_prefix:
        use_tree_attention(model, config.model or "scratch")
        data = build_tree_datasets(plan, read_batch_size(config), arguments.seed)
    elif plan.labels:
        data = build_token_datasets(plan)
    else:
        data = build_datasets(plan.rows, plan.validation)
    if config.compile_layers:
        (compile_between_products if config.share_prefix else compile_layers)(model)
    data |= {"model": model, "args": arguments, "processing_class": tokenizer}
    run_training(SFTTrainer, data, config, checkpoint, lambda steps: build_checkpoint_info(config, plan, steps))
    return plan


def open_starting_model(config: SftConfig, tokenizer: Any) -> Any:
    """Open the model that a training starts from, or make one.

    Raises:
        InputError: There is none, or a save was interrupted.
    """
    if config.scratch:
        return create_model(tokenizer, config.scratch)
    return open_training_model(config.model, adapters=config.lora is not None)


def build_datasets(rows: list[JsonObject], validation: list[JsonObject]) -> dict[str, Any]:
    """Build the datasets of a trainer, for training and for measuring it, under the names of its arguments."""
    from datasets import Dataset, Features, Json, List

    columns = Features({name: List(Json()) for name in rows[0]})
    return {
        "train_dataset": Dataset.from_list(rows, features=columns),
        "eval_dataset": Dataset.from_list(validation, features=columns) if validation else None,
    }


def build_token_datasets(plan: TrainingPlan) -> dict[str, Any]:
    """Build the same of tokens with labels, where the template alone does not say what is learnt."""
    from datasets import Dataset

    train, measured = (
        [{"input_ids": list(row.ids), "labels": list(row.labels)} for row in rows]
        for rows in (plan.labelled, plan.validation_labelled)
    )
    return {
        "train_dataset": Dataset.from_list(train),
        "eval_dataset": Dataset.from_list(measured) if measured else None,
    }


def build_tree_datasets(plan: TrainingPlan, size: int, seed: int) -> dict[str, Any]:
    """Build the same of rows that share beginnings, with the collator that they need."""
    measured = plan.validation_labelled
    return {
        "train_dataset": build_tree_dataset(plan.labelled, size, seed),
        "eval_dataset": build_tree_dataset(measured, size, seed) if measured else None,
        "data_collator": collate_tree,
    }


def run_training(
    kind: Any,
    arguments: dict[str, Any],
    config: SftConfig | DpoConfig,
    checkpoint: str | None,
    build_info: Callable[[int], CheckpointInfo],
) -> None:
    """Train with one of TRL's trainers, and save model, notes and metrics.

    Args:
        kind: The trainer's class.
        arguments: Its arguments, but the adapters, which the configuration has.
        checkpoint: Checkpoint to go on from.
        build_info: Steps that were made to the notes of the finished model.

    Raises:
        RunError: The disk is full; checkpoints are kept.
    """
    from transformers import EarlyStoppingCallback

    restrict_logits_to_loss_tokens()
    trainer = kind(**arguments, peft_config=build_lora_config(config.lora))
    if config.validation is not None and config.validation.patience is not None:
        trainer.add_callback(EarlyStoppingCallback(early_stopping_patience=config.validation.patience))
    with translate_write_errors(config.out):
        start = time.process_time()
        trainer.train(resume_from_checkpoint=checkpoint)
        seconds = time.process_time() - start
        save_result(trainer, arguments["processing_class"], config, build_info(trainer.state.global_step), seconds)


def build_checkpoint_info(config: SftConfig, plan: TrainingPlan, steps: int) -> CheckpointInfo:
    """Build the notes of the finished model: those of the model before it, and this training."""
    before = read_checkpoint_info(config.model) if config.model else CheckpointInfo()
    training = {
        "kind": "sft",
        "steps": steps,
        "processes": count_processes(),
        "rows": len(plan.rows),
        "tokens": plan.tokens,
        "tokens_in_loss": plan.trained,
        "masked_messages": plan.masked_messages,
        "masked_rows": plan.masked_rows,
        "longer_rows": plan.longer_rows,
        "data": plan.sources,
        "settings": config.model_dump(mode="json", exclude={"dataset", "datasets", "out", "report_to", "model"}),
    }
    origin = before.origin or {"model": Path(config.model).name if Path(config.model).is_dir() else config.model}
    if config.scratch is not None:
        origin = {"model": "random weights", "license": "apache-2.0"}
    return CheckpointInfo(origin=origin, tools=choose_tool_style(config), training=(*before.training, training))
