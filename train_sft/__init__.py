"""Fine-tuning on exported rows and preference pairs, thin over TRL's `SFTTrainer` and `DPOTrainer`."""

from trajsmith.train_sft.settings import (
    DatasetShare,
    DpoConfig,
    FreezeSettings,
    HistorySettings,
    ScratchSettings,
    SftConfig,
    ValidationSettings,
)

__all__ = [
    "DatasetShare",
    "DpoConfig",
    "FreezeSettings",
    "HistorySettings",
    "ScratchSettings",
    "SftConfig",
    "ValidationSettings",
]
