"""TRL's `rollout_func` for whole dialogues, with the simulated user, and tools by their own schemas."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from trajsmith.records import JsonObject
from trajsmith.train_grpo.episodes import OpenSource, get_result
from trajsmith.train_grpo.generation import GenerationCopies, open_generator
from trajsmith.train_grpo.loop import EpisodeLoop
from trajsmith.train_grpo.samples import build_sample, draw_message, draw_turn
from trajsmith.train_sft.checkpoint import set_templates


class DialogueRollouts:
    """Plays the episodes of a batch for a stock `GRPOTrainer`, and masks what the model did not write.

    Args:
        source: Gives the source of the episodes.
        window: Assistant turns of history that the model sees; with it, one message of each episode is learnt, in the
            context in which it was written. None shows all, and every message is learnt.
        turn_weight: With more than 0, one user turn of each episode is learnt, the same one in all episodes of a task;
            `EpisodeReward` gives what it earned this weight.
        message_tokens: Limit of one message; None is that of the whole episode (`max_completion_length`).
    """

    def __init__(
        self,
        source: OpenSource,
        window: int | None = None,
        turn_weight: float = 0.0,
        message_tokens: int | None = None,
    ) -> None:
        self.source = source
        self.window = window
        self.turn_weight = turn_weight
        self.message_tokens = message_tokens
        self._copies = GenerationCopies()
        self._tokenizer: Any = None

    def __call__(self, prompts: Sequence[Sequence[JsonObject]], trainer: Any) -> dict[str, Any]:
        """Return `prompt_ids`, `completion_ids`, `logprobs` and `env_mask`, and `episodes` for the rewards."""
        source = self.source()
        rollouts = [source.open_episode(prompt[-1]["task_id"]) for prompt in prompts]
        tools = [source.render_tools(rollout.task) for rollout in rollouts]
        if self._tokenizer is None:
            self._tokenizer = set_templates(copy(trainer.processing_class), "model")
        with open_generator(trainer, self._copies, self.message_tokens) as generator:
            loop = EpisodeLoop(
                rollouts,
                [list(prompt) for prompt in prompts],
                tools,
                self._tokenizer,
                generator,
                source.background,
                trainer.args.max_completion_length,
                self.window,
            )
            tokens = loop.run()
        step, offset = trainer.state.global_step, trainer.accelerator.process_index * len(rollouts)
        samples, episodes = [], []
        for index, (rollout, episode) in enumerate(zip(rollouts, tokens, strict=True)):
            task = rollout.task
            turn = draw_turn(task.id, len(task.turns), step) if self.turn_weight else None
            message = None if self.window is None else draw_message(task.id, step, offset + index)
            samples.append(build_sample(episode, turn, message, self._tokenizer.pad_token_id))
            episodes.append(get_result(rollout, loop.seconds / len(rollouts), turn))
        logprobs = [sample.logprobs for sample in samples]
        return {
            "prompt_ids": [sample.prompt_ids for sample in samples],
            "completion_ids": [sample.completion_ids for sample in samples],
            "logprobs": None if any(one is None for one in logprobs) else logprobs,
            "env_mask": [sample.mask for sample in samples],
            "episodes": episodes,
        }
