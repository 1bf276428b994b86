"""Parts of a model that `torch.compile` compiles for a training."""

import os
import shutil
import sys
import sysconfig
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trajsmith.records import InputError


def check_compiler() -> None:
    """Refuse early where nothing can be compiled for a processor.

    Raises:
        InputError: The C++ compiler that `torch.compile` takes, or the headers of this Python, are missing.
    """
    import torch

    if torch.cuda.is_available():
        return
    name = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(name) is None:
        raise InputError(f"compile_layers: there is no C++ compiler {name}; install it, or leave compile_layers out")
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        raise InputError(f"compile_layers: there is no {header}; install python3-dev, or leave compile_layers out")


def compile_layers(model: Any) -> None:
    """Compile the layers of a model, for batches of any size.

    All layers share one compiled function. The model as a whole would be compiled anew for every kind of batch.
    """
    for layer in model.get_decoder().layers:
        layer.compile(dynamic=True)


def compile_between_products(model: Any) -> None:
    """Compile what a model and TRL's loss compute between matrix products: for layers that cannot be compiled whole.

    These are norms, gates, rotary positions and the sums over the vocabulary, which read and write memory a dozen times
    for each product. Rotary positions and the loss are functions of their libraries, so other models of this process
    get the compiled ones, too.
    """
    import torch

    def compute_gate(activation: Any, gate: Any, states: Any) -> Any:
        return activation(gate) * states

    compiled_gate = torch.compile(compute_gate, dynamic=True)
    for module in model.get_decoder().modules():
        if type(module).__name__.endswith("Norm"):
            module.compile(dynamic=True)
        elif is_gated(module):
            module.forward = build_gated_forward(module, compiled_gate)
    # All norms are one function to it, whose variants are many: frozen or not, with gradient or not, of any rank.
    dynamo = torch._dynamo.config
    dynamo.recompile_limit = max(dynamo.recompile_limit, 64)
    functions = [(type(model).__module__, "apply_rotary_pos_emb")]
    if find_spec("trl.kernels.chunked_logprob") is not None:  # TRL before 1.16 lacks it, or the functions in it
        functions += [("trl.kernels.chunked_logprob", name) for name in ("_forward_tile", "_backward_tile")]
    for place, name in functions:
        library = import_module(place)
        if hasattr(library, name):
            setattr(library, name, torch.compile(getattr(library, name), dynamic=True))


def is_gated(module: Any) -> bool:
    """Return whether a module computes `down_proj(act_fn(gate_proj(x)) * up_proj(x))`, seen on one input."""
    import torch

    if not all(hasattr(module, name) for name in ("gate_proj", "up_proj", "down_proj", "act_fn")):
        return False
    weight = module.gate_proj.weight
    states = torch.linspace(-1, 1, weight.shape[1], dtype=weight.dtype, device=weight.device)[None]
    with torch.no_grad():
        plain = module.down_proj(module.act_fn(module.gate_proj(states)) * module.up_proj(states))
        return bool(torch.equal(module(states), plain))


def build_gated_forward(module: Any, gate: Any) -> Any:
    """Return the forward of a gated module, with its gate computed by a function of three arguments."""

    def forward(states: Any) -> Any:
        return module.down_proj(gate(module.act_fn, module.gate_proj(states), module.up_proj(states)))

    return forward
