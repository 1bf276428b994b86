"""The tokenizer of models made here, and what their training leaves out."""

import pytest

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers", "trl"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")

TOOL = {
    "type": "function",
    "function": {
        "name": "set_level",
        "description": "Set how far a blind is open.",
        "parameters": {
            "additionalProperties": False,
            "properties": {"device_id": {"description": "Blind.", "type": "string"}},
            "required": ["device_id"],
            "type": "object",
        },
    },
}
SYSTEM = "You are the assistant at work in this environment: a home.\nUse the tools to do what the user asks."


def row(device: str, person: str) -> dict:
    call = {"type": "function", "function": {"name": "set_level", "arguments": {"device_id": device, "name": person}}}
    return {
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"Please open {device} for {person}."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": f'{{"device_id":"{device}"}}'},
            {"role": "assistant", "content": f"Done, {person}."},
        ],
        "tools": [TOOL],
    }


@pytest.fixture(scope="module")
def tokenizer():
    from trajsmith.train_sft.checkpoint import set_templates
    from trajsmith.train_sft.scratch import train_tokenizer

    rows = [row(f"D{number}", person) for number in range(30) for person in ("Mateo Santos", "Ida Berg")]
    return set_templates(train_tokenizer(rows, 1000), "scratch")


def test_identifiers_and_names_are_the_same_tokens_in_a_request_and_in_a_call(tokenizer):
    for text in ("D18", "Mateo Santos"):
        alone = tokenizer(text)["input_ids"]
        for around in (f"Please open {text}.", f'{{"device_id": "{text}", "name": "{text}"}}'):
            ids = tokenizer(around)["input_ids"]
            assert any(ids[start : start + len(alone)] == alone for start in range(len(ids))), (text, around)


def test_bare_words_are_the_same_tokens_at_the_beginning_of_a_value_and_in_a_sentence():
    from trajsmith.train_sft.scratch import train_tokenizer

    def holds(tokenizer):
        alone = tokenizer("pantry")["input_ids"]
        return [alone[0] in tokenizer(text)["input_ids"] for text in ('{"room": "pantry"}', "The pantry is warm.")]

    rows = [row(f"D{number}", "pantry") for number in range(30)]
    assert holds(train_tokenizer(rows, 1000)) == [True, False]
    assert holds(train_tokenizer(rows, 1000, bare_words=True)) == [True, True]


def test_every_message_ends_with_the_end_token_and_texts_come_back(tokenizer):
    messages = row("D7", "Ida Berg")["messages"]
    text = tokenizer.apply_chat_template(messages, tools=[TOOL], tokenize=False)
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert ids.count(tokenizer.eos_token_id) == len(messages)


def test_what_every_row_repeats_is_one_token_and_what_differs_is_not(tokenizer):
    pieces = [tokenizer.decode([token]) for token in tokenizer(f"{SYSTEM}\nPlease open D7 for Ida Berg.")["input_ids"]]
    assert pieces[:3] == [SYSTEM.split("\n")[0], "\n", SYSTEM.split("\n")[1]]
    assert {"D7", "Ida", "Berg"} <= set(pieces)


def test_leaving_out_what_is_masked_changes_neither_loss_nor_gradients(tokenizer, monkeypatch):
    import torch
    from trl.trainer import utils

    from trajsmith.train_sft.libraries import restrict_logits_to_loss_tokens
    from trajsmith.train_sft.scratch import create_model
    from trajsmith.train_sft.settings import ScratchSettings

    if torch.cuda.is_available():
        pytest.skip("only what a machine without an accelerator does is examined here")
    ids = torch.tensor([tokenizer("Please open D7 for Ida Berg.")["input_ids"]])
    labels = ids.clone()
    labels[:, :5] = -100

    def losses() -> tuple[float, list]:
        model = create_model(tokenizer, ScratchSettings(hidden=16, layers=1, heads=2))
        utils.add_fused_lm_head(model, outputs=("log_probs", "entropy", "is_top1"))
        loss = model(input_ids=ids, labels=labels, fused_lm_head=True).loss
        loss.backward()
        return loss.item(), [parameter.grad for parameter in model.parameters()]

    monkeypatch.setattr(utils, "_use_triton", lambda device: False)
    whole, gradients = losses()
    restrict_logits_to_loss_tokens()
    seen = []
    apply = utils._ChunkedLogProbFunction.apply
    monkeypatch.setattr(
        utils._ChunkedLogProbFunction, "apply", lambda hidden, *rest: seen.append(len(hidden)) or apply(hidden, *rest)
    )
    less, others = losses()
    assert seen == [int((labels[:, 1:] != -100).sum())]
    assert less == pytest.approx(whole, rel=1e-5)
    for one, other in zip(gradients, others, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
