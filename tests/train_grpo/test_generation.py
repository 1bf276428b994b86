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
