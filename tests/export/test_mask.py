"""The mask preview with a tokenizer trained here and the Qwen3 template that TRL ships."""

import re

import pytest
from samples import make_item, make_spec

from trajsmith.export import FORMATS, FormatSettings, build_row
from trajsmith.export.formats import ExportItem
from trajsmith.export.loss_mask import MaskPreview, render_mask_page
from trajsmith.models.transformers_engine import open_tokenizer
from trajsmith.records import InputError, RecordDropped

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers", "trl"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")

SPEC = make_spec()
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ADDED = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
MARKED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}"
    "{{ BODY }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}"
    "<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def row_of(turns: int = 2) -> dict:
    return build_row(*make_item(0, turns), SPEC)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a small byte-level BPE, trained on the rows themselves."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast
    from trl import chat_template_utils

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([str(row_of(turns)) for turns in (1, 2, 3)], trainer)
    made.add_tokens([AddedToken(text, special=False, normalized=False) for text in ADDED])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    wrapped.chat_template = chat_template_utils.qwen3_chat_template
    folder = tmp_path_factory.mktemp("model")
    wrapped.save_pretrained(folder)
    return folder


@pytest.fixture
def tokenizer(model):
    return open_tokenizer(str(model))


def with_body(tokenizer, body: str):
    tokenizer.chat_template = MARKED.replace("{{ BODY }}", body)
    return tokenizer


def learnt(masked) -> str:
    return "".join(piece.text for piece in masked.pieces if piece.loss)


def refusal(preview: MaskPreview, row: dict) -> RecordDropped:
    with pytest.raises(RecordDropped) as dropped:
        preview.inspect_row(row, "r")
    return dropped.value


def test_the_assistants_words_and_calls_are_learnt_and_nothing_else(tokenizer):
    row = row_of()
    masked = MaskPreview(tokenizer).inspect_row(row, "r")
    text, whole = learnt(masked), "".join(piece.text for piece in masked.pieces)
    for message in row["messages"]:
        stands = message["content"].strip() in text
        assert stands == (message["role"] == "assistant") or not message["content"], message
        assert message["content"].strip() in whole
    assert text.count("<tool_call>") == 2 * 4 and "<tool_response>" not in text and "Tag it too." in text
    assert '"tags": [{"key": "größe", "value": {"n": 3.28, "none": null, "empty": {}, "list": []}}]' in text
    assert 0 < masked.trained < masked.tokens


def test_no_empty_reasoning_is_trained_before_messages_that_carry_none(tokenizer):
    row = row_of()
    masked = MaskPreview(tokenizer).inspect_row(row, "r")
    carried = sum("reasoning_content" in message for message in row["messages"])
    assert learnt(masked).count("<think>") == carried > 0
    assert masked.empty_think_blocks == 0
    for message in row["messages"]:
        message.pop("reasoning_content", None)
    assert "<think>" not in "".join(piece.text for piece in MaskPreview(tokenizer).inspect_row(row, "r").pieces)


def test_empty_reasoning_of_another_template_is_counted_and_shown(tmp_path, tokenizer, capsys):
    from trajsmith.cli.export import preview_mask
    from trajsmith.export import DatasetWriter

    row = row_of(1)
    body = "<think>\n{{ m.reasoning_content or '' }}\n</think>\n\n{{ m.content }}"
    masked = MaskPreview(with_body(tokenizer, body)).inspect_row(row, "r")
    empty = sum(m["role"] == "assistant" and not m.get("reasoning_content") for m in row["messages"])
    assert masked.empty_think_blocks == empty > 0 and learnt(masked).count("<think>\n\n</think>") == empty
    tokenizer.save_pretrained(tmp_path / "model")
    with DatasetWriter(tmp_path / "dataset") as writer:
        writer.write(row)
    preview_mask(tmp_path / "dataset", str(tmp_path / "model"), 1, None, None)
    assert f"empty <think></think> in the loss: {empty} in 1 rows" in capsys.readouterr().out


def test_of_a_cut_row_only_the_completion_is_learnt(tokenizer):
    item = make_item(0, 2)
    for name in ("per_step", "per_turn", "prompt_completion"):
        source = ExportItem(*item, SPEC, build_row(*item, SPEC), "train", {}.__getitem__)
        rows = list(FORMATS.get(name).rows(source, FormatSettings()))
        for row in rows:
            text = learnt(MaskPreview(tokenizer).inspect_row(row, row["id"]))
            calls = sum(len(message.get("tool_calls", ())) for message in row["completion"])
            assert text.count("<tool_call>") == calls
            assert text.count("<|im_end|>") == sum(m["role"] == "assistant" for m in row["completion"])


def test_rows_that_arrow_filled_with_nulls_are_refused(tokenizer):
    """What datasets makes of the same rows without declared features."""
    from datasets import Dataset

    first, second = row_of(1), row_of(1)
    second["tools"] = second["tools"][:2]
    rows = Dataset.from_list([{key: row[key] for key in ("messages", "tools")} for row in (first, second)])
    refused = refusal(MaskPreview(tokenizer), rows[0])
    assert refused.reason == "null_key"


