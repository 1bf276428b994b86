"""TRL's `GRPOTrainer` with our dialogues in place of its loop of tool calls, and tools rendered from their schemas."""

from functools import cache
from typing import Any

from arena import Reply
from arena.local import reply_of
from environments.blocking import Background
from train_grpo.rollouts import Rollout, answer, next_steps
from trajectory import JsonObject, Message, RunError


@cache
def trainer_class() -> type:
    """Made when it is needed, since TRL is an extra."""
    from trl import GRPOTrainer

    class DialogueTrainer(GRPOTrainer):  # type: ignore[misc]
        """GRPO on dialogues: tool results and the user's words are context, what the model writes is learnt."""

        def __init__(
            self, *args: Any, background: Background, schemas: dict[str, list[JsonObject]], **more: Any
        ) -> None:
            super().__init__(*args, **more)
            self.background = background
            self._env_tools.update(schemas)

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
            return Loop(self, prompt_ids, completion_ids, completions, logprobs).run()

    return DialogueTrainer


class Loop:
    """All steps of one batch after the first message; every list has one entry per episode."""

    def __init__(
        self,
        trainer: Any,
        prompt_ids: list[list[int]],
        completion_ids: list[list[int]],
        completions: list[list[JsonObject]],
        logprobs: list[list[float]] | None,
    ) -> None:
        self.trainer = trainer
        self.prompt_ids = prompt_ids
        self.ids = completion_ids
        self.completions = completions
        self.logprobs = logprobs
        self.mask = [[1] * len(ids) for ids in completion_ids]
        self.rollouts: list[Rollout] = [environment._rollout for environment in trainer.environments]
        self.last = [list(ids) for ids in completion_ids]
        """Tokens of the newest message."""
        self.said: list[int] = [0] * len(completion_ids)
        """Messages of the dialogue that are in the ids already."""

    def run(self) -> tuple[Any, ...]:
        active = self._open()
        while active:
            self._answer(active)
            active = self._generate(self._ask(active))
        done = [rollout.done for rollout in self.rollouts]
        events = [event for result in done if result for event in result[1].events]
        failed = sum(not event.ok for event in events)
        return self.mask, self.completions, self.ids, self.logprobs, len(events), failed, [[] for _ in self.ids]

    def _open(self) -> list[int]:
        """Wait until every dialogue asks for its first message, which was generated already."""
        background = self.trainer.background
        for rollout in self.rollouts:
            rollout.start(background)
        steps = next_steps(background, self.rollouts)
        for index, step in enumerate(steps):
            if step is not None:
                self.said[index] = len(step)
        return [index for index, step in enumerate(steps) if step is not None]

    def _answer(self, active: list[int]) -> None:
        pairs = [(self.rollouts[index], self._reply(index)) for index in active]
        answer(self.trainer.background, pairs)

    def _reply(self, index: int) -> Reply:
        prefix = self.prompt_ids[index] + self.ids[index][: len(self.ids[index]) - len(self.last[index])]
        tools = self.trainer._env_tools[self.trainer._batch_environments[index]]
        return reply_of(self.trainer._tokenizer, prefix, self.last[index], tools)

    def _ask(self, active: list[int]) -> dict[int, list[int]]:
        """Index to the ids of what was said since; where there is no room for them the episode is ended."""
        asked: dict[int, list[int]] = {}
        steps = next_steps(self.trainer.background, [self.rollouts[index] for index in active])
        full = []
        for index, step in zip(active, steps, strict=True):
            if step is None:
                continue
            new = step[self.said[index] + 1 :]
            self.said[index] = len(step)
            ids = self._suffix(new)
            if len(self.ids[index]) + len(ids) + 1 >= self.trainer.max_completion_length:
                full.append(index)
                continue
            self.completions[index] += [row_of(message) for message in new]
            asked[index] = ids
        self._end(full)
        return asked

    def _end(self, full: list[int]) -> None:
        if full:
            nothing = Reply(Message(role="assistant"), 0, cut=True)
            answer(self.trainer.background, [(self.rollouts[index], nothing) for index in full])
            next_steps(self.trainer.background, [self.rollouts[index] for index in full])

    def _suffix(self, new: list[Message]) -> list[int]:
        """Ids of messages after the model's, as the template renders them, up to where the model goes on."""
        trainer = self.trainer
        stub = [{"role": "user", "content": "d"}, {"role": "assistant", "content": "d"}]
        options = {"tokenize": True, "chat_template": trainer.chat_template, "return_dict": False}
        tokenizer = trainer.processing_class
        before = tokenizer.apply_chat_template(stub, **options)
        after = tokenizer.apply_chat_template(
            stub + [row_of(message) for message in new], add_generation_prompt=True, **options
        )
        cut = len(before) - before[::-1].index(trainer._tokenizer.eos_token_id)
        if after[:cut] != before[:cut]:
            raise RunError("the chat template renders earlier messages otherwise when others follow: choose another")
        return list(after[cut:])

    def _generate(self, asked: dict[int, list[int]]) -> list[int]:
        """The next message of those that asked; they stay active."""
        if not asked:
            return []
        active, trainer = list(asked), self.trainer
        contexts = [self.prompt_ids[index] + self.ids[index] + asked[index] for index in active]
        made, found = trainer._generate_single_turn(contexts, None, {}, 1)
        for number, (index, ids) in enumerate(zip(active, made, strict=True)):
            suffix = asked[index]
            ids = ids[: trainer.max_completion_length - len(self.ids[index]) - len(suffix)]
            self.ids[index] = self.ids[index] + suffix + ids
            self.mask[index] += [0] * len(suffix) + [1] * len(ids)
            if self.logprobs is not None:
                self.logprobs[index] += [0.0] * len(suffix) + found[number][: len(ids)]
            self.last[index] = list(ids)
            self.completions[index].append(row_of(self._reply(index).message))
        return active


def row_of(message: Message) -> JsonObject:
    """The message as templates take it."""
    return message.model_dump(mode="json", exclude_none=True)
