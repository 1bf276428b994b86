"""A small model of Qwen3's architecture and a tokenizer for it, both made here, for demonstrations and tests."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from trajsmith.records import JsonObject
from trajsmith.train_sft.settings import ScratchSettings

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
SPACED_WORD = r" ?\p{Ll}[\p{L}_]*"
SPLIT_PATTERN = (
    r"\p{Lu}+\p{N}+(?![\p{L}\p{N}])|" + SPACED_WORD + r"|\p{Lu}[\p{L}_]*|\p{L}[\p{L}_]*|\p{N}{1,4}"
    r"|(?:[^\s\p{L}\p{N}]| (?![\p{L}\p{N}]))+|\n+|\s"
)
"""Identifiers such as D18; words and names of fields; numbers; the signs of JSON in runs. Identifiers, numbers and
capitalised words stand without the space before them, so that they are the same tokens in a request and in a call.
A frequent one is one token, so that copying it takes one look back, by what kind of thing it is."""
SYNTAX = (
    '{"type": "function", "function": {"name": "', '", "description": "', '", "parameters": ',
    '{"additionalProperties": false', ', "properties": {"', '": {"description": "', '", "type": "', '"}, "',
    '}, "required": ["', '"], "type": "object"}}}', '", "enum": ["', '", "examples": [',
    '], "type": "', '"], "type": "',
    '\n{"name": "', '", "arguments": {"', '}}\n', "<think>\n\n</think>\n\n",
)  # fmt: skip
"""What JSON Schema and tool calls repeat between names, descriptions and values; one token each."""
FIXED_LINE = 20
"""A line at least this many characters long that most rows have, of the system prompt, is one token."""
SAMPLED = 200
"""Rows in which lines are counted."""
POSITIONS = 4096


def train_tokenizer(rows: Iterable[JsonObject], vocabulary: int, bare_words: bool = False) -> Any:
    """A byte-level tokenizer with Qwen3's special tokens and chat template, trained on the texts of rows."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast
    from trl.chat_template_utils import qwen3_chat_template

    row_list = list(rows)
    bpe = Tokenizer(models.BPE())
    pattern = SPLIT_PATTERN.replace(SPACED_WORD, SPACED_WORD.removeprefix(" ?")) if bare_words else SPLIT_PATTERN
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_of])
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator(_texts(row_list), trainer)
    bpe.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    fixed = (*MARKS, *SYNTAX, *_fixed_lines(row_list))
    bpe.add_tokens([AddedToken(text, special=False, normalized=False) for text in fixed])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=SPECIAL[2], pad_token=SPECIAL[0], model_max_length=POSITIONS
    )
    tokenizer.chat_template = qwen3_chat_template
    return tokenizer


def _fixed_lines(rows: Sequence[JsonObject]) -> list[str]:
    """Lines that nearly every row begins with, from the environment's description and the chat template."""
    from transformers.utils.chat_template_utils import render_jinja_template
    from trl.chat_template_utils import qwen3_chat_template

    counts: Counter[str] = Counter()
    sampled = rows[:: max(1, len(rows) // SAMPLED)]
    for row in sampled:
        rendered, _ = render_jinja_template(
            conversations=[row["messages"][:1]], tools=row["tools"], chat_template=qwen3_chat_template
        )
        counts.update(set(rendered[0].split("\n")))
    fixed = [line for line, times in counts.items() if len(line) >= FIXED_LINE and times > len(sampled) / 2]
    return sorted(line for line in fixed if not any(special in line for special in SPECIAL))


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


def create_model(tokenizer: Any, settings: ScratchSettings) -> Any:
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
        initializer_range=settings.hidden**-0.5 / 2,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    model = Qwen3ForCausalLM(config)
    for layer in model.model.layers:
        _set_identity_values(layer.self_attn)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, tokenizer.pad_token_id]
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def _set_identity_values(attention: Any) -> None:
    """Make a head pass its input values on unchanged, in place of a random projection.

    What a tool call needs most is to be copied from the request. From random weights, nothing is gained by looking at
    the right place before what is looked at is passed on, nor the other way round, and a small model stays there for
    hundreds of steps. With the output projection the transpose of the value projection, looking is rewarded from
    the first step (after Trockman and Kolter, "Mimetic Initialization of Self-Attention Layers", 2023, section 4).
    """
    import torch

    with torch.no_grad():
        torch.nn.init.orthogonal_(attention.v_proj.weight)
        attention.o_proj.weight.copy_(attention.v_proj.weight.T)
