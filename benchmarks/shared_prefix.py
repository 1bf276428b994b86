"""Time of fine-tuning on rows that share their beginning, against the same rows one by one.

python benchmarks/shared_prefix.py MODEL DATASET [--rows 32] [--batch 4] [--shown 6]
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.sort(key=lambda entry: entry == str(Path(__file__).parent))  # benchmarks/grounding.py is not the package


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--shown", type=int, default=6)
    arguments = parser.parse_args()
    import torch

    from trajsmith.train_sft import SftConfig
    from trajsmith.train_sft.checkpoint import open_training_model
    from trajsmith.train_sft.shared_prefix import LabelledRow, group_rows, lay_out_rows
    from trajsmith.train_sft.training import prepare_training
    from trajsmith.train_sft.tree_attention import use_tree_attention

    torch.set_num_threads(1)
    values: dict[str, Any] = {"model": arguments.model, "dataset": arguments.dataset, "out": Path("unused")}
    values |= {"max_length": 2048, "share_prefix": True, "tools": "compact"}
    trainer = {"per_device_train_batch_size": arguments.batch}
    own = prepare_training(SftConfig(**values, trainer=trainer))[1].labelled
    shared = prepare_training(SftConfig(**values, trainer=trainer, shared_tools=arguments.shown))[1].labelled

    def measure(name: str, groups: list[list[LabelledRow]]) -> None:
        """Print CPU seconds of the rows of some groups, forward and backward."""
        rows, tokens, started = 0, 0, time.process_time()
        for group in groups:
            batch = lay_out_rows(group)
            place = {"position_ids": torch.tensor([batch.position_ids])} if len(group) > 1 or tree else {}
            labels = torch.tensor(batch.labels[1:])
            with torch.autocast("cpu", torch.bfloat16):
                states = model.get_decoder()(torch.tensor([batch.input_ids]), use_cache=False, **place)[0][0, :-1]
                logits = model.get_output_embeddings()(states[labels != -100])
                loss = torch.nn.functional.cross_entropy(logits.float(), labels[labels != -100])
            loss.backward()
            model.zero_grad()
            rows, tokens = rows + len(group), tokens + len(batch.input_ids)
        seconds = time.process_time() - started
        print(f"{name}: {rows} rows, {tokens} tokens, {seconds:.1f} CPU s, {rows / seconds:.3f} rows/s", flush=True)

    model = open_training_model(arguments.model)
    few = own[:: max(1, len(own) // (arguments.rows // 2))][: arguments.rows // 2]
    batches = group_rows(shared, arguments.batch)
    some = batches[:: max(1, len(batches) // (arguments.rows // arguments.batch))][: arguments.rows // arguments.batch]
    for tree in (False, True):
        if tree:
            use_tree_attention(model, arguments.model)
        measure(f"row by row{', own attention' if tree else ''}", [[row] for row in few])
    measure(f"{arguments.batch} rows that show the same {arguments.shown} tools", some)
    alike = [row for group in some for row in group]
    measure("the same, row by row", [[row] for row in alike])


if __name__ == "__main__":
    main()
