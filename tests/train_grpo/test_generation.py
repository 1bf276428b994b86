"""The copy that a CPU generates with has the weights of the trained model, adapters merged."""

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.train


@pytest.fixture
def adapted():
    """A small model with adapters that change something."""
    for needed in ("torch", "transformers", "trl", "peft"):
        pytest.importorskip(needed, reason=f"{needed} is missing: pip install -e '.[train]'")
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, tie_word_embeddings=True, max_position_embeddings=64,
    )  # fmt: skip
    model = get_peft_model(LlamaForCausalLM(config), LoraConfig(r=4, lora_alpha=8, target_modules="all-linear"))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    return model


def test_merged_weights_are_those_that_peft_merges(adapted):
    import torch

    from trajsmith.train_grpo.generation import collect_merged_weights

    weights = collect_merged_weights(adapted.get_base_model())
    merged = adapted.merge_and_unload()
    named = dict(merged.named_parameters())
    assert weights.keys() == named.keys() and len(weights) > 10
    assert all(torch.allclose(weights[name], named[name], atol=1e-6) for name in named)


def test_the_copy_follows_the_training_and_the_model_stays_as_it_was(adapted):
    import torch

    from trajsmith.train_grpo.generation import GenerationCopies

    accelerator = SimpleNamespace(
        device=torch.device("cpu"), unwrap_model=lambda model, **_: model, state=SimpleNamespace(deepspeed_plugin=None)
    )
    trainer = SimpleNamespace(model_wrapped=adapted.train(), accelerator=accelerator, args=SimpleNamespace(bf16=True))
    copies, ids = GenerationCopies(), torch.tensor([[1, 2, 3, 4]])
    before = {name: weight.clone() for name, weight in adapted.named_parameters()}
    with torch.no_grad():
        for scale in (1.0, 3.0):
            for name, weight in adapted.named_parameters():
                if "lora_B" in name:
                    weight.copy_(before[name] * scale)
            expected = adapted(ids).logits
            with copies.open_model(trainer) as model:
                assert model.dtype == torch.bfloat16 and not model.training
                assert torch.allclose(model(ids).logits.float(), expected, atol=0.2, rtol=0.1)
            assert adapted.training
            assert all(
                torch.equal(weight, before[name] * (scale if "lora_B" in name else 1.0))
                for name, weight in adapted.named_parameters()
            )
    trainer.args.bf16 = False
    with copies.open_model(trainer) as model:
        assert model is adapted and not model.training
    assert adapted.training


@pytest.mark.parametrize("bf16", [False, True], ids=["the model", "its copy"])
def test_messages_are_those_of_the_likeliest_tokens_and_no_token_is_computed_twice(adapted, bf16, monkeypatch):
    """A trainer switches the cache off in the model's configuration; generation with prefixes must not follow it."""
    import torch
    from transformers import GenerationConfig

    from trajsmith.train_grpo.generation import GenerationCopies, open_generator

    adapted.get_base_model().config.use_cache = False
    accelerator = SimpleNamespace(
        device=torch.device("cpu"), unwrap_model=lambda model, **_: model, state=SimpleNamespace(deepspeed_plugin=None)
    )
    trainer = SimpleNamespace(
        model_wrapped=adapted.train(), accelerator=accelerator, use_vllm=False,
        args=SimpleNamespace(bf16=bf16, max_completion_length=20),
        processing_class=SimpleNamespace(eos_token_id=48, pad_token_id=49),
        generation_config=GenerationConfig(do_sample=False, pad_token_id=49, eos_token_id=48, max_new_tokens=20),
    )  # fmt: skip
    prompts = [[*range(40), 3], [*range(40), 5, 6], [*range(40), 3]]
    lengths = []
    copies = GenerationCopies()
    with copies.open_model(trainer) as model, torch.no_grad():
        expected = []
        for prompt in prompts:
            ids = list(prompt)
            for _ in range(6):
                ids.append(int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
            expected.append(ids[len(prompt) :])
        (model if bf16 else model.get_base_model()).register_forward_pre_hook(
            lambda _, args, options: lengths.append((args[0] if args else options["input_ids"]).shape[1]),
            with_kwargs=True,
        )
    with open_generator(trainer, copies, 6) as generate:
        drawn, logprobs = generate(prompts)
    stops = [next((place for place, token in enumerate(ids) if token in (48, 49)), len(ids)) for ids in expected]
    ended = [ids[: stop + 1] for ids, stop in zip(expected, stops, strict=True)]
    assert drawn == ended and logprobs is None
    assert lengths[0] == 40 and max(lengths[1:]) <= 2, "the beginning once, then what is new"
