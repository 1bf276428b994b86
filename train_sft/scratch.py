"""A small model of Qwen3's architecture and a tokenizer for it, both made here, for demonstrations and tests."""

from collections.abc import Iterable
from typing import Any

import orjson

from train_sft.settings import ScratchSettings
from trajectory import JsonObject

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
PIECES = r" ?\p{L}[\p{L}_]*|\p{N}|(?:[^\s\p{L}\p{N}]| (?![\p{L}\p{N}]))+|\s"
"""Words and names of fields; every digit alone, so that identifiers can be copied; the signs of JSON in runs."""
POSITIONS = 4096


def make_tokenizer(rows: Iterable[JsonObject], vocabulary: int) -> Any:
    """A byte-level tokenizer with Qwen3's special tokens and chat template, trained on the texts of rows."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast
    from trl.chat_template_utils import qwen3_chat_template

    made = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PIECES), "isolated")
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_of])
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(_texts(rows), trainer)
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    made.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=SPECIAL[2], pad_token=SPECIAL[0], model_max_length=POSITIONS
    )
    tokenizer.chat_template = qwen3_chat_template
    return tokenizer


def _texts(rows: Iterable[JsonObject]) -> Iterable[str]:
    from trl.chat_template_utils import qwen3_chat_template

    yield qwen3_chat_template
    for row in rows:
        yield from (message["content"] for message in row["messages"])
        yield from (
            orjson.dumps(call["function"]).decode()
            for message in row["messages"]
            for call in message.get("tool_calls", ())
        )
        yield from (orjson.dumps(tool).decode().replace(",", ", ").replace(":", ": ") for tool in row["tools"])


def make_model(tokenizer: Any, settings: ScratchSettings) -> Any:
    """Random weights, the same for the same seed."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(settings.seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=settings.hidden,
        intermediate_size=3 * settings.hidden,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        head_dim=settings.hidden // settings.heads,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    model = Qwen3ForCausalLM(config)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, tokenizer.pad_token_id]
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model
