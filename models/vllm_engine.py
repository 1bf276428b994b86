"""vLLM in this process (extra `vllm`): a model on this machine's GPU, without a server.

The chat template is the model's own. Tool calls are read in the form of Hermes and Qwen (`<tool_call>` with JSON) and
reasoning in `<think>`; for families that write them otherwise, `vllm serve` and provider openai know the form.
Written for vLLM 0.31 and later.
"""

import asyncio
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from trajsmith.models.failures import MAX_MESSAGE_LENGTH, FailedAttempt
from trajsmith.models.model import ChatReply, ChatRequest, FinishReason, MalformedCall, Usage
from trajsmith.models.serialization import JSON_WORDS, parse_tool_call
from trajsmith.models.settings import PROVIDERS, ModelSettings
from trajsmith.records import InputError, JsonObject, Message, RunError, ToolCall, install_command, to_one_line

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_THINKING = re.compile(r"\A\s*+(?:<think>)?(.*?)</think>\s*", re.DOTALL)


class VllmProvider:
    """One model in this process. The engine starts with the first request."""

    def __init__(self, entry: str, settings: ModelSettings) -> None:
        self.settings = settings
        self.where = f"models.{entry} ({settings.model} in vLLM)"
        self._engine: Any = None
        self._render: Callable[..., list[int]] | None = None
        self._most = 0
        self._start = asyncio.Lock()
        self._numbers = count()
        require_vllm(self.where)

    async def send(self, request: ChatRequest) -> ChatReply:
        async with self._start:
            if self._engine is None:
                await self._open()
        prompt = self._prompt(request)
        if len(prompt) >= self._most:
            reason = f"the prompt has {len(prompt)} tokens and the model takes {self._most}"
            raise FailedAttempt("context_overflow", reason, retryable=False)
        return self._reply(await self._generate(request, prompt), len(prompt), bool(request.tools))

    async def check(self) -> bool:
        """That vLLM is installed was seen; only its start shows the rest."""
        return False

    async def close(self) -> None:
        if self._engine is not None:
            self._engine.shutdown()
            self._engine = None

    async def _open(self) -> None:
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        try:
            arguments = AsyncEngineArgs(model=self.settings.model, **self.settings.engine)
            engine = AsyncLLM.from_engine_args(arguments)
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            reason = to_one_line(error, MAX_MESSAGE_LENGTH)
            raise InputError(f"{self.where}: the engine does not start: {reason}") from error
        tokenizer = engine.get_tokenizer()
        if asyncio.iscoroutine(tokenizer):  # a coroutine in some versions
            tokenizer = await tokenizer
        self._render = tokenizer.apply_chat_template
        self._most = engine.model_config.max_model_len
        self._engine = engine

    def _prompt(self, request: ChatRequest) -> list[int]:
        """Token ids of the prompt in the model's own template."""
        if self._render is None:
            raise ValueError("the engine has not been started")
        messages = [build_template_message(message) for message in request.messages]
        if request.reply_schema is not None and self.settings.structured == "prompt":
            messages.append({"role": "user", "content": JSON_WORDS + orjson.dumps(request.reply_schema).decode()})
        return self._render(
            messages,
            tools=list(request.tools) or None,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
            **self.settings.extra_body,
        )

    async def _generate(self, request: ChatRequest, prompt: list[int]) -> Any:
        from vllm import TokensPrompt
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        parameters = self._parameters(request, self._most - len(prompt), RequestOutputKind.FINAL_ONLY)
        identity = f"trajsmith-{next(self._numbers)}"
        last = None
        try:
            async for output in self._engine.generate(TokensPrompt(prompt_token_ids=prompt), parameters, identity):
                last = output
        except EngineDeadError as error:
            raise RunError(
                f"{self.where}: the engine died ({to_one_line(error, MAX_MESSAGE_LENGTH)}); then resume the run"
            ) from error
        except EngineGenerateError as error:
            raise FailedAttempt(
                "server", f"the engine failed: {to_one_line(error, MAX_MESSAGE_LENGTH)}", retryable=True
            ) from error
        except ValueError as error:
            raise FailedAttempt("bad_request", str(error), retryable=False) from error
        if last is None:
            raise FailedAttempt("bad_reply", "the engine gave no output", retryable=True)
        return last

    def _parameters(self, request: ChatRequest, room: int, kind: Any) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        parameters: JsonObject = {"max_tokens": min(request.max_tokens or room, room), "output_kind": kind}
        for name, value in (("temperature", request.temperature), ("top_p", request.top_p), ("seed", request.seed)):
            if value is not None:
                parameters[name] = value
        if request.stop:
            parameters["stop"] = list(request.stop)
        if request.reply_schema is not None and self.settings.structured != "prompt":
            parameters["structured_outputs"] = StructuredOutputsParams(json=request.reply_schema)
        return SamplingParams(**parameters)

    def _reply(self, output: Any, prompt_tokens: int, tools: bool) -> ChatReply:
        completion = output.outputs[0]
        usage = Usage(
            requests=1,
            prompt_tokens=prompt_tokens,
            cached_tokens=output.num_cached_tokens or 0,
            completion_tokens=len(completion.token_ids),
        )
        reasoning, text = split_reasoning(completion.text)
        text, calls, malformed = split_calls(text) if tools else (text.strip(), [], [])
        if not (text or calls or malformed):
            cut = completion.finish_reason == "length"
            raise FailedAttempt(
                "bad_reply", "the answer is empty", retryable=not cut, reply=completion.text[:4000], usage=usage
            )
        ended: FinishReason = "length" if completion.finish_reason == "length" else "tool_calls" if calls else "stop"
        message = Message(
            role="assistant", content=text, reasoning_content=reasoning or None, tool_calls=tuple(calls) or None
        )
        return ChatReply(
            message=message, malformed=tuple(malformed), finish_reason=ended, usage=usage, model=self.settings.model
        )


