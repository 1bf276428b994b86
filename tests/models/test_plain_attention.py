"""Plain attention computes what torch's own does, for padded batches, long prompts and one token at a time."""

from contextlib import nullcontext

import pytest

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")


@pytest.fixture(scope="module")
def model():
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 200}
    config = LlamaConfig(**sizes, num_attention_heads=6, num_key_value_heads=2, attn_implementation="sdpa")
    return LlamaForCausalLM(config).eval()


def draw_prompts(lengths):
    import random

    return [[random.Random(length).randrange(3, 200) for _ in range(length)] for length in lengths]


def test_a_padded_batch_gets_the_values_of_torch(model):
    import torch

    from trajsmith.models.plain_attention import BLOCK, use_plain_attention

    ids, mask = torch.zeros(3, 2 * BLOCK + 9, dtype=torch.long), torch.zeros(3, 2 * BLOCK + 9, dtype=torch.long)
    for row, prompt in enumerate(draw_prompts((2 * BLOCK + 9, BLOCK, 5))):
        ids[row, -len(prompt) :], mask[row, -len(prompt) :] = torch.tensor(prompt), 1
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask).logits
        with use_plain_attention(model):
            assert model.config._attn_implementation == "trajsmith_plain"
            plain = model(input_ids=ids, attention_mask=mask).logits
            alone = model(input_ids=ids[:1]).logits
    assert model.config._attn_implementation == "sdpa"
    torch.testing.assert_close(plain[mask.bool()], expected[mask.bool()], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(alone[0], expected[0], rtol=1e-4, atol=1e-5)


def test_replies_are_those_of_torch_and_prompts_are_computed_apart(model, monkeypatch):
    from trajsmith.models import plain_attention
    from trajsmith.models.token_generation import SEGMENT, TokenGenerator

    prompts = draw_prompts((150, 40, 3, 300))
    prompts.append([*prompts[0], 7, 8, 9])
    arguments = {"max_new_tokens": 3 * SEGMENT, "do_sample": False, "use_cache": True, "return_dict_in_generate": True}
    own, widths = plain_attention.compute_plain_attention, set()

    def watch(module, query, key, *rest, **settings):
        widths.add((query.shape[0], query.shape[2] > 4, key.is_contiguous()))
        return own(module, query, key, *rest, **settings)

    monkeypatch.setattr(plain_attention, "compute_plain_attention", watch)
    written = TokenGenerator(model, [1], 0).generate(prompts, arguments)
    assert {rows for rows, long, _ in widths if long} == {1}, "each prompt alone"
    assert (5, False, True) in widths, "one more token of all rows, over states that need no copy"
    monkeypatch.setattr(plain_attention, "use_plain_attention", lambda _: nullcontext(False))
    plain = TokenGenerator(model, [1], 0, prefix_bytes=0)
    assert written == [plain.generate([prompt], arguments)[0] for prompt in prompts]


def test_what_changes_scores_is_left_to_torch(model):
    import torch

    from trajsmith.models.plain_attention import compute_plain_attention

    states = torch.ones(1, 2, 4, 8)
    with pytest.raises(ValueError, match="softcap"):
        compute_plain_attention(model.model.layers[0].self_attn, states, states, states, None, softcap=3.0)


def test_a_model_with_another_attention_keeps_it(model, monkeypatch):
    from trajsmith.models.plain_attention import use_plain_attention

    model.set_attn_implementation("eager")
    with use_plain_attention(model):
        assert model.config._attn_implementation == "eager"
    model.set_attn_implementation("sdpa")
    monkeypatch.setattr(model.config, "layer_types", ["full_attention", "sliding_attention"], raising=False)
    with use_plain_attention(model) as plain:
        assert not plain
        assert model.config._attn_implementation == "sdpa"


def test_states_are_shown_with_their_room_for_one_token_only():
    import torch

    from trajsmith.models.growing_cache import ROOM, build_cache

    def states(count):
        return torch.ones(2, 3, count, 4)

    cache = build_cache(((states(5), states(5)),))
    layer = cache.layers[0]
    layer.shows_room = True
    for count in (1, 1, 7, *[1] * ROOM):
        places, offset = layer.get_mask_sizes(count)
        before = layer.get_seq_length()
        keys, values = layer.update(states(count), states(count))
        assert (keys.shape[2], values.shape[2], offset) == (places, places, 0)
        assert layer.get_seq_length() == before + count
        assert keys.is_contiguous() == (count == 1)
        assert keys[:, :, : before + count].eq(1).all() and keys[:, :, before + count :].eq(0).all()
    assert layer.keys.shape[2] == 5 + 2 + 7 + ROOM
    layer.shows_room = False
    assert layer.get_mask_sizes(1) == (5 + 2 + 7 + ROOM + 1, 0)
    assert layer.update(states(1), states(1))[0].shape[2] == 5 + 2 + 7 + ROOM + 1
