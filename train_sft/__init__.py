"""Supervised fine-tuning on exported rows, thin over TRL's `SFTTrainer`."""

from trajsmith.train_sft.settings import HistorySettings, ScratchSettings, SftConfig

__all__ = ["HistorySettings", "ScratchSettings", "SftConfig"]
