"""Exported rows go through TRL's own checks and its shipped Qwen3 training template, with a tokenizer made here."""

import asyncio
import re

import pytest

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers", "trl"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ADDED = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
CONFIG = """
name: trl
seed: 11
run: {run}
environments:
  - {{library: bank, states: {{small: 1}}}}
  - {{library: mobile_care, states: {{small: 1}}}}
  - {{library: travel, states: {{small: 1}}}}
sample: {{count: 12, length: [4, 7]}}
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of a small run as `datasets` gives them to a trainer."""
    import datasets

    from trajsmith.pipeline.config import load_config
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.pipeline.runner import run_pipeline
    from trajsmith.pipeline.yaml_settings import dump_settings

    folder = tmp_path_factory.mktemp("trl")
    (folder / "line.yaml").write_text(CONFIG.format(run=folder / "run"))
    settings = load_config(folder / "line.yaml")
    asyncio.run(run_pipeline(RunDirectory.create(settings.run, dump_settings(settings))))
    return datasets.load_dataset(str(settings.run / "dataset"), split="train", cache_dir=str(folder / "cache"))


@pytest.fixture(scope="module")
def tokenizer():
    """One token per byte, and Qwen3's special ones; with the training template that TRL ships for Qwen3."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from trl import chat_template_utils

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    made.add_tokens([AddedToken(text, special=False, normalized=False) for text in ADDED])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    wrapped.chat_template = chat_template_utils.qwen3_chat_template
    wrapped.chat_template = chat_template_utils.get_training_chat_template(wrapped)
    return wrapped


def rendered(tokenizer, row):
    """The whole text, and the pieces of it that are trained on."""
    found = tokenizer.apply_chat_template(
        row["messages"], tools=row["tools"], return_dict=True, return_assistant_tokens_mask=True
    )
    ids, mask = found["input_ids"], found["assistant_masks"]
    assert len(ids) == len(mask)
    pieces, current = [], []
    for token, trained in zip([*ids, None], [*mask, 0], strict=True):
        if trained:
            current.append(token)
        elif current:
            pieces.append(tokenizer.decode(current))
            current = []
    return tokenizer.decode(ids), pieces


def test_trl_takes_the_rows_for_conversations(rows):
    from trl import is_conversational

    assert len(rows) >= 10
    for row in rows:
        assert is_conversational({"messages": row["messages"]})


def test_only_what_the_assistant_says_is_trained_on(rows, tokenizer):
    for row in rows:
        _, pieces = rendered(tokenizer, row)
        said = [message for message in row["messages"] if message["role"] == "assistant"]
        assert len(pieces) == len(said), row["id"]
        for piece, message in zip(pieces, said, strict=True):
            assert piece.rstrip("\n").endswith("<|im_end|>"), row["id"]
            assert message["content"] in piece, row["id"]
            assert re.findall(r'<tool_call>\n\{"name": "(\w+)"', piece) == [
                call["function"]["name"] for call in message.get("tool_calls", [])
            ], row["id"]


def test_nothing_that_others_say_is_trained_on(rows, tokenizer):
    answers = 0
    for row in rows:
        text, pieces = rendered(tokenizer, row)
        trained = "".join(pieces)
        assert "<tool_response>" in text
        for marker in ("<tool_response>", "<|im_start|>user", "<|im_start|>system", "<tools>"):
            assert marker not in trained, row["id"]
        for message in row["messages"]:
            if message["role"] != "assistant":
                assert message["content"] in text, row["id"]
                assert len(message["content"]) < 40 or message["content"] not in trained, row["id"]
                answers += message["role"] == "tool"
    assert answers > 0


def test_schemas_and_arguments_are_rendered_as_they_are(rows, tokenizer):
    """Arrow likes to fill rows up with nulls; the model would learn to write them."""
    import orjson

    for row in rows:
        text, pieces = rendered(tokenizer, row)
        shown = text.split("<tools>\n")[1].split("\n</tools>")[0].splitlines()
        assert [orjson.loads(line) for line in shown] == row["tools"]
        for tool in row["tools"]:
            assert null_keys(tool) == [], row["id"]
        called = [orjson.loads(body) for body in re.findall(r"<tool_call>\n(.*?)\n</tool_call>", "".join(pieces))]
        wanted = [
            {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
            for message in row["messages"]
            for call in message.get("tool_calls", [])
        ]
        assert called == wanted, row["id"]


def null_keys(schema, path=""):
    """Keys with a null that is no value of its own; `default` and `enum` may hold one."""
    if isinstance(schema, dict):
        found = [f"{path}/{key}" for key, value in schema.items() if value is None and key != "default"]
        return found + [
            odd for key, value in schema.items() if key != "enum" for odd in null_keys(value, f"{path}/{key}")
        ]
    if isinstance(schema, list):
        return [odd for number, item in enumerate(schema) for odd in null_keys(item, f"{path}/{number}")]
    return []


def test_the_sft_trainer_prepares_the_rows(rows, tokenizer, tmp_path):
    """TRL's own preparation: every row keeps tokens to learn from, and no label outside the assistant's words."""
    import transformers
    from trl import SFTConfig, SFTTrainer

    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, max_position_embeddings=200_000,
    )  # fmt: skip
    settings = SFTConfig(
        output_dir=str(tmp_path), assistant_only_loss=True, max_length=None, report_to=[], use_cpu=True, bf16=False
    )
    trainer = SFTTrainer(
        transformers.Qwen3ForCausalLM(config),
        args=settings,
        train_dataset=rows.select_columns(["messages", "tools"]),
        processing_class=tokenizer,
    )
    prepared = trainer.train_dataset
    assert len(prepared) == len(rows)
    for row, tokens in zip(rows, prepared, strict=True):
        _, pieces = rendered(tokenizer, row)
        kept = [label for label in tokens["labels"] if label != -100]
        assert tokenizer.decode(kept) == "".join(pieces), row["id"]
