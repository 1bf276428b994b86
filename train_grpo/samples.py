"""Training sample of an episode: all of it, one of its user turns, or one of its messages with its window of history.

TRL takes one sample and one reward per prompt from a rollout function. So credit within an episode is sampled: all
episodes of a task and step give the same user turn, and their rewards from it on are compared with each other. That is
the advantage of the turn, and over the steps every turn is learnt from. With a window of history (AWM,
section 4.2), one message is drawn, in the context that the model saw.
"""

from dataclasses import dataclass, field

from trajsmith.records import derive_seed
from trajsmith.train_grpo.credit import ModelStep


@dataclass
class EpisodeTokens:
    """Tokens of one episode."""

    prompt_ids: list[int]
    """System prompt, tools and first request."""
    ids: list[int] = field(default_factory=list)
    """What follows: messages of the model, results of tools, and the user's words."""
    mask: list[int] = field(default_factory=list)
    """1 for tokens of the model, 0 for all others."""
    logprobs: list[float] | None = None
    """Of each token, by the engine that drew it, 0 for those that it did not draw; None if it gives none."""
    steps: list[ModelStep] = field(default_factory=list)
    """Messages of the model."""

    def append(
        self, context: list[int], suffix: list[int], ids: list[int], turn: int, drawn: list[float] | None
    ) -> None:
        """Append what was said since the last message of the model, and its next message."""
        self.steps.append(ModelStep(context, ids, turn, len(self.ids) + len(suffix), drawn))
        self.ids += [*suffix, *ids]
        self.mask += [0] * len(suffix) + [1] * len(ids)
        if drawn is not None:
            self.logprobs = [*(self.logprobs or []), *[0.0] * len(suffix), *drawn]


@dataclass(frozen=True)
class EpisodeSample:
    """Sample that TRL takes of one episode."""

    prompt_ids: list[int]
    completion_ids: list[int]
    mask: list[int]
    logprobs: list[float] | None
    """Of each token of `completion_ids`; None if the engine gives none."""


def build_sample(tokens: EpisodeTokens, turn: int | None, message: int | None, pad: int) -> EpisodeSample:
    """Build the sample of an episode.

    Args:
        tokens: The episode.
        turn: User turn that is learnt, from 0; None learns all. Nothing is learnt of an episode that never came to it.
        message: Number by which one message of these is drawn, with its own context; None takes all in one sample.
        pad: Token of a sample in which nothing is learnt.
    """
    steps = [step for step in tokens.steps if step.ids and turn in (None, step.turn)]
    if not steps:
        return EpisodeSample(tokens.prompt_ids, [pad], [0], None if tokens.logprobs is None else [0.0])
    if message is not None:
        step = steps[message % len(steps)]
        return EpisodeSample(step.context, step.ids, [1] * len(step.ids), step.logprobs)
    if turn is None:
        return EpisodeSample(tokens.prompt_ids, tokens.ids, tokens.mask, tokens.logprobs)
    start, stop = steps[0].start, steps[-1].start + len(steps[-1].ids)
    prompt = [*tokens.prompt_ids, *tokens.ids[:start]]
    logprobs = None if tokens.logprobs is None else tokens.logprobs[start:stop]
    return EpisodeSample(prompt, tokens.ids[start:stop], tokens.mask[start:stop], logprobs)


def draw_turn(task_id: str, turns: int, step: int) -> int:
    """Draw the user turn that all episodes of a task learn in a step."""
    return derive_seed("turn", task_id, step) % turns


def draw_message(task_id: str, step: int, index: int) -> int:
    """Draw a number for the message that one episode of a batch gives."""
    return derive_seed("message", task_id, step, index)
