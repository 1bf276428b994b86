"""Parameters that a training leaves as they are: less memory, fewer operations, and less is forgotten."""

from typing import Any

from trajsmith.records import InputError
from trajsmith.train_sft.settings import FreezeSettings


def freeze_parameters(model: Any, settings: FreezeSettings) -> int:
    """Freeze embeddings and the lowest layers of a model; return the number of parameters that are still trained.

    Raises:
        InputError: Nothing would be left to train.
    """
    layers = model.get_decoder().layers
    if settings.layers >= len(layers):
        raise InputError(f"freeze.layers: {settings.layers} of the model's {len(layers)} layers; leave one to train")
    frozen = list(layers[: settings.layers])
    if settings.embeddings:
        frozen += [model.get_input_embeddings(), model.get_output_embeddings()]
    for module in frozen:
        module.requires_grad_(False)
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
