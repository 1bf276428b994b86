"""Load rows with LLaMA-Factory's own loader, converter and template for SFT. Prints JSON lines."""

import importlib.metadata
import json
import sys
import tempfile

OUT, sys.stdout = sys.stdout, sys.stderr  # its loggers write to standard output

from byte_tokenizer import build_tokenizer  # noqa: E402
from llamafactory.data import get_dataset, get_template_and_fix_tokenizer  # noqa: E402
from llamafactory.hparams import get_train_args  # noqa: E402


def main(folder, *names):
    with tempfile.TemporaryDirectory() as scrap:
        model_args, data_args, training_args, _, _ = get_train_args({
            "stage": "sft", "do_train": True, "model_name_or_path": scrap, "dataset": ",".join(names),
            "dataset_dir": folder, "template": "qwen3", "finetuning_type": "full", "output_dir": f"{scrap}/out",
            "cutoff_len": 200_000, "report_to": "none", "use_cpu": True, "bf16": False,
        })  # fmt: skip
        tokenizer = build_tokenizer()
        template = get_template_and_fix_tokenizer(tokenizer, data_args)
        loaded = get_dataset(template, model_args, data_args, training_args, stage="sft", tokenizer=tokenizer)
        for row in loaded["train_dataset"]:
            learnt = tokenizer.decode([one for one in row["labels"] if one >= 0])
            OUT.write(json.dumps({"text": tokenizer.decode(row["input_ids"]), "learnt": learnt}) + "\n")
    OUT.write(json.dumps({"version": importlib.metadata.version("llamafactory")}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
