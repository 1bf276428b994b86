"""Number formats of weights: what a checkpoint is stored in, and what this machine computes fast."""

from functools import cache
from pathlib import Path
from typing import Any

BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Processor flags that name instructions for bfloat16: x86 (two) and Arm."""
CPU_INFO = Path("/proc/cpuinfo")
TRAINED_BYTES = 16
"""Memory of one trained parameter in float32: its value, its gradient and two moments of Adam."""


@cache
def has_fast_bf16() -> bool:
    """Return True if this machine computes in bfloat16 at least as fast as in float32.

    Processors without instructions for it convert every number and are several times slower. Where the flags cannot
    be read, there are none.
    """
    import torch

    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    return bool(BF16_FLAGS & read_cpu_flags())


def read_cpu_flags(file: Path = CPU_INFO) -> set[str]:
    """Return the flags of the first processor."""
    try:
        lines = file.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return set(flags.partition(":")[2].split())


def read_stored_dtype(model: str) -> str:
    """Return the format in which a checkpoint is stored, such as `bfloat16`; `float32` where it does not say."""
    from transformers import AutoConfig

    try:
        stored = AutoConfig.from_pretrained(model).dtype
    except (OSError, ValueError, KeyError):  # opening the model says what is wrong with it
        stored = None
    return str(stored or "float32").removeprefix("torch.")


def choose_inference_dtype(model: str) -> Any:
    """Return torch's type to play a checkpoint in: as it is stored, unless only float32 is fast on this machine."""
    import torch

    name = read_stored_dtype(model)
    slow = name == "bfloat16" and not has_fast_bf16()
    return torch.float32 if slow else getattr(torch, name)


def choose_training_dtype(model: str, adapters: bool = False) -> Any:
    """Return torch's type of weights that are trained.

    That is float32, whatever the checkpoint is stored in: steps of an optimiser are smaller than the last digit of
    bfloat16. On a GPU it is the stored one where weights, gradients and both moments of Adam in float32 would take
    more than half of its memory, and for adapters, which are float32 themselves.

    Args:
        model: Folder or name.
        adapters: Only adapters are trained, and the weights stay as they are.
    """
    import torch

    if not torch.cuda.is_available():
        return torch.float32
    room = torch.cuda.get_device_properties(0).total_memory / 2
    fits = not adapters and TRAINED_BYTES * count_parameters(model) <= room
    return torch.float32 if fits else getattr(torch, read_stored_dtype(model))


def count_parameters(model: str) -> int:
    """Return the number of parameters of a checkpoint, from its configuration alone."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        return int(AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model)).num_parameters())


def place_on_accelerator(model: Any) -> Any:
    """Return a model on the GPU of this machine; where there is none, as it is."""
    import torch

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return model if accelerator is None else model.to(accelerator)


def wants_bf16_autocast(model: str) -> bool:
    """Return True if a training on this CPU computes in bfloat16: the checkpoint is stored so, and it is fast here."""
    return read_stored_dtype(model) == "bfloat16" and has_fast_bf16()