@pytest.mark.parametrize(
    ("tool", "argument", "kept"),
    [
        pytest.param("list_orders", "limit", True, id="the-schema-lets-it-be-null"),
        pytest.param("find_order", "order_id", False, id="the-schema-wants-text"),
        pytest.param("find_order", "limit", False, id="not-in-the-schema"),
    ],
)
def test_null_arguments_are_kept_where_the_schema_takes_them(tokenizer, tool, argument, kept):
    row = row_of(1)
    row["messages"][2]["tool_calls"][0]["function"] = {"name": tool, "arguments": {argument: None}}
    if kept:
        MaskPreview(tokenizer).inspect_row(row, "r")
    else:
        refused = refusal(MaskPreview(tokenizer), row)
        assert (refused.reason, refused.detail) == ("null_key", f"message 2: argument {argument} of {tool}")


def test_truncation_is_counted_and_truncation_to_nothing_refused(tokenizer):
    whole = MaskPreview(tokenizer).inspect_row(row_of(), "r")
    cut = MaskPreview(tokenizer, whole.tokens - 50).inspect_row(row_of(), "r")
    assert whole.lost == 0 < cut.lost <= 50
    refused = refusal(MaskPreview(tokenizer, 100), row_of())
    assert refused.reason == "truncated_to_nothing"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param("{{ m.content }}", "reasoning_dropped", id="reasoning"),
        pytest.param("{{ m.reasoning_content or '' }}{{ '' if m.tool_calls else m.content }}", "content_dropped",
                     id="content-beside-calls"),
        pytest.param("{{ m.reasoning_content or '' }}{{ m.content }}{{ messages | length }}",
                     "template_not_prefix_preserving", id="depends-on-what-follows"),
        pytest.param("{{ raise_exception('no') }}", "template_fails", id="fails"),
    ],
)  # fmt: skip
def test_damage_by_a_template_is_refused_with_its_reason(tokenizer, body, reason):
    preview = MaskPreview(with_body(tokenizer, "{{ m.reasoning_content or '' }}{{ m.content }}"))
    assert preview.inspect_row(row_of(), "r").trained
    preview.template = MARKED.replace("{{ BODY }}", body)
    assert refusal(preview, row_of()).reason == reason


def test_a_template_without_generation_markers_has_no_training_template(tokenizer):
    tokenizer.chat_template = tokenizer.chat_template + "\n"
    with pytest.raises(InputError, match="no training template for this chat template"):
        MaskPreview(tokenizer)


def test_no_model_and_no_template_are_one_line(tmp_path, model):
    with pytest.raises(InputError, match="no tokenizer there"):
        open_tokenizer(str(tmp_path))
    made = open_tokenizer(str(model))
    made.chat_template = None
    made.save_pretrained(tmp_path / "bare")
    (tmp_path / "bare" / "chat_template.jinja").unlink(missing_ok=True)
    with pytest.raises(InputError, match="has no chat template"):
        open_tokenizer(str(tmp_path / "bare"))


def test_a_dataset_of_another_shape_is_one_line(tokenizer):
    with pytest.raises(InputError, match=r"row 3 is no conversation \(columns text\)"):
        MaskPreview(tokenizer).inspect_row({"text": "once"}, "3")


def test_the_page_marks_what_is_learnt_and_escapes_the_rest(tokenizer):
    masked = MaskPreview(tokenizer).inspect_row(row_of(1), "r")
    page = render_mask_page("m", [("tokens", "12")], [masked])
    assert "<script>" not in page and "&lt;/script&gt;" in page
    assert len(re.findall("<b>", page)) == sum(piece.loss for piece in masked.pieces)


def test_a_run_is_previewed_and_damaged_rows_are_named(tmp_path, model, capsys):
    from trajsmith.cli.export import preview_mask
    from trajsmith.export import DatasetWriter
    from trajsmith.records import RunError

    with DatasetWriter(tmp_path / "dataset") as writer:
        for turns in (1, 2, 3):
            writer.write(row_of(turns))
    preview_mask(tmp_path / "dataset", str(model), 1, tmp_path / "page.html", None)
    said = capsys.readouterr().out
    assert "rows that can be trained on: 3 of 3" in said and "prefix-preserving on all 3 rows" in said
    assert re.search(r"p50 \d+, p99 \d+, longest \d+", said)
    assert (tmp_path / "page.html").is_file()
    with pytest.raises(RunError, match="3 rows would be damaged"):
        preview_mask(tmp_path / "dataset", str(model), 0, None, 60)
    assert "refused: truncated_to_nothing: 3 (first traj_" in capsys.readouterr().out
    with pytest.raises(InputError, match="no dataset at"):
        preview_mask(tmp_path / "none", str(model), 0, None, None)
    with pytest.raises(InputError, match="--preview needs --model"):
        preview_mask(tmp_path / "dataset", "", 0, None, None)
