"""A model on this machine: concurrent requests share batches; what it wrote is what it is shown again."""

import asyncio

import pytest

from trajsmith.models import ChatRequest, ModelSettings
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
        written = torch.cat([input_ids, torch.tensor([said[:max_new_tokens]])], dim=1)
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
