"""A model on this machine: concurrent requests share batches; what it wrote is what it is shown again."""

import asyncio
from typing import Literal

import pytest

from trajsmith.models import ChatReply, ChatRequest, ModelSettings
from trajsmith.models.failures import FailedAttempt
from trajsmith.models.provider import open_provider
from trajsmith.records import InputError, Message, ModelFault

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers", "trl"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")

CALL = '<tool_call>\n{"name": "look_up", "arguments": {"word": "a"}}\n</tool_call>'
ASKED = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def tokenizer():
    from trajsmith.train_sft.checkpoint import set_templates
    from trajsmith.train_sft.scratch import train_tokenizer

    rows = [{"messages": [{"role": "user", "content": "hello there, what is it?"}], "tools": []}]
    return set_templates(train_tokenizer(rows, 600), "scratch")


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        pytest.param(f"<think>\nI look.\nTwice.\n</think>\n\n{CALL}<|im_end|>", "I look.\nTwice.", id="before-a-call"),
        pytest.param("<think>\nI know.\n</think>\n\nDone.<|im_end|>", "I know.", id="before-an-answer"),
        pytest.param(f"{CALL}<|im_end|>", None, id="a-call-without-reasoning"),
        pytest.param("Done.<|im_end|>", None, id="an-answer-without-reasoning"),
        pytest.param("<think>\n\n</think>\n\nDone.<|im_end|>", "", id="an-empty-block"),
    ],
)
def test_a_message_is_rendered_again_as_the_model_wrote_it(tokenizer, text, reasoning):
    from trajsmith.models.transformers_engine import parse_generated_ids
    from trajsmith.train_grpo.loop import build_template_row

    prefix = tokenizer.apply_chat_template(ASKED, add_generation_prompt=True, return_dict=False)
    ids = tokenizer.encode(text, add_special_tokens=False)
    reply = parse_generated_ids(tokenizer, prefix, ids, [])
    assert reply.message.reasoning_content == reasoning and not (reply.cut or reply.malformed)
    again = tokenizer.apply_chat_template([*ASKED, build_template_row(reply.message)], return_dict=False)
    assert again[: len(prefix) + len(ids)] == prefix + ids


@pytest.fixture(scope="module")
def weights(tokenizer):
    from trajsmith.train_sft.scratch import create_model
    from trajsmith.train_sft.settings import ScratchSettings

    return create_model(tokenizer, ScratchSettings(hidden=32, layers=1, heads=2))


def ask(text, **settings):
    return ChatRequest(messages=(Message(role="user", content=text),), **settings)


async def test_concurrent_requests_share_batches_and_get_the_replies_they_get_alone(tokenizer, weights, monkeypatch):
    from trajsmith.models.transformers_engine import TransformersModel

    model = TransformersModel("small", weights, tokenizer, max_new_tokens=6, batch=4)
    generate, sizes = model._generate, []
    monkeypatch.setattr(model, "_generate", lambda requests: sizes.append(len(requests)) or generate(requests))
    requests = [ask("hello " * number) for number in range(1, 7)]
    together = await asyncio.gather(*(model.complete(request) for request in requests))
    assert sizes == [4, 2]
    alone = [await model.complete(request) for request in requests]
    assert sizes == [4, 2, *[1] * 6]
    assert [reply.message.content for reply in together] == [reply.message.content for reply in alone]
    assert all(0 < reply.usage.completion_tokens <= 6 and reply.usage.prompt_tokens > 0 for reply in together)
    await model.close()


async def test_requests_with_other_settings_are_generated_apart(tokenizer, weights, monkeypatch):
    from trajsmith.models.transformers_engine import TransformersModel

    model = TransformersModel("small", weights, tokenizer, max_new_tokens=6)
    generate, seen = model._generate, []
    monkeypatch.setattr(model, "_generate", lambda batch: seen.append(batch[0].decoding) or generate(batch))
    replies = await asyncio.gather(
        model.complete(ask("a")), model.complete(ask("b", max_tokens=2, temperature=0.5)), model.complete(ask("c"))
    )
    assert [(one.max_new_tokens, one.temperature) for one in seen] == [(6, 0.0), (2, 0.5)]
    assert replies[1].usage.completion_tokens <= 2 < 3 <= replies[0].usage.completion_tokens


