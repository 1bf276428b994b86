"""Local model through Transformers (extra `train`): concurrent requests are answered in one batch of `generate`.

Torch, Transformers and TRL are imported on first use. Text, reasoning and tool calls are parsed by the response
template of the tokenizer or the one that TRL knows for its chat template, else by the format of calls in it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import orjson

from trajsmith.models.call_formats import FORMATS, CallFormat, find_call_format, split_calls, split_reasoning
from trajsmith.models.failures import FailedAttempt
from trajsmith.models.json_grammar import (
    CLOSES,
    OPENS,
    ReplyGrammars,
    check_call_format,
    has_grammars,
)
from trajsmith.models.model import ChatReply, ChatRequest, MalformedCall, Usage
from trajsmith.models.precision import choose_inference_dtype, place_on_accelerator
from trajsmith.models.serialization import JSON_WORDS
from trajsmith.models.settings import PROVIDERS, ModelSettings
from trajsmith.models.token_generation import PREFIX_BYTES, TokenGenerator
from trajsmith.records import (
    FunctionCall,
    InputError,
    JsonObject,
    Message,
    ModelFault,
    ToolCall,
    ToolStyle,
    install_command,
    render_tools,
)

THINKS = "<think>"
COLLECT_SECONDS = 0.01
"""Time in which concurrent requests join a batch."""
MAX_NEW_TOKENS = 1024
"""Limit of one message of a run's model where the settings name none."""


@dataclass(frozen=True)
class Decoding:
    """Generation settings; only requests with equal ones share a batch."""

    max_new_tokens: int
    temperature: float
    top_p: float | None
    stop: tuple[str, ...]

    def arguments(self, tokenizer: Any) -> JsonObject:
        """Return the arguments of `generate`; temperature 0 takes the likeliest token every time."""
        arguments: JsonObject = {
            "max_new_tokens": self.max_new_tokens,
            "do_sample": False,
            "use_cache": True,
            "return_dict_in_generate": True,
        }
        if self.temperature:
            arguments |= {"do_sample": True, "temperature": self.temperature, "top_k": 0}
            arguments |= {"top_p": self.top_p} if self.top_p is not None else {}
        return arguments | ({"stop_strings": list(self.stop), "tokenizer": tokenizer} if self.stop else {})


@dataclass(frozen=True, eq=False)
class PendingRequest:
    """Generation request that waits for its batch."""

    ids: list[int]
    tools: list[JsonObject]
    decoding: Decoding
    grammar: str | None
    """Grammar that the reply must follow."""
    reply: "asyncio.Future[ChatReply]"


