"""Fine-tune a model on the dataset of a run, with TRL's SFTTrainer behind one configuration.

    python examples/sft.py                # what would be done
    python examples/sft.py --train        # do it: needs pip install 'trajsmith[train]'

The model is a tiny one with random weights, made here, so that two steps run on a CPU. For a real one leave out
`scratch` and set `model="Qwen/Qwen3-4B"`; configs/sft_qwen3.yaml has settings for one GPU.
"""

import sys
from pathlib import Path

import trajsmith as ts
from trajsmith.train_sft import ScratchSettings, SftConfig

DATA = {
    "name": "sft-data",
    "seed": 7,
    "environments": [{"library": "smart_home", "states": {"small": 8}}],
    "sample": {"count": 40, "length": [1, 1]},
    "ground": {"min_calls": 1},
    "write": {"mean_calls": 3, "direct": 1.0, "shown_tools": 2, "policy": False},
}


def main() -> None:
    run = ts.run(DATA, run="runs/sft-data", fresh=True)
    config = SftConfig(
        scratch=ScratchSettings(hidden=32, layers=1, heads=2),
        dataset=run.path,
        out=Path("models/sft"),
        max_length=1024,
        trainer={"max_steps": 2, "per_device_train_batch_size": 4},
    )
    print(f"fine-tune on {len(list(run.rows()))} rows of {run.path}, at most {config.max_length} tokens each")
    print(f"trainer settings: {config.trainer}; model into {config.out}")
    if "--train" in sys.argv:
        from trajsmith.train_sft.training import train

        plan = train(config)
        print(f"trained on {len(plan.rows)} rows, {plan.trained} of {plan.tokens} tokens in the loss")


if __name__ == "__main__":
    main()