def require_vllm(where: str) -> None:
    """Raise the line that says how to install it.

    Raises:
        InputError: vLLM is not installed.
    """
    try:
        import vllm  # noqa: F401
    except ImportError as error:
        raise InputError(f"{where}: vLLM is not installed: {install_command('vllm')}") from error


def build_template_message(message: Message) -> JsonObject:
    """A message as chat templates of current models want it: arguments stay objects."""
    return message.model_dump(mode="json", exclude_none=True)


def split_reasoning(text: str) -> tuple[str, str]:
    """Reasoning and the rest. The opening mark often stands in the prompt already, so that only the end is written."""
    match = _THINKING.match(text)
    return (match.group(1).strip(), text[match.end() :]) if match else ("", text)


def split_calls(text: str) -> tuple[str, list[ToolCall], list[MalformedCall]]:
    """Text without the calls, and the calls; one that was cut off is malformed."""
    calls: list[ToolCall] = []
    malformed: list[MalformedCall] = []
    for number, match in enumerate(_CALL.finditer(text)):
        identity, written = f"call_{number}", match.group(1)
        try:
            parsed = orjson.loads(written)
        except orjson.JSONDecodeError as error:
            malformed.append(MalformedCall(id=identity, name="", text=written, error=f"the call is no JSON: {error}"))
            continue
        row = parsed if isinstance(parsed, dict) else {}
        call = parse_tool_call(identity, row.get("name"), row.get("arguments"))
        if isinstance(call, ToolCall):
            calls.append(call)
        else:
            malformed.append(call)
    return _CALL.sub("", text).strip(), calls, malformed


@PROVIDERS.register("vllm")
def open_vllm_provider(entry: str, settings: ModelSettings, folder: Path | None) -> VllmProvider:
    """Open a model in this process."""
    return VllmProvider(entry, settings)
