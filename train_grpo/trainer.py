"""TRL's `GRPOTrainer` with our dialogues in place of its loop of tool calls, and tools rendered from their schemas."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.records import JsonObject
from trajsmith.train_grpo.credit import compute_step_advantages, compute_turn_advantages, compute_turn_rewards
from trajsmith.train_grpo.loop import EpisodeLoop
from trajsmith.train_grpo.rollouts import Rollout
from trajsmith.train_grpo.samples import build_step_samples, spread_advantages


@cache
def build_trainer_class() -> type:
    """Build the trainer class on demand, since TRL is an extra."""
    from trl import GRPOTrainer

    class DialogueTrainer(GRPOTrainer):  # type: ignore[misc]
        """GRPO on dialogues: tool results and the user's words are context, what the model writes is learnt.

        Args:
            background: Where the episodes run.
            schemas: Tools of each class of environments, as OpenAI functions.
            window: Assistant turns of history that the model sees, in episodes and in samples; None shows all.
            turn_weight: Weight of a user turn's own advantage beside the episode's, 0 to 1.
        """

        def __init__(
            self,
            *args: Any,
            background: BackgroundLoop,
            schemas: dict[str, list[JsonObject]],
            window: int | None = None,
            turn_weight: float = 0.0,
            **more: Any,
        ) -> None:
            super().__init__(*args, **more)
            self.background = background
            self.window = window
            self.turn_weight = turn_weight
            self._env_tools.update(schemas)
            self.loop: EpisodeLoop | None = None
            """Of the newest batch."""

        def _tool_call_loop(
            self,
            prompts: Any,
            prompt_ids: list[list[int]],
            completion_ids: list[list[int]],
            completions: list[list[JsonObject]],
            logprobs: list[list[float]] | None,
            images: Any,
            multimodal_fields: Any,
        ) -> tuple[Any, ...]:
            self.loop = EpisodeLoop(self, prompt_ids, completion_ids, completions, logprobs, self.window)
            outputs = self.loop.run()
            self._log_metric("environment/seconds", self.loop.seconds)
            return outputs

        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
            if self.loop is None or (self.window is None and not self.turn_weight):
                return batch
            return CreditAssigner(self, self.loop).apply(batch)

    return DialogueTrainer


class CreditAssigner:
    """Assigns advantages to the messages of a scored batch, and splits it into samples where configured.

    Args:
        trainer: The trainer, after its episodes are judged.
        loop: The episodes.
    """

    def __init__(self, trainer: Any, loop: EpisodeLoop) -> None:
        self.trainer = trainer
        self.steps = [[step for step in episode_steps if step.ids] for episode_steps in loop.steps]
        self.rollouts = loop.rollouts
        self.training: bool = trainer.model.training

    def apply(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch with advantages per message, or with a sample per message."""
        whole = batch["advantages"].tolist()
        by_turn = self._by_turn() if self.trainer.turn_weight else [[] for _ in whole]
        advantages = compute_step_advantages(self.steps, whole, by_turn, self.trainer.turn_weight)
        if self.trainer.window is None:
            return batch | {"advantages": spread_advantages(self.steps, advantages, batch["completion_ids"])}
        return self._split(batch, advantages)

    def _by_turn(self) -> list[list[float]]:
        """Advantages of the turns of the episodes of this process; a group may be spread over several."""
        from accelerate.utils import gather_object

        trainer = self.trainer
        group = trainer.num_generations if self.training else trainer.num_generations_eval
        rewards = gather_object([get_turn_rewards(rollout) for rollout in self.rollouts])
        start = trainer.accelerator.process_index * len(self.rollouts)
        return compute_turn_advantages(rewards, group)[start : start + len(self.rollouts)]

    def _split(self, batch: dict[str, Any], advantages: Sequence[Sequence[float]]) -> dict[str, Any]:
        trainer = self.trainer
        mask = batch["tool_mask"] * batch["completion_mask"]
        parts = trainer.args.steps_per_generation if self.training else 1
        samples = build_step_samples(
            self.steps, advantages, mask.any(dim=1).tolist(), trainer._tokenizer.pad_token_id, parts, mask.device
        )
        drawn, learnt = samples.pop("drawn"), samples["tool_mask"]
        samples["num_items_in_batch"] = trainer.accelerator.gather(learnt.sum()).sum()
        wanted = {"old_per_token_logps", "ref_per_token_logps"} & batch.keys()
        samples |= self._logprobs(samples, wanted)
        if "importance_sampling_ratio" in batch and drawn is not None:
            samples["importance_sampling_ratio"] = self._ratio(samples["old_per_token_logps"], drawn, learnt)
            samples["sampling_per_token_logps"] = drawn
        return samples

    def _logprobs(self, samples: dict[str, Any], wanted: set[str]) -> dict[str, Any]:
        """Log-probabilities of the samples' tokens by the model as it is and by the reference, where TRL uses them."""
        import torch

        logprobs: dict[str, Any] = {}
        with torch.no_grad():
            if "old_per_token_logps" in wanted:
                logprobs["old_per_token_logps"] = self._scored(self.trainer.model, samples)
            if "ref_per_token_logps" in wanted:
                logprobs["ref_per_token_logps"] = self._by_reference(samples)
        return logprobs

    def _by_reference(self, samples: dict[str, Any]) -> Any:
        from trl.trainer.utils import use_adapter

        trainer = self.trainer
        if trainer.ref_model is not None:
            return self._scored(trainer.ref_model, samples)
        model = trainer.accelerator.unwrap_model(trainer.model)
        with use_adapter(model, adapter_name="ref" if "ref" in model.peft_config else None):
            return self._scored(trainer.model, samples)

    def _scored(self, model: Any, samples: dict[str, Any]) -> Any:
        import torch

        ids = torch.cat([samples["prompt_ids"], samples["completion_ids"]], dim=1)
        seen = torch.cat([samples["prompt_mask"], samples["completion_mask"]], dim=1)
        long, size = samples["completion_ids"].size(1), self.trainer.args.per_device_train_batch_size
        return self.trainer._get_per_token_logps_and_entropies(model, ids, seen, long, batch_size=size)[0]

    def _ratio(self, old: Any, drawn: Any, learnt: Any) -> Any:
        """Compute the importance ratio of the trained model to the sampling engine, within TRL's bounds."""
        import torch

        trainer = self.trainer
        mode: str = trainer.vllm_importance_sampling_mode
        apart = torch.nan_to_num((old - drawn) * learnt, nan=0.0)
        ratio = torch.exp(apart.sum(dim=-1, keepdim=True) if mode.startswith("sequence") else apart)
        low, high = trainer.vllm_importance_sampling_clip_min, trainer.vllm_importance_sampling_clip_max
        if mode.endswith("truncate"):
            return torch.clamp(ratio, min=low, max=high)
        least, most = -math.inf if low is None else low, math.inf if high is None else high
        return ratio.masked_fill((ratio < least) | (ratio > most), 0.0)


def get_turn_rewards(rollout: Rollout) -> list[float] | None:
    """Return the reward of each turn of the episode's task; None if it is undecided."""
    done = rollout.verdict()
    return None if done is None else compute_turn_rewards(done[1], done[2], len(rollout.task.turns))
