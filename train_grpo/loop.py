"""All steps of one batch of episodes after the first message, in place of TRL's loop of tool calls."""

from time import perf_counter
from typing import Any

from trajsmith.export.history import apply_window
from trajsmith.models import ChatReply
from trajsmith.models.transformers_engine import parse_generated_ids
from trajsmith.records import JsonObject, Message, RunError, Task
from trajsmith.train_grpo.credit import ModelStep
from trajsmith.train_grpo.rollouts import Rollout, collect_next_steps, send_replies


class EpisodeLoop:
    """Loop over the steps of a batch of episodes. Every list has one entry per episode.

    Args:
        trainer: TRL's trainer, which generates.
        prompt_ids: System prompt and first request, tokenised.
        completion_ids: The first messages of the model.
        completions: The same, parsed.
        logprobs: Of their tokens, where the engine gives them.
        window: Assistant turns of history that the model sees; None shows all.
    """

    def __init__(
        self,
        trainer: Any,
        prompt_ids: list[list[int]],
        completion_ids: list[list[int]],
        completions: list[list[JsonObject]],
        logprobs: list[list[float]] | None,
        window: int | None = None,
    ) -> None:
        self.trainer = trainer
        self.window = window
        self.prompt_ids = prompt_ids
        self.ids = completion_ids
        self.completions = completions
        self.logprobs = logprobs
        self.mask = [[1] * len(ids) for ids in completion_ids]
        self.rollouts: list[Rollout] = [environment._rollout for environment in trainer.environments]
        episode_logprobs = logprobs or [[] for _ in completion_ids]
        self.steps = [
            [ModelStep(list(prompt), list(ids), 0, 0, list(step_logprobs))]
            for prompt, ids, step_logprobs in zip(prompt_ids, completion_ids, episode_logprobs, strict=True)
        ]
        """Messages of the model."""
        self.said: list[int] = [0] * len(completion_ids)
        """Messages of the dialogue that are in the ids already."""
        self.seconds = 0.0
        """Time that the trainer waited for environments."""

    def run(self) -> tuple[Any, ...]:
        active = self._open()
        while active:
            self._answer(active)
            active = self._generate(self._ask(active))
        done = self._verdicts()
        events = [event for result in done if result for event in result[1].events]
        failed = sum(not event.ok for event in events)
        return self.mask, self.completions, self.ids, self.logprobs, len(events), failed, [[] for _ in self.ids]

    def _open(self) -> list[int]:
        """Wait until every dialogue asks for its first message, which was generated already."""
        for rollout in self.rollouts:
            rollout.start(self.trainer.background)
        steps = self._next(range(len(self.rollouts)))
        for index, step in steps.items():
            self.said[index] = len(step)
        return list(steps)

    def _next(self, asked: Any) -> dict[int, list[Message]]:
        """The next question of each of these episodes; those that are over are left out."""
        start = perf_counter()
        order = list(asked)
        steps = collect_next_steps(self.trainer.background, [self.rollouts[index] for index in order])
        self.seconds += perf_counter() - start
        return {index: step for index, step in zip(order, steps, strict=True) if step is not None}

    def _verdicts(self) -> list[Any]:
        """Wait until all are judged; most were, while others went on."""
        start = perf_counter()
        done = [rollout.verdict() for rollout in self.rollouts]
        self.seconds += perf_counter() - start
        return done

    def _answer(self, active: list[int]) -> None:
        replies = [self._reply(index) for index in active]
        start = perf_counter()
        pairs = [(self.rollouts[index], reply) for index, reply in zip(active, replies, strict=True)]
        send_replies(self.trainer.background, pairs)
        self.seconds += perf_counter() - start

    def _reply(self, index: int) -> ChatReply:
        step = self.steps[index][-1]
        return parse_generated_ids(self.trainer._tokenizer, step.context, step.ids, self._tools(index))

    def _tools(self, index: int) -> list[JsonObject]:
        tools: list[JsonObject] = self.trainer._env_tools[self.trainer._batch_environments[index]]
        return tools

    def _ask(self, active: list[int]) -> dict[int, tuple[list[int], list[Message]]]:
        """Index to the ids of what was said since, and the dialogue; an episode without room for them is ended."""
        asked: dict[int, tuple[list[int], list[Message]]] = {}
        full = []
        for index, step in self._next(active).items():
            new = step[self.said[index] + 1 :]
            self.said[index] = len(step)
            ids = self._suffix(new)
            if len(self.ids[index]) + len(ids) + 1 >= self.trainer.max_completion_length:
                full.append(index)
                continue
            self.completions[index] += [build_template_row(message) for message in new]
            asked[index] = ids, step
        self._end(full)
        return asked

    def _end(self, full: list[int]) -> None:
        if full:
            nothing = ChatReply(message=Message(role="assistant"), finish_reason="length")
            send_replies(self.trainer.background, [(self.rollouts[index], nothing) for index in full])
            self._next(full)

    def _suffix(self, new: list[Message]) -> list[int]:
        """Ids of messages after the model's, as the template renders them, up to where the model goes on."""
        trainer = self.trainer
        stub = [{"role": "user", "content": "d"}, {"role": "assistant", "content": "d"}]
        options = {"tokenize": True, "chat_template": trainer.chat_template, "return_dict": False}
        tokenizer = trainer.processing_class
        before = tokenizer.apply_chat_template(stub, **options)
        after = tokenizer.apply_chat_template(
            stub + [build_template_row(message) for message in new], add_generation_prompt=True, **options
        )
        cut = len(before) - before[::-1].index(trainer._tokenizer.eos_token_id)
        if after[:cut] != before[:cut]:
            raise RunError("the chat template renders earlier messages otherwise when others follow: choose another")
        return list(after[cut:])

    def _context(self, index: int, suffix: list[int], step: list[Message]) -> list[int]:
        """Return the model's context: all messages, or those in the window, rendered again."""
        if self.window is not None:
            rows = [build_template_row(message) for message in step]
            windowed_rows = apply_window(rows, len(rows), self.window)
            if len(windowed_rows) < len(rows):
                return list(
                    self.trainer.processing_class.apply_chat_template(
                        windowed_rows,
                        tools=self._tools(index),
                        add_generation_prompt=True,
                        tokenize=True,
                        chat_template=self.trainer.chat_template,
                        return_dict=False,
                    )
                )
        return self.prompt_ids[index] + self.ids[index] + suffix

    def _generate(self, asked: dict[int, tuple[list[int], list[Message]]]) -> list[int]:
        """The next message of those that asked; they stay active."""
        if not asked:
            return []
        active, trainer = list(asked), self.trainer
        contexts = [self._context(index, *asked[index]) for index in active]
        generated, step_logprobs = trainer._generate_single_turn(contexts, None, {}, 1)
        for number, (index, ids) in enumerate(zip(active, generated, strict=True)):
            suffix, step = asked[index]
            ids = ids[: trainer.max_completion_length - len(self.ids[index]) - len(suffix)]
            drawn = [] if step_logprobs is None else list(step_logprobs[number][: len(ids)])
            turn = find_turn(self.rollouts[index].task, step)
            start = len(self.ids[index]) + len(suffix)
            self.steps[index].append(ModelStep(contexts[number], list(ids), turn, start, drawn))
            self.ids[index] = self.ids[index] + suffix + ids
            self.mask[index] += [0] * len(suffix) + [1] * len(ids)
            if self.logprobs is not None:
                self.logprobs[index] += [0.0] * len(suffix) + drawn
            self.completions[index].append(build_template_row(self._reply(index).message))
        return active


def find_turn(task: Task, messages: list[Message]) -> int:
    """Return the task's user turn that the messages are in, from 0: users may speak several times in a turn."""
    turn = 0
    for message in messages[2:]:
        if message.role == "user" and turn + 1 < len(task.turns) and message.content == task.turns[turn + 1].query:
            turn += 1
    return turn


def build_template_row(message: Message) -> JsonObject:
    """The message as templates take it."""
    return message.model_dump(mode="json", exclude_none=True)
