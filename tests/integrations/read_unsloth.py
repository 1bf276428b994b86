"""Fine-tune a model of random weights by unsloth on a CPU for two steps, and print what is in its loss.

Rows come from `json_text` by the version of datasets that unsloth's studio pins; what is learnt is what unsloth's
`train_on_responses_only` leaves in the loss.

python read_unsloth.py ROWS
"""

import importlib.metadata
import json
import os
import sys
import tempfile
from pathlib import Path

OUT, sys.stdout = sys.stdout, sys.stderr  # unsloth writes to standard output
os.environ |= {"UNSLOTH_DISABLE_STATISTICS": "1", "HF_HUB_OFFLINE": "1", "UNSLOTH_COMPILE_DISABLE": "1"}

from unsloth import FastLanguageModel  # noqa: E402, I001  # before what it patches
from unsloth.chat_templates import train_on_responses_only  # noqa: E402
from byte_tokenizer import build_tokenizer  # noqa: E402
from datasets import load_dataset  # noqa: E402
from transformers import Qwen3Config, Qwen3ForCausalLM  # noqa: E402
from trl import SFTConfig, SFTTrainer  # noqa: E402

LENGTH = 60_000
SMALL = {
    "vocab_size": 304, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": LENGTH,
}  # fmt: skip


def main(folder):
    tokenizer = build_tokenizer()
    with tempfile.TemporaryDirectory() as scratch:
        Qwen3ForCausalLM(Qwen3Config(**SMALL, architectures=["Qwen3ForCausalLM"])).save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        model, tokenizer = FastLanguageModel.from_pretrained(scratch, max_seq_length=LENGTH, load_in_4bit=False)
        model = FastLanguageModel.get_peft_model(model, r=4, use_gradient_checkpointing=False)
        rows = load_dataset(folder, split="train")

        def render(row):
            messages, tools = json.loads(row["messages"]), json.loads(row["tools"])
            return {"text": tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)}

        texts = rows.map(render, remove_columns=rows.column_names)
        arguments = SFTConfig(
            output_dir=f"{scratch}/out", max_steps=2, per_device_train_batch_size=1, max_length=LENGTH,
            report_to="none", use_cpu=True, dataset_text_field="text", save_strategy="no", dataset_num_proc=1,
        )  # fmt: skip
        trainer = SFTTrainer(model=model, processing_class=tokenizer, train_dataset=texts, args=arguments)
        ends = {"instruction_part": "<|im_start|>user\n", "response_part": "<|im_start|>assistant\n"}
        trainer = train_on_responses_only(trainer, **ends, num_proc=1)
        for row in trainer.train_dataset:
            learnt = tokenizer.decode([one for one in row["labels"] if one >= 0])
            OUT.write(json.dumps({"text": tokenizer.decode(row["input_ids"]), "learnt": learnt}) + "\n")
        trainer.train()
    about = {"version": importlib.metadata.version("unsloth"), "steps": trainer.state.global_step}
    OUT.write(json.dumps(about | {"datasets": importlib.metadata.version("datasets")}) + "\n")


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