async def test_a_conversation_without_room_for_a_reply_is_a_fault_of_its_own_kind(tokenizer, weights):
    from trajsmith.models.transformers_engine import TransformersModel

    model = TransformersModel("small", weights, tokenizer, max_new_tokens=6)
    with pytest.raises(ModelFault) as fault:
        await model.complete(ask("hello there " * 4000))
    assert fault.value.kind == "context_overflow"


async def test_an_error_while_generating_reaches_all_who_wait(tokenizer, weights, monkeypatch):
    from trajsmith.models.transformers_engine import TransformersModel

    model = TransformersModel("small", weights, tokenizer, max_new_tokens=6)
    monkeypatch.setattr(model.model, "generate", lambda **_: 1 / 0)
    replies = await asyncio.gather(*(model.complete(ask("a")) for _ in range(2)), return_exceptions=True)
    assert [type(reply) for reply in replies] == [ZeroDivisionError] * 2


async def test_as_a_provider_of_a_run_it_loads_the_folder(tokenizer, weights, tmp_path, monkeypatch):
    import torch
    from transformers import DynamicCache
    from transformers.generation import GenerateDecoderOnlyOutput

    said = tokenizer.encode(CALL, add_special_tokens=False)

    def generate(self, input_ids, max_new_tokens, **_):
        begun = next(size for size in range(len(said), -1, -1) if input_ids[0].tolist()[-size or 4096 :] == said[:size])
        written = torch.cat([input_ids, torch.tensor([said[begun : begun + max_new_tokens]])], dim=1)
        return GenerateDecoderOnlyOutput(sequences=written, past_key_values=DynamicCache())

    monkeypatch.setattr(type(weights), "generate", generate)
    weights.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    settings = ModelSettings(provider="transformers", model=str(tmp_path), max_tokens=200)
    provider = open_provider("local", settings)
    try:
        reply = await provider.send(ask("hello"))
        (call,) = reply.message.tool_calls
        assert (call.function.name, call.function.arguments) == ("look_up", {"word": "a"})
        cut = await provider.send(ask("hello", max_tokens=len(said) // 2))
        assert cut.finish_reason == "length" and cut.malformed and cut.message.tool_calls is None
        with pytest.raises(FailedAttempt, match="the model takes 4096"):
            await provider.send(ask("hello there " * 4000))
    finally:
        await provider.close()
    missing = open_provider("local", settings.model_copy(update={"model": str(tmp_path / "none")}))
    with pytest.raises(InputError, match="no tokenizer there"):
        await missing.send(ask("hello"))


async def test_prompts_that_begin_alike_go_on_from_what_is_known_and_get_the_same_replies(tokenizer, weights):
    from trajsmith.models.transformers_engine import TransformersModel

    start = "hello there, what is it? " * 12
    first = [ask(f"{start} number {number}{' more' * number}") for number in range(4)] + [ask("hello"), ask("hello")]
    sharing = TransformersModel("sharing", weights, tokenizer, max_new_tokens=9)
    plain = TransformersModel("plain", weights, tokenizer, max_new_tokens=9, prefix_bytes=0)
    replies = await asyncio.gather(*(sharing.complete(request) for request in first))
    stem = sharing.generator.reused_tokens
    assert stem >= 4 * 32, "four new prompts share their beginning"
    later = [
        request.model_copy(update={"messages": (*request.messages, reply.message, Message(role="user", content="so?"))})
        for request, reply in zip(first, replies, strict=True)
    ]
    replies += await asyncio.gather(*(sharing.complete(request) for request in later))
    lengths = [reply.usage.prompt_tokens for reply in replies]
    assert sharing.generator.reused_tokens - stem >= sum(lengths[:4]), "each of them goes on from its own first prompt"
    alone = [await plain.complete(request) for request in (*first, *later)]
    assert [reply.message for reply in replies] == [reply.message for reply in alone]
    assert plain.generator.reused_tokens == 0
    await sharing.close()
    await plain.close()


class Counting:
    """Logits processor under which every row counts on from its last token."""

    def __init__(self):
        self.sizes = []

    def select_rows(self, rows):
        self.sizes.append(len(rows))

    def __call__(self, input_ids, scores):
        scores = scores.fill_(float("-inf"))
        scores[range(len(scores)), input_ids[:, -1] + 1] = 0.0
        return scores


@pytest.mark.parametrize("as_config", [True, False], ids=["config", "arguments"])
def test_rows_that_are_over_leave_the_batch_and_leave_their_states(weights, as_config):
    import torch
    from transformers import GenerationConfig

    from trajsmith.models.token_generation import SEGMENT, TokenGenerator

    end, pad, limit = 300, 0, 3 * SEGMENT
    prompts = [
        [*range(number, number + 40), end - lead] for number, lead in ((20, 3), (90, 90), (40, SEGMENT), (60, 40))
    ]
    counting, settings = (
        Counting(),
        {"max_new_tokens": limit, "do_sample": False, "eos_token_id": end, "pad_token_id": pad},
    )
    arguments = {"generation_config": GenerationConfig(**settings)} if as_config else settings
    arguments = {**arguments, "use_cache": True, "return_dict_in_generate": True, "logits_processor": [counting]}
    generator = TokenGenerator(weights.eval(), [end], pad)
    replies = generator.generate(prompts, arguments)
    assert [reply[-1] for reply in replies] == [end, end - 90 + limit, end, end]
    assert [len(reply) for reply in replies] == [3, limit, SEGMENT, 40]
    assert counting.sizes == [2]
    for prompt, reply in zip(prompts, replies, strict=True):
        known, length = generator.prefixes.find_longest_prefix([*prompt, *reply, 1])
        assert known is not None and length >= len(prompt) + len(reply) - 1
        with torch.no_grad():
            fresh = weights(input_ids=torch.tensor([known.ids]), use_cache=True).past_key_values
        for layer, (keys, values) in zip(fresh.layers, known.layers, strict=True):
            torch.testing.assert_close(layer.keys[0], keys, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(layer.values[0], values, rtol=1e-4, atol=1e-5)


def test_settings_that_count_from_the_prompt_are_given_to_one_call(weights):
    from trajsmith.models.token_generation import SEGMENT, TokenGenerator

    end, counting = 300, Counting()
    arguments = {"max_new_tokens": 3 * SEGMENT, "min_new_tokens": 2, "do_sample": False, "eos_token_id": end}
    arguments |= {"use_cache": True, "return_dict_in_generate": True, "logits_processor": [counting]}
    prompts = [[*range(20, 60), end - lead] for lead in (3, 40)]
    replies = TokenGenerator(weights.eval(), [end], 0).generate(prompts, arguments)
    assert [len(reply) for reply in replies] == [3, 40] and counting.sizes == []


def test_what_was_used_longest_ago_goes_first_and_a_beginning_gives_way_to_the_whole():
    import torch

    from trajsmith.models.prefix_cache import CachedSequence, PrefixCache

    def make(start, length):
        return CachedSequence(
            tuple(range(start, start + length)), [(torch.zeros(1, length, 1), torch.zeros(1, length, 1))]
        )

    cache = PrefixCache(limit=2 * 2 * 40 * 4)  # two sequences of 40 tokens in float32
    cache.add(make(0, 20))
    cache.add(make(0, 40))
    cache.add(make(100, 40))
    assert cache.find_longest_prefix(list(range(60)))[1] == 40
    cache.add(make(200, 40))
    assert cache.find_longest_prefix(list(range(60)))[1] == 40
    assert cache.find_longest_prefix(list(range(100, 160))) == (None, 0)
    assert cache.find_longest_prefix(list(range(200, 240)))[1] == 39, "the last token is always computed"


@pytest.mark.parametrize(
    ("prompts", "stems"),
    [
        ([range(100), range(100)], [range(100)]),
        ([[*range(80), 1], [*range(80), 2], [*range(80), 3, 4], [500, *range(80)]], [range(80)]),
        ([range(100), [*range(40), *range(500, 600)]], []),
        ([range(20), range(20)], []),
        ([], []),
    ],
    ids=["equal", "three of four", "too little in common", "short", "none"],
)
def test_beginnings_that_several_prompts_share(prompts, stems):
    from trajsmith.models.prefix_cache import find_common_stems

    assert find_common_stems([list(prompt) for prompt in prompts]) == [list(stem) for stem in stems]


def test_states_are_moved_only_where_every_layer_attends_to_everything(weights):
    from types import SimpleNamespace

    from transformers import Gemma3TextConfig, LlamaConfig

    from trajsmith.models.prefix_cache import can_share_prefixes

    assert can_share_prefixes(weights)
    assert can_share_prefixes(SimpleNamespace(config=LlamaConfig()))
    assert not can_share_prefixes(SimpleNamespace(config=Gemma3TextConfig()))


async def test_json_replies_follow_their_schema_although_the_weights_are_random(tokenizer, weights):
    pytest.importorskip("llguidance", reason="llguidance is missing: pip install -e '.[train]'")
    from pydantic import BaseModel, Field

    from trajsmith.models.structured import build_strict_schema, complete_structured
    from trajsmith.models.transformers_engine import TransformersModel

    class Ticket(BaseModel):
        title: str = Field(min_length=1, max_length=12)
        urgent: bool
        kind: Literal["fault", "question"]

    model = TransformersModel("random", weights, tokenizer, 400, temperature=1.0, grammars=True)
    free = model.complete(ask("hello", max_tokens=8))
    filled = [complete_structured(model, ask(text), Ticket, rounds=0) for text in ("hello", "what is it?")]
    *tickets, reply = await asyncio.gather(*filled, free)
    assert all(isinstance(ticket, Ticket) and 1 <= len(ticket.title) <= 12 for ticket in tickets)
    assert reply.usage.completion_tokens <= 8
    alone = await model.complete(
        ask("hello", reply_schema=build_strict_schema(Ticket)).model_copy(update={"max_tokens": 60})
    )
    assert alone.message.content.startswith('{"title":"')


BOOK = {
    "type": "function",
    "function": {
        "name": "book_visit",
        "parameters": {
            "type": "object",
            "properties": {
                "topic": {"enum": ["network", "phone"]},
                "day": {"type": "string", "format": "date"},
                "hours": {"type": "integer", "minimum": 1, "maximum": 9},
                "note": {"type": "string", "maxLength": 5, "examples": ["a"]},
            },
            "required": ["topic", "day", "hours"],
        },
    },
}


def test_tool_calls_follow_the_schemas_of_the_tools_whatever_a_model_prefers(tokenizer):
    pytest.importorskip("llguidance", reason="llguidance is missing: pip install -e '.[train]'")
    import torch
    from jsonschema import Draft202012Validator

    from trajsmith.models.json_grammar import ReplyGrammars
    from trajsmith.models.transformers_engine import parse_generated_ids

    torch.manual_seed(3)
    size = len(tokenizer)
    grammars = ReplyGrammars(tokenizer, size)
    prefix = tokenizer.apply_chat_template(ASKED, add_generation_prompt=True, return_dict=False)
    opens, check = tokenizer.convert_tokens_to_ids("<tool_call>"), Draft202012Validator(BOOK["function"]["parameters"])
    for _ in range(5):
        processor, ids = grammars.build_processor([grammars.write_call_grammar([BOOK]), None]), [opens]
        processor(torch.tensor([prefix, prefix]), torch.zeros(2, size))  # before the first token
        while ids[-1] != tokenizer.eos_token_id and len(ids) < 300:
            drawn = torch.randn(2, size)
            drawn[:, tokenizer.eos_token_id] += 100
            scores = processor(torch.tensor([[*prefix, *ids]] * 2), drawn.clone())
            assert torch.equal(scores[1], drawn[1]), "a row without grammar is left alone"
            ids.append(int(scores[0].argmax()))
        reply = parse_generated_ids(tokenizer, prefix, ids, [BOOK])
        (call,) = reply.message.tool_calls
        assert call.function.name == "book_visit" and not reply.malformed
        assert check.is_valid(call.function.arguments), call.function.arguments


async def test_text_without_a_call_stays_free_where_calls_are_constrained(tokenizer, weights):
    pytest.importorskip("llguidance", reason="llguidance is missing: pip install -e '.[train]'")
    from trajsmith.models.transformers_engine import TransformersModel

    free = TransformersModel("free", weights, tokenizer, max_new_tokens=8)
    bound = TransformersModel("bound", weights, tokenizer, max_new_tokens=8, constrained=True)
    request = ask("hello", tools=(BOOK,))
    assert (await free.complete(request)).message == (await bound.complete(request)).message


def test_a_template_that_writes_calls_otherwise_cannot_be_constrained(tokenizer):
    import copy

    from trajsmith.models.json_grammar import check_call_format

    check_call_format(tokenizer, "small")
    other = copy.deepcopy(tokenizer)
    other.chat_template = tokenizer.chat_template.replace("<tool_call>", "[CALL]")
    with pytest.raises(InputError, match="between <tool_call> and </tool_call>"):
        check_call_format(other, "other")


async def test_a_request_for_which_nobody_waits_is_not_generated(tokenizer, weights, monkeypatch):
    from trajsmith.models.transformers_engine import TransformersModel

    model, sizes = TransformersModel("random", weights, tokenizer, 4), []
    generate = type(model)._generate
    monkeypatch.setattr(
        model, "_generate", lambda requests: (sizes.append(len(requests)), generate(model, requests))[1]
    )
    gone = asyncio.ensure_future(model.complete(ask("hello")))
    kept = asyncio.ensure_future(model.complete(ask("what is it?")))
    await asyncio.sleep(0)
    gone.cancel()
    await kept
    assert sizes == [1]


async def test_a_model_in_this_process_is_waited_for(tmp_path):
    from trajsmith.models.retry import RetryingProvider

    class Slow:
        sent = 0

        async def send(self, request):
            self.sent += 1
            await asyncio.sleep(0.2)
            return reply

    reply = ChatReply(message=Message(role="assistant", content="reply"))
    for provider, attempts in (("transformers", 1), ("openai", 2)):
        limits = {"timeout": 0.05, "deadline": 0.1, "attempts": attempts, "first_wait": 0.001}
        settings = ModelSettings(provider=provider, model="m", **limits)
        slow = Slow()
        retrying = RetryingProvider("local", slow, settings, "again")
        if provider == "transformers":
            assert await retrying.send(ask("hello"), 1, lambda usage: None) == reply and slow.sent == 1
        else:
            with pytest.raises(ModelFault, match="no answer within"):
                await retrying.send(ask("hello"), 1, lambda usage: None)


def make_letters(*tags):
    """Return a tokenizer of single letters, in which each of these tags is a token of its own."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = Tokenizer(
        models.BPE(vocab={c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, merges=[])
    )
    letters.pre_tokenizer, letters.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    letters.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in tags])
    return PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="<|end|>")


def read_as_constrained(tokenizer, tools, text):
    """Return as much of a text as a model could write that calls these tools."""
    from trajsmith.models.json_grammar import ReplyGrammars

    grammars, ids = ReplyGrammars(tokenizer, len(tokenizer)), tokenizer.encode(text, add_special_tokens=False)
    matcher = grammars._open(grammars.write_call_grammar(tools))
    return tokenizer.decode(ids[: matcher.try_consume_tokens(ids)])


@pytest.mark.parametrize("tags", [("<tool_call>", "</tool_call>", "<think>", "</think>"), ("<think>", "</think>"), ()])
def test_a_model_may_think_where_its_calls_are_constrained(tags):
    pytest.importorskip("llguidance", reason="llguidance is missing: pip install -e '.[train]'")
    tokenizer, arguments = make_letters(*tags), '{"topic": "phone", "day": "2026-02-03", "hours": 2}'
    call = f'<tool_call>\n{{"name": "book_visit", "arguments": {arguments}}}\n</tool_call>'
    thought = "<think>\nHm, 1 < 2.\n</think>\n\n"
    for text in (f"{thought}{call}", f"{thought}Done.", f"{thought}{call}\n{call}", call, "Done."):
        assert read_as_constrained(tokenizer, [BOOK], text) == text
    wrong = f"{thought}{call.replace('phone', 'wifi')}"
    assert read_as_constrained(tokenizer, [BOOK], wrong).endswith('{"topic": "')


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string", "pattern": "^(?=x).*$"}, "b": {"enum": ["x"]}}, "required": ["a", "b"]},
        {"properties": {"a": {"$ref": "http://localhost/schema"}, "b": {"enum": ["x"]}}, "required": ["a", "b"]},
        {"properties": {"a": {"type": "integer", "minimum": 5, "maximum": 3}, "b": {"enum": ["x"]}}, "required": ["a"]},
        {"properties": {"a": {}, "b": {"enum": ["x"]}}, "required": ["a", "b", "absent"]},
    ],
    ids=["look-ahead", "remote", "unsatisfiable", "required-but-absent"],
)
def test_of_a_schema_that_cannot_be_followed_the_rest_is(schema, caplog):
    pytest.importorskip("llguidance", reason="llguidance is missing: pip install -e '.[train]'")
    tokenizer = make_letters("<tool_call>", "</tool_call>")
    tool = {"type": "function", "function": {"name": "odd", "parameters": {"type": "object", **schema}}}
    call = '<tool_call>\n{"name": "odd", "arguments": {"a": 4, "b": "x"}}\n</tool_call>'
    assert read_as_constrained(tokenizer, [BOOK, tool], call) == call
    wrong = read_as_constrained(tokenizer, [BOOK, tool], call.replace('"x"', '"y"'))
    assert wrong == call[: call.index('x"')]
    assert read_as_constrained(tokenizer, [BOOK, tool], call.replace("odd", "book_visit")).endswith('"arguments": {"')
    assert "odd: calls do not follow all of its schema" in caplog.text


async def test_a_reply_schema_that_cannot_be_followed_fails_its_own_request_only(tokenizer, weights):
    pytest.importorskip("llguidance", reason="llguidance is missing: pip install -e '.[train]'")
    from trajsmith.models.transformers_engine import TransformersModel

    model = TransformersModel("random", weights, tokenizer, 4, grammars=True)
    odd = ask("hello", reply_schema={"type": "string", "pattern": "^(?=x).*$"})
    failed, reply = await asyncio.gather(model.complete(odd), model.complete(ask("hello")), return_exceptions=True)
    assert isinstance(failed, InputError) and "cannot be followed token by token" in str(failed)
    assert reply.usage.completion_tokens


@pytest.mark.parametrize("as_tokens", [True, False], ids=["tags_are_tokens", "tags_are_text"])
def test_calls_that_no_schema_allows_are_cut_off_where_they_go_wrong(tokenizer, as_tokens):
    pytest.importorskip("llguidance", reason="llguidance is missing: pip install -e '.[train]'")
    from llguidance import LLMatcher
    from llguidance.hf import from_tokenizer

    from trajsmith.models.json_grammar import write_call_grammar

    if not as_tokens:
        tokenizer = make_letters()
    tags = ("<tool_call>", "</tool_call>") if as_tokens else ()
    backend, grammar = from_tokenizer(tokenizer), write_call_grammar([BOOK], tags)

    def accept(text):
        matcher = LLMatcher(backend, grammar)
        ids = tokenizer.encode(text, add_special_tokens=False)
        return tokenizer.decode(ids[: matcher.try_consume_tokens(ids)]), matcher.is_accepting()

    arguments = '{"topic": "phone", "day": "2026-02-03", "hours": 2}'
    good = f'<tool_call>\n{{"name": "book_visit", "arguments": {arguments}}}\n</tool_call>'
    assert accept(f"I book.\n{good}\n{good}") == (f"I book.\n{good}\n{good}", True)
    assert accept("No call at all.") == ("No call at all.", True)
    for wrong, rest in (
        ("book_visit", "book"),
        ('"phone"', '"wifi"'),
        ("2026-02-03", "tomorrow"),
        (', "hours": 2', ""),
    ):
        text, accepting = accept(good.replace(wrong, rest))
        assert not accepting and len(text) < len(good), wrong
