"""CPU time of a local model's replies: plain attention and prompts one by one, against torch's in one batch.

python benchmarks/local_generation.py MODEL DATASET [--rows 32] [--tokens 48]
"""

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

sys.path.sort(key=lambda entry: entry == str(Path(__file__).parent))  # benchmarks/grounding.py is not the package


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=48)
    arguments = parser.parse_args()
    import torch

    from trajsmith.models import TokenGenerator, plain_attention
    from trajsmith.models.transformers_engine import open_model
    from trajsmith.train_sft import SftConfig
    from trajsmith.train_sft.shared_prefix import IGNORED
    from trajsmith.train_sft.training import prepare_training

    torch.set_num_threads(1)
    values: dict[str, Any] = {"model": arguments.model, "dataset": arguments.dataset, "out": Path("unused")}
    config = SftConfig(**values, max_length=2048, share_prefix=True, tools="compact")
    rows = prepare_training(config)[1].labelled
    model = open_model(arguments.model).eval()
    some = rows[:: max(1, len(rows) // arguments.rows)][: arguments.rows]
    prompts = [list(row.ids[: next(at for at, label in enumerate(row.labels) if label != IGNORED)]) for row in some]
    lengths = sorted(map(len, prompts))
    print(f"{len(prompts)} prompts of {lengths[0]} to {lengths[-1]} tokens, {arguments.tokens} written for each")
    print(f"{'':12} {'first token':>12} {'each further':>13}")
    settings = {"do_sample": False, "eos_token_id": None, "use_cache": True, "return_dict_in_generate": True}
    own = plain_attention.use_plain_attention
    for name in ("torch", "plain", "torch", "plain"):
        plain_attention.use_plain_attention = own if name == "plain" else lambda _: nullcontext(False)
        seconds = []
        alone = TokenGenerator(model, [], 0, prefix_bytes=(1 << 30) * (name == "plain"))
        known = TokenGenerator(model, [], 0, prefix_bytes=4 << 30)
        known.generate(prompts, settings | {"max_new_tokens": 1})
        for generator, tokens in ((alone, 1), (known, arguments.tokens)):
            start = time.process_time()
            generator.generate(prompts, settings | {"max_new_tokens": tokens})
            seconds.append(time.process_time() - start)
        print(f"{name:12} {seconds[0]:10.1f} s {seconds[1] / arguments.tokens:11.3f} s", flush=True)


if __name__ == "__main__":
    main()
