"""Load rows with axolotl's own configuration, loader and chat template strategy for SFT. Prints JSON lines.

python read_axolotl.py DATASET
"""

import importlib.metadata
import json
import os
import sys
import tempfile
from pathlib import Path

OUT, sys.stdout = sys.stdout, sys.stderr  # its loggers write to standard output
os.environ |= {"AXOLOTL_DO_NOT_TRACK": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}

CONFIG = """
base_model: {scratch}/model
datasets:
  - path: {dataset}
    split: train
    type: chat_template
    field_messages: messages
    field_tools: tools
    roles_to_train: [assistant]
chat_template: tokenizer_default
special_tokens: {{pad_token: "<|endoftext|>"}}
sequence_len: 60000
micro_batch_size: 1
gradient_accumulation_steps: 1
num_epochs: 1
learning_rate: 0.0001
optimizer: adamw_torch
dataset_num_proc: 1
dataset_prepared_path: {scratch}/prepared
output_dir: {scratch}/out
"""


def main(dataset):
    from axolotl.cli.config import load_cfg
    from axolotl.common.datasets import load_datasets
    from byte_tokenizer import build_tokenizer
    from transformers import Qwen3Config

    with tempfile.TemporaryDirectory() as scratch:
        tokenizer = build_tokenizer()
        tokenizer.save_pretrained(f"{scratch}/model")
        small = {"vocab_size": 300, "hidden_size": 8, "num_hidden_layers": 1, "architectures": ["Qwen3ForCausalLM"]}
        Qwen3Config(**small).save_pretrained(f"{scratch}/model")
        config = Path(scratch) / "config.yaml"
        config.write_text(CONFIG.format(scratch=scratch, dataset=dataset))
        for row in load_datasets(cfg=load_cfg(str(config))).train_dataset:
            learnt = tokenizer.decode([one for one in row["labels"] if one >= 0])
            OUT.write(json.dumps({"text": tokenizer.decode(row["input_ids"]), "learnt": learnt}) + "\n")
    OUT.write(json.dumps({"version": importlib.metadata.version("axolotl")}) + "\n")


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