class TransformersModel:
    """Chat model that answers concurrent requests together; every request draws anew, so seeds are not used.

    Args:
        name: Name in results and provenance.
        model: A causal language model; it moves to the GPU if there is one.
        tokenizer: Its tokenizer with a response template, padding on the left.
        max_new_tokens: Limit of one message, unless the request has one.
        temperature: Of requests that have none; 0 takes the likeliest token every time.
        batch: Requests answered together.
        tools: How the model is shown tools.
        prefix_bytes: Memory for the states of prompts, so that what begins alike is computed once; 0 keeps none.
        grammars: JSON replies follow their schema token by token; without it they are asked for in words only.
        constrained: Tool calls follow the schemas of the tools shown token by token.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        tokenizer: Any,
        max_new_tokens: int,
        temperature: float = 0.0,
        batch: int = 32,
        tools: ToolStyle = "full",
        prefix_bytes: int = PREFIX_BYTES,
        grammars: bool = False,
        constrained: bool = False,
    ) -> None:
        self.name = name
        self.model = place_on_accelerator(model).eval()
        self.tokenizer = tokenizer
        self.max_new_tokens = max_new_tokens
        self.temperature = temperature
        self.batch = batch
        self.tools: ToolStyle = tools
        self.generator = TokenGenerator(self.model, [tokenizer.eos_token_id], tokenizer.pad_token_id, prefix_bytes)
        if constrained:
            check_call_format(tokenizer, name)
        self.constrained = constrained
        self.follows_schemas = grammars
        self.grammars = ReplyGrammars(tokenizer, model.config.vocab_size) if grammars or constrained else None
        self._waiting: list[PendingRequest] = []
        self._worker: asyncio.Task[None] | None = None

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request with those that arrive together; see `ChatModel`."""
        rows = [message.model_dump(mode="json", exclude_none=True) for message in request.messages]
        if request.reply_schema is not None:
            rows.append({"role": "user", "content": JSON_WORDS + orjson.dumps(request.reply_schema).decode()})
        tools = render_tools(request.tools, self.tools) if request.tool_choice != "none" else []
        ids = self.tokenizer.apply_chat_template(
            rows, tools=tools or None, add_generation_prompt=True, return_dict=False
        )
        decoding = Decoding(
            request.max_tokens or self.max_new_tokens,
            self.temperature if request.temperature is None else request.temperature,
            request.top_p,
            request.stop,
        )
        room = self.model.config.max_position_embeddings
        if len(ids) + decoding.max_new_tokens > room:
            message = f"{len(ids)} tokens of prompt and {decoding.max_new_tokens} of reply; the model takes {room}"
            raise ModelFault("context_overflow", self.name, message)
        grammar = self._write_grammar(request, tools)
        pending = PendingRequest(ids, tools, decoding, grammar, asyncio.get_running_loop().create_future())
        self._waiting.append(pending)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._answer_waiting())
        return await pending.reply

    def _write_grammar(self, request: ChatRequest, tools: list[JsonObject]) -> str | None:
        """Write the grammar of a reply; None for free text."""
        if self.grammars is None:
            return None
        if request.reply_schema is not None:
            return self.grammars.write_json_grammar(request.reply_schema) if self.follows_schemas else None
        if not self.constrained or not tools:
            return None
        return self.grammars.write_call_grammar(request.tools)

    async def close(self) -> None:
        """Stop generating after the batch that is being generated; safe to call twice."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None

    async def _answer_waiting(self) -> None:
        """Generate batch after batch until no request waits."""
        while self._waiting:
            await asyncio.sleep(COLLECT_SECONDS)
            self._waiting = [request for request in self._waiting if not request.reply.done()]  # nobody waits for it
            requests = self._take_batch() if self._waiting else []
            if not requests:
                return
            try:
                replies = await asyncio.to_thread(self._generate, requests)
            except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must learn of it
                for request in requests:
                    if not request.reply.done():
                        request.reply.set_exception(error)
                continue
            for request, reply in zip(requests, replies, strict=True):
                if not request.reply.done():  # cancelled meanwhile
                    request.reply.set_result(reply)

    def _take_batch(self) -> list[PendingRequest]:
        """Take the oldest request and those behind it with the same generation settings."""
        decoding = self._waiting[0].decoding
        batch = [request for request in self._waiting if request.decoding == decoding][: self.batch]
        self._waiting = [request for request in self._waiting if request not in batch]
        return batch

    def _generate(self, requests: Sequence[PendingRequest]) -> list[ChatReply]:
        prompts, arguments = [request.ids for request in requests], requests[0].decoding.arguments(self.tokenizer)
        if self.grammars is not None and any(request.grammar for request in requests):
            grammars = [request.grammar for request in requests]
            arguments["logits_processor"] = [self.grammars.build_processor(grammars)]
        replies = self.generator.generate(prompts, arguments)
        return [self._parse(request, reply) for request, reply in zip(requests, replies, strict=True)]

    def _parse(self, request: PendingRequest, ids: list[int]) -> ChatReply:
        reply = parse_generated_ids(self.tokenizer, request.ids, ids, request.tools)
        if request.decoding.stop and len(ids) < request.decoding.max_new_tokens:
            return reply.model_copy(update={"finish_reason": "stop"})
        return reply


class TransformersProvider:
    """Provider of a run over a model on this machine, which is loaded with the first request."""

    def __init__(self, entry: str, settings: ModelSettings) -> None:
        self.settings = settings
        self.where = f"models.{entry} ({settings.model} in Transformers)"
        self._model: TransformersModel | None = None
        self._start = asyncio.Lock()
        require_transformers(self.where)
        if settings.structured == "native" and not has_grammars():
            raise InputError(f"{self.where}: structured: native needs llguidance: {install_command('train')}")

    async def send(self, request: ChatRequest) -> ChatReply:
        async with self._start:
            if self._model is None:
                self._model = await asyncio.to_thread(self._open)
        try:
            reply = await self._model.complete(request)
        except ModelFault as fault:
            raise FailedAttempt(fault.kind, str(fault), retryable=False) from fault
        if not (reply.message.content.strip() or reply.message.tool_calls or reply.malformed):
            raise FailedAttempt("bad_reply", "the answer is empty", retryable=not reply.cut, usage=reply.usage)
        return reply.model_copy(update={"model": self.settings.model})

    async def check(self) -> bool:
        """Return False: only loading the model shows whether it can be used."""
        return False

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()
            self._model = None

    def _open(self) -> TransformersModel:
        name, settings = self.settings.model, self.settings
        tokenizer = add_response_template(open_tokenizer(name), name)
        model = open_model(name)
        return TransformersModel(
            name,
            model,
            tokenizer,
            settings.max_tokens or MAX_NEW_TOKENS,
            batch=settings.connections,
            grammars=settings.structured == "native" or (settings.structured == "auto" and has_grammars()),
        )


@PROVIDERS.register("transformers")
def open_transformers_provider(entry: str, settings: ModelSettings, folder: Path | None) -> TransformersProvider:
    """Open a model in this process."""
    return TransformersProvider(entry, settings)


def require_transformers(where: str) -> None:
    """Refuse early where the extra is missing.

    Raises:
        InputError: With the command that installs it.
    """
    from importlib.util import find_spec

    for module in ("torch", "transformers", "trl"):
        if find_spec(module) is None:
            raise InputError(f"{where}: {module} is not installed: {install_command('train')}")


def open_tokenizer(model: str) -> Any:
    """Open the tokenizer of a model on disk or on the Hub.

    Raises:
        InputError: The train extra is missing, or there is no tokenizer or no chat template.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise InputError(f"a tokenizer needs transformers and trl: {install_command('train')}") from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
    except Exception as error:  # tokenizers raises bare ones for a damaged file
        raise InputError(f"model {model}: no tokenizer there ({_first_line(error)})") from error
    if not tokenizer.chat_template:
        raise InputError(f"model {model}: the tokenizer has no chat template; choose an instruct model")
    return tokenizer


