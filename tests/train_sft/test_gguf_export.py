"""A checkpoint that is written as GGUF and read back by Transformers is the same model."""

import pytest

from trajsmith.records import InputError

pytestmark = pytest.mark.train
TEXT = ["Turn on lamp 42 in room 7, please.", "the lamp is on and the heater is off", "call 1234567 über größe"]


@pytest.fixture(params=["llama", "qwen3"])
def checkpoint(tmp_path, request):
    """A small model with a tokenizer that splits digits."""
    for needed in ("torch", "transformers", "trl", "gguf"):
        pytest.importorskip(needed, reason=f"{needed} is missing: pip install -e '.[train]'")
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
    from trl.chat_template_utils import qwen3_training_chat_template

    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    plain.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    plain.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, bos_token=special[1], eos_token=special[2], pad_token=special[0], unk_token=special[0]
    )
    tokenizer.chat_template = qwen3_training_chat_template
    torch.manual_seed(0)
    head = {"llama": 16, "qwen3": 128}[request.param]  # Transformers takes 128 for every Qwen3 in a GGUF file
    config = AutoConfig.for_model(
        request.param, vocab_size=320, hidden_size=32, intermediate_size=64, num_hidden_layers=2, head_dim=head,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True, max_position_embeddings=128,
    )  # fmt: skip
    folder = tmp_path / "model"
    AutoModelForCausalLM.from_config(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_the_file_is_the_same_model(checkpoint, tmp_path):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from trajsmith.train_sft.gguf_export import export_gguf
    from trajsmith.train_sft.gguf_files import open_gguf_tokenizer

    file = tmp_path / "out" / "model.gguf"
    export_gguf(checkpoint, file)
    assert [path.name for path in file.parent.iterdir()] == ["model.gguf"]
    before = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    after = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    weights, restored = before.state_dict(), after.state_dict()
    assert weights.keys() == restored.keys()
    assert all(torch.equal(weights[name], restored[name]) for name in weights)
    own = AutoTokenizer.from_pretrained(checkpoint)
    read, _ = open_gguf_tokenizer(file)
    for text in TEXT:
        assert read(text)["input_ids"] == own(text)["input_ids"]
        assert read.decode(read(text)["input_ids"]) == text
    ids = torch.tensor([own(TEXT[0])["input_ids"]])
    with torch.no_grad():
        assert torch.allclose(before(ids).logits, after(ids).logits, atol=1e-5)


def test_bytes_are_read_as_bytes_whatever_the_conversion_says(checkpoint, tmp_path, monkeypatch):
    """Transformers 5.17 puts decoders of another kind of tokenizer first; grammars then do not find the line break."""
    from llguidance.hf import from_tokenizer
    from tokenizers import decoders
    from transformers import AutoTokenizer

    from trajsmith.train_sft.gguf_export import export_gguf
    from trajsmith.train_sft.gguf_files import open_gguf_tokenizer

    file = tmp_path / "out" / "model.gguf"
    export_gguf(checkpoint, file)
    convert = AutoTokenizer.from_pretrained

    def convert_as_5_17(*args, **options):
        tokenizer = convert(*args, **options)
        others = [decoders.ByteFallback(), decoders.Fuse(), decoders.Replace("\u2581", " "), decoders.ByteLevel()]
        tokenizer.backend_tokenizer.decoder = decoders.Sequence(others)
        return tokenizer

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", convert_as_5_17)
    read, _ = open_gguf_tokenizer(file)
    assert from_tokenizer(read).decode_bytes(read("a\nb", add_special_tokens=False)["input_ids"]) == b"a\nb"


def test_the_template_renders_as_before(checkpoint):
    from transformers import AutoTokenizer

    from trajsmith.train_sft.gguf_export import replace_generation_tags

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    call = {"id": "c", "type": "function", "function": {"name": "turn_on", "arguments": {"lamp": 42}}}
    rows = [
        {"role": "user", "content": TEXT[0]},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "name": "turn_on", "content": "{}"},
        {"role": "assistant", "content": "Done."},
    ]
    plain = replace_generation_tags(tokenizer.chat_template)
    assert "generation %" not in plain and "generation %" in tokenizer.chat_template
    assert tokenizer.apply_chat_template(rows, tokenize=False, chat_template=plain) == tokenizer.apply_chat_template(
        rows, tokenize=False
    )


def test_what_cannot_be_written_is_one_line(checkpoint, tmp_path):
    import json

    from trajsmith.train_sft.gguf_export import export_gguf

    state = json.loads((checkpoint / "tokenizer.json").read_text())
    state["pre_tokenizer"] = {"type": "Whitespace"}
    (checkpoint / "tokenizer.json").write_text(json.dumps(state))
    with pytest.raises(InputError, match=r"its tokenizer \(Whitespace\) cannot be written as GGUF"):
        export_gguf(checkpoint, tmp_path / "model.gguf")
    assert not (tmp_path / "model.gguf").exists()
