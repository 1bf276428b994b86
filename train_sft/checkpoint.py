"""Models on disk: opened with one line about what is wrong, saved whole or not at all.

Training and inference must render a conversation alike. TRL trains with a template of its own and saves the model's
original one, which leaves reasoning blocks out of earlier turns; a model trained so and served with the original
template fails from its second step on. So the training template is saved, and with it the response template by
which TRL reads calls back.
"""

import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from trajsmith.export.loss_mask import training_template
from trajsmith.models import CheckpointInfo, write_checkpoint_info
from trajsmith.models.precision import choose_training_dtype, read_stored_dtype
from trajsmith.models.transformers_engine import add_response_template, open_model, open_tokenizer
from trajsmith.records import JsonObject, RunError
from trajsmith.train_sft.model_card import build_model_card

_TORCH_COULD_NOT_WRITE = re.compile(r"PytorchStreamWriter|inline_container|unexpected pos|write failed")
"""In what torch says of a disk that is full: it has no class of its own for it."""


def open_training_tokenizer(model: str) -> Any:
    """Open the tokenizer of a model with the training template and the response template set.

    Raises:
        InputError: There is none, or no template that can be trained with and read back.
    """
    return set_templates(open_tokenizer(model), model)


def open_training_model(model: str, adapters: bool = False) -> Any:
    """Open the weights of a model in the type in which they, or adapters on them, are trained.

    Raises:
        InputError: There are none, or a save was interrupted.
    """
    return open_model(model, choose_training_dtype(model, adapters))


def read_dtype(model: str) -> Any:
    """Return torch's type to store a trained model in: that of the model it started from; None for one made here."""
    import torch

    return getattr(torch, read_stored_dtype(model)) if model else None


def set_templates(tokenizer: Any, name: str) -> Any:
    """Set both templates; a tokenizer saved by trajsmith has them already."""
    tokenizer = add_response_template(tokenizer, name)
    tokenizer.chat_template = training_template(tokenizer)
    return tokenizer


@contextmanager
def translate_write_errors(out: Path, advice: str | None = None) -> Iterator[None]:
    """Translate write errors of Python, safetensors or torch (full or broken disk) into one line.

    Args:
        out: Folder of the model.
        advice: What to do when there is space again; None says it for a training.

    Raises:
        RunError: It could not be written; what was whole before is kept.
    """
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        raise _build_write_error(out, getattr(error, "strerror", None) or error, advice) from error
    except RuntimeError as error:
        if not _TORCH_COULD_NOT_WRITE.search(str(error)):
            raise
        raise _build_write_error(out, error, advice) from error


def _build_write_error(out: Path, cause: object, advice: str | None) -> RunError:
    checkpoint = find_newest_checkpoint(out)
    how = advice or ("continue with --resume" if checkpoint else "start again: there is no whole checkpoint yet")
    reason = (str(cause).splitlines() or ["no reason given"])[0]
    return RunError(f"{out}: could not be written ({reason}); free some space, then {how}")


def save_atomically(
    model: Any, tokenizer: Any, out: Path, info: CheckpointInfo | None = None, dtype: Any = None
) -> None:
    """Write beside `out` first and then rename: what stands there is always a whole model.

    Args:
        model: Trained model.
        tokenizer: With the templates that it was trained with.
        out: Folder.
        info: Notes beside the weights, from which the card is made.
        dtype: Torch's type to store the weights in; None is that of the model.

    Raises:
        RunError: The disk is full or broken; what stood there is kept.
    """
    fresh = out.with_name(f".{out.name}.saving")
    with translate_write_errors(out):
        shutil.rmtree(fresh, ignore_errors=True)
        model.to(dtype).save_pretrained(fresh)
        tokenizer.save_pretrained(fresh)
        if info is not None:
            write_checkpoint_info(fresh, info)
            (fresh / "README.md").write_text(build_model_card(info, out.name), "utf-8")
        out.mkdir(parents=True, exist_ok=True)
        for file in sorted(fresh.iterdir(), key=lambda path: path.name == "config.json"):
            file.replace(out / file.name)
        fresh.rmdir()


def find_newest_checkpoint(out: Path) -> str | None:
    """Return the last complete checkpoint of an interrupted training; incomplete ones are skipped."""
    checkpoints = [
        path for path in (out / "checkpoints").glob("checkpoint-*") if (path / "trainer_state.json").is_file()
    ]
    return str(max(checkpoints, key=lambda path: int(path.name.rsplit("-", 1)[1]))) if checkpoints else None


def save_result(trainer: Any, tokenizer: Any, config: Any, info: CheckpointInfo, seconds: float) -> None:
    """Save the trained model with notes and metrics; where a launcher started several processes, the first one does.

    Args:
        trainer: One of TRL's trainers, at its end.
        tokenizer: With the templates that the model was trained with.
        config: Settings of the training: `model`, `out` and `lora`.
        info: Notes beside the weights.
        seconds: CPU time of this process.

    Raises:
        RunError: The disk is full or broken; checkpoints are kept.
    """
    import torch

    summed = trainer.accelerator.reduce(torch.tensor(seconds, device=trainer.accelerator.device), reduction="sum")
    if trainer.is_world_process_zero():
        save_atomically(merge_adapters(trainer, config.lora), tokenizer, config.out, info, read_dtype(config.model))
        write_metrics(trainer.state.log_history, config.out, float(summed))
    trainer.accelerator.wait_for_everyone()


def merge_adapters(trainer: Any, lora: JsonObject | None) -> Any:
    """Return the trained model for serving: LoRA adapters are merged into the weights."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    return model.merge_and_unload() if lora is not None else model


def write_metrics(history: Iterable[JsonObject], out: Path, seconds: float) -> None:
    """Write the trainer's log beside the model, a line per entry.

    Args:
        seconds: CPU time of all processes since the training began or went on, for the last line.
    """
    entries = [entry | {"train_cpu_seconds": seconds} if "train_runtime" in entry else entry for entry in history]
    (out / "metrics.jsonl").write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in entries))
