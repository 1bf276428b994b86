"""Supervised fine-tuning on exported rows, thin over TRL's `SFTTrainer`."""

from trajsmith.train_sft.settings import (
    DatasetShare,
    FreezeSettings,
    HistorySettings,
    ScratchSettings,
    SftConfig,
    ValidationSettings,
)

__all__ = ["DatasetShare", "FreezeSettings", "HistorySettings", "ScratchSettings", "SftConfig", "ValidationSettings"]
