"""Reinforcement learning on live environments, on TRL's own `GRPOTrainer`."""

from trajsmith.train_grpo.episodes import MESSAGE_USER, EpisodeSource, build_class_name, needs_user
from trajsmith.train_grpo.factory import EpisodeFactory, build_factories
from trajsmith.train_grpo.reward_functions import EpisodeReward
from trajsmith.train_grpo.rewards import ACCEPTED, check_exported_reward, check_reward, choose_reward
from trajsmith.train_grpo.rollout_function import DialogueRollouts
from trajsmith.train_grpo.rollouts import Rollout, build_text_reply
from trajsmith.train_grpo.settings import GrpoConfig

__all__ = [
    "ACCEPTED",
    "MESSAGE_USER",
    "DialogueRollouts",
    "EpisodeFactory",
    "EpisodeReward",
    "EpisodeSource",
    "GrpoConfig",
    "Rollout",
    "build_class_name",
    "build_factories",
    "build_text_reply",
    "check_exported_reward",
    "check_reward",
    "choose_reward",
    "needs_user",
]
