"""A model on this machine: requests of many episodes are answered together, in one batch of `generate`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.evals.roles import CompletionFn, ModelOutput
from trajsmith.records import FunctionCall, JsonObject, Message, Task, ToolCall

OPENS, CLOSES = "<tool_call>", "</tool_call>"
THINKS = "<think>"


@dataclass(frozen=True)
class PendingRequest:
    """Generation request that waits for its batch."""

    ids: list[int]
    tools: list[JsonObject]
    answer: "asyncio.Future[ModelOutput]"


class TransformersModel:
    """Answers with a `transformers` model; use as an asynchronous context.

    Args:
        name: What it is called in the results.
        model: A causal language model.
        tokenizer: Its tokenizer, with the templates that it was trained with.
        max_new_tokens: Limit of one message.
        temperature: 0 takes the likeliest token every time.
        batch: Requests answered together.
    """

    def __init__(
        self, name: str, model: Any, tokenizer: Any, max_new_tokens: int, temperature: float = 0.0, batch: int = 32
    ) -> None:
        self.name = name
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.max_new_tokens = max_new_tokens
        self.temperature = temperature
        self.batch = batch
        self.waiting: asyncio.Queue[PendingRequest] = asyncio.Queue()

    async def __aenter__(self) -> "TransformersModel":
        self.worker = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.worker.cancel()
        await asyncio.gather(self.worker, return_exceptions=True)

    def of(self, task: Task, sample: int) -> CompletionFn:
        """The model in one episode; it draws anew every time."""
        return self.complete

    async def complete(self, messages: list[Message], tools: list[JsonObject]) -> ModelOutput:
        """The next message; a conversation that fills the model's context ends with an empty, cut one."""
        rows = [message.model_dump(mode="json", exclude_none=True) for message in messages]
        ids = self.tokenizer.apply_chat_template(
            rows, tools=tools or None, add_generation_prompt=True, return_dict=False
        )
        if len(ids) + self.max_new_tokens > self.model.config.max_position_embeddings:
            return ModelOutput(Message(role="assistant"), 0, cut=True)
        request = PendingRequest(ids, tools, asyncio.get_running_loop().create_future())
        await self.waiting.put(request)
        return await request.answer

    async def _serve(self) -> None:
        while True:
            requests = [await self.waiting.get()]
            await asyncio.sleep(0.01)
            while len(requests) < self.batch and not self.waiting.empty():
                requests.append(self.waiting.get_nowait())
            try:
                replies = await asyncio.to_thread(self._generate, requests)
            except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must learn of it
                for request in requests:
                    request.answer.set_exception(error)
                continue
            for request, reply in zip(requests, replies, strict=True):
                request.answer.set_result(reply)

    def _generate(self, requests: Sequence[PendingRequest]) -> list[ModelOutput]:
        import torch

        padded = self.tokenizer.pad({"input_ids": [request.ids for request in requests]}, return_tensors="pt")
        padded = padded.to(self.model.device)
        sampling = {"do_sample": True, "temperature": self.temperature, "top_k": 0} if self.temperature else {}
        with torch.no_grad():
            generated = self.model.generate(
                **padded, max_new_tokens=self.max_new_tokens, **({"do_sample": False} | sampling)
            )
        start = padded["input_ids"].shape[1]
        return [self._reply(request, row) for request, row in zip(requests, generated[:, start:].tolist(), strict=True)]

    def _reply(self, request: PendingRequest, row: list[int]) -> ModelOutput:
        ends = [self.tokenizer.eos_token_id, self.tokenizer.pad_token_id]
        stop = next((index for index, token in enumerate(row) if token in ends), None)
        return parse_generated_ids(self.tokenizer, request.ids, row if stop is None else row[: stop + 1], request.tools)


def parse_generated_ids(tokenizer: Any, prefix: list[int], ids: list[int], tools: list[JsonObject]) -> ModelOutput:
    """Parse generated tokens: text, tool calls, whether it was truncated, whether a call is malformed.

    Reasoning is kept: a template would show the model an empty block in its place, which it never wrote. Only a block
    that the model itself left empty is an empty text; TRL's parser leaves that key out.
    """
    from trl.chat_template_utils import parse_response

    if not ids:
        return ModelOutput(Message(role="assistant"), 0, cut=True)
    parsed, text = parse_response(tokenizer, ids, prefix=prefix, tools=tools), tokenizer.decode(ids)
    if text.lstrip().startswith(THINKS):
        parsed.setdefault("reasoning_content", "")
    message = build_message(parsed, len(prefix))
    malformed = text.count(OPENS) != len(message.tool_calls or ()) or text.count(OPENS) != text.count(CLOSES)
    return ModelOutput(
        message, len(ids), cut=ids[-1] not in (tokenizer.eos_token_id, tokenizer.pad_token_id), malformed=malformed
    )


def build_message(parsed: JsonObject, number: int) -> Message:
    """Convert TRL's parsed response to a message; calls whose arguments are not an object are left out.

    Args:
        parsed: What `parse_response` gave.
        number: Makes the ids of the calls unique in the conversation.
    """
    calls = []
    for index, call in enumerate(parsed.get("tool_calls") or ()):
        function = call["function"]
        if isinstance(function.get("name"), str) and isinstance(function.get("arguments"), dict):
            function_call = FunctionCall(name=function["name"], arguments=function["arguments"])
            calls.append(ToolCall(id=f"call_{number}_{index}", function=function_call))
    return Message(
        role="assistant",
        content=parsed.get("content") or "",
        reasoning_content=parsed.get("reasoning_content"),
        tool_calls=tuple(calls) or None,
    )
