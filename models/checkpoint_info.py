"""What trajsmith notes beside the weights of a checkpoint: where it comes from, and how its prompts were rendered."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trajsmith.records import FrozenModel, InputError, JsonObject, ToolStyle

FILE = "trajsmith.json"


class CheckpointInfo(FrozenModel):
    """Content of `trajsmith.json` in the folder of a model."""

    origin: JsonObject = {}
    """Where the first weights come from: package, file, SHA-256, licence, chat template."""
    tools: ToolStyle = "full"
    """How the tools were shown in training, and are shown wherever the model is played."""
    training: tuple[JsonObject, ...] = ()
    """Trainings since, the first one first: kind, settings, data."""


def read_checkpoint_info(model: str) -> CheckpointInfo:
    """Return the notes of a model on disk; empty for a name on the Hub and for a folder without notes.

    Raises:
        InputError: The notes cannot be read.
    """
    file = Path(model) / FILE
    if not file.is_file():
        return CheckpointInfo()
    try:
        return CheckpointInfo.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        cause: Any = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.strerror
        raise InputError(f"{file}: cannot be read ({cause}); restore it from the training that wrote it") from error


def write_checkpoint_info(folder: Path, info: CheckpointInfo) -> None:
    """Write the notes into the folder of a model."""
    (folder / FILE).write_text(info.model_dump_json(indent=2) + "\n", "utf-8")
