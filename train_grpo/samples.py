"""Training samples of a batch of episodes, as TRL's loss wants them (AWM, section 4.2 and appendix A, sample splits).

With a window of history, an episode of T messages becomes T samples: what the model saw when it wrote the message, and
the message. Without one, an episode is one sample, in which every message may have an advantage of its own.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from trajsmith.train_grpo.credit import ModelStep


def spread_advantages(steps: Sequence[Sequence[ModelStep]], advantages: Sequence[Sequence[float]], like: Any) -> Any:
    """Spread advantages of messages over the tokens of whole episodes; 0 elsewhere.

    Args:
        steps: Messages of every episode.
        advantages: One per message.
        like: Tensor (episodes, tokens) whose shape and device the result has.
    """
    import torch

    laid_out = torch.zeros(like.shape, dtype=torch.float32, device=like.device)
    for row, (episode_steps, values) in enumerate(zip(steps, advantages, strict=True)):
        for step, value in zip(episode_steps, values, strict=True):
            laid_out[row, step.start : step.start + len(step.ids)] = value
    return laid_out


def build_step_samples(
    steps: Sequence[Sequence[ModelStep]],
    advantages: Sequence[Sequence[float]],
    keep_flags: Sequence[bool],
    pad: int,
    parts: int,
    device: Any,
) -> dict[str, Any]:
    """Build one padded sample per message; their number is a multiple of `parts`, so that none is cut off.

    What fills it up has no token in the loss.

    Args:
        steps: Messages of every episode.
        advantages: One per message.
        kept: False for episodes that must teach nothing.
        pad: Token that pads.
        parts: Micro-batches that the samples are divided into.
        device: Where the tensors lie.
    """
    import torch

    samples = list(chain.from_iterable(steps))
    values = list(chain.from_iterable(advantages))
    alive = [keep for episode_steps, keep in zip(steps, keep_flags, strict=True) for _ in episode_steps]
    for _ in range(-len(samples) % parts):
        samples.append(ModelStep([pad], [pad], 0, 0, [0.0]))
        values.append(0.0)
        alive.append(False)
    wide, long = max(len(one.context) for one in samples), max(len(one.ids) for one in samples)
    left = [[pad] * (wide - len(one.context)) + one.context for one in samples]
    seen = [[0] * (wide - len(one.context)) + [1] * len(one.context) for one in samples]
    right = [one.ids + [pad] * (long - len(one.ids)) for one in samples]
    episode_steps = [[1] * len(one.ids) + [0] * (long - len(one.ids)) for one in samples]
    learnt = torch.tensor(episode_steps, device=device) * torch.tensor(alive, device=device).unsqueeze(1).int()
    return {
        "prompt_ids": torch.tensor(left, device=device),
        "prompt_mask": torch.tensor(seen, device=device),
        "completion_ids": torch.tensor(right, device=device),
        "completion_mask": torch.tensor(episode_steps, device=device),
        "tool_mask": learnt,
        "advantages": torch.tensor(values, dtype=torch.float32, device=device),
        "drawn": collect_sampling_logprobs(samples, long, device),
    }


def collect_sampling_logprobs(samples: Sequence[ModelStep], long: int, device: Any) -> Any:
    """Return log-probabilities of the sampling engine, (samples, tokens); None if it gives none."""
    import torch

    if any(len(one.logprobs) != len(one.ids) for one in samples):
        return None
    rows = [one.logprobs + [0.0] * (long - len(one.ids)) for one in samples]
    return torch.tensor(rows, dtype=torch.float32, device=device)
