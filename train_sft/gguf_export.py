"""Checkpoints as GGUF files, for llama.cpp and what builds on it."""

import json
import re
from pathlib import Path
from typing import Any

from trajsmith.records import InputError
from trajsmith.train_sft.checkpoint import open_training_model, open_training_tokenizer, translate_write_errors
from trajsmith.train_sft.gguf_files import require_gguf

EXPORTED = frozenset({"llama", "qwen3"})
"""Architectures that are written; Transformers reads them back."""
PRE_TOKENIZERS = {("Digits", "ByteLevel"): "smollm", ("ByteLevel",): "gpt-2"}
"""Steps before byte-pair merging to llama.cpp's name for them."""
GENERATION_TAGS = {r"generation": "if true", r"endgeneration": "endif"}
"""Tags that mark what is learnt, which only Transformers knows, to tags that every engine knows."""
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
"""Types of tokens in a GGUF file."""


def export_gguf(folder: Path, file: Path) -> None:
    """Write a checkpoint as one GGUF file with bfloat16 weights, its tokenizer and its chat template.

    Args:
        folder: Checkpoint with safetensors weights.
        file: Where it is written; what stands there is replaced when the new file is whole.

    Raises:
        InputError: Architecture or tokenizer cannot be written, or there is no checkpoint.
        RunError: The disk is full.
    """
    require_gguf("trajsmith models export-gguf")
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} holds no checkpoint: there is no config.json")
    import torch
    from gguf import MODEL_ARCH_NAMES, GGUFWriter, get_tensor_name_map

    tokenizer = open_training_tokenizer(str(folder))
    model = open_training_model(str(folder))
    config = model.config
    kind = config.model_type
    if kind not in EXPORTED or getattr(config, "attention_bias", False):
        raise InputError(
            f"{folder}: models of the kind {kind} cannot be written as GGUF, only {', '.join(sorted(EXPORTED))}"
        )
    pre = find_pre_tokenizer(tokenizer, folder)
    architecture = next(key for key, name in MODEL_ARCH_NAMES.items() if name == kind)
    names = get_tensor_name_map(architecture, config.num_hidden_layers)
    part = file.with_name(f".{file.name}.part")
    with translate_write_errors(file, "run the same command again"):
        file.parent.mkdir(parents=True, exist_ok=True)
        writer = GGUFWriter(part, kind)
        add_settings(writer, config, folder.name)
        add_tokenizer(writer, tokenizer, config, pre)
        for name, weight in model.state_dict().items():
            if name == "lm_head.weight" and config.tie_word_embeddings:
                continue
            target = names.get_name(name, try_suffixes=(".weight",))
            if target is None:
                raise InputError(f"{folder}: the weight {name} has no place in a GGUF file of the kind {kind}")
            if kind == "llama":
                weight = permute_rotary(name, weight, config)
            add_weight(writer, target, weight.to(torch.float32).numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        part.replace(file)


def add_settings(writer: Any, config: Any, name: str) -> None:
    """Write the sizes of a model."""
    writer.add_name(name)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)


def add_tokenizer(writer: Any, tokenizer: Any, config: Any, pre: str) -> None:
    """Write tokens, merges, special tokens and the chat template."""
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    known = {index: token for token, index in tokenizer.get_vocab().items()}
    tokens, types = [], []
    for index in range(config.vocab_size):
        added = tokenizer.added_tokens_decoder.get(index)
        tokens.append(known.get(index, f"[PAD{index}]"))
        if index not in known:
            types.append(UNUSED)
        else:
            types.append(NORMAL if added is None else CONTROL if added.special else USER_DEFINED)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]])
    writer.add_add_bos_token(False)
    for add, token in (
        (writer.add_bos_token_id, tokenizer.bos_token_id),
        (writer.add_eos_token_id, tokenizer.eos_token_id),
        (writer.add_unk_token_id, tokenizer.unk_token_id),
        (writer.add_pad_token_id, tokenizer.pad_token_id),
    ):
        if token is not None:
            add(token)
    writer.add_chat_template(replace_generation_tags(tokenizer.chat_template))


def add_weight(writer: Any, name: str, weight: Any) -> None:
    """Write one weight: matrices in bfloat16, vectors in float32, as llama.cpp has them."""
    from gguf import GGMLQuantizationType, quants

    if weight.ndim < 2:
        writer.add_tensor(name, weight)
        return
    kind = GGMLQuantizationType.BF16
    writer.add_tensor(name, quants.quantize(weight, kind), raw_dtype=kind)


def permute_rotary(name: str, weight: Any, config: Any) -> Any:
    """Return queries and keys with the halves of each head interleaved, as GGUF files of Llama have them."""
    if "q_proj" in name:
        heads = config.num_attention_heads
    elif "k_proj" in name:
        heads = config.num_key_value_heads
    else:
        return weight
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def find_pre_tokenizer(tokenizer: Any, folder: Path) -> str:
    """Return llama.cpp's name of how a tokenizer splits text before merging.

    Raises:
        InputError: It splits in another way, or does not merge bytes.
    """
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    step = state["pre_tokenizer"] or {}
    steps = tuple(one["type"] for one in step.get("pretokenizers", [step]) if one)
    if state["model"]["type"] != "BPE" or steps not in PRE_TOKENIZERS:
        raise InputError(f"{folder}: its tokenizer ({', '.join(steps) or 'no splitting'}) cannot be written as GGUF")
    return PRE_TOKENIZERS[steps]


def replace_generation_tags(template: str) -> str:
    """Return a chat template without the tags that mark what is learnt; it renders the same."""
    for tag, plain in GENERATION_TAGS.items():
        template = re.sub(rf"(\{{%[-+]?)\s*{tag}\s*([-+]?%\}})", rf"\1 {plain} \2", template)
    return template
