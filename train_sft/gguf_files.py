"""GGUF files: read into ordinary checkpoints, so that a quantised model can be trained.

Transformers reads the weights and refuses to save them ("quantized with gguf"), although they are ordinary numbers by
then. The model is built again from its configuration, in bfloat16, which holds more than four bits of a weight.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trajsmith.records import InputError, install_command

ARCHITECTURES = frozenset({"llama", "qwen2", "qwen3"})
"""Architectures whose GGUF files Transformers reads and whose conversion here is tested or has the same layout."""
CHAT_TOKENS = ("<|im_start|>", "<|im_end|>")
"""Tokens that Qwen3's chat template needs."""
TOKENIZER_KEYS = ("tokenizer.ggml.model", "tokenizer.ggml.pre")
"""Keys of a GGUF file: the kind of its tokenizer, and how texts are split before it."""
QWEN3_TEMPLATE = "Qwen3's, as TRL ships it (Apache-2.0)"


def require_gguf(command: str) -> None:
    """Refuse early where the package is missing.

    Raises:
        InputError: With the command that installs it.
    """
    for module in ("torch", "transformers", "trl", "gguf"):
        if find_spec(module) is None:
            raise InputError(f"{command} needs the train extra ({module} is missing): {install_command('train')}")


def check_architecture(file: Path) -> str:
    """Return the architecture of a GGUF file that can be converted.

    Raises:
        InputError: The file is not a whole GGUF file, or has another architecture.
    """
    from gguf import GGUFReader

    try:
        reader = GGUFReader(file)
        architecture = str(reader.fields["general.architecture"].contents())
    except (OSError, ValueError, KeyError, IndexError) as error:
        cause = (str(error).splitlines() or ["empty"])[0]
        raise InputError(f"{file}: no whole GGUF file ({cause}); download it again") from error
    if architecture not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise InputError(f"{file}: architecture {architecture} cannot be converted; take a model of {known}")
    return architecture


def convert_gguf(file: Path, out: Path) -> str:
    """Write a GGUF file as a checkpoint in bfloat16 with its tokenizer; return whose chat template it has.

    Raises:
        InputError: Architecture, tokenizer or template cannot be used.
    """
    import torch
    from transformers import AutoModelForCausalLM

    check_architecture(file)
    tokenizer, template = open_gguf_tokenizer(file)
    loaded = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.dtype = torch.bfloat16
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    model.load_state_dict(loaded.state_dict())
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return template


def open_gguf_tokenizer(file: Path) -> tuple[Any, str]:
    """Return the tokenizer of a GGUF file with a chat template that has tools, and whose template it is.

    A template that TRL can train with and read calls of stays. Otherwise Qwen3's takes its place, if the vocabulary
    has ChatML's tokens.

    Raises:
        InputError: There is no tokenizer, or the vocabulary lacks the tokens of the template.
    """
    from transformers import AutoTokenizer
    from trl.chat_template_utils import qwen3_chat_template

    try:
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{file}: no tokenizer in it ({str(error).splitlines()[0]})") from error
    restore_byte_level(tokenizer, file)
    tokenizer.padding_side = "left"
    if tokenizer.chat_template and _is_trainable(tokenizer):
        return tokenizer, "the model's own"
    missing = [token for token in CHAT_TOKENS if token not in tokenizer.get_vocab()]
    if missing:
        raise InputError(
            f"{file}: TRL knows no training template for its chat template, and Qwen3's needs the token {missing[0]}, "
            "which the tokenizer lacks; take a model with ChatML's tokens"
        )
    tokenizer.chat_template = qwen3_chat_template
    tokenizer.eos_token = CHAT_TOKENS[1]
    if tokenizer.pad_token in (None, tokenizer.eos_token):  # a padded end would never be learnt
        tokenizer.pad_token = tokenizer.unk_token or tokenizer.eos_token
    return tokenizer, QWEN3_TEMPLATE


def _is_trainable(tokenizer: Any) -> bool:
    """Return True if TRL knows how to train with the template and how to read calls back."""
    from trl.chat_template_utils import add_response_schema, get_training_chat_template

    template = tokenizer.chat_template
    try:
        add_response_schema(tokenizer)
        get_training_chat_template(tokenizer)
    except ValueError:
        return False
    finally:
        tokenizer.chat_template = template
    return True


def restore_byte_level(tokenizer: Any, file: Path) -> None:
    """Set what a GGUF file says of bytes and digits and what Transformers' conversion leaves out.

    Numbers are split into digits where the file says so. Tokens of byte-level BPE are spelled in its own letters; 5.17
    puts steps of another kind before the decoder of these, at which llguidance takes the letters for text, so that no
    constrained call ends well.
    """
    from gguf import GGUFReader
    from tokenizers import decoders, pre_tokenizers

    fields = GGUFReader(file).fields
    model, splits = (str(fields[name].contents()) if name in fields else "" for name in TOKENIZER_KEYS)
    if model == "gpt2":
        tokenizer.backend_tokenizer.decoder = decoders.ByteLevel()
    if splits == "smollm":
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
