"""Number formats of weights: what a checkpoint is stored in, and what this machine computes fast."""

from functools import cache
from pathlib import Path
from typing import Any

BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Processor flags that name instructions for bfloat16: x86 (two) and Arm."""
CPU_INFO = Path("/proc/cpuinfo")


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


def choose_training_dtype(model: str) -> Any:
    """Return torch's type of weights that are trained.

    On a CPU that is float32, whatever the checkpoint is stored in: steps of an optimiser are smaller than the last
    digit of bfloat16. On a GPU it is the stored one, as its memory was planned for; LoRA adapters are float32 there.
    """
    import torch

    return getattr(torch, read_stored_dtype(model)) if torch.cuda.is_available() else torch.float32


def wants_bf16_autocast(model: str) -> bool:
    """Return True if a training on this CPU computes in bfloat16: the checkpoint is stored so, and it is fast here."""
    return read_stored_dtype(model) == "bfloat16" and has_fast_bf16()
