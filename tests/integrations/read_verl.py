"""Read rows with verl's own dataset classes, those for SFT through the class beside the data. Prints JSON lines."""

import importlib.metadata
import importlib.util
import json
import sys
from pathlib import Path

from byte_tokenizer import build_tokenizer
from omegaconf import OmegaConf
from verl.utils.dataset.rl_dataset import RLHFDataset


def load_reader(folder):
    """Return the class that verl's `data.custom_cls` names."""
    spec = importlib.util.spec_from_file_location("verl_dataset", folder / "verl_dataset.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.JsonColumns


def main(sft, rl):
    tokenizer = build_tokenizer()
    files = sorted(map(str, (sft / "data").glob("*.parquet")))
    config = OmegaConf.create({"max_length": 200_000, "pad_mode": "no_padding", "truncation": "error"})
    rows = load_reader(sft)(parquet_files=files, tokenizer=tokenizer, config=config)
    for number in range(len(rows)):
        row = rows[number]
        ids, mask = row["input_ids"].tolist(), row["loss_mask"].tolist()
        learnt = tokenizer.decode([one for one, in_loss in zip(ids, mask, strict=True) if in_loss])
        sys.stdout.write(json.dumps({"kind": "sft", "text": tokenizer.decode(ids), "learnt": learnt}) + "\n")
    files = sorted(map(str, (rl / "data").glob("*.parquet")))
    config = OmegaConf.create({"prompt_key": "prompt", "max_prompt_length": 200_000, "filter_overlong_prompts": False})
    prompts = RLHFDataset(data_files=files, tokenizer=tokenizer, config=config, processor=None)
    for number in range(len(prompts)):
        row = prompts[number]
        extra = row["extra_info"]
        sys.stdout.write(json.dumps({
            "kind": "rl", "task": json.loads(row["reward_model"]["ground_truth"])["id"], "task_id": extra["task_id"],
            "prompt": row["raw_prompt"], "tools": len(json.loads(extra["tools"])),
        }) + "\n")  # fmt: skip
    sys.stdout.write(json.dumps({"version": importlib.metadata.version("verl")}) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