def open_model(model: str, dtype: Any = None) -> Any:
    """Open the weights of a model on disk or on the Hub.

    Args:
        model: Folder or name.
        dtype: Torch's type of the weights; None is the stored one, or float32 where this machine is slow in it.

    Raises:
        InputError: There are none, or a save was interrupted.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(model, dtype=dtype or choose_inference_dtype(model))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
        cause = _first_line(error)
        raise InputError(f"{model}: no whole model there ({cause}); train it again or name a checkpoint") from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def add_response_template(tokenizer: Any, name: str) -> Any:
    """Set the template by which replies are parsed, and padding on the left; one that is set already stays.

    A tokenizer for whose chat template TRL knows none gets none where the format of calls in it is known.

    Raises:
        InputError: It is not known either.
    """
    from trl.chat_template_utils import add_response_schema

    own = "{% generation %}" in tokenizer.chat_template  # saved by trajsmith, with its response template
    if not own and getattr(tokenizer, "response_template", None) is None:
        try:
            add_response_schema(tokenizer)
        except ValueError as error:
            if find_call_format(tokenizer.get_chat_template(tools=[])) is None:
                known = ", ".join(sorted(one.name for one in FORMATS))
                raise InputError(
                    f"{name}: neither TRL nor trajsmith can read tool calls of this chat template; take a model of a "
                    f"family that it knows, for example Qwen3, or one that writes calls like {known}"
                ) from error
    tokenizer.padding_side = "left"
    return tokenizer


def parse_generated_ids(tokenizer: Any, prefix: list[int], ids: list[int], tools: list[JsonObject]) -> ChatReply:
    """Parse generated tokens to a reply: text, reasoning, tool calls, and whether they were cut or are malformed.

    Reasoning is kept: a template would show the model an empty block in its place, which it never wrote. Only a block
    that the model itself left empty is an empty text; TRL's parser leaves that key out.
    """
    usage = Usage(requests=1, prompt_tokens=len(prefix), completion_tokens=len(ids))
    if not ids:
        return ChatReply(message=Message(role="assistant"), finish_reason="length", usage=usage)
    cut = ids[-1] not in (tokenizer.eos_token_id, tokenizer.pad_token_id)
    text = tokenizer.decode(ids if cut else ids[:-1])
    template = tokenizer.get_chat_template(tools=tools)
    form = find_call_format(template)
    if form is not None and (form.untyped or getattr(tokenizer, "response_template", None) is None):
        message, malformed = _read_by_format(text, form, tools, len(prefix))
    else:
        message, malformed = _read_by_template(tokenizer, prefix, ids, text, tools)
        calls = len(message.tool_calls or ())
        unread = _has_unread_calls(text, template, form, tools, calls)
        if unread and form is not None:
            message, malformed = _read_by_format(text, form, tools, len(prefix))
        elif unread:
            error = "a tool call of the message cannot be read"
            malformed = [MalformedCall(id=f"call_{len(prefix)}_{calls}", name="", text=text, error=error)]
    return ChatReply(
        message=message,
        malformed=tuple(malformed),
        finish_reason="length" if cut else "tool_calls" if message.tool_calls or malformed else "stop",
        usage=usage,
    )


def _read_by_format(
    text: str, form: CallFormat, tools: list[JsonObject], number: int
) -> tuple[Message, list[MalformedCall]]:
    reasoning, rest = split_reasoning(text)
    content, calls, malformed = split_calls(rest, form, tools, f"call_{number}")
    thought = reasoning if rest != text else None
    return Message(
        role="assistant", content=content, reasoning_content=thought, tool_calls=tuple(calls) or None
    ), malformed


def _read_by_template(
    tokenizer: Any, prefix: list[int], ids: list[int], text: str, tools: list[JsonObject]
) -> tuple[Message, list[MalformedCall]]:
    from trl.chat_template_utils import parse_response

    # TRL before 1.16 does not read arguments by the tools' schemas, which only formats without types need.
    known = {"tools": tools} if "tools" in signature(parse_response).parameters else {}
    parsed = parse_response(tokenizer, ids, prefix=prefix, **known)
    if text.lstrip().startswith(THINKS):
        parsed.setdefault("reasoning_content", "")
    return build_message(parsed, len(prefix)), []


def _has_unread_calls(text: str, template: str, form: CallFormat | None, tools: list[JsonObject], calls: int) -> bool:
    """Return True if a message has other calls than the parser found, which gives up a message at one that is wrong."""
    if OPENS in template and (text.count(OPENS) != calls or text.count(OPENS) != text.count(CLOSES)):
        return True
    if form is None:
        return False
    _, readable, broken = split_calls(text, form, tools)
    return bool(broken) or len(readable) != calls


def build_message(parsed: JsonObject, number: int) -> Message:
    """Convert TRL's parsed response to a message; calls whose arguments are not an object are left out.

    Args:
        parsed: Result of `parse_response`.
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
