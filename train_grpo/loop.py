"""All steps of one batch of episodes: the model writes, the environments and the simulated users answer."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.export.history import apply_window
from trajsmith.models import ChatReply
from trajsmith.models.transformers_engine import build_message, parse_generated_ids
from trajsmith.records import JsonObject, Message, RunError, Task
from trajsmith.train_grpo.generation import Generator
from trajsmith.train_grpo.rollouts import Rollout, build_text_reply, collect_next_steps, send_replies
from trajsmith.train_grpo.samples import EpisodeTokens

Asked = dict[int, tuple[list[int], list[Message]]]
"""Episode to the tokens of what was said since the model's last message, and the whole dialogue."""


class EpisodeLoop:
    """Loop over the steps of a batch of episodes. Every list has one entry per episode.

    Args:
        rollouts: The episodes, not started.
        prompts: System prompt and first request of each, as messages.
        tools: Tools that each prompt shows, as OpenAI functions.
        tokenizer: With the training template and the response template.
        generator: Draws the messages.
        background: Where the episodes run.
        episode_tokens: Limit of an episode after its prompt.
        window: Assistant turns of history that the model sees; None shows all.
    """

    def __init__(
        self,
        rollouts: Sequence[Rollout],
        prompts: Sequence[list[JsonObject]],
        tools: Sequence[list[JsonObject]],
        tokenizer: Any,
        generator: Generator,
        background: BackgroundLoop,
        episode_tokens: int,
        window: int | None = None,
    ) -> None:
        self.rollouts = rollouts
        self.tools = tools
        self.tokenizer = tokenizer
        self.generator = generator
        self.background = background
        self.episode_tokens = episode_tokens
        self.window = window
        self.episodes = [
            EpisodeTokens(self._render(prompt, shown)) for prompt, shown in zip(prompts, tools, strict=True)
        ]
        self.read: list[int] = [0] * len(rollouts)
        """Messages of the dialogue that are in the tokens already."""
        self.seconds = 0.0
        """Time that the trainer waited for environments."""

    def run(self) -> list[EpisodeTokens]:
        """Play all episodes to their end and verdict; return their tokens."""
        for rollout in self.rollouts:
            rollout.start(self.background)  # sessions open while the first messages are written
        self._generate({index: ([], []) for index in range(len(self.rollouts))})
        active = list(self._next(range(len(self.rollouts))))
        for index in active:
            self.read[index] = 2
        while active:
            self._answer(active)
            asked = self._ask(active)
            self._generate(asked)
            active = list(asked)
        start = perf_counter()
        for rollout in self.rollouts:  # most were judged while others went on
            rollout.verdict()
        self.seconds += perf_counter() - start
        return self.episodes

    def _next(self, asked: Sequence[int]) -> dict[int, list[Message]]:
        """Return the next request of each of these episodes; those that are over are left out."""
        start = perf_counter()
        steps = collect_next_steps(self.background, [self.rollouts[index] for index in asked])
        self.seconds += perf_counter() - start
        return {index: step for index, step in zip(asked, steps, strict=True) if step is not None}

    def _answer(self, active: list[int]) -> None:
        pairs = [(self.rollouts[index], self._parse_reply(index)) for index in active]
        start = perf_counter()
        send_replies(self.background, pairs)
        self.seconds += perf_counter() - start

    def _parse_reply(self, index: int) -> ChatReply:
        step = self.episodes[index].steps[-1]
        return parse_generated_ids(self.tokenizer, step.context, step.ids, self.tools[index])

    def _ask(self, active: list[int]) -> Asked:
        """Return what the episodes ask next; one without room for it is ended."""
        asked: Asked = {}
        full = []
        for index, step in self._next(active).items():
            suffix = self._render_suffix(step[self.read[index] + 1 :])
            self.read[index] = len(step)
            if len(self.episodes[index].ids) + len(suffix) + 1 >= self.episode_tokens:
                full.append(index)
            else:
                asked[index] = (suffix, step)
        self._end(full)
        return asked

    def _end(self, full: list[int]) -> None:
        if full:
            nothing = ChatReply(message=Message(role="assistant"), finish_reason="length")
            send_replies(self.background, [(self.rollouts[index], nothing) for index in full])
            self._next(full)

    def _generate(self, asked: Asked) -> None:
        """Write the next message of those that asked."""
        if not asked:
            return
        contexts = [self._build_context(index, *asked[index]) for index in asked]
        generated, logprobs = self.generator(contexts)
        for number, (index, ids) in enumerate(zip(asked, generated, strict=True)):
            episode, (suffix, step) = self.episodes[index], asked[index]
            ids = ids[: self.episode_tokens - len(episode.ids) - len(suffix)]
            drawn = None if logprobs is None else list(logprobs[number][: len(ids)])
            turn = find_turn(self.rollouts[index].task, step)
            episode.append(contexts[number], suffix, list(ids), turn, drawn)

    def _build_context(self, index: int, suffix: list[int], step: list[Message]) -> list[int]:
        """Return the model's context: all messages, or those in the window, rendered again."""
        if self.window is not None:
            rows = [build_template_row(message) for message in step]
            windowed_rows = apply_window(rows, len(rows), self.window)
            if len(windowed_rows) < len(rows):
                return self._render(windowed_rows, self.tools[index])
        episode = self.episodes[index]
        return [*episode.prompt_ids, *episode.ids, *suffix]

    def _render(self, rows: list[JsonObject], tools: list[JsonObject]) -> list[int]:
        return list(
            self.tokenizer.apply_chat_template(rows, tools=tools, add_generation_prompt=True, return_dict=False)
        )

    def _render_suffix(self, new: list[Message]) -> list[int]:
        """Return the tokens of messages after the model's, as the template renders them, up to where it goes on."""
        stub = [{"role": "user", "content": "d"}, {"role": "assistant", "content": "d"}]
        before = self.tokenizer.apply_chat_template(stub, return_dict=False)
        rows = stub + [build_template_row(message) for message in new]
        after = self.tokenizer.apply_chat_template(rows, add_generation_prompt=True, return_dict=False)
        cut = len(before) - before[::-1].index(self.tokenizer.eos_token_id)
        if after[:cut] != before[:cut]:
            raise RunError("the chat template renders earlier messages otherwise when others follow: choose another")
        return list(after[cut:])


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


def parse_completion(message: Mapping[str, Any], number: int) -> ChatReply | None:
    """Return a message of TRL's completions as a reply of the model; None for those of others."""
    if message.get("role") != "assistant":
        return None
    if not message.get("tool_calls"):
        return build_text_reply(str(message.get("content") or ""))
    return ChatReply(message=build_message(dict(message), number))
