"""Reinforcement learning on live environments, thin over TRL's `GRPOTrainer`."""

from trajsmith.train_grpo.settings import GrpoConfig

__all__ = ["GrpoConfig"]
