"""The training libraries, which are an extra, and their settings."""

import dataclasses
from importlib.util import find_spec
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from trajsmith.models.precision import wants_bf16_autocast
from trajsmith.records import InputError, JsonObject, install_command, suggest_names

RESERVED_ARGUMENTS = frozenset({"output_dir", "report_to", "max_length", "assistant_only_loss", "logging_dir"})
"""Settings of the trainers that have a place of their own in our configuration, or are not for choosing."""


def require_train(command: str) -> None:
    """Refuse early where the extra is missing.

    Raises:
        InputError: With the command that installs it.
    """
    for module in ("torch", "transformers", "trl", "peft", "accelerate"):
        if find_spec(module) is None:
            hint = install_command("train")
            raise InputError(f"trajsmith {command} needs the train extra ({module} is missing): {hint}")


def build_trainer_arguments(
    kind: type, values: dict[str, Any], section: str = "trainer", model: str = "", **ours: Any
) -> Any:
    """An instance of one of the trainers' settings classes, from the configuration.

    Args:
        kind: Class of the settings.
        values: Settings of the configuration.
        section: Where they stand in it.
        model: Model that is trained; empty for one that is made here.
        **ours: Settings that the configuration may not have.

    Raises:
        InputError: A key is unknown (the nearest known one is named), is ours to set, or a value is of another type
            or refused.
    """
    known = {field.name for field in dataclasses.fields(kind) if field.init}
    for key in values:
        if key in RESERVED_ARGUMENTS or key in ours:
            raise InputError(f"{section}.{key}: trajsmith sets this itself; see the other keys of the configuration")
        if key not in known:
            hint = suggest_names(key, sorted(known))
            raise InputError(f"{section}.{key}: {kind.__name__} has no such setting{hint and f'; {hint}'}")
    check_types(kind, values, section)
    try:
        return kind(**(build_cpu_defaults(model) | values | ours))
    except (TypeError, ValueError) as error:
        raise InputError(f"{section}: {kind.__name__} refuses it: {str(error).splitlines()[0]}") from error


def check_types(kind: type, values: dict[str, Any], section: str) -> None:
    """Check values against the annotations of a dataclass, which checks nothing itself.

    Texts are not read as numbers: `"1e-4"` would reach the optimizer as a text.

    Raises:
        InputError: A value has another type.
    """
    hints = get_type_hints(kind)
    for key, value in values.items():
        try:
            TypeAdapter(hints[key]).validate_python(value, strict=isinstance(value, str | bool))
        except ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"].lower()
            raise InputError(f"{section}.{key}: {message} (got {str(value)[:60]!r})") from error


def build_cpu_defaults(model: str = "") -> dict[str, Any]:
    """Return the default arguments for a machine without an accelerator; the configuration overrides them.

    A checkpoint in bfloat16 is computed in it where the processor has instructions for it; its weights stay float32.
    """
    import torch

    if torch.cuda.is_available():
        return {}
    return {"use_cpu": True, "bf16": bool(model) and wants_bf16_autocast(model), "gradient_checkpointing": False}


def restrict_logits_to_loss_tokens() -> None:
    """Without an accelerator, compute TRL's logits only for the tokens in the loss.

    TRL 1.16 leaves out what is masked only where it has Triton, since elsewhere it allows for compilers that want one
    shape for every batch. What we compile for a CPU takes any size, and prompts and results are five sixths of a row:
    scoring them takes half of a training step of a small model. Losses and gradients stay the same.
    """
    import torch
    from trl.trainer import utils

    if not torch.cuda.is_available() and "_use_triton" in vars(utils):
        vars(utils)["_use_triton"] = lambda device: True


def build_lora_config(values: JsonObject | None) -> Any:
    """Build peft's `LoraConfig`; None, for training all weights, stays None.

    Raises:
        InputError: A setting is unknown or has another type.
    """
    if values is None:
        return None
    from peft import LoraConfig

    unknown = sorted(set(values) - {item.name for item in dataclasses.fields(LoraConfig)})
    if unknown:
        raise InputError(f"lora.{unknown[0]}: peft's LoraConfig has no such setting")
    check_types(LoraConfig, values, "lora")
    settings: dict[str, Any] = {"task_type": "CAUSAL_LM"} | values
    return LoraConfig(**settings)
