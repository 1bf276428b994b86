"""Generated tokens as messages: what a model wrote is what it is shown again."""

import pytest

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers", "trl"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")

CALL = '<tool_call>\n{"name": "look_up", "arguments": {"word": "a"}}\n</tool_call>'
ASKED = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def tokenizer():
    from trajsmith.train_sft.checkpoint import set_templates
    from trajsmith.train_sft.scratch import train_tokenizer

    rows = [{"messages": [{"role": "user", "content": "hello there, what is it?"}], "tools": []}]
    return set_templates(train_tokenizer(rows, 600), "scratch")


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        pytest.param(f"<think>\nI look.\nTwice.\n</think>\n\n{CALL}<|im_end|>", "I look.\nTwice.", id="before-a-call"),
        pytest.param("<think>\nI know.\n</think>\n\nDone.<|im_end|>", "I know.", id="before-an-answer"),
        pytest.param(f"{CALL}<|im_end|>", None, id="a-call-without-reasoning"),
        pytest.param("Done.<|im_end|>", None, id="an-answer-without-reasoning"),
        pytest.param("<think>\n\n</think>\n\nDone.<|im_end|>", "", id="an-empty-block"),
    ],
)
def test_a_message_is_rendered_again_as_the_model_wrote_it(tokenizer, text, reasoning):
    from trajsmith.evals.transformers_model import parse_generated_ids
    from trajsmith.train_grpo.loop import build_template_row

    prefix = tokenizer.apply_chat_template(ASKED, add_generation_prompt=True, return_dict=False)
    ids = tokenizer.encode(text, add_special_tokens=False)
    reply = parse_generated_ids(tokenizer, prefix, ids, [])
    assert reply.message.reasoning_content == reasoning and not reply.broken
    again = tokenizer.apply_chat_template([*ASKED, build_template_row(reply.message)], return_dict=False)
    assert again[: len(prefix) + len(ids)] == prefix + ids
