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
    from trajsmith.train_sft.shared_prefix import IGNORED, LabelledRow, group_rows, lay_out_rows
    from trajsmith.train_sft.training import prepare_training
    from trajsmith.train_sft.tree_attention import use_tree_attention

    torch.set_num_threads(1)
    values: dict[str, Any] = {"model": arguments.model, "dataset": arguments.dataset, "out": Path("unused")}
    values |= {"max_length": 2048, "share_prefix": True, "tools": "compact"}
    trainer = {"per_device_train_batch_size": arguments.batch}
    own = prepare_training(SftConfig(**values, trainer=trainer))[1].labelled
    shared = prepare_training(SftConfig(**values, trainer=trainer, shared_tools=arguments.shown))[1].labelled
    batches = group_rows(shared, arguments.batch)
    count = arguments.rows // arguments.batch
    some = batches[:: max(1, len(batches) // count)][:count]
    few = own[:: max(1, len(own) // arguments.rows)][: arguments.rows]
    plain, tree = open_training_model(arguments.model), open_training_model(arguments.model)
    use_tree_attention(tree, arguments.model)

    def measure(model: Any, rows: list[LabelledRow]) -> tuple[int, int, float]:
        """Return rows, tokens and CPU seconds of one sequence, forward and backward."""
        batch, started = lay_out_rows(rows), time.process_time()
        place = {"position_ids": torch.tensor([batch.position_ids])} if model is tree else {}
        labels = torch.tensor(batch.labels[1:])
        with torch.autocast("cpu", torch.bfloat16):
            states = model.get_decoder()(torch.tensor([batch.input_ids]), use_cache=False, **place)[0][0, :-1]
            logits = model.get_output_embeddings()(states[labels != IGNORED])
            loss = torch.nn.functional.cross_entropy(logits.float(), labels[labels != IGNORED])
        loss.backward()
        model.zero_grad()
        return len(rows), len(batch.input_ids), time.process_time() - started

    ways: dict[str, list[tuple[int, int, float]]] = {}
    for number, group in enumerate(some):  # in turn, since other work on the machine comes and goes
        mine = few[number * arguments.batch : (number + 1) * arguments.batch]
        ways.setdefault("own tools, row by row, torch's attention", []).extend(measure(plain, [row]) for row in mine)
        ways.setdefault("same tools, row by row, torch's attention", []).extend(measure(plain, [row]) for row in group)
        ways.setdefault("same tools, row by row, attention over a tree", []).extend(
            measure(tree, [row]) for row in group
        )
        ways.setdefault("same tools, one sequence a batch, attention over a tree", []).append(measure(tree, group))
    for name, parts in ways.items():
        rows, tokens, seconds = (sum(values) for values in zip(*parts, strict=True))
        print(f"{name}: {rows} rows, {tokens} tokens, {seconds:.1f} CPU s, {rows / seconds:.3f} rows/s")


if __name__ == "__main__":
    main()
