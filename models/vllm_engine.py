"""vLLM in this process (extra `vllm`): a model on this machine's GPU, without a server.

The chat template is the model's own. Tool calls are read in the format that it has them written in
(`trajsmith.models.call_formats`) and reasoning in `<think>`; other formats need `vllm serve` and provider openai.
Written for vLLM 0.31 and later.
"""

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from trajsmith.models.call_formats import FORMATS, CallFormat, find_call_format, split_calls, split_reasoning
from trajsmith.models.failures import MAX_MESSAGE_LENGTH, FailedAttempt
from trajsmith.models.model import ChatReply, ChatRequest, FinishReason, Usage
from trajsmith.models.serialization import JSON_WORDS
from trajsmith.models.settings import PROVIDERS, ModelSettings
from trajsmith.records import InputError, JsonObject, Message, RunError, install_command, to_one_line


class VllmProvider:
    """One model in this process. The engine starts with the first request."""

    def __init__(self, entry: str, settings: ModelSettings) -> None:
        self.settings = settings
        self.where = f"models.{entry} ({settings.model} in vLLM)"
        self._engine: Any = None
        self._tokenizer: Any = None
        self._most = 0
        self._start = asyncio.Lock()
        self._numbers = count()
        require_vllm(self.where)

    async def send(self, request: ChatRequest) -> ChatReply:
        async with self._start:
            if self._engine is None:
                await self._open()
        form = self._find_format(request.tools)
        prompt = self._prompt(request)
        if len(prompt) >= self._most:
            reason = f"the prompt has {len(prompt)} tokens and the model takes {self._most}"
            raise FailedAttempt("context_overflow", reason, retryable=False)
        return self._reply(await self._generate(request, prompt), len(prompt), form, request.tools)

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
        self._tokenizer = tokenizer
        self._most = engine.model_config.max_model_len
        self._engine = engine

    def _prompt(self, request: ChatRequest) -> list[int]:
        """Token ids of the prompt in the model's own template."""
        messages = [build_template_message(message) for message in request.messages]
        if request.reply_schema is not None and self.settings.structured == "prompt":
            messages.append({"role": "user", "content": JSON_WORDS + orjson.dumps(request.reply_schema).decode()})
        ids: list[int] = self._tokenizer.apply_chat_template(
            messages,
            tools=list(request.tools) or None,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
            **self.settings.extra_body,
        )
        return ids

    def _find_format(self, tools: Sequence[JsonObject]) -> CallFormat | None:
        """Find how the model writes calls; None where it is shown no tools.

        Raises:
            InputError: It is not known here.
        """
        if not tools:
            return None
        form = find_call_format(self._tokenizer.get_chat_template(tools=list(tools)))
        if form is None:
            known = ", ".join(sorted(one.name for one in FORMATS))
            raise InputError(
                f"{self.where}: its chat template has tool calls written in a format that is not known here ({known}); "
                "start it with vllm serve, and set provider: openai"
            )
        return form

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
        if request.tools:
            parameters["skip_special_tokens"] = False  # in some formats calls begin with them
        if request.stop:
            parameters["stop"] = list(request.stop)
        if request.reply_schema is not None and self.settings.structured != "prompt":
            parameters["structured_outputs"] = StructuredOutputsParams(json=request.reply_schema)
        return SamplingParams(**parameters)

    def _reply(
        self, output: Any, prompt_tokens: int, form: CallFormat | None, tools: Sequence[JsonObject]
    ) -> ChatReply:
        completion = output.outputs[0]
        usage = Usage(
            requests=1,
            prompt_tokens=prompt_tokens,
            cached_tokens=output.num_cached_tokens or 0,
            completion_tokens=len(completion.token_ids),
        )
        reasoning, text = split_reasoning(completion.text)
        text, calls, malformed = split_calls(text, form, tools) if form else (text.strip(), [], [])
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


@PROVIDERS.register("vllm")
def open_vllm_provider(entry: str, settings: ModelSettings, folder: Path | None) -> VllmProvider:
    """Open a model in this process."""
    return VllmProvider(entry, settings)
